"""Large tensors in several layouts: values, strides and gradients beside PyTorch's.

The samples of other suites are small, and compiled kernels begin at some thousand elements. Here
every call has enough of them, and operands that are transposed, of every second element, repeated
along a dimension, or images with channels last, also as a part of more channels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

ANY = """
torch.abs(x) | torch.sin(x) | torch.tanh(x) | torch.exp(x) | torch.sqrt(x.abs()) | torch.erf(x) | x.round()
F.gelu(x) | F.silu(x) | F.leaky_relu(x) | F.elu(x) | F.softplus(x) | F.hardswish(x) | F.logsigmoid(x)
x.sum(0) | x.sum(1) | x.sum(-1) | x.sum() | x.sum((0, -1)) | x.mean(0) | x.mean(1, True) | x.prod(-1)
x.amax(0) | x.amin(-1) | x.var(0) | x.var(-1) | x.var((0, 1)) | x.norm(dim=1) | x.logsumexp(1) | x.std()
x.argmax(1) | x.max(1)[0] | x.min(0)[0] | x.cumsum(0) | x.cumsum(-1) | x.cumprod(1) | x.logcumsumexp(1)
x.softmax(0) | x.softmax(1) | x.softmax(-1) | x.log_softmax(1) | x.cummax(1)[0] | x.flip(0) | x.flip((0, 1))
x + x | x * x[:1] | x * x[..., :1] | x / 2 | 1 - x | x**3 | x % 0.7 | x > 0.1 | x == x
torch.where(x > 0, x, -x) | torch.where(x > 0, x, 2.0) | x.masked_fill(x > 0, 2.0) | x[x > 0] | x.clamp(-0.5, 0.5)
x.lerp(x * 2, 0.3) | torch.addcmul(x, x, x, value=0.5) | torch.addcdiv(x, x, x + 9) | x.clamp(min=x * 0.5)
torch.cat([x, x], 0) | torch.cat([x, x * 2], 1) | torch.stack([x, x], 1) | torch.stack([x, x], -1) | x.roll(3, 1)
x.roll((1, 2), (0, 1)) | x.repeat_interleave(2, 1) | x.contiguous() | x.clone() | x.reshape(-1) | x.tril() | x.triu(1)
x.transpose(0, 1).contiguous() | x.gather(1, (x * 0).long() + 1) | x.gather(0, (x * 0).long() + 1)
x.scatter(1, (x * 0).long()[:, :1] + 1, x[:, :1]) | x.scatter_add(0, (x * 0).long(), x) | x.index_select(1, i)
x[i] | x[:, i] | x[i, i] | x.index_add(0, i, x[:2]) | x.index_put((i,), x[0]) | torch.nonzero(x > 0)
x.double() | x.half() | x.bfloat16() | x.long() | x.bool() | F.mse_loss(x, x * 2) | F.smooth_l1_loss(x, x * 2)
F.layer_norm(x, x.shape[-1:]) | F.rms_norm(x, x.shape[-1:]) | F.normalize(x, dim=1) | F.pad(x, (1, 2)) | F.glu(x, -1)
x @ x.transpose(-1, -2) | x.transpose(-1, -2) @ x | F.linear(x, x.new_ones(5, x.shape[-1]) / 9) | (x * 1).mul_(0.5)
F.binary_cross_entropy_with_logits(x, x.detach().sigmoid()) | F.dropout(x, 0.3) | x.clone().add_(x[:1])
torch.zeros_like(x).copy_(x) | x.new_zeros(x.shape[::-1]).permute(*range(x.ndim)[::-1]).copy_(x) | (x * 1).fill_(2)
F.cross_entropy(x, (x[:, 0] * 0).long()) | F.kl_div(x, x.detach().sigmoid(), reduction="sum") | x.diff(dim=1)
(x * 1).relu_() | (x * 1).exp_() | x.clone().clamp_(0, 1)
"""
IMAGES = """
F.conv2d(x, w, padding=1) | F.conv2d(x, w, stride=2) | F.conv2d(x, w, dilation=2, padding=2) | F.max_pool2d(x, 2)
F.conv2d(x, w[:, :1], groups=x.shape[1]) | F.conv_transpose2d(x, w.transpose(0, 1), stride=2) | F.max_pool2d(x, 3, 2, 1)
F.avg_pool2d(x, 2) | F.avg_pool2d(x, 3, 1, 1) | F.adaptive_avg_pool2d(x, 1) | F.adaptive_avg_pool2d(x, 3)
F.max_pool2d(x, x.shape[2:]) | F.avg_pool2d(x, x.shape[2:]) | F.adaptive_max_pool2d(x, 2) | F.group_norm(x, 2)
F.batch_norm(x, None, None, training=True) | F.batch_norm(x, x.new_ones(8), x.new_ones(8)) | F.instance_norm(x)
F.interpolate(x, scale_factor=2) | F.interpolate(x, scale_factor=2, mode="bilinear") | F.pixel_shuffle(x, 2)
F.unfold(x, 3) | F.pad(x, (1, 1, 1, 1), mode="reflect") | F.local_response_norm(x, 3) | x.flatten(1) | x.mean((2, 3))
F.prelu(x, x.new_ones(8) / 3) | F.dropout2d(x, 0.3) | x.softmax(1)
"""


def calls(text: str) -> list[str]:
    return [call.strip() for line in text.strip().split("\n") for call in line.split("|")]


def layouts(m: Any, a: Any) -> Iterator[tuple[str, Any]]:
    """Tensors of one shape that lie differently, the first as they lie by themselves."""
    yield "in rows", m.tensor(a)
    yield "transposed", m.tensor(np.ascontiguousarray(a.swapaxes(0, -1))).transpose(0, -1)
    yield "every second", m.tensor(np.repeat(a, 2, -1))[..., ::2]
    if a.ndim == 2:
        yield "repeated", m.tensor(np.ascontiguousarray(a[..., :1])).expand(a.shape)
        return
    yield "channels last", m.tensor(a).contiguous(memory_format=m.channels_last)
    more = m.tensor(np.concatenate([a, a], 1)).contiguous(memory_format=m.channels_last)
    yield "part of channels last", more[:, : a.shape[1]]


def answer(m: Any, call: str, x: Any) -> Any:
    """What a call gives, how it lies, and the gradient of x; or the class of an error."""
    m.manual_seed(0)
    weight = (
        np.random.RandomState(5).randn(8, x.shape[1], 3, 3).astype("float32") if x.ndim == 4 else 0
    )
    given = {"torch": m, "F": m.nn.functional, "x": x, "i": m.tensor([1, 0]), "w": m.tensor(weight)}
    made = eval(call, given)
    told = [made.detach().double().numpy(), str(made.dtype).split(".")[-1], made.stride()]
    if made.requires_grad:
        g = m.tensor(np.cos(np.arange(made.numel())).reshape(tuple(made.shape)), dtype=made.dtype)
        made.backward(g)
        told += [x.grad.double().numpy(), x.grad.stride()]
    return told


@pytest.mark.parametrize("shape", [(96, 100), (2, 8, 24, 20)], ids=str)
def test_calls_on_large_tensors(shape: tuple[int, ...]) -> None:
    a = np.random.RandomState(1).randn(*shape).astype("float32")
    differ = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls(ANY) + (calls(IMAGES) if len(shape) == 4 else []):
            for (how, x), (_, y) in zip(layouts(tt, a), layouts(torch, a)):
                ours = answer(tt, call, x.detach().requires_grad_())
                theirs = answer(torch, call, y.detach().requires_grad_())
                assert len(ours) == len(theirs), (call, how)
                for mine, other in zip(ours, theirs):
                    if not isinstance(mine, np.ndarray):
                        same = mine == other
                    else:
                        scale = 1 + np.abs(other[np.isfinite(other)]).max(initial=0)
                        same = mine.shape == other.shape and np.allclose(
                            mine, other, 2e-4, 2e-4 * scale, equal_nan=True
                        )
                    if not same:
                        differ.append(
                            (call, how, *(v for v in (mine, other) if isinstance(v, tuple)))
                        )
    assert not differ
