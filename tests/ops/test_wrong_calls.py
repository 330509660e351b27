"""Wrong calls by family: the class of PyTorch's error, and every size and number that it names.

`test_errors.py` has those of the basic ops, whose wording is compared too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, error_difference, torch, tt

Call = Callable[[Any], Any]


def leaf(m: Any) -> Any:
    return m.ones(2, 3, requires_grad=True)


def write(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def after(x: Any, change: Callable[[Any], Any]) -> Any:
    """The gradient of x·x, whose x was changed on the way."""
    y = x * 1
    z = y * y
    change(y)
    return z.sum().backward()


def twice(x: Any) -> None:
    y = (x * x).sum()
    y.backward()
    y.backward()


def no_grad_view(m: Any) -> Any:
    x = m.ones(3, requires_grad=True) * 1
    with m.no_grad():
        return x, x[:2]


AUTOGRAD: dict[str, Call] = {
    "second backward": lambda m: twice(leaf(m)),
    "saved value written": lambda m: after(leaf(m), lambda y: y.add_(1)),
    "saved value written through a view": lambda m: after(leaf(m), lambda y: y[0].mul_(2)),
    "saved value assigned": lambda m: after(leaf(m), lambda y: write(y, 0, 2.0)),
    "write to a leaf": lambda m: leaf(m).mul_(2),
    "write to a view of a leaf": lambda m: leaf(m)[0].zero_(),
    "assign to a leaf": lambda m: write(leaf(m), 0, 1.0),
    "assign to a leaf by a mask": lambda m: write(leaf(m), leaf(m) > 0, 1.0),
    "write after split": lambda m: (leaf(m) * 1).split(1)[0].mul_(2),
    "write after unbind": lambda m: (leaf(m) * 1).unbind(0)[1].add_(1),
    "write after chunk": lambda m: (leaf(m) * 1).chunk(2, 1)[0].zero_(),
    "write to a view of an unbound view": lambda m: (leaf(m) * 1).unbind(0)[1][:2].add_(1),
    "write to a view made under no_grad": lambda m: no_grad_view(m)[1].add_(1),
    "use of a view after its base was written": lambda m: [
        (x.mul_(2), v + 1) for x, v in [no_grad_view(m)]
    ],
    "backward of a vector": lambda m: (leaf(m) * 2).backward(),
    "backward of a constant": lambda m: m.ones(1).backward(),
    "backward of integers": lambda m: m.tensor([1]).sum().backward(),
    "gradient of another shape": lambda m: (leaf(m) * 2).backward(m.ones(4)),
    "gradient that is a number": lambda m: (leaf(m) * 2).backward(2.0),
    "gradient complex of real": lambda m: (leaf(m) * 2).backward(m.ones(2, 3) * 1j),
    "grad of what was not used": lambda m: m.autograd.grad(
        leaf(m).sum(), m.ones(1).requires_grad_()
    ),
    "grad of what needs none": lambda m: m.autograd.grad(leaf(m).sum(), m.ones(1)),
    "grad of two, one gradient": lambda m: m.autograd.grad(
        [leaf(m).sum(), leaf(m).sum()], leaf(m), [m.tensor(1.0)]
    ),
    "requires_grad_ of integers": lambda m: m.tensor([1, 2]).requires_grad_(),
    "requires_grad_(False) of a result": lambda m: (leaf(m) * 2).requires_grad_(False),
    "detach_ of a view": lambda m: (leaf(m) * 1)[0].detach_(),
    "retain_grad of a constant": lambda m: m.ones(2).retain_grad(),
    "hook on a constant": lambda m: m.ones(2).register_hook(print),
    "grad of another shape": lambda m: setattr(leaf(m), "grad", m.ones(3)),
    "grad of another type": lambda m: setattr(leaf(m), "grad", m.ones(2, 3, dtype=m.float64)),
    "numpy of a leaf": lambda m: leaf(m).numpy(),
    "write to an inference tensor": lambda m: _inference(m).add_(1),
    "inference tensor in a graph": lambda m: _inference(m) * leaf(m),
    "out= with a graph": lambda m: m.mul(leaf(m), 2, out=m.empty(0)),
    "out= too narrow": lambda m: m.mul(m.ones(2), 1.5, out=m.empty(2, dtype=m.int64)),
    "out= of another type": lambda m: m.mm(m.ones(2, 2), m.ones(2, 2), out=m.empty(0).double()),
    "out= expanded": lambda m: m.add(m.ones(3), 1, out=m.ones(1).expand(3)),
    "unused derivative": lambda m: m.heaviside(leaf(m), leaf(m)).sum().backward(),
    "floor_divide": lambda m: (leaf(m) // 2).sum().backward(),
    "unique": lambda m: leaf(m).unique().sum().backward(),
    "func.grad of a vector": lambda m: m.func.grad(lambda x: x * 2)(m.ones(3)),
    "func.jvp shapes": lambda m: m.func.jvp(m.sin, (m.ones(3),), (m.ones(2),)),
    "func.jvp structure": lambda m: m.func.jvp(m.sin, (m.ones(3),), ()),
    "func.vmap sizes": lambda m: m.func.vmap(m.add)(m.ones(3, 2), m.ones(4, 2)),
    "func.vmap in_dims": lambda m: m.func.vmap(m.sin, in_dims=3)(m.ones(3, 2)),
    "func.vmap of nothing": lambda m: m.func.vmap(m.sin)(),
    "func.vmap item": lambda m: m.func.vmap(lambda x: x.sum().item())(m.ones(3, 2)),
    "functional.jacobian of a number": lambda m: m.autograd.functional.jacobian(m.sin, 1.0),
    "functional.hessian of a vector": lambda m: m.autograd.functional.hessian(m.sin, m.ones(3)),
    "functional.hvp shapes": lambda m: m.autograd.functional.hvp(
        lambda x: x.sum(), m.ones(3), m.ones(2)
    ),
}  # fmt: skip


def _inference(m: Any) -> Any:
    with m.inference_mode():
        return m.ones(2, 3)


LINALG: dict[str, Call] = {
    "det of a vector": lambda m: m.linalg.det(m.ones(3)),
    "det not square": lambda m: m.linalg.det(m.ones(2, 3)),
    "det of integers": lambda m: m.linalg.det(m.ones(2, 2, dtype=m.int64)),
    "slogdet not square": lambda m: m.linalg.slogdet(m.ones(4, 2, 3)),
    "inv not square": lambda m: m.linalg.inv(m.ones(3, 2)),
    "inv of a vector": lambda m: m.linalg.inv(m.ones(3)),
    "inv singular": lambda m: m.linalg.inv(m.zeros(2, 2)),
    "inv singular in a batch": lambda m: m.linalg.inv(m.stack([m.eye(2), m.zeros(2, 2)])),
    "solve singular": lambda m: m.linalg.solve(m.ones(2, 2), m.ones(2)),
    "solve sizes": lambda m: m.linalg.solve(m.eye(3), m.ones(4, 2)),
    "solve not square": lambda m: m.linalg.solve(m.ones(2, 3), m.ones(2)),
    "solve types": lambda m: m.linalg.solve(m.eye(2), m.ones(2, dtype=m.float64)),
    "solve_triangular sizes": lambda m: m.linalg.solve_triangular(
        m.eye(3), m.ones(4, 2), upper=True
    ),
    "solve_triangular without upper": lambda m: m.linalg.solve_triangular(m.eye(3), m.ones(3, 2)),
    "cholesky not positive": lambda m: m.linalg.cholesky(-m.eye(3)),
    "cholesky second minor": lambda m: m.linalg.cholesky(m.diag(m.tensor([1.0, -1.0]))),
    "cholesky not square": lambda m: m.linalg.cholesky(m.ones(3, 2)),
    "qr of a vector": lambda m: m.linalg.qr(m.ones(3)),
    "qr mode": lambda m: m.linalg.qr(m.ones(3, 2), mode="full"),
    "svd of a vector": lambda m: m.linalg.svd(m.ones(3)),
    "eigh not square": lambda m: m.linalg.eigh(m.ones(3, 2)),
    "eigh UPLO": lambda m: m.linalg.eigh(m.eye(3), UPLO="X"),
    "eig of infinity": lambda m: m.linalg.eig(m.full((2, 2), float("inf"))),
    "lstsq dims": lambda m: m.linalg.lstsq(m.ones(3), m.ones(3)),
    "matrix_power not square": lambda m: m.linalg.matrix_power(m.ones(2, 3), 2),
    "matrix_norm of a vector": lambda m: m.linalg.matrix_norm(m.ones(3)),
    "matrix_norm order": lambda m: m.linalg.matrix_norm(m.ones(3, 3), ord="x"),
    "matrix_norm that narrows": lambda m: m.linalg.matrix_norm(
        m.ones(3, 3, dtype=m.float16), dtype=m.bfloat16
    ),
    "norm dims": lambda m: m.linalg.norm(m.ones(2, 3), dim=(0, 2)),
    "vector_norm of integers": lambda m: m.linalg.vector_norm(m.tensor([1, 2])),
    "multi_dot of one": lambda m: m.linalg.multi_dot([m.ones(2, 2)]),
    "multi_dot sizes": lambda m: m.linalg.multi_dot([m.ones(2, 3), m.ones(4, 2), m.ones(2, 2)]),
    "cross sizes": lambda m: m.linalg.cross(m.ones(4), m.ones(4)),
    "tensorsolve": lambda m: m.linalg.tensorsolve(m.ones(2, 3), m.ones(2)),
    "householder_product": lambda m: m.linalg.householder_product(m.ones(2, 3), m.ones(2)),
    "vander of a number": lambda m: m.linalg.vander(m.tensor(1.0)),
    "addmm sizes": lambda m: m.addmm(m.ones(2, 2), m.ones(2, 3), m.ones(2, 3)),
    "addmv sizes": lambda m: m.addmv(m.ones(2), m.ones(2, 3), m.ones(2)),
    "baddbmm sizes": lambda m: m.baddbmm(m.ones(1), m.ones(2, 3, 4), m.ones(2, 3, 4)),
    "mm sizes": lambda m: m.mm(m.ones(2, 3), m.ones(2, 3)),
    "tensordot sizes": lambda m: m.tensordot(m.ones(2, 3), m.ones(2, 3), 1),
    "tensordot dims": lambda m: m.tensordot(m.ones(2), m.ones(2), 2),
    "chain of vectors": lambda m: m.dot(m.ones(2), m.ones(2).double()),
    "trace of a vector": lambda m: m.trace(m.ones(3)),
    "norm of three dims": lambda m: m.linalg.norm(m.ones(2, 3), 2, dim=(0, 1, 2)),
    "fft of nothing": lambda m: m.fft.fft(m.ones(3), n=0),
    "fft dim": lambda m: m.fft.fft(m.ones(3), dim=1),
    "fft norm": lambda m: m.fft.fft(m.ones(3), norm="x"),
    "rfft of complex": lambda m: m.fft.rfft(m.ones(3) * 1j),
    "irfft size": lambda m: m.fft.irfft(m.ones(3), n=0),
    "fft2 of a vector": lambda m: m.fft.fft2(m.ones(3)),
    "fftn twice": lambda m: m.fft.fftn(m.ones(3, 3), dim=(0, 0)),
    "fftn lengths": lambda m: m.fft.fftn(m.ones(3, 3), s=(2, 2), dim=(0,)),
    "stft window": lambda m: m.stft(m.ones(8), 4, window=m.ones(3), return_complex=True),
    "stft size": lambda m: m.stft(m.ones(8), 40, return_complex=True, center=False),
    "stft half": lambda m: m.stft(m.ones(8), 40, onesided=True, return_complex=True, center=False),
    "istft half": lambda m: m.istft(m.ones(4, 4) * 1j, 20, onesided=False, length=3),
}  # fmt: skip

NETWORK: dict[str, Call] = {
    "conv1d channels": lambda m: m.nn.functional.conv1d(m.ones(1, 2, 5), m.ones(3, 4, 2)),
    "conv2d channels": lambda m: m.nn.functional.conv2d(m.ones(1, 2, 5, 5), m.ones(3, 4, 2, 2)),
    "conv2d dims": lambda m: m.nn.functional.conv2d(m.ones(2, 5), m.ones(3, 2, 2, 2)),
    "conv2d kernel too large": lambda m: m.nn.functional.conv2d(
        m.ones(1, 2, 3, 3), m.ones(3, 2, 5, 5)
    ),
    "conv2d bias": lambda m: m.nn.functional.conv2d(
        m.ones(1, 2, 5, 5), m.ones(3, 2, 2, 2), m.ones(4)
    ),
    "conv2d groups": lambda m: m.nn.functional.conv2d(
        m.ones(1, 3, 5, 5), m.ones(4, 1, 2, 2), groups=2
    ),
    "conv2d stride": lambda m: m.nn.functional.conv2d(
        m.ones(1, 2, 5, 5), m.ones(3, 2, 2, 2), stride=0
    ),
    "conv2d padding": lambda m: m.nn.functional.conv2d(
        m.ones(1, 2, 5, 5), m.ones(3, 2, 2, 2), padding=-1
    ),
    "conv2d types": lambda m: m.nn.functional.conv2d(
        m.ones(1, 2, 5, 5), m.ones(3, 2, 2, 2).double()
    ),
    "conv2d stride length": lambda m: m.nn.functional.conv2d(
        m.ones(1, 2, 5, 5), m.ones(3, 2, 2, 2), stride=(1, 1, 1)
    ),
    "conv_transpose2d channels": lambda m: m.nn.functional.conv_transpose2d(
        m.ones(1, 2, 5, 5), m.ones(3, 2, 2, 2)
    ),
    "max_pool2d kernel": lambda m: m.nn.functional.max_pool2d(m.ones(1, 2, 3, 3), 5),
    "max_pool2d padding": lambda m: m.nn.functional.max_pool2d(m.ones(1, 2, 3, 3), 2, padding=2),
    "max_pool2d dims": lambda m: m.nn.functional.max_pool2d(m.ones(3, 3), 2),
    "avg_pool2d kernel": lambda m: m.nn.functional.avg_pool2d(m.ones(1, 2, 3, 3), 5),
    "avg_pool2d stride": lambda m: m.nn.functional.avg_pool2d(m.ones(1, 2, 3, 3), 2, stride=0),
    "max_pool1d kernel": lambda m: m.nn.functional.max_pool1d(m.ones(1, 2, 3), 4),
    "adaptive_avg_pool2d": lambda m: m.nn.functional.adaptive_avg_pool2d(m.ones(3), 2),
    "batch_norm one value": lambda m: m.nn.functional.batch_norm(
        m.ones(1, 2), None, None, training=True
    ),
    "batch_norm running": lambda m: m.nn.functional.batch_norm(m.ones(3, 2), m.ones(4), m.ones(4)),
    "batch_norm weight": lambda m: m.nn.functional.batch_norm(
        m.ones(3, 2), m.ones(2), m.ones(2), m.ones(5)
    ),
    "layer_norm shape": lambda m: m.nn.functional.layer_norm(m.ones(2, 3), (4,)),
    "layer_norm weight": lambda m: m.nn.functional.layer_norm(m.ones(2, 3), (3,), m.ones(4)),
    "group_norm groups": lambda m: m.nn.functional.group_norm(m.ones(2, 3, 4), 2),
    "instance_norm size": lambda m: m.nn.functional.instance_norm(m.ones(2, 3, 1)),
    "local_response_norm": lambda m: m.nn.functional.local_response_norm(m.ones(2), 2),
    "embedding index": lambda m: m.nn.functional.embedding(m.tensor([5]), m.ones(3, 2)),
    "embedding of floats": lambda m: m.nn.functional.embedding(m.ones(2), m.ones(3, 2)),
    "embedding weight": lambda m: m.nn.functional.embedding(m.tensor([0]), m.ones(3)),
    "one_hot classes": lambda m: m.nn.functional.one_hot(m.tensor([3]), 2),
    "one_hot negative": lambda m: m.nn.functional.one_hot(m.tensor([-1])),
    "pad modes": lambda m: m.nn.functional.pad(m.ones(2, 3), (1, 1, 1)),
    "pad reflect": lambda m: m.nn.functional.pad(m.ones(1, 2, 3), (4, 0), mode="reflect"),
    "pad negative": lambda m: m.nn.functional.pad(m.ones(3), (-2, -2)),
    "pad too many": lambda m: m.nn.functional.pad(m.ones(3), (1, 1, 1, 1)),
    "dropout p": lambda m: m.nn.functional.dropout(m.ones(3), 1.5),
    "glu odd": lambda m: m.nn.functional.glu(m.ones(3)),
    "prelu weights": lambda m: m.nn.functional.prelu(m.ones(2, 3), m.ones(2)),
    "pixel_shuffle": lambda m: m.nn.functional.pixel_shuffle(m.ones(1, 3, 2, 2), 2),
    "pixel_unshuffle": lambda m: m.nn.functional.pixel_unshuffle(m.ones(1, 1, 3, 3), 2),
    "interpolate": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 3), size=5, scale_factor=2),
    "interpolate mode": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 3), 5, mode="x"),
    "grid_sample": lambda m: m.nn.functional.grid_sample(m.ones(1, 1, 3, 3), m.ones(1, 2, 2, 3)),
    "bilinear": lambda m: m.nn.functional.bilinear(m.ones(2, 3), m.ones(2, 4), m.ones(5, 3, 3)),
    "linear bias": lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 3), m.ones(5)),
    "fold": lambda m: m.nn.functional.fold(m.ones(1, 5, 4), (3, 3), (2, 2)),
    "cross_entropy dims": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.ones(2, 4)),
    "nll_loss class": lambda m: m.nn.functional.nll_loss(m.ones(2, 3), m.tensor([0, 5])),
    "nll_loss weight": lambda m: m.nn.functional.nll_loss(
        m.ones(2, 3), m.tensor([0, 1]), m.ones(4)
    ),
    "mse_loss sizes": lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(3)),
    "l1_loss sizes": lambda m: m.nn.functional.l1_loss(m.ones(2, 3), m.ones(2, 4)),
    "loss reduction": lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(2), reduction="x"),
    "binary_cross_entropy range": lambda m: m.nn.functional.binary_cross_entropy(
        m.tensor([2.0]), m.tensor([1.0])
    ),
    "binary_cross_entropy sizes": lambda m: m.nn.functional.binary_cross_entropy(
        m.ones(2), m.ones(3)
    ),
    "with_logits sizes": lambda m: m.nn.functional.binary_cross_entropy_with_logits(
        m.ones(2), m.ones(3)
    ),
    "huber delta": lambda m: m.nn.functional.huber_loss(m.ones(2), m.ones(2), delta=-1.0),
    "smooth_l1 beta": lambda m: m.nn.functional.smooth_l1_loss(m.ones(2), m.ones(2), beta=-1.0),
    "kl_div sizes": lambda m: m.nn.functional.kl_div(m.ones(2), m.ones(3)),
    "cosine_embedding": lambda m: m.nn.functional.cosine_embedding_loss(
        m.ones(2, 3), m.ones(2, 3), m.ones(3)
    ),
    "triplet margin": lambda m: m.nn.functional.triplet_margin_loss(
        m.ones(2, 3), m.ones(3), m.ones(2, 3)
    ),
    "ctc lengths": lambda m: m.nn.functional.ctc_loss(
        m.ones(5, 2, 3), m.ones(2, 2).long(), m.tensor([9, 5]), m.tensor([2, 2])
    ),
    "attention sizes": lambda m: m.nn.functional.scaled_dot_product_attention(
        m.ones(2, 3, 4), m.ones(2, 3, 5), m.ones(2, 3, 5)
    ),
}  # fmt: skip

PICKING: dict[str, Call] = {
    "index out of range": lambda m: m.ones(2, 3)[:, m.tensor([3])],
    "index number": lambda m: m.ones(2, 3)[1, 3],
    "too many indices": lambda m: m.ones(2, 3)[0, 0, 0],
    "index of a 0-d tensor": lambda m: m.tensor(1.0)[0],
    "two ellipses and more": lambda m: m.ones(2)[0, ..., 0],
    "mask size": lambda m: m.ones(2, 3)[m.tensor([True, False, True])],
    "index shapes": lambda m: m.ones(3, 3)[m.tensor([0, 1]), m.tensor([0, 1, 2])],
    "index by floats": lambda m: m.ones(3)[m.tensor([0.0])],
    "index by a string": lambda m: m.ones(3)["a"],
    "slice step": lambda m: m.ones(3)[::-1],
    "assign shapes": lambda m: write(m.ones(2, 3), 0, m.ones(4)),
    "assign by a mask": lambda m: write(m.ones(3), m.tensor([True, True, False]), m.ones(3)),
    "assign complex": lambda m: write(m.ones(3), 0, 1j),
    "assign too large": lambda m: write(m.ones(3).byte(), 0, 300),
    "assign a list": lambda m: write(m.ones(3), 0, [1.0]),
    "index_put types": lambda m: m.ones(3).index_put((m.tensor([0]),), m.tensor([1])),
    "index_put shapes": lambda m: m.ones(3).index_put((m.tensor([0, 1]),), m.ones(3)),
    "index_select dims": lambda m: m.ones(2, 3).index_select(2, m.tensor([0])),
    "index_select of two dims": lambda m: m.ones(2, 3).index_select(0, m.tensor([[0]])),
    "index_add sizes": lambda m: m.ones(3, 2).index_add(0, m.tensor([0, 1]), m.ones(3, 2)),
    "index_add outside": lambda m: m.ones(3).index_add(0, m.tensor([3]), m.ones(1)),
    "index_copy sizes": lambda m: m.ones(3, 2).index_copy(0, m.tensor([0]), m.ones(2, 2)),
    "index_copy outside": lambda m: m.ones(3).index_copy(0, m.tensor([5]), m.ones(1)),
    "index_fill dims": lambda m: m.ones(3).index_fill(1, m.tensor([0]), 1.0),
    "index_fill outside": lambda m: m.ones(3).index_fill(0, m.tensor([4]), 1.0),
    "index_fill value": lambda m: m.ones(3).index_fill(0, m.tensor([0]), m.ones(2)),
    "index_reduce kind": lambda m: m.ones(3).index_reduce(0, m.tensor([0]), m.ones(1), "sum"),
    "gather dims": lambda m: m.ones(2, 3).gather(0, m.tensor([0])),
    "gather size": lambda m: m.ones(2, 3).gather(0, m.zeros(1, 4).long()),
    "gather dim": lambda m: m.ones(2, 3).gather(2, m.zeros(2, 3).long()),
    "scatter sizes": lambda m: m.ones(2, 3).scatter(0, m.zeros(3, 4).long(), m.ones(2, 2)),
    "scatter dims": lambda m: m.ones(2, 3).scatter(0, m.tensor([0]), m.ones(1)),
    "scatter_add outside": lambda m: m.ones(3).scatter_add(0, m.tensor([4]), m.ones(1)),
    "scatter_add types": lambda m: m.ones(3).scatter_add(0, m.tensor([0]), m.tensor([1])),
    "scatter_reduce kind": lambda m: m.ones(3).scatter_reduce(0, m.tensor([0]), m.ones(1), "x"),
    "take outside": lambda m: m.ones(2, 3).take(m.tensor([6])),
    "put sizes": lambda m: m.ones(3).put_(m.tensor([0, 1]), m.ones(3)),
    "take_along_dim types": lambda m: m.take_along_dim(m.ones(3), m.ones(1), 0),
    "masked_scatter few": lambda m: m.ones(3).masked_scatter(m.tensor([True] * 3), m.ones(2)),
    "masked_fill value": lambda m: m.ones(3).masked_fill(m.tensor([True] * 3), m.ones(2)),
    "select_scatter": lambda m: m.ones(2, 3).select_scatter(m.ones(2), 0, 0),
    "slice_scatter": lambda m: m.ones(4).slice_scatter(m.ones(3), 0, 0, 2),
    "diagonal_scatter": lambda m: m.ones(3, 3).diagonal_scatter(m.ones(2)),
    "searchsorted sizes": lambda m: m.searchsorted(m.ones(2, 3), m.ones(3, 1)),
    "bucketize bounds": lambda m: m.bucketize(m.ones(2), m.ones(2, 2)),
    "bincount negative": lambda m: m.bincount(m.tensor([-1])),
    "bincount weights": lambda m: m.bincount(m.tensor([1, 2]), m.ones(3)),
    "topk dim": lambda m: m.ones(3).topk(1, 2),
    "kthvalue k": lambda m: m.ones(3).kthvalue(4),
    "quantile q": lambda m: m.ones(3).quantile(1.5),
    "quantile types": lambda m: m.ones(3).quantile(m.tensor([0.5], dtype=m.float64)),
    "unflatten": lambda m: m.ones(6).unflatten(0, (4, -1)),
    "view of bytes": lambda m: m.ones(3).view(m.float64),
    "repeat_interleave": lambda m: m.ones(3).repeat_interleave(m.tensor([1, 2])),
    "tensor_split": lambda m: m.ones(3).tensor_split(0),
    "hsplit": lambda m: m.ones(3).hsplit(2),
    "block of types": lambda m: m.cartesian_prod(m.ones(2), m.ones(2, 2)),
    "mT of a vector": lambda m: m.ones(3).mT,
    "H of 3-d": lambda m: m.ones(2, 2, 2).H,
    "randperm": lambda m: m.randperm(-1),
    "randint range": lambda m: m.randint(5, 2, (2,)),
    "multinomial sum": lambda m: m.multinomial(m.zeros(3), 1),
    "multinomial dims": lambda m: m.multinomial(m.ones(2, 2, 2), 1),
    "normal sizes": lambda m: m.normal(m.ones(2), m.ones(3)),
    "uniform range": lambda m: m.ones(3).uniform_(2, 1),
    "bernoulli p": lambda m: m.ones(3).bernoulli_(1.5),
    "exponential rate": lambda m: m.ones(3).exponential_(-1.0),
    "geometric p": lambda m: m.ones(3).geometric_(0.0),
    "random range": lambda m: m.ones(3).random_(5, 2),
    "median of masks": lambda m: m.median(m.tensor([True])),
    "topk of masks": lambda m: m.topk(m.tensor([True]), 1),
    "mvlgamma of complex": lambda m: m.mvlgamma(m.tensor([1j]), 1),
    "fftfreq of complex": lambda m: m.fft.fftfreq(2, dtype=m.complex64),
    "slice_scatter step": lambda m: m.slice_scatter(m.ones(2), m.ones(2), 0, step=0),
    "range to NaN": lambda m: m.range(1e-3, float("nan")),
    "range of complex": lambda m: m.range(1, 0.5, dtype=m.complex64),
    "vander of halves": lambda m: m.linalg.vander(m.ones(2).half()),
    "special.round": lambda m: m.special.round(m.tensor([1])),
    "polar of halves": lambda m: m.polar(m.ones(2).half(), m.ones(2).half()),
    "isposinf": lambda m: m.isposinf(m.tensor(1j)),
    "cross of types": lambda m: m.linalg.cross(m.ones(3), m.ones(3).double()),
    "bmm elsewhere": lambda m: m.bmm(m.ones(1, 2, 2), m.ones(1, 2, 2), out_dtype=m.float32),
    "addmm elsewhere": lambda m: m.addmm(m.ones(2, 2), m.ones(2, 2), m.ones(2, 2), m.float32),
    "native_norm with out": lambda m: m.native_norm(m.ones(2), 0.0, out=m.ones(2)),
    "hspmm with out": lambda m: m.hspmm(m.ones(2, 2), m.ones(2, 2), out=m.ones(2, 2)),
    "narrow_copy": lambda m: m.narrow_copy(m.ones(2), -3, 0, length=1),
    "generator of a list": lambda m: m.rand(3, generator=[1]),
}  # fmt: skip

NETWORK.update({
    "avg_pool2d of lines": lambda m: m.nn.functional.avg_pool2d(m.tensor(0.0), (1, 1, 2)),
    "max_unpool2d of lines": lambda m: m.nn.functional.max_unpool2d(m.ones(4), m.ones(4).long(), 2),
    "binary_cross_entropy types": lambda m: m.nn.functional.binary_cross_entropy(
        m.ones(2).double(), m.ones(2)
    ),
    "group_norm of bytes": lambda m: m.group_norm(m.zeros(0, 3).byte(), 2),
    "ctc_loss of integers": lambda m: m.ctc_loss(*[m.ones(4).long()] * 4, blank=3),
    "native_batch_norm": lambda m: m.native_batch_norm(
        m.ones(2, 1), None, None, m.ones(1), None, False, 0.1, 1e-5
    ),
})  # fmt: skip
TYPES: dict[str, Call] = {
    "a fraction for an int": lambda m: m.nn.functional.nll_loss(
        m.ones(2, 3), m.tensor([0, 1]), ignore_index=1.5
    ),
    "a text for a truth": lambda m: m.ones(2).sum(0, "a"),
    "a number for a truth": lambda m: m.ones(2).sum(0, keepdim=2),
    "a number for a truth by its place": lambda m: m.isclose(m.ones(2), m.ones(2), 0.1, 0.1, 1),
    "a tensor for a truth": lambda m: m.ones(2, 2).argsort(descending=m.ones(2)),
    "a fraction for a truth": lambda m: m.combinations(m.ones(2), with_replacement=1.5),
    "a text for what wants gradients": lambda m: m.ones(2, requires_grad="a"),
    "a number for a text": lambda m: m.nn.functional.gelu(m.ones(2), approximate=1),
    "a number for a norm": lambda m: m.fft.fft(m.ones(2), norm=1),
    "a list for a number": lambda m: m.ones(2).add(1, alpha=[1]),
    "a text for a number": lambda m: m.nn.functional.softplus(m.ones(2), beta="a"),
    "a text for sizes": lambda m: m.as_strided(m.ones(4), "a", (1,)),
    "None among dimensions": lambda m: m.rot90(m.ones(2, 2), 1, [None]),
    "a number for a tensor": lambda m: m.nn.functional.instance_norm(
        m.ones(2, 2, 2), running_mean=1
    ),
    "a list for a tensor": lambda m: m.nn.functional.cosine_embedding_loss(
        [1], m.ones(2), m.ones(2)
    ),
    "Python code asks nothing": lambda m: m.masked.sum(m.ones(2), mask="a"),
    "nor does it of two": lambda m: m.tensordot(m.ones(2, 2), [1, 2]),
    "a tensor for a bound is none": lambda m: m.linalg.matrix_rank(
        m.ones(3, 3).half(), m.ones(1, 1).half()
    ),
}
FAMILIES = {
    "types": TYPES,
    "autograd": AUTOGRAD,
    "linalg": LINALG,
    "network": NETWORK,
    "picking": PICKING,
}
CALLS = {f"{family}: {label}": call for family, calls in FAMILIES.items()
         for label, call in calls.items()}  # fmt: skip


@pytest.mark.parametrize("label", CALLS)
def test_wrong_call(label: str) -> None:
    want, got = attempt(CALLS[label], torch)[1], attempt(CALLS[label], tt)[1]
    assert want is not None, "PyTorch accepts this call: the table is wrong"
    bad = error_difference(want, got)
    assert not bad, bad
