"""Masks of attention, boolean and of numbers, in every pair: results, warnings and refusals as PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

BATCH, LENGTH, WIDTH, HEADS = 2, 5, 8, 2
KINDS = (None, "bool", "float32", "int64")


def padding(m: Any, kind: str | None) -> Any:
    """The last two places of the second sequence are padded."""
    if kind is None:
        return None
    hidden = m.arange(LENGTH).expand(BATCH, LENGTH) >= m.tensor([[LENGTH], [LENGTH - 2]])
    return hidden if kind == "bool" else (hidden * -3).to(getattr(m, kind))


def pairs(m: Any, kind: str | None) -> Any:
    if kind is None:
        return None
    hidden = m.ones(LENGTH, LENGTH, dtype=m.bool).triu(1)
    return hidden if kind == "bool" else (hidden * -2).to(getattr(m, kind))


def filled(m: Any, made: Any) -> Any:
    for i, p in enumerate(made.parameters()):
        with m.no_grad():
            p.copy_(m.sin(m.arange(p.numel(), dtype=m.float32) + i).reshape(p.shape) / 2)
    return made


def layer(m: Any, **options: Any) -> Any:
    return m.nn.TransformerEncoderLayer(WIDTH, HEADS, 12, 0.0, **options)


def attention(m: Any, x: Any, pad: Any, mask: Any) -> Any:
    made = filled(m, m.nn.MultiheadAttention(WIDTH, HEADS))
    return made(x, x, x, key_padding_mask=pad, attn_mask=mask)


def one_layer(m: Any, x: Any, pad: Any, mask: Any) -> Any:
    return filled(m, layer(m))(x, mask, pad)


def stack(m: Any, x: Any, pad: Any, mask: Any) -> Any:
    made = filled(m, m.nn.TransformerEncoder(layer(m), 2, enable_nested_tensor=False))
    return made(x, mask, pad)


def decoder(m: Any, x: Any, pad: Any, mask: Any) -> Any:
    made = filled(m, m.nn.TransformerDecoderLayer(WIDTH, HEADS, 12, 0.0))
    return made(x, x, tgt_mask=mask, memory_mask=mask, tgt_key_padding_mask=pad)


@pytest.mark.parametrize("run", [attention, one_layer, stack, decoder])
@pytest.mark.parametrize("mask", KINDS)
@pytest.mark.parametrize("pad", KINDS)
def test_pairs_of_masks(run: Any, pad: str | None, mask: str | None) -> None:
    found = []
    for m in (tt, torch):
        x = m.cos(m.arange(LENGTH * BATCH * WIDTH, dtype=m.float32)).reshape(LENGTH, BATCH, WIDTH)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made, error = attempt(run, m, x, padding(m, pad), pairs(m, mask))
        found.append((made, error, {str(w.message) for w in told}))
    (ours, failed, said), (theirs, refused, words) = found
    assert (type(failed).__name__, str(failed)) == (type(refused).__name__, str(refused))
    assert said == words
    if refused is None:
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(torch.tensor(one.tolist()), other, atol=1e-5)


# What copies of PyTorch's attention call, with arguments that fit and that do not.
PRIVATE = """
_none_or_dtype(None)
_none_or_dtype(q)
_none_or_dtype(3)
_canonical_mask(None, "m", None, "", torch.float32)
_canonical_mask(q > 0, "m", torch.float32, "other", torch.float64)
_canonical_mask(q, "m", torch.bool, "other", torch.float32)
_canonical_mask(q.long(), "m", None, "", torch.float32)
_mha_shape_check(q, q, q, None, None, 2)
_mha_shape_check(q[0], q[0], q[0], None, None, 2)
_mha_shape_check(q, q[0], q, None, None, 2)
_mha_shape_check(q[0], q[0], q[0], None, q[:, :, :3], 2)
_mha_shape_check(q[0, 0], q, q, None, None, 2)
_in_projection_packed(q, q, q, w, b)
_in_projection_packed(q, k, k, w, b)
_in_projection_packed(q, k, k + 1, w)
_in_projection(q, k, k, w[:4], w[4:8], w[8:], b[:4], b[4:8], b[8:])
_in_projection(q, k, k, w[:4], w[4:8], w[8:])
_in_projection(q, k, k, w[:4], w[4:7], w[8:])
_in_projection(q, k, k, w[:4], w[4:8], w[8:], b[:4], b[4:8], b[9:])
_verify_batch_size([1, 3, 1])
_verify_batch_size([2, 3, 1])
"""


@pytest.mark.parametrize("call", PRIVATE.strip().splitlines())
def test_private_functions_of_attention(call: str) -> None:
    found = []
    for m in (tt, torch):
        q = m.sin(m.arange(24, dtype=m.float32)).reshape(2, 3, 4)
        seen = {"torch": m, "q": q, "k": q.cos(), "b": m.arange(12.0)}
        seen["w"] = m.cos(m.arange(48, dtype=m.float32)).reshape(12, 4)
        if m is tt:
            for place in ("attention", "normalize"):
                seen |= vars(importlib.import_module(f"toytorch.nn.functional.{place}"))
        else:
            seen |= {n: v for n, v in vars(m.nn.functional).items() if n.startswith("_")}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made, error = attempt(eval, call, seen)
        parts = made if isinstance(made, (tuple, list)) else (made,)
        numbers = [p.tolist() if isinstance(p, m.Tensor) else str(p) for p in parts]
        text = f"{type(error).__name__}: {error} {[str(w.message) for w in told]}"
        found.append((numbers, text.replace("toytorch", "torch")))
    assert found[0][1] == found[1][1]
    assert repr(found[0][0]) == repr(found[1][0]).replace("toytorch", "torch") or (
        torch.allclose(*(torch.tensor(numbers) for numbers, _ in found))
    )
