"""Every op, traced: the graph and the compiled plan do what the op does, for other numbers too."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import toytorch as torch
from tests.jit.programs import same
from tests.ops.records import TESTED, report
from tests.ops.samples.base import Sample
from tests.oracle import SUBJECT
from toytorch.facts.pytree import tree_flatten, tree_unflatten
from toytorch.jit import interpreter

EVERY = 3  # of the samples, one in so many is traced (the first always)
# Results that are no function of the inputs' values: memory nobody wrote to, random numbers.
ARBITRARY = ("empty", "new_empty", "resize")


def parts(sample: Sample) -> tuple[list[Any], Any, list[int]]:
    """The leaves of a sample's arguments, and which of them are tensors."""
    leaves, spec = tree_flatten((list(SUBJECT.carry(sample.args)), SUBJECT.carry(sample.kwargs)))
    return leaves, spec, [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]


def moved(t: Any) -> Any:
    """Other numbers of the same kind: reversed, which keeps indices in range."""
    return (
        t.detach().flatten().flip(0).reshape(t.shape).clone()
        if t.numel() > 1 and (not t.is_sparse)
        else t.detach().clone()
    )


def disagreement(name: str, sample: Sample) -> str:
    """How a traced op differs from the op; nothing if it does not."""
    leaves, spec, places = parts(sample)
    call = TESTED[name].function(SUBJECT)

    def f(*tensors: Any) -> Any:
        full = list(leaves)
        for i, t in zip(places, tensors):
            full[i] = t
        args, kwargs = tree_unflatten(full, spec)
        return call(*args, **kwargs)

    given = [leaves[i] for i in places]
    others = [moved(t) for t in given]
    try:
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = f(*(t.detach().clone() for t in others))
            torch.manual_seed(0)
            first = f(*(t.detach().clone() for t in given))
    except Exception:
        return ""  # the op refuses these arguments
    flat = [w for w in tree_flatten(wanted)[0] if isinstance(w, torch.Tensor)]
    if (
        not flat
        or len(flat) != len(tree_flatten(wanted)[0])
        or any(a.shape != b.shape for a, b in zip(flat, tree_flatten(first)[0]))
    ):
        return ""  # no tensors come out, or their shapes depend on values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        traced = torch.jit.trace(
            f, tuple(t.detach().clone() for t in given), check_trace=False, strict=False
        )
        for how in ("graph", "plan"):
            torch.manual_seed(0)
            copies = [t.detach().clone() for t in others]
            got = interpreter.run(traced.graph, copies) if how == "graph" else traced(*copies)
            got = [g for g in tree_flatten(got)[0] if isinstance(g, torch.Tensor)]
            bad = same([w.detach() for w in flat], [g.detach() for g in got])
            if bad:
                return f"{how}: {bad}"
    return ""


@pytest.mark.parametrize("name", sorted(TESTED))
def test_traced(name: str) -> None:
    if any(word in name for word in ARBITRARY):
        pytest.skip("its result is memory that nobody wrote to")
    failures, samples = [], TESTED[name].samples()[::EVERY]
    for sample in samples:
        leaves, _, places = parts(sample)
        if not places or any(leaves[i].is_sparse for i in places):
            continue
        try:
            bad = disagreement(name, sample)
        except Exception as error:
            bad = f"{type(error).__name__}: {error}"
        failures += [f"{sample}: {bad[:300]}"] if bad else []
    report(failures, len(samples))
