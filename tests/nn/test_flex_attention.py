"""Attention with functions of one's own, and causal masks by name, beside PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

SHAPES = (-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1)
torch_flex = pytest.importorskip("torch.nn.attention.flex_attention")
torch_flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True  # its eager form


def modules(m: Any) -> tuple[Any, Any]:
    names = ("nn.attention.flex_attention", "nn.attention.bias")
    flex, bias = (importlib.import_module(f"{m.__name__}.{n}") for n in names)
    return flex, bias


def operands(m: Any, heads: int = 4, shared: int = 4, length: int = 10) -> list[Any]:
    rng = np.random.default_rng(0)
    sizes = [(2, heads, length, 8), (2, shared, 12, 8), (2, shared, 12, 6)]
    return [m.tensor(rng.standard_normal(s), requires_grad=True) for s in sizes]


SCORES: dict[str, Any] = {
    "none": lambda m: None,
    "relative": lambda m: lambda s, b, h, q, k: s + (q - k),
    "alibi": lambda m: lambda s, b, h, q, k: s - m.exp2(-(h + 1).double()) * (q - k).abs(),
    "table": lambda m: lambda s, b, h, q, k: s + m.arange(48.0).view(4, 12).double()[h, k],
    "capped": lambda m: lambda s, b, h, q, k: 2 * m.tanh(s / 2),
    "hidden": lambda m: lambda s, b, h, q, k: m.where(q >= k, s, -float("inf")),
}
MASKS: dict[str, Any] = {
    "none": lambda m, f: None,
    "causal": lambda m, f: lambda b, h, q, k: q >= k,
    "window": lambda m, f: f.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k <= 3),
    "either": lambda m, f: f.or_masks(lambda b, h, q, k: q < 3, lambda b, h, q, k: k == h),
    "documents": lambda m, f: lambda b, h, q, k: (m.arange(12) // 4)[q] == (m.arange(12) // 4)[k],
    "blind row": lambda m, f: lambda b, h, q, k: (q != 2) & (b + k > 0),
}


def by_hand(q: Any, k: Any, v: Any, change: Any, mod: Any) -> Any:
    """The same in PyTorch's plain functions."""
    where = [torch.arange(n).view(s) for n, s in zip((2, 4, 10, 12), SHAPES)]
    scores = q @ k.mT / 8**0.5
    scores = change(scores, *where) if change else scores
    if mod:
        scores = scores.masked_fill(~mod(*where), -float("inf"))
    blind = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0) @ v


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_values_and_gradients(score: str, mask: str) -> None:
    def run(m: Any) -> list[Any]:
        flex, _ = modules(m)
        q, k, v = operands(m)
        mod = MASKS[mask](m, flex)
        blocks = mod and flex.create_block_mask(mod, 2, 4, 10, 12, "cpu", BLOCK_SIZE=4)
        change = SCORES[score](m)

        def attend(*given: Any) -> Any:
            aux = flex.AuxRequest(lse=True)
            return flex.flex_attention(*given, change, blocks, return_aux=aux)

        if m is torch:  # whose own has no gradients on the CPU
            made, aux = attend(*(t.detach() for t in (q, k, v)))
            by_hand(q, k, v, change, mod).square().sum().backward()
        else:
            made, aux = attend(q, k, v)
            made.square().sum().backward()
        return [t.detach().numpy() for t in (made, aux.lse, q.grad, k.grad, v.grad)]

    for ours, theirs in zip(run(tt), run(torch)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mask", [m for m in MASKS if m != "none"])
def test_masks(mask: str) -> None:
    def run(m: Any) -> list[Any]:
        flex, _ = modules(m)
        mod = MASKS[mask](m, flex)
        found: list[Any] = [flex.create_mask(mod, 2, 4, 10, 12, "cpu").tolist()]
        for apart in (True, False):
            b = flex.create_block_mask(
                mod, 2, 4, 10, 12, "cpu", BLOCK_SIZE=(2, 4), separate_full_blocks=apart
            )
            for each in (b, b[1], b[:, 1:3], b._adjust(5, 8)):
                found += [t if t is None else t.tolist() for t in each.as_tuple()[2:10]]
                found += [each.shape, each.sparsity(), each.to_dense().tolist(), each.numel()]
            found.append(repr(b))
        return found

    assert run(tt) == run(torch)


def test_shared_heads_and_refusals() -> None:
    def run(m: Any) -> list[Any]:
        flex, _ = modules(m)
        q, k, v = (t.detach() for t in operands(m, shared=2))
        found: list[Any] = [flex.flex_attention(q, k, v, enable_gqa=True).tolist()]
        causal = flex.create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 10, 12, "cpu")
        for call in (
            lambda: flex.flex_attention(q, k, v),
            lambda: flex.flex_attention(q[0], k[0], v[0]),
            lambda: flex.flex_attention(q[:, :3], k, v, enable_gqa=True),
            lambda: flex.flex_attention(q[:, :2, :5], k, v, block_mask=causal),
            lambda: flex.flex_attention(q[:, :2], k, v, block_mask=causal[0]),
            lambda: flex.create_block_mask(lambda s, b, h, q, k: s, 1, 1, 4, 4, "cpu"),
            lambda: flex.or_masks(3),
        ):
            with pytest.raises(
                (ValueError, NotImplementedError, RuntimeError, AssertionError)
            ) as e:
                call()
            found.append(e.type.__name__)
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (ours, *kinds), (theirs, *wanted) = run(tt), run(torch)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    assert kinds == wanted


@pytest.mark.parametrize("name", ["causal_upper_left", "causal_lower_right"])
@pytest.mark.parametrize("length", [10, 12])
def test_causal_biases(name: str, length: int) -> None:
    def run(m: Any) -> Any:
        _, bias = modules(m)
        q, k, v = operands(m, length=length)
        mask = getattr(bias, name)(length, 12)
        made = m.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        made.sum().backward()
        return repr(mask), mask.variant, made.detach().numpy(), q.grad.numpy()

    ours, theirs = run(tt), run(torch)
    assert ours[:2] == theirs[:2]
    for a, b in zip(ours[2:], theirs[2:]):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("sizes", [(128, 128), (512, 1024), (3000, 3000)])
def test_pictures_of_masks(sizes: tuple[int, int]) -> None:
    def picture(m: Any) -> str:
        create = m.nn.attention.flex_attention.create_block_mask
        mask = create(lambda b, h, q, kv: q >= kv + 128 * b, 2, 3, *sizes, device="cpu")
        return f"{mask} {mask.to_string(5, limit=1)} {mask.to_string((3, 9))}"

    assert picture(tt) == picture(torch)
