"""Attention as one call, and the softmax over what a mask leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import same_or_refused

CALLS = [
    "torch._masked_softmax(x, m)",
    "torch._masked_softmax(x, m, 1, 2)",
    "torch._masked_softmax(x, m[0, 0], 3, 0)",
    "torch._masked_softmax(x, m[:, 0, 0], 3, 1)",
    "torch._masked_softmax(x, m[:1, 0, 0], 3, 1)",
    "torch._masked_softmax(x, m[0, 0], 3, 2)",
    "torch._masked_softmax(x, m.float(), 3, 2)",
    "torch._masked_softmax(x.int(), m, 3, 2)",
    "torch._masked_softmax(x, m, 4, 2)",
    "torch._masked_softmax(x[0], m[0], 2, 0)",
    "torch._transform_bias_rescale_qkv(a, b, 2)[0]",
    "torch._transform_bias_rescale_qkv(a, b, 2)[2]",
    "torch._transform_bias_rescale_qkv(a, b, 3)",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w, b, p, c)[0]",
    "torch._native_multi_head_attention(q, q + 1, q * 2, 4, 2, w, b, p, c)[1]",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w, b, p, c, average_attn_weights=False)[1]",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w, b, p, c, need_weights=False)[1]",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w, b, p, c, k, True, True, 1)[0]",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w, b, p, c, m[0, 0, :3, :3], True, True, 0)[1]",
    "torch._native_multi_head_attention(q, q[:, :2], q, 4, 2, w, b, p, c)",
    "torch._native_multi_head_attention(q, q, q, 4, 3, w, b, p, c)",
    "torch._native_multi_head_attention(q, q, q, 6, 2, w, b, p, c)",
    "torch._native_multi_head_attention(q[0], q[0], q[0], 4, 2, w, b, p, c)",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w[:8], b, p, c)",
    "torch._native_multi_head_attention(q, q, q, 4, 2, w, b[:8], p, c)",
]


@pytest.mark.parametrize("text", CALLS)
def test_same_answers(text: str) -> None:
    rng = np.random.default_rng(3)
    shapes = {
        "x": (2, 3, 4, 4),
        "a": (2, 3, 12),
        "b": (12,),
        "q": (2, 3, 4),
        "w": (12, 4),
        "p": (4, 4),
    }
    drawn = {n: rng.standard_normal(s).astype("float32") for n, s in {**shapes, "c": (4,)}.items()}
    mask = rng.random((2, 3, 4, 4)) > 0.6
    mask[0, 0, 0] = True

    def ask(T: Any) -> Any:
        given = {n: T.tensor(v) for n, v in drawn.items()}
        padding = T.tensor([[False, False, True], [False, True, True]])
        return eval(text, {"torch": T, "m": T.tensor(mask), "k": padding, **given})

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    if failed is not None:
        assert str(failed).partition("(and")[0] == str(refused).partition("(and")[0]
    elif want is None:
        assert got is None
    else:
        assert got.stride() == want.stride()
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_gradient_of_a_masked_softmax() -> None:
    def run(T: Any) -> Any:
        x = T.arange(6.0).reshape(2, 3).requires_grad_()
        mask = T.tensor([[False, True, False], [True, False, False]])
        T._masked_softmax(x, mask, 1, 2).pow(2).sum().backward()
        return x.grad.numpy()

    np.testing.assert_allclose(run(tt), run(torch), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("query", [(3, 3), (1, 3, 3), (4, 3, 3), (2, 4, 3, 3)])
@pytest.mark.parametrize("key", [(3, 3), (2, 3, 3), (3, 3, 3), (1, 2, 3, 3), (2, 1, 3, 3)])
def test_shapes_of_shared_heads(query: tuple[int, ...], key: tuple[int, ...]) -> None:
    def shape(m: Any) -> Any:
        k = m.ones(key)
        attend = m.nn.functional.scaled_dot_product_attention
        return list(attend(m.ones(query), k, k, enable_gqa=True).shape)

    same_or_refused(shape)
