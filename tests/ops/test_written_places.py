"""Where writes are refused, warned of, or go: overlaps, out=, bounds and parts of complex numbers."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import attempt, error_difference, torch, tt

PROGRAMS = """
x.index_add_(0, i, v)
x.index_copy_(0, i, v)
x.index_fill_(0, i, 1.)
x.put_(i, v)
x.index_put_((i,), v * 0)
x.masked_fill_(t.tensor([True] * 6), 0.)
x.scatter_(0, i, v)
y.index_add_(0, i, y[:3])
y.index_copy_(0, i, y[1:4])
y.scatter_(0, i, y[:3])
y.scatter_add_(0, i, y[:3])
y.put_(i, y[:3])
y.index_put_((i,), y[:3])
y[:5].copy_(y[1:])
y.copy_(y)
y[:3].copy_(y[3:])
y.index_add_(0, i, y[3:])
y[:3].index_add_(0, i, y[3:])
y.index_fill_(0, i, y[0])
i.index_add_(0, i, i.clone())
setattr(z, "real", 0) or z
setattr(z, "imag", t.tensor([5., 6])) or z
setattr(y, "real", 3) or y
setattr(y, "imag", 3)
t.ones(3).map2_(v, v, lambda a, b, c: a + b * c)
t.ones(2, 3).map2_(v, t.tensor(4.), lambda a, b, c: a + b * c)
t.ones(3, requires_grad=True).map2_(v, v, lambda a, b, c: a)
t.ones(3).map2_(i, v, lambda a, b, c: a)
t.ones(3).map_(i, lambda a, b: a)
t.ones(3, 1).map_(t.ones(1, 4), lambda a, b: a)
t.ones(3, requires_grad=True).map_(v, lambda a, b: a)
t.ones(3).map_(v, lambda a, b: "x")
t.ones(3).apply_(lambda a: "x")
t.linspace(0, 1j, 5)
t.linspace(0, 1j, 3, dtype=t.float32)
t.logspace(0, 1j, 3, dtype=t.float32)
t.linspace(t.tensor(0.), t.tensor(1j), 3)
t.median(v, 0, out=(t.empty(0), t.empty(0, dtype=t.long)))[0]
t.median(v, out=t.empty(0))
t.block_diag()
t.block_diag(t.empty(0, 3), t.ones(2))
t.bernoulli(t.tensor([0., 1.]), out=t.empty(2, dtype=t.int32))
t.empty(2).uniform_(2, 1)
t.empty(2).uniform_(float("inf"), 0)
t.empty(2).uniform_(0, 1e39)
t.empty(2, dtype=t.float64).uniform_(-1e308, 1e308)
t.empty(2, dtype=t.float16).uniform_(0, 70000)
t.zeros(2, out=t.ones(2, dtype=t.int32), dtype=t.float32)
t.zeros(2, out=t.ones(2, dtype=t.int32), layout=t.sparse_coo)
t.full((2,), 1, out=t.ones(2, dtype=t.int32), dtype=t.float32)
t.full((2,), 1., out=t.ones(2, dtype=t.int32))
t.sum(i, 0, dtype=t.int32, out=t.empty((), dtype=t.int64))
t.cumsum(i, 0, dtype=t.int32, out=t.empty(3, dtype=t.int64))
t.cumsum(i, 0, out=t.empty(3, dtype=t.int32))
t.empty(3, dtype=t.int8).random_(-3, None)
t.empty(3, dtype=t.int8).random_(200, None)
t.empty(3).random_(5, None)
t.empty(3).random_(to=5)
t.roll(t.tensor([[1, 2], [3, 4]]), 1, dims=None)
float(t.tensor(1.5j))
int(t.tensor(1.5j))
float(t.tensor(1.5 + 0j))
v.int().requires_grad_()
setattr(v.int(), "requires_grad", True)
t.zeros(2, dtype=t.int32, requires_grad=True)
y.to_sparse().log1p_()
t.sparse_coo_tensor([[0, 0]], [1., 2], (2,)).log1p_()
t.sparse_coo_tensor([[0, 0]], [1., 2], (2,)).neg_()
v / v.to_sparse()
t.tensor(1.).to_sparse() // t.tensor(1.).to_sparse()
t.zeros(3, 3, layout=t.sparse_coo) + t.eye(3).to_sparse(1)
t.eye(3).to_sparse().narrow_copy(0, 1, 2)
t._sparse_broadcast_to(t.ones(1, 3).to_sparse(), (3, 3))
t.sparse.sum(t.eye(3).to_sparse(), [0, 0])
t.eye(3).to_sparse().resize_as_(t.zeros(4, 4).to_sparse())
t.eye(3).to_sparse().resize_(2, 2)
t.empty_like(t.eye(3).to_sparse(), memory_format=t.contiguous_format)
t.empty_like(t.eye(3), layout=t.sparse_coo)
exec("s[0] = 1")
s.add_(s)
""".strip().splitlines()  # fmt: skip


def answer(program: str, root: Any) -> Any:
    root.manual_seed(3)
    names = {
        "t": root, "x": root.ones(1).expand(6), "y": root.arange(6.0), "i": root.tensor([0, 1, 2]),
        "v": root.tensor([3.0, 1, 2]), "z": root.tensor([1 + 2j, 3 + 4j]),
        "s": root.sparse_coo_tensor([[0, 0, 1]], [1.0, 2, 3], (3,)),
    }  # fmt: skip
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = eval(program, names)
    told = [str(w.message).partition(" (Triggered")[0] for w in seen]
    return repr(made), [text for text in told if "invariant" not in text]


@pytest.mark.parametrize("program", PROGRAMS)
def test_same(program: str) -> None:
    want, refused = attempt(lambda root: answer(program, root), torch)
    got, failure = attempt(lambda root: answer(program, root), tt)
    if refused or failure:
        assert not error_difference(refused, failure), error_difference(refused, failure)
    else:
        assert got == want


@pytest.mark.parametrize("warn", [True, False])
@pytest.mark.parametrize("program", [
    "y.put_(i, v)", "y.put(i, v)", "y.put(i, v, accumulate=True)",
    "t.nn.MaxUnpool1d(3, 1)(t.ones(1, 1, 7), t.zeros(1, 1, 7, dtype=t.long))",
    "t.nn.MaxUnpool3d(3, 1)(t.ones(1, 1, 2, 2, 2), t.zeros(1, 1, 2, 2, 2, dtype=t.long))",
])  # fmt: skip
def test_alerts(program: str, warn: bool) -> None:
    """What has no deterministic algorithm in PyTorch is refused, or warned of, where one is wanted."""
    for root in (torch, tt):
        root.use_deterministic_algorithms(True, warn_only=warn)
    try:
        test_same(program)
    finally:
        for root in (torch, tt):
            root.use_deterministic_algorithms(False)


def test_empty_memory_of_out() -> None:
    tt.use_deterministic_algorithms(True)
    try:
        assert tt.empty(10, 9, out=tt.zeros(1, dtype=tt.int16)).eq(32767).all()
    finally:
        tt.use_deterministic_algorithms(False)


def self_out(m: Any, name: str, *args: Any) -> Any:
    """A call whose first operand is its out=, of another shape than the result."""
    x = m.ones(3, 1)
    return getattr(m, name)(x, *args, out=x)


ORDER = {  # of two refusals, which one comes
    "index_add_: a vector": lambda m: m.zeros(2, 0).index_add_(
        1, m.zeros(2, 0).long(), m.zeros(2, 0).expand(2, 0)
    ),
    "index_add_: itself": lambda m: (x := m.ones(2, 2)).index_add_(0, x, x),
    "index_fill_: its type": lambda m: (x := m.ones(3)).index_fill_(0, x, True),
    "index_fill_: its value": lambda m: m.ones(3).index_fill_(0, m.tensor([1]).int(), m.ones(3)),
    "put_: as many": lambda m: (x := m.ones(4)).put_(m.tensor([3, 3]), x),
    "index_put_: dimensions": lambda m: (x := m.ones(2)).index_put_([x, x, x], x, True),
    "index_reduce_: its type": lambda m: (x := m.ones(3)).index_reduce_(
        0, x, m.tensor(1.0), "amin"
    ),
    "index_reduce_: itself": lambda m: (x := m.ones(2)).index_reduce_(
        0, m.tensor([0, 1]), x, "prod"
    ),
    "scatter_add_: dimension": lambda m: (x := m.ones(2)).scatter_add_(1, m.tensor([0]), x),
    "scatter: a single source": lambda m: m.tensor(1.0).scatter(
        -1, m.tensor([0, 0]), m.tensor(1.0)
    ),
    "index_copy: out first": lambda m: m.index_copy(x := m.ones(2, 2).long(), 0, x, x, out=x),
    "index_copy: type of out": lambda m: m.index_copy(
        m.ones(2).int(), 0, m.ones(2), m.ones(2), out=m.ones(2)
    ),
    "scatter_reduce: out": lambda m: m.scatter_reduce(
        m.ones(2), 0, m.tensor([0, 1]), x := m.ones(2), "sum", out=x
    ),
    "hardshrink: type of out": lambda m: m.hardshrink(m.ones(2).long(), 0.1, out=m.ones(2)),
    "softmax: type of out": lambda m: m.softmax(m.ones(2).short(), 0, out=m.ones(2).long()),
    "gcd: shared": lambda m: m.gcd((x := m.ones(3, 3)).T, x, out=x.T),
    "cross: shared": lambda m: m.linalg.cross(x := m.ones(2, 3), x, out=x),
    "nothing, but itself": lambda m: m.take(x := m.zeros(0), m.tensor([]).long(), out=x),
    "add: out": lambda m: self_out(m, "add", m.ones(1, 3)),
    "logical_and: out": lambda m: self_out(m, "logical_and", m.ones(3, 3)),
    "lerp: out": lambda m: self_out(m, "lerp", m.ones(3, 3), 0.5),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", ORDER)
def test_which_refusal_comes(label: str) -> None:
    theirs, ours = (attempt(ORDER[label], m)[1] for m in (torch, tt))
    assert theirs is not None, "PyTorch accepts this call: the table is wrong"
    assert type(ours) is type(theirs), (ours, theirs)
    assert str(ours)[:40] == str(theirs)[:40]


@pytest.mark.filterwarnings("ignore")
def test_nothing_shares_no_memory() -> None:
    for m in (torch, tt):
        x = m.ones(2)
        assert m.gather(x, 0, m.tensor([]).long(), out=x[:1]).shape == (0,)
        v = m.zeros(2, 0)
        assert m.stack((v, v), out=v).shape == (2, 2, 0)
