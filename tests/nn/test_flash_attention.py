"""Attention in blocks, beside PyTorch's: values, gradients, layouts, and which way is taken."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import toytorch as tt
from toytorch.kernels import attention

torch = pytest.importorskip("torch", reason="PyTorch, the oracle, is absent")

SHAPES = [
    (1, 1, 1, 1, 1),
    (2, 3, 5, 7, 4),
    (1, 2, 70, 70, 8),
    (2, 2, 200, 130, 16),
    (1, 1, 130, 200, 32),
    (3, 1, 65, 64, 5),
    (2, 4, 256, 256, 64),
]
WAYS = [
    "plain",
    "causal",
    "scale",
    "added",
    "bool",
    "batch",
    "heads last",
    "heads last, causal",
    "bool, causal",
]


def both(way: str, shape: tuple[int, ...], kind: Any) -> list[Any]:
    """Result and gradients of both sides."""
    batch, heads, queries, keys, wide = shape
    rng = np.random.default_rng(sum(shape))
    turned = way.startswith("heads last")
    arrays = [
        rng.normal(size=(batch, n, heads, wide) if turned else (batch, heads, n, wide))
        for n in (queries, keys, keys)
    ]
    g = rng.normal(size=(batch, heads, queries, wide))
    options: dict[str, Any] = {
        "causal": {"is_causal": True},
        "heads last, causal": {"is_causal": True},
        "scale": {"scale": 0.3},
        "added": {"attn_mask": rng.normal(size=(queries, keys)).astype(kind)},
        "bool": {"attn_mask": rng.random((queries, keys)) > 0.5},
        "bool, causal": {
            "attn_mask": rng.random((queries, keys)) > 0.3,
            "is_causal": True,
        },
        "batch": {"attn_mask": rng.random((batch, 1, queries, keys)) > 0.9},
    }.get(way, {})
    results = []
    for m in (tt, torch):
        leaves = [m.tensor(a.astype(kind)).requires_grad_() for a in arrays]
        given = [x.transpose(1, 2) for x in leaves] if turned else leaves
        more = {k: m.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        out = m.nn.functional.scaled_dot_product_attention(*given, **more)
        out.backward(m.tensor(g.astype(kind)))
        results.append([out, *(x.grad for x in leaves)])
    return results


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_like_pytorch(way: str, shape: tuple[int, ...], kind: Any) -> None:
    ours, theirs = both(way, shape, kind)
    assert ours[0].grad_fn.name() == theirs[0].grad_fn.name()
    for x, y in zip(ours, theirs, strict=True):
        assert x.stride() == y.stride()
        tolerance = 3e-5 if kind is np.float32 else 1e-12
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), 0, tolerance)


def test_small_and_compiled_blocks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    a = [np.random.default_rng(k).normal(size=(2, 2, 90, 8)) for k in range(4)]
    want = attention.forward(*a[:3], None, True, 0.4)
    wanted = attention.backward(a[3], *a[:3], *want, None, True, 0.4)
    monkeypatch.setattr(attention.jit, "works", lambda: False)
    monkeypatch.setattr(attention.jit, "pays", lambda count: False)
    made = attention.forward(*a[:3], None, True, 0.4)
    gradients = attention.backward(a[3], *a[:3], *made, None, True, 0.4)
    assert wanted and gradients
    for x, y in zip((*made, *gradients), (*want, *wanted), strict=True):
        np.testing.assert_allclose(x, y, 1e-12, 1e-13)


def test_blocks_see_each_query_once() -> None:
    for causal in (False, True):
        seen = np.zeros((3, 2, 300), int)
        for block in attention.blocks((3, 2, 300, 280), 8, causal):
            block.rows(seen)[...] += 1
            assert block.seen >= min(block.queries.stop, 280) if causal else block.seen == 280
        assert (seen == 1).all()


def test_no_array_of_queries_by_keys() -> None:
    q = np.ones((1, 1, 4096, 8), np.float32)
    attention.forward(q, q, q, None, False, 1.0)  # compiles
    tracemalloc.start()
    attention.backward(q, q, q, q, *attention.forward(q, q, q, None, False, 1.0), None, False, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 * 4 / 4


def test_second_derivatives() -> None:
    x = [tt.randn(1, 2, 5, 4, dtype=tt.float64, requires_grad=True) for _ in range(3)]
    mask = tt.randn(5, 5, dtype=tt.float64)
    for options in ({}, {"is_causal": True}, {"attn_mask": mask, "scale": 0.3}):

        def attend(q: Any, k: Any, v: Any, options: Any = options) -> Any:
            return tt.nn.functional.scaled_dot_product_attention(q, k, v, **options)

        assert tt.autograd.gradcheck(attend, x)
        assert tt.autograd.gradgradcheck(attend, x)


@pytest.mark.parametrize(
    ("label", "change"),
    [
        ("three dimensions", lambda m, q: [q[0]] * 3),
        ("other width", lambda m, q: [q, q, q[..., :3]]),
        ("broadcast", lambda m, q: [q, q[:1], q]),
        ("columns", lambda m, q: [q.transpose(2, 3).contiguous().transpose(2, 3), q, q]),
    ],
)
def test_what_is_left_to_the_formula(label: str, change: Any) -> None:
    made = []
    for m in (tt, torch):
        q = m.arange(2 * 3 * 4 * 5, dtype=m.float32).reshape(2, 3, 4, 5).sin().requires_grad_()
        made.append(m.nn.functional.scaled_dot_product_attention(*change(m, q)))
    assert "Flash" not in made[0].grad_fn.name() and "Flash" not in made[1].grad_fn.name()
    np.testing.assert_allclose(made[0].detach().numpy(), made[1].detach().numpy(), 0, 1e-6)


def test_the_way_can_be_chosen() -> None:
    q = tt.randn(1, 2, 3, 4, requires_grad=True)
    attend = tt.nn.functional.scaled_dot_product_attention
    with tt.nn.attention.sdpa_kernel(tt.nn.attention.SDPBackend.MATH):
        assert "Flash" not in attend(q, q, q).grad_fn.name()
    assert "Flash" in attend(q, q, q).grad_fn.name()


def test_traced_calls_of_other_sizes() -> None:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return tt.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    traced = tt.jit.trace(attend, tuple(tt.randn(2, 2, 4, 3) for _ in range(3)))
    assert "flash_attention" in str(traced.graph)
    for shape in ((2, 2, 4, 3), (1, 3, 7, 5), (2, 2, 0, 3)):
        x = [tt.randn(shape, requires_grad=True) for _ in range(3)]
        made, want = traced(*x), attend(*x)
        assert tt.allclose(made, want) and made.shape == want.shape
        grads = tt.autograd.grad(made.square().sum(), x)
        wanted = tt.autograd.grad(want.square().sum(), x)
        assert all(tt.allclose(a, b, atol=1e-6) for a, b in zip(grads, wanted, strict=True))
