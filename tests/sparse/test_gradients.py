"""Gradients of and through sparse tensors: their layout, entries and values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import SELFTEST, torch, tt
from tests.sparse.programs import Made, shown

BEYOND = pytest.mark.skipif(SELFTEST, reason="what PyTorch does not do, or does wrong")
# name: (function, makers of its leaves)
TIDY, LOOSE = (lambda m: m.tidy(True)), (lambda m: m.loose(True))


def D(*shape: int) -> Any:
    """A maker of a dense leaf."""
    return lambda m: m.dense(*shape, grad=True)


CASES: dict[str, tuple[Any, ...]] = {
    "to_dense": (lambda m, s: s.to_dense(), LOOSE),
    "to_dense unmasked": (lambda m, s: s.to_dense(masked_grad=False), LOOSE),
    "coalesce": (lambda m, s: s.coalesce(), LOOSE),
    "values": (lambda m, s: s.coalesce().values(), LOOSE),
    "values of a leaf": (lambda m, s: s.values(), TIDY),
    "sum": (lambda m, s: s.sum(), LOOSE),
    "sparse.sum": (lambda m, s: m.root.sparse.sum(s), LOOSE),
    "sparse.sum 0": (lambda m, s: m.root.sparse.sum(s, 0), LOOSE),
    "sparse.sum 0, 1": (lambda m, s: m.root.sparse.sum(s, (0, 1)), TIDY),
    "sparse.sum dtype": (lambda m, s: m.root.sparse.sum(s, 0, dtype=m.root.float64), TIDY),
    "mul": (lambda m, s: s * 2, TIDY),
    "mul both": (lambda m, a, b: a * b, TIDY, TIDY),
    "mul dense": (lambda m, a, b: a * b, TIDY, D(2, 3)),
    "dense mul": (lambda m, a, b: a * b, D(2, 3), TIDY),
    "div": (lambda m, s: s / 2, TIDY),
    "neg": (lambda m, s: -s, TIDY),
    "square": (lambda m, s: s.square(), TIDY),
    "abs": (lambda m, s: s.abs(), TIDY),
    "relu": (lambda m, s: s.relu(), TIDY),
    "add": (lambda m, a, b: a + b, TIDY, TIDY),
    "dense add": (lambda m, a, b: a + b, D(2, 3), LOOSE),
    "sub": (lambda m, a, b: a - b, TIDY, TIDY),
    "mm": (lambda m, a, b: a.mm(b), LOOSE, D(3, 2)),
    "mm from the left": (lambda m, a, b: a @ b, D(4, 2), TIDY),
    "mv": (lambda m, a, b: a @ b, LOOSE, D(3)),
    "sparse.mm": (lambda m, a, b: m.root.sparse.mm(a, b), LOOSE, D(3, 2)),
    "sparse.mm from the left": (lambda m, a, b: m.root.sparse.mm(a, b), D(4, 2), TIDY),
    "sparse.addmm": (lambda m, c, a, b: m.root.sparse.addmm(c, a, b, beta=2, alpha=3), D(2, 2),
                     LOOSE, D(3, 2)),
    "addmm": (lambda m, c, a, b: m.root.addmm(c, a, b, beta=2, alpha=3), D(2, 2), LOOSE, D(3, 2)),
    "linear": (lambda m, x, w, b: m.root.nn.functional.linear(x, w, b), TIDY, D(4, 3), D(4)),
    "t": (lambda m, s: s.t(), LOOSE),
    "transpose": (lambda m, s: s.transpose(0, 1), TIDY),
    "permute": (lambda m, s: s.permute(1, 0), TIDY),
    "clone": (lambda m, s: s.clone(), LOOSE),
    "double": (lambda m, s: s.double(), TIDY),
    "softmax": (lambda m, s: m.root.sparse.softmax(s, 1) * m.dense(2, 3), LOOSE),
    "log_softmax": (lambda m, s: m.root.sparse.log_softmax(s, 0) * m.dense(2, 3), TIDY),
    "mask": (lambda m, x: x.sparse_mask(m.tidy()), D(2, 3)),
    "loose mask": (lambda m, x: x.sparse_mask(m.loose()), D(2, 3)),
    "mask of sparse": (lambda m, s: s.sparse_mask(m.tidy()), LOOSE),
    "to_sparse": (lambda m, x: x.to_sparse(), D(2, 3)),
    "to_sparse blocks": (lambda m, x: x.to_sparse(1), D(2, 3)),
    "twice": (lambda m, s: m.root.sparse.mm(s, m.dense(3, 2)) + s.to_dense() @ m.dense(3, 2), TIDY),
    "sparse and dense at a leaf": (lambda m, s: m.root.sparse.mm(s, m.dense(3, 2)) +
                                   s.mm(m.dense(3, 2)), TIDY),
    "sin": (lambda m, s: s.sin(), TIDY),
    "sum 0": (lambda m, s: s.sum(0), TIDY),
    "select": (lambda m, s: s[1], TIDY),
    "index_select": (lambda m, s: s.index_select(0, m.root.tensor([1, 0])), TIDY),
    "cat": (lambda m, a, b: m.root.cat([a, b]), TIDY, LOOSE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    """Result, its node's name, and the gradients of all leaves print the same."""

    def run(m: Made) -> Any:
        function, *makers = CASES[name]
        leaves = [make(m) for make in makers]
        y = function(m, *leaves)
        total = y.to_dense().sum() if y.is_sparse else y.sum()
        total.backward()
        return y, [x.grad for x in leaves]

    shown(run)


def embedding(m: Made, weight: Any, **how: Any) -> Any:
    return m.root.nn.functional.embedding(m.root.tensor([1, 3, 1]), weight, sparse=True, **how)


EMBEDDINGS = {
    "once": lambda m, w: embedding(m, w).sum(),
    "padding": lambda m, w: embedding(m, w, padding_idx=1).sum(),
    "not a leaf": lambda m, w: embedding(m, w * 2).sum(),
    "with a dense use": lambda m, w: embedding(m, w).sum() + (w * 2).sum(),
    "two": lambda m, w: embedding(m, w).sum() + embedding(m, w).sum(),
    "matrix of indices": lambda m, w: m.root.nn.functional.embedding(
        m.root.tensor([[1, 3], [0, 1]]), w, sparse=True).sum(),
    "by frequency": lambda m, w: embedding(m, w, scale_grad_by_freq=True).sum(),
    "bag": lambda m, w: m.root.nn.functional.embedding_bag(
        m.root.tensor([1, 3, 1]), w, m.root.tensor([0, 2]), sparse=True, mode="sum").sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embedding(name: str) -> None:
    def run(m: Made) -> Any:
        w = m.dense(4, 2, grad=True)
        EMBEDDINGS[name](m, w).backward()
        return w.grad

    shown(run)


ORDERS = ("sparse sparse", "sparse dense", "dense sparse", "sparse sparse dense")


@pytest.mark.parametrize("order", ORDERS)
def test_accumulation(order: str) -> None:
    """.grad keeps sparse terms apart, and becomes dense with the first dense one."""

    def run(m: Made) -> Any:
        w, seen = m.dense(4, 2, grad=True), []
        for kind in order.split():
            (embedding(m, w) if kind == "sparse" else w * 2).sum().backward()
            seen.append((w.grad.is_sparse, w.grad.to_dense().tolist()))
        return seen

    shown(run)


def test_accumulates_in_place() -> None:
    for root in (torch, tt):
        m = Made(root)
        w = m.dense(4, 2, grad=True)
        embedding(m, w).sum().backward()
        first = w.grad
        embedding(m, w).sum().backward()
        assert w.grad is first
        assert first.to_dense()[1].tolist() == [4, 4]


def test_grad_may_be_given_sparse() -> None:
    def run(m: Made) -> Any:
        x = m.dense(2, 3, grad=True)
        (x * 2).backward(m.tidy())
        y = m.dense(2, 3, grad=True)
        y.grad = m.loose()
        return x.grad, y.grad

    shown(run)


def test_graph_of_a_sparse_gradient() -> None:
    """The gradient of an embedding is sparse and has a history of its own."""

    def run(m: Made) -> Any:
        w = m.dense(4, 2, grad=True)
        (g,) = m.root.autograd.grad(embedding(m, w).pow(2).sum(), w, create_graph=True)
        return g

    shown(run)


@pytest.mark.parametrize("how", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
                                 {"momentum": 0.5, "dampening": 0.5, "maximize": True},
                                 {"weight_decay": 0.1}], ids=str)  # fmt: skip
def test_sgd(how: dict[str, Any]) -> None:
    def run(m: Made) -> Any:
        w = m.root.nn.Parameter(m.dense(4, 2))
        optimizer = m.root.optim.SGD([w], lr=0.1, **how)
        for _ in range(3):
            optimizer.zero_grad()
            embedding(m, w).pow(2).sum().backward()
            optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return w, w.grad.to_dense()

    shown(run)


@BEYOND
def test_second_derivative() -> None:
    """d²/dv² Σ (dense of v)⁴ / 12 at distinct places is v²."""
    v = tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64, requires_grad=True)
    s = tt.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], v, (2, 3))
    (g,) = tt.autograd.grad((s.to_dense() ** 4).sum() / 12, v, create_graph=True)
    (h,) = tt.autograd.grad(g.sum(), v)
    assert h.tolist() == [1, 4, 9]
