"""Divergences of all pairs of distributions, in PyTorch and by drawing."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.distributions.families import CASES, Case
from tests.oracle import ORACLE, SUBJECT, Side, attempt, differences, error_difference, torch, tt

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")
F64 = torch.float64
ENDS = {  # bounds inside and outside of [0, 1], which some divergences ask about
    "Uniform": [
        {"low": [-1.0, 0.0, 0.2, -1.0], "high": [2.0, 1.0, 0.8, 0.5]},
        {"low": [0.1, 0.2, 0.0, -2.0], "high": [0.9, 0.7, 2.0, 3.0]},
    ],
    "Pareto": [
        {"scale": [0.1, 0.5, 1.0, 2.0], "alpha": [0.5, 1.0, 2.0, 5.0]},
        {"scale": [0.1, 0.7, 0.5, 2.0], "alpha": [1.5, 2.5, 3.0, 2.0]},
    ],
    "Bernoulli": [
        {"probs": [0.0, 1.0, 0.3, 1.0]},
        {"probs": [0.5, 1.0, 0.0, 0.0]},
    ],
    "Binomial": [
        {"total_count": [5.0, 5.0, 3.0, 6.0], "probs": [0.2, 0.3, 0.4, 0.5]},
        {"total_count": [5.0, 4.0, 3.0, 6.0], "probs": [0.4, 0.3, 0.2, 0.9]},
    ],
}


def parameters(case: Case, which: int) -> dict[str, Any]:
    """Four sets for p (0) or q (1)."""
    if case.name in ENDS:
        return {k: torch.tensor(v, dtype=F64) for k, v in ENDS[case.name][which].items()}
    return case.parameters((4,), F64, which)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_pairs(case: Case) -> None:
    bad = []
    for other in CASES:
        p, q = parameters(case, 0), parameters(other, 1)

        def ask(side: Side, p: Any = p, q: Any = q, other: Case = other) -> Any:
            leaves = side.carry((p, q), grad=True)
            module = side.root.distributions
            a, b = case.make(module, **leaves[0]), other.make(module, **leaves[1])
            found = module.kl_divergence(a, b)
            return found

        want, refused = attempt(ask, ORACLE)
        got, failed = attempt(ask, SUBJECT)
        if refused or failed:
            found = error_difference(refused, failed)
            bad += [f"{other.name}: {found}"] if found else []
        else:
            bad += [f"{other.name}: {d}" for d in differences(want, got, slack=10)]
    assert not bad, "\n".join(bad)


def test_the_same_pairs_are_registered() -> None:
    from toytorch.distributions.kl import _KL_REGISTRY

    theirs = torch.distributions.kl._KL_REGISTRY
    assert {(p.__name__, q.__name__) for p, q in _KL_REGISTRY} == {
        (p.__name__, q.__name__) for p, q in theirs
    }


def test_gradients() -> None:
    """Of the pairs that PyTorch computes in the same way."""
    for case in CASES:
        p, q = case.parameters((2,), F64, 0), case.parameters((2,), F64, 1)

        def slopes(side: Side, p: Any = p, q: Any = q, case: Case = case) -> Any:
            leaves = side.carry((p, q), grad=True)
            a, b = (case.make(side.root.distributions, **v) for v in leaves)
            found = side.root.distributions.kl_divergence(a, b).sum()
            inputs = [v for part in leaves for v in part.values()]
            return side.root.autograd.grad(found, inputs, allow_unused=True)

        want, refused = attempt(slopes, ORACLE)
        got, failed = attempt(slopes, SUBJECT)
        assert not error_difference(refused, failed), case.name
        if not refused:
            assert not differences(want, got, slack=100), case.name


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (("Beta", 2.0, 3.0), ("Normal", 0.3, 0.8)),
        (("Beta", 2.0, 3.0), ("Gamma", 2.0, 1.5)),
        (("Exponential", 1.5), ("Gumbel", 0.2, 0.9)),
        (("Gamma", 2.5, 1.5), ("Gumbel", 0.2, 0.9)),
        (("Gumbel", 0.2, 0.9), ("Normal", 0.3, 1.8)),
        (("Laplace", 0.2, 0.9), ("Normal", 0.3, 1.8)),
        (("Normal", 0.2, 0.9), ("Laplace", 0.3, 1.8)),
        (("Pareto", 1.0, 4.0), ("Gamma", 2.0, 1.5)),
        (("Uniform", 0.2, 0.8), ("Beta", 2.0, 1.5)),
        (("Uniform", 1.2, 1.8), ("Pareto", 1.0, 1.5)),
    ],
)
def test_by_drawing(p: tuple[Any, ...], q: tuple[Any, ...]) -> None:
    """The mean of log p - log q over 100,000 draws, within 5 of its standard errors."""
    a, b = (
        getattr(tt.distributions, name)(*(tt.tensor(v, dtype=tt.float64) for v in values))
        for name, *values in (p, q)
    )
    tt.manual_seed(0)
    x = a.sample((100_000,))
    terms = a.log_prob(x) - b.log_prob(x)
    exact = tt.distributions.kl_divergence(a, b)
    assert abs(float(terms.mean() - exact)) < 5 * float(terms.std()) / 100_000**0.5


def test_the_closest_classes_are_taken() -> None:
    d = tt.distributions
    memo = dict(tt.distributions.kl._KL_REGISTRY)

    class A(d.Normal):  # type: ignore[name-defined, misc]
        pass

    class B(A):
        pass

    @d.register_kl(A, d.Normal)
    def by_p(p: Any, q: Any) -> str:
        return "A, Normal"

    @d.register_kl(d.Normal, B)
    def by_q(p: Any, q: Any) -> str:
        return "Normal, B"

    try:
        assert d.kl_divergence(A(0.0, 1.0), d.Normal(0.0, 1.0)) == "A, Normal"
        assert d.kl_divergence(d.Normal(0.0, 1.0), B(0.0, 1.0)) == "Normal, B"
        assert float(d.kl_divergence(d.Normal(0.0, 1.0), A(0.0, 1.0))) == 0
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(B, B\)"):
            assert d.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)) == "A, Normal"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            d.kl_divergence(B(0.0, 1.0), B(0.0, 1.0))  # remembered
    finally:
        registry = tt.distributions.kl._KL_REGISTRY
        for key in set(registry) - set(memo):
            del registry[key]
        tt.distributions.kl._KL_MEMOIZE.clear()
