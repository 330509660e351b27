"""Every distribution answers what PyTorch's does: values, gradients, draws, errors, copies."""

from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.distributions.families import BATCHES, CASES, Case, Shape
from tests.oracle import (
    ORACLE,
    SUBJECT,
    Side,
    agree,
    attempt,
    differences,
    dtype_name,
    error_difference,
    names,
    torch,
    tt,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore:Singular sample detected"),
]
F32, F64 = torch.float32, torch.float64
by_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
by_batch = pytest.mark.parametrize("batch", BATCHES, ids=str)
by_dtype = pytest.mark.parametrize("dtype", [F32, F64], ids=dtype_name)


def said(error: Exception | None) -> str:
    """The words of an error, whichever package it comes from."""
    return " ".join(str(error).replace("toytorch", "torch").split())


def same(f: Callable[[Side], Any], slack: float = 1.0, words: bool = True) -> Any:
    """Asserts that both sides give the same result, or the same error; returns PyTorch's."""
    want, refused = attempt(f, ORACLE)
    got, failed = attempt(f, SUBJECT)
    if refused or failed:
        difference = error_difference(refused, failed)
        assert not difference, difference
        if words and "Tensor of shape" not in said(refused):
            assert said(failed) == said(refused)
        return None
    bad = differences(want, got, slack=slack)
    assert not bad, "; ".join(bad)
    return want


def values_of(case: Case, p: dict[str, Any], count: Shape = (4,)) -> Any:
    """Samples, as PyTorch draws them."""
    torch.manual_seed(1)
    return case.on(ORACLE, p).sample(count)


ATTRIBUTES = names(
    "batch_shape event_shape mean mode variance stddev has_rsample has_enumerate_support"
)


@by_case
@by_batch
@by_dtype
def test_moments(case: Case, batch: Shape, dtype: Any) -> None:
    p = case.parameters(batch, dtype)
    for name in ATTRIBUTES:
        same(lambda side, name=name: getattr(case.on(side, p), name), slack=10)
    same(lambda side: case.on(side, p).entropy(), slack=10)
    same(lambda side: case.on(side, p).perplexity(), slack=10)
    for expand in (True, False):
        same(lambda side, e=expand: case.on(side, p).enumerate_support(e))


@by_case
@by_batch
@by_dtype
def test_densities(case: Case, batch: Shape, dtype: Any) -> None:
    p = case.parameters(batch, dtype)
    x = values_of(case, p)
    same(lambda side: case.on(side, p).log_prob(side.carry(x)), slack=10)
    same(lambda side: case.on(side, p).cdf(side.carry(x)), slack=10)
    u = torch.linspace(0.05, 0.95, 4, dtype=dtype).reshape(4, *([1] * len(batch)))
    same(lambda side: case.on(side, p).icdf(side.carry(u)), slack=10)


@by_case
def test_gradients_of_densities(case: Case) -> None:
    p = case.parameters((2,), F64)
    x = values_of(case, p)

    def slopes(side: Side) -> Any:
        leaves = side.carry(p, grad=True)
        value = side.carry(x, grad=True)
        d = case.make(side.root.distributions, **leaves)
        total = d.log_prob(value).sum()
        with contextlib.suppress(NotImplementedError):
            total = total + d.entropy().sum()
        inputs = [v for v in leaves.values() if v.requires_grad] + [value]
        return side.root.autograd.grad(total, inputs, allow_unused=True)

    if x.dtype.is_floating_point:
        same(slopes, slack=100)


@by_case
@by_batch
@by_dtype
def test_same_seed_same_draws(case: Case, batch: Shape, dtype: Any) -> None:
    """And the generators stand at the same place afterwards."""
    p = case.parameters(batch, dtype)
    for method in ("sample", "rsample"):
        for count in ((), (2,), (20, 2)):

            def draw(side: Side, method: str = method, count: Shape = count) -> Any:
                side.root.manual_seed(7)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = getattr(case.on(side, p), method)(count)
                return found.detach(), bytes(side.numpy(side.root.get_rng_state()))

            same(draw)


@by_case
def test_gradients_of_draws(case: Case) -> None:
    p = case.parameters((3,), F64)

    def slopes(side: Side) -> Any:
        side.root.manual_seed(3)
        leaves = side.carry(p, grad=True)
        drawn = case.make(side.root.distributions, **leaves).rsample((5,))
        return side.root.autograd.grad(drawn, list(leaves.values()), side.cotangent(drawn))

    if case.moves and case.on(ORACLE, p).has_rsample:
        same(slopes, slack=100 * case.slack)


@by_case
def test_expand(case: Case) -> None:
    p = case.parameters((3,), F64)
    x = values_of(case, p, (2,))

    def expanded(side: Side) -> Any:
        d = case.on(side, p)
        wide = d.expand((4, 2, 3))
        side.root.manual_seed(5)
        return (
            wide.batch_shape,
            wide.event_shape,
            wide.log_prob(side.carry(x)),
            wide.sample((2,)),
            repr(wide) if side is ORACLE else repr(wide).replace("toytorch", "torch"),
            type(wide) is type(d),
            wide._validate_args == d._validate_args,
        )

    same(expanded, slack=10)
    same(lambda side: case.on(side, p).expand((4, 2)))


@by_case
@by_batch
def test_printed(case: Case, batch: Shape) -> None:
    p = case.parameters(batch, F32)
    same(lambda side: repr(case.on(side, p)))
    same(lambda side: repr(case.on(side, p).support))


@by_case
def test_copies(case: Case) -> None:
    """A copy draws and judges as the original does; PyTorch's own Gumbel is broken by copying."""
    p = case.parameters((3,), F64)
    x = SUBJECT.carry(values_of(case, p))
    d = case.on(SUBJECT, p)
    d.log_prob(x), d.sample()  # which make what is made when it is read
    for twin in (copy.deepcopy(d), pickle.loads(pickle.dumps(d)), copy.copy(d)):
        assert repr(twin) == repr(d)
        assert bool((twin.log_prob(x) == d.log_prob(x)).all())
        tt.manual_seed(1)
        first = twin.sample((2,))
        tt.manual_seed(1)
        assert bool((first == d.sample((2,))).all())


# -- what is refused -------------------------------------------------------------------------------


@by_case
def test_wrong_parameters(case: Case) -> None:
    """Each parameter replaced by what none of its kind may be."""
    p = case.parameters((2,), F64)
    for name in p:
        for wrong in (-1.0, float("nan"), 1.5):
            bad = {**p, name: torch.full_like(p[name], wrong)}
            for validate in (None, True):
                if case.name in ("Independent", "Transformed", "Mixture", "Mixture of vectors"):
                    same(lambda side, b=bad: repr(case.on(side, b)))
                elif case.name != "LowRankMultivariateNormal":
                    same(lambda side, b=bad, v=validate: repr(case.on(side, b, validate_args=v)))


@by_case
def test_wrong_values(case: Case) -> None:
    p = case.parameters((2,), F64)
    x = values_of(case, p, ())
    same(lambda side: case.on(side, p).log_prob(1.0))
    same(lambda side: case.on(side, p).log_prob(side.root.zeros(7, 5, 5)))
    for wrong in (-3.7, float("nan"), 1e6):
        bad = torch.full_like(x, wrong) if x.is_floating_point() else torch.full_like(x, 9)
        same(lambda side, b=bad: case.on(side, p).log_prob(side.carry(b)), slack=10)
        same(lambda side, b=bad: case.on(side, p).cdf(side.carry(b)), slack=10)


MISTAKES: list[Callable[[Any, Any], Any]] = [
    lambda m, d: d.Bernoulli(),
    lambda m, d: d.Bernoulli(0.5, logits=0.1),
    lambda m, d: d.Categorical(m.tensor(1.0)),
    lambda m, d: d.Categorical(logits=m.tensor(1.0)),
    lambda m, d: d.Normal("a", 1.0),
    lambda m, d: d.Dirichlet(m.tensor(1.0)),
    lambda m, d: d.Multinomial(m.tensor([3]), m.ones(2)),
    lambda m, d: d.MultivariateNormal(m.tensor(1.0), m.eye(2)),
    lambda m, d: d.MultivariateNormal(m.zeros(2)),
    lambda m, d: d.MultivariateNormal(m.zeros(2), m.eye(2), scale_tril=m.eye(2)),
    lambda m, d: d.MultivariateNormal(m.zeros(2), m.ones(2)),
    lambda m, d: d.MultivariateNormal(m.zeros(2), scale_tril=m.ones(2)),
    lambda m, d: d.MultivariateNormal(m.zeros(2), precision_matrix=m.ones(2)),
    lambda m, d: d.LowRankMultivariateNormal(m.tensor(1.0), m.ones(2, 1), m.ones(2)),
    lambda m, d: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2), m.ones(2)),
    lambda m, d: d.LowRankMultivariateNormal(m.zeros(2), m.ones(3, 1), m.ones(2)),
    lambda m, d: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2, 1), m.ones(3)),
    lambda m, d: d.LowRankMultivariateNormal(m.zeros(4, 2), m.ones(3, 2, 1), m.ones(2)),
    lambda m, d: d.Wishart(2.0, m.eye(2), scale_tril=m.eye(2)),
    lambda m, d: d.Wishart(2.0, m.ones(2)),
    lambda m, d: d.Wishart(0.5, m.eye(2)),
    lambda m, d: d.LKJCholesky(1),
    lambda m, d: d.Independent(d.Normal(m.zeros(2), 1.0), 2),
    lambda m, d: d.Independent(d.Bernoulli(m.ones(2) / 2), 1).enumerate_support(),
    lambda m, d: d.Binomial(m.tensor([1.0, 2.0]), 0.5).entropy(),
    lambda m, d: d.Binomial(m.tensor([1.0, 2.0]), 0.5).enumerate_support(),
    lambda m, d: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(m.zeros(2), 1.0)),
    lambda m, d: d.MixtureSameFamily(d.Categorical(m.ones(2)), 1),
    lambda m, d: d.MixtureSameFamily(d.Categorical(m.ones(2)), d.Normal(m.zeros(3), 1.0)),
    lambda m, d: d.MixtureSameFamily(d.Categorical(m.ones(2, 3)), d.Normal(m.zeros(4, 3), 1.0)),
    lambda m, d: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    lambda m, d: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
    lambda m, d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
    lambda m, d: d.Geometric(0.0),
    lambda m, d: d.Distribution().sample(),
    lambda m, d: d.Distribution(validate_args=False).sample(),
    lambda m, d: d.Distribution(validate_args=False).mode,
    lambda m, d: d.Distribution(validate_args=False).expand((2,)),
    lambda m, d: d.Distribution.set_default_validate_args(3),
    lambda m, d: d.ExponentialFamily(validate_args=False).entropy(),
    lambda m, d: d.kl_divergence(d.Normal(0.0, 1.0), d.Cauchy(0.0, 1.0)),
    lambda m, d: d.register_kl(3, d.Normal),
    lambda m, d: d.biject_to(d.constraints.positive_definite),
    lambda m, d: d.transform_to.register(3, 4),
    lambda m, d: d.constraints.dependent.event_dim,
    lambda m, d: d.constraints.dependent.check(m.zeros(1)),
    lambda m, d: d.constraints.independent(3, 1),
    lambda m, d: d.constraints.independent(d.constraints.real, "a"),
    lambda m, d: d.constraints.independent(d.constraints.real, -1),
    lambda m, d: d.constraints.independent(d.constraints.real, 2).check(m.zeros(1)),
    lambda m, d: d.constraints.cat([3]),
    lambda m, d: d.constraints.cat([d.constraints.real], lengths=[1, 2]),
    lambda m, d: d.constraints.cat([d.constraints.real], 2).check(m.zeros(1)),
    lambda m, d: d.constraints.stack([d.constraints.real], 2).check(m.zeros(1)),
    lambda m, d: d.constraints.MixtureSameFamilyConstraint(3),
    lambda m, d: d.ExpTransform(cache_size=2),
    lambda m, d: d.ReshapeTransform((2,), (3,)),
    lambda m, d: d.ReshapeTransform((2,), (2, 1)).forward_shape((3,)),
    lambda m, d: d.ReshapeTransform((2,), (2, 1)).inverse_shape((3,)),
    lambda m, d: d.StickBreakingTransform().forward_shape(()),
    lambda m, d: d.CorrCholeskyTransform().forward_shape((2,)),
    lambda m, d: d.CorrCholeskyTransform().inverse_shape((2, 3)),
    lambda m, d: d.CorrCholeskyTransform().inverse_shape((2,)),
    lambda m, d: d.IndependentTransform(d.ExpTransform(), 1)(m.tensor(1.0)),
    lambda m, d: d.IndependentTransform(d.ExpTransform(), 1).inv(m.tensor(1.0)),
    lambda m, d: d.StickBreakingTransform().inv.event_dim,
    lambda m, d: d.CatTransform([d.ExpTransform()], 1)(m.zeros(1)),
    lambda m, d: d.CatTransform([d.ExpTransform()])(m.zeros(2)),
    lambda m, d: d.CatTransform([d.ExpTransform()], lengths=[1, 2]),
    lambda m, d: d.CatTransform([3]),
    lambda m, d: d.StackTransform([d.ExpTransform()])(m.zeros(2)),
    lambda m, d: d.StackTransform([d.ExpTransform()]).log_abs_det_jacobian(m.zeros(1), m.zeros(3)),
    lambda m, d: d.transforms.Transform().sign,
    lambda m, d: d.utils.vec_to_tril_matrix(m.zeros(2)),
    lambda m, d: d.utils.tril_matrix_to_vec(m.zeros(2, 2), 5),
]


@pytest.mark.parametrize("at", range(len(MISTAKES)))
def test_mistakes(at: int) -> None:
    """They are refused by the same class of error in the same words."""
    call = MISTAKES[at]
    want, refused = attempt(lambda: call(torch, torch.distributions))
    assert refused is not None or torch.isfinite(torch.as_tensor(1.0)), want
    same(lambda side: call(side.root, side.root.distributions) and None)


def test_subclass_that_makes_itself_must_expand_itself() -> None:
    def ask(side: Side) -> Any:
        class Mine(side.root.distributions.Normal):  # type: ignore[name-defined, misc]
            def __init__(self, loc: Any) -> None:
                super().__init__(loc, 1.0)

        Mine(side.root.zeros(2)).expand((3, 2))

    same(ask)


def test_subclass_that_only_adds_expands() -> None:
    def ask(side: Side) -> Any:
        class Mine(side.root.distributions.Normal):  # type: ignore[name-defined, misc]
            pass

        wide = Mine(side.root.zeros(2), 1.0).expand((3, 2))
        return type(wide) is Mine, wide.mean

    same(ask)


def test_unstated_constraints_and_support_warn() -> None:
    for side in (ORACLE, SUBJECT):

        class Mine(side.root.distributions.Distribution):  # type: ignore[name-defined, misc]
            pass

        with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
            mine = Mine(validate_args=True)
        with pytest.warns(UserWarning, match="does not define `support`"):
            mine._validate_sample(side.root.zeros(()))
        with pytest.warns(FutureWarning, match="sample_n"):
            side.root.distributions.Normal(0.0, 1.0).sample_n(2)
        with pytest.warns(UserWarning, match="Low df values"):
            side.root.distributions.Wishart(1.5, side.root.eye(2))


# -- names -----------------------------------------------------------------------------------------

MODULES = [name.replace("torch.", "") for name in (
    "torch.distributions", "torch.distributions.constraints", "torch.distributions.transforms",
    "torch.distributions.kl", "torch.distributions.utils",
    "torch.distributions.constraint_registry", "torch.distributions.distribution",
    "torch.distributions.relaxed_bernoulli", "torch.distributions.relaxed_categorical",
)]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_names(module: str) -> None:
    import importlib

    want = importlib.import_module(f"torch.{module}")
    got = importlib.import_module(f"{tt.__name__}.{module}")
    assert sorted(got.__all__) == sorted(want.__all__)
    for name in want.__all__:
        assert hasattr(got, name), name


def test_signatures() -> None:
    """Arguments by PyTorch's names, in its order, with its defaults."""
    d, e = torch.distributions, tt.distributions
    for name in d.__all__:
        want, got = getattr(d, name), getattr(e, name)
        if not inspect.isclass(want):
            continue
        for method in ("__init__", "expand", "sample", "rsample", "log_prob", "cdf", "icdf",
                       "enumerate_support", "log_abs_det_jacobian", "with_cache"):  # fmt: skip
            if not hasattr(want, method):
                continue
            a = inspect.signature(getattr(want, method)).parameters
            b = inspect.signature(getattr(got, method)).parameters
            shown = [(k, str(v.kind), repr(v.default).replace("torch.Size([])", "()"))
                     for k, v in a.items()]  # fmt: skip
            ours = [(k, str(v.kind), repr(v.default).replace("torch.Size([])", "()"))
                    for k, v in b.items()]  # fmt: skip
            assert ours == shown, (name, method)


# -- any parameters --------------------------------------------------------------------------------

numbers = st.floats(-5, 5)
positive = st.floats(0.01, 20)
unit = st.floats(0.01, 0.99)
OF_NUMBERS: dict[str, tuple[Any, ...]] = {
    "Bernoulli": (unit,), "Beta": (positive, positive), "Cauchy": (numbers, positive),
    "Chi2": (positive,), "ContinuousBernoulli": (unit,), "Exponential": (positive,),
    "FisherSnedecor": (positive, positive), "Gamma": (positive, positive), "Geometric": (unit,),
    "Gumbel": (numbers, positive), "HalfCauchy": (positive,), "HalfNormal": (positive,),
    "InverseGamma": (positive, positive), "Kumaraswamy": (positive, positive),
    "Laplace": (numbers, positive), "LogNormal": (numbers, positive),
    "Normal": (numbers, positive), "Pareto": (positive, positive), "Poisson": (positive,),
    "StudentT": (positive, numbers, positive), "Weibull": (positive, positive),
    "VonMises": (numbers, positive),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_any_parameters(name: str) -> None:
    """In float64, at values that PyTorch draws."""

    @settings(max_examples=15)
    @given(st.tuples(*OF_NUMBERS[name]), st.integers(0, 2**31))
    def check(parameters: tuple[float, ...], seed: int) -> None:
        p = [torch.tensor([v], dtype=F64) for v in parameters]
        torch.manual_seed(seed)
        x = getattr(torch.distributions, name)(*p).sample((3,))

        def ask(side: Side) -> Any:
            d = getattr(side.root.distributions, name)(*side.carry(p))
            value = side.carry(x)
            parts: list[Any] = []
            for f in (lambda: d.log_prob(value), lambda: d.cdf(value), d.entropy,
                      lambda: d.mean, lambda: d.variance):  # fmt: skip
                found, _ = attempt(f)
                parts.append(found)
            return parts

        same(ask, slack=100)

    check()


def test_agree_on_numbers() -> None:
    """Parameters that are Python's numbers."""
    for name, kinds in OF_NUMBERS.items():
        if name == "VonMises":
            continue  # PyTorch's annotation asks for tensors
        values = [0.5] * len(kinds)
        d = getattr(tt.distributions, name)(*values)
        e = getattr(torch.distributions, name)(*values)
        assert tuple(d.batch_shape) == tuple(e.batch_shape) == ()
        agree(e.log_prob(torch.tensor(1.0)), d.log_prob(tt.tensor(1.0)))
        assert np.array_equal(tuple(d.sample((2,)).shape), (2,))
