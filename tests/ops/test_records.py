"""Every record has samples and documentation; every op has its forms, where PyTorch has it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.ops.records import BY_WRITING, COVERED_BY, EXPECTED, REGISTRY, TESTED
from tests.ops.samples import ENTRIES
from tests.ops.samples.base import supported
from tests.ops.test_forms import Detour
from tests.oracle import SUBJECT, attempt, torch, tt


@pytest.mark.parametrize("name", EXPECTED)
def test_is_present(name: str) -> None:
    assert name in ENTRIES, f"no samples for {name}"
    ENTRIES[name].function(SUBJECT)


@pytest.mark.parametrize("name", sorted(TESTED))
def test_has_samples(name: str) -> None:
    assert supported(TESTED[name]), f"PyTorch accepts no sample of {name}"


@pytest.mark.parametrize("name", sorted(TESTED))
def test_has_pytorchs_forms(name: str) -> None:
    """Where PyTorch has a method, or an in-place form of it, so has the package."""
    if not TESTED[name].forms:
        return
    for form in (name, name + "_"):
        if hasattr(torch.Tensor, form):
            assert hasattr(tt.Tensor, form), f"Tensor has no {form}"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_record_has_samples(name: str) -> None:
    """A record is tested by its name, its in-place form, or another op that runs it."""
    if name == "_to_device":
        pytest.skip("runs where there is a GPU")
    if name in BY_WRITING:
        detour = Detour()
        with importlib.import_module("toytorch.facts.state").watching(detour):
            x = tt.ones(2, 3, dtype=tt.float64, requires_grad=True)
            y = x * x
            y.t()[1].mul_(x[0, 0] * 2)
            (g,) = tt.autograd.grad((y * y).sum(), x, create_graph=True)
            tt.autograd.grad(g.sum(), x)
        assert name in detour.seen, f"{detour.seen}"
        return
    parent = COVERED_BY.get(name, name.removesuffix("_backward"))
    if parent == name:
        home, _, rest = name.partition("_")  # linalg_det is linalg.det
        found = name in TESTED or name + "_" in TESTED or f"{home}.{rest}" in TESTED
        assert found, f"op {name} has no samples: add an entry in tests/ops/samples/"
        return
    from tests.ops.test_gradients import _twice

    entry, detour = TESTED[parent], Detour()
    with importlib.import_module("toytorch.facts.state").watching(detour):
        for sample in supported(entry):
            args, kwargs = SUBJECT.carry((sample.args, sample.kwargs))
            attempt(entry.function(SUBJECT), *args, **kwargs)
            attempt(_twice, SUBJECT, entry.function(SUBJECT), sample)
            attempt(_once, entry.function(SUBJECT), *SUBJECT.carry((sample.args, sample.kwargs)))
    assert name in detour.seen, f"the samples of {parent} never run {name}"


def _once(function: Any, args: Any, kwargs: Any) -> None:
    """A backward pass that nobody differentiates, for which some ops have a kernel of its own."""
    inputs = [a.float().requires_grad_() if isinstance(a, tt.Tensor) else a for a in args]
    function(*inputs, **kwargs).sum().backward()


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_record_is_documented(name: str) -> None:
    record = REGISTRY[name]
    assert record.name == name
    assert str(record.schema).startswith(f"{name}(")
    assert " -> " in str(record.schema)
    assert record.doc, f"{name}: one sentence of documentation"
    assert record.doc.strip()[-1] in ".:)", f"{name}: one sentence of documentation"
    assert tt.ops.registry[name] is record
    assert isinstance(record.differentiable, bool)
