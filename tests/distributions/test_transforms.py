"""Transforms and regions: values, inverses, volumes, shapes, caches, and the tables between them."""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import ORACLE, SUBJECT, Side, attempt, differences, error_difference, torch, tt

F64 = torch.float64
Make = Callable[[Any, Any], Any]  # of the package and its distributions

TRANSFORMS: dict[str, tuple[Make, tuple[int, ...]]] = {  # and the shape of one value
    "abs": (lambda m, d: d.AbsTransform(), ()),
    "affine": (lambda m, d: d.AffineTransform(0.5, -2.0), ()),
    "affine of tensors": (
        lambda m, d: d.AffineTransform(m.tensor([1.0, 2, 3]).double(), m.tensor(0.5).double()),
        (3,),
    ),
    "affine of vectors": (
        lambda m, d: d.AffineTransform(1.0, m.tensor([2.0, 3]).double(), 1),
        (2,),
    ),
    "cat": (
        lambda m, d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [1, 2]),
        (3,),
    ),
    "cat of vectors": (
        lambda m, d: d.CatTransform([d.ExpTransform(), d.AffineTransform(0, 2.0)], 0, [2, 2]),
        (4, 2),
    ),
    "compose": (lambda m, d: d.ComposeTransform([d.AffineTransform(0, 2.0), d.ExpTransform()]), ()),
    "compose of vectors": (
        lambda m, d: d.ComposeTransform([d.AffineTransform(0, 2.0), d.StickBreakingTransform()]),
        (3,),
    ),
    "correlations": (lambda m, d: d.CorrCholeskyTransform(), (6,)),
    "cdf": (lambda m, d: d.CumulativeDistributionTransform(d.Normal(0.1, 1.5)), ()),
    "exp": (lambda m, d: d.ExpTransform(), ()),
    "identity": (lambda m, d: d.identity_transform, ()),
    "independent": (lambda m, d: d.IndependentTransform(d.SigmoidTransform(), 1), (3,)),
    "inverse": (lambda m, d: d.AffineTransform(1.0, 3.0).inv, ()),
    "inverse of compose": (
        lambda m, d: d.ComposeTransform([d.AffineTransform(0, 2.0), d.AffineTransform(3, 1.0)]).inv,
        (),
    ),
    "lower cholesky": (lambda m, d: d.LowerCholeskyTransform(), (3, 3)),
    "positive definite": (lambda m, d: d.PositiveDefiniteTransform(), (3, 3)),
    "power": (
        lambda m, d: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(m.tensor(2.5))]),
        (),
    ),
    "reshape": (lambda m, d: d.ReshapeTransform((2, 3), (6,)), (2, 3)),
    "sigmoid": (lambda m, d: d.SigmoidTransform(), ()),
    "softmax": (lambda m, d: d.SoftmaxTransform(), (3,)),
    "softplus": (lambda m, d: d.SoftplusTransform(), ()),
    "stack": (lambda m, d: d.StackTransform([d.ExpTransform(), d.TanhTransform()], -1), (2,)),
    "stack in front": (
        lambda m, d: d.StackTransform([d.ExpTransform(), d.TanhTransform()]),
        (2, 2),
    ),
    "stick": (lambda m, d: d.StickBreakingTransform(), (4,)),
    "tanh": (lambda m, d: d.TanhTransform(), ()),
}
by_name = pytest.mark.parametrize("name", TRANSFORMS)


def same(f: Callable[[Side], Any], slack: float = 10) -> None:
    want, refused = attempt(f, ORACLE)
    got, failed = attempt(f, SUBJECT)
    if refused or failed:
        assert not error_difference(refused, failed)
        ours, theirs = (
            " ".join(str(e).replace("toytorch", "torch").split()) for e in (failed, refused)
        )
        assert ours == theirs
    else:
        bad = differences(want, got, slack=slack)
        assert not bad, "; ".join(bad)


def made(name: str, side: Side) -> Any:
    return TRANSFORMS[name][0](side.root, side.root.distributions)


def values(name: str, batch: tuple[int, ...], dtype: Any = F64) -> Any:
    torch.manual_seed(2)
    return torch.randn((*batch, *TRANSFORMS[name][1]), dtype=dtype)


@by_name
@pytest.mark.parametrize("batch", [(), (4,), (2, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
def test_there_and_back(name: str, batch: tuple[int, ...], dtype: Any) -> None:
    x = values(name, batch, dtype)
    same(lambda side: made(name, side)(side.carry(x)))
    same(lambda side: made(name, side).inv(made(name, side)(side.carry(x))), slack=1000)

    def volume(side: Side) -> Any:
        t, v = made(name, side), side.carry(x)
        return t.log_abs_det_jacobian(v, t(v))

    same(volume)
    same(lambda side: made(name, side).forward_shape(side.root.Size(x.shape)))
    same(lambda side: made(name, side).inverse_shape(made(name, side)(side.carry(x)).shape))


@by_name
def test_gradients(name: str) -> None:
    x = values(name, (3,))

    def slopes(side: Side) -> Any:
        t, v = made(name, side), side.carry(x, grad=True)
        y = t(v)
        total = (y * side.cotangent(y)).sum()
        with contextlib.suppress(NotImplementedError):
            total = total + t.log_abs_det_jacobian(v, y).sum()
        return side.root.autograd.grad(total, v)

    same(slopes, slack=100)


@by_name
def test_volumes_are_those_of_the_jacobian(name: str) -> None:
    """log |det| of what autograd finds, for those that keep the number of numbers."""
    t, shape = made(name, SUBJECT), TRANSFORMS[name][1]
    x = SUBJECT.carry(values(name, ()))
    if not t.bijective or t(x).numel() != x.numel():
        return
    flat = tt.func.jacrev(lambda v: t(v.reshape(shape)).reshape(-1))(x.reshape(-1))
    want = tt.linalg.slogdet(flat.reshape(x.numel(), x.numel())).logabsdet
    got = t.log_abs_det_jacobian(x, t(x)).sum()
    assert abs(float(want - got)) < 1e-7  # parameters of float32


@by_name
def test_described(name: str) -> None:
    for ask in (
        lambda t: repr(t), lambda t: repr(t.inv), lambda t: repr(t.domain),
        lambda t: repr(t.codomain), lambda t: t.bijective, lambda t: t.sign, lambda t: t.event_dim,
        lambda t: t.domain.event_dim, lambda t: t.codomain.event_dim, lambda t: t == t,
        lambda t: t.inv.inv is t, lambda t: t.inv == t.inv, lambda t: t == t.inv,
        lambda t: type(t.with_cache()).__name__, lambda t: t.with_cache() is t,
        lambda t: t.with_cache(0) is t, lambda t: t.domain.is_discrete,
    ):  # fmt: skip
        same(lambda side, ask=ask: ask(made(name, side)))


def test_equality() -> None:
    for one, two in itertools.product(TRANSFORMS, repeat=2):
        same(lambda side, a=one, b=two: made(a, side) == made(b, side))


@by_name
def test_cache(name: str) -> None:
    t = made(name, SUBJECT).with_cache(1)
    x = SUBJECT.carry(values(name, ()))
    y = t(x)
    assert t.with_cache(1) is t
    if name not in ("identity", "abs"):
        assert (t(x) is y) == bool(t._cache_size)
        assert t.inv(y) is x
    assert not differences(ORACLE.root.as_tensor(ORACLE.numpy(made(name, ORACLE)(values(name, ())))),
                           y, slack=10)  # fmt: skip


@by_name
def test_copies(name: str) -> None:
    t = made(name, SUBJECT)
    x = SUBJECT.carry(values(name, ()))
    for twin in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert repr(twin) == repr(t)
        assert bool((twin(x) == t(x)).all())
        assert bool((twin.inv(t(x)) == t.inv(t(x))).all())


# -- regions ---------------------------------------------------------------------------------------

REGIONS: dict[str, Callable[[Any, Any], Any]] = {
    "boolean": lambda m, c: c.boolean,
    "cat": lambda m, c: c.cat([c.positive, c.real], -1, [1, 2]),
    "corr_cholesky": lambda m, c: c.corr_cholesky,
    "greater_than": lambda m, c: c.greater_than(0.5),
    "greater_than_eq": lambda m, c: c.greater_than_eq(m.tensor([0.0, 1.0, 0.5])),
    "half_open_interval": lambda m, c: c.half_open_interval(-1, 1),
    "independent": lambda m, c: c.independent(c.positive, 1),
    "integer_interval": lambda m, c: c.integer_interval(0, 3),
    "integer less": lambda m, c: c._IntegerLessThan(2),
    "interval": lambda m, c: c.interval(-1.0, m.tensor([0.0, 1.0, 2.0])),
    "less_than": lambda m, c: c.less_than(1.0),
    "lower_cholesky": lambda m, c: c.lower_cholesky,
    "lower_triangular": lambda m, c: c.lower_triangular,
    "mixture": lambda m, c: c.MixtureSameFamilyConstraint(c.positive),
    "multinomial": lambda m, c: c.multinomial(3),
    "nonnegative": lambda m, c: c.nonnegative,
    "nonnegative_integer": lambda m, c: c.nonnegative_integer,
    "one_hot": lambda m, c: c.one_hot,
    "positive": lambda m, c: c.positive,
    "positive_definite": lambda m, c: c.positive_definite,
    "positive_integer": lambda m, c: c.positive_integer,
    "positive_semidefinite": lambda m, c: c.positive_semidefinite,
    "real": lambda m, c: c.real,
    "real_vector": lambda m, c: c.real_vector,
    "simplex": lambda m, c: c.simplex,
    "square": lambda m, c: c.square,
    "stack": lambda m, c: c.stack([c.positive, c.real, c.boolean], -1),
    "symmetric": lambda m, c: c.symmetric,
    "unit_interval": lambda m, c: c.unit_interval,
    "dependent": lambda m, c: c.dependent(is_discrete=True, event_dim=1),
    "dependent unknown": lambda m, c: c.dependent,
}
NAN, INF = float("nan"), float("inf")
VALUES = [
    torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.2, 0.3, 0.5]), torch.tensor([-1.0, 2.0, NAN]),
    torch.tensor([INF, -INF, 3.0]), torch.tensor([1, 0, 1]), torch.tensor(1.0), torch.tensor(-0.5),
    torch.eye(3), torch.eye(3, dtype=F64) * 2 + 1, torch.ones(3, 3), -torch.eye(3),
    torch.tensor([[1.0, 0, 0], [0.6, 0.8, 0], [0, 0, 1]]), torch.arange(9.0).reshape(3, 3),
    torch.stack([torch.eye(3), torch.ones(3, 3), torch.full((3, 3), NAN)]), torch.ones(2, 3),
    torch.tensor([[0.5, 0.5, 0.0], [1.0, 2.0, 3.0]]), torch.zeros(0, 3), torch.tensor([True, False, True]),
]  # fmt: skip


def region(name: str, side: Side) -> Any:
    return REGIONS[name](side.root, side.root.distributions.constraints)


@pytest.mark.parametrize("name", REGIONS)
def test_regions(name: str) -> None:
    for value in VALUES:
        same(lambda side, v=value: region(name, side).check(side.carry(v)))
    same(lambda side: repr(region(name, side)))
    same(lambda side: region(name, side).is_discrete)
    same(lambda side: region(name, side).event_dim)
    same(lambda side: side.root.distributions.constraints.is_dependent(region(name, side)))


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("table", ["biject_to", "transform_to"])
def test_maps_into_regions(table: str, name: str) -> None:
    x = torch.linspace(-2, 2, 3, dtype=F64)
    matrix = torch.linspace(-1, 1, 9, dtype=F64).reshape(3, 3)

    def mapped(side: Side) -> Any:
        where = region(name, side)
        t = getattr(side.root.distributions, table)(where)
        y = t(side.carry(matrix if where.event_dim == 2 and t.domain.event_dim == 2 else x))
        return y, repr(t), where.check(y)

    same(mapped)


@settings(max_examples=40)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6), st.sampled_from(["stick", "softmax"]))
def test_any_point_of_a_simplex(numbers: list[float], name: str) -> None:
    x = torch.tensor(numbers, dtype=F64)
    same(lambda side: made(name, side)(side.carry(x)))
    t, v = made(name, SUBJECT), SUBJECT.carry(x)
    y = t(v)
    assert bool(tt.distributions.constraints.simplex.check(y))
    if name == "stick":
        assert float((t.inv(y) - v).abs().max()) < 1e-8


def test_registering() -> None:
    d = tt.distributions

    class Mine(d.constraints.Constraint):  # type: ignore[name-defined, misc]
        pass

    with pytest.raises(NotImplementedError, match="Cannot transform Mine constraints"):
        d.biject_to(Mine())

    @d.biject_to.register(Mine)
    def make(constraint: Any) -> Any:
        return d.ExpTransform()

    assert repr(d.biject_to(Mine())) == "ExpTransform()"
    del d.biject_to._registry[Mine]


def test_triangles() -> None:
    vec = torch.arange(6.0)
    for diag in (-1, 0, 1):
        same(
            lambda side, k=diag: side.root.distributions.utils.vec_to_tril_matrix(
                side.carry(vec), k
            )
        )
        same(lambda side, k=diag: side.root.distributions.utils.tril_matrix_to_vec(
            side.carry(torch.arange(32.0).reshape(2, 4, 4)), k))  # fmt: skip


@pytest.mark.parametrize("m", [tt, torch])
def test_a_transform_may_be_a_module(m: Any) -> None:
    """As those of normalizing flows are: the initializers of both run, one after the other."""

    class Shift(m.distributions.Transform, m.nn.Module):  # type: ignore[misc]  # of either package
        bijective = True
        domain = codomain = m.distributions.constraints.real
        __hash__ = m.nn.Module.__hash__

        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.by = m.nn.Linear(1, 1)

    assert [name for name, _ in Shift().named_parameters()] == ["by.weight", "by.bias"]
    layer = Shift().by
    assert layer.weight._cdata == layer.weight._cdata != layer.bias._cdata
