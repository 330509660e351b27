"""Arguments by name: PyTorch's names of its parameters, and NumPy's that it takes for them.

The names come from PyTorch's own table of operators (`torch.ops.aten`), not from our records. A
form that PyTorch accepts with the result of the positional call must be accepted here, with its
result.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ops.records import TESTED, report
from tests.ops.samples import Sample
from tests.oracle import ORACLE, SELFTEST, SUBJECT, attempt, differences, leaves, told, torch, tt

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)

# NumPy's words for PyTorch's: numpy_compatibility_arg_names in its python_arg_parser.cpp.
NUMPY = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
FEW = 12  # samples of an op


def names_of(op: str) -> list[tuple[str, ...]]:
    """The parameters of each overload in PyTorch, with `self` called as functions call it."""
    for spelled in (op, op.replace(".", "_")):
        packet = getattr(torch.ops.aten, spelled, None)
        if packet is not None:
            break
    else:
        return []
    found = []
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        found.append(tuple("input" if a.name == "self" else a.name for a in schema.arguments))
    return list(dict.fromkeys(found))


def forms(sample: Sample, parameters: tuple[str, ...]) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Calls of a sample with some arguments by name, in PyTorch's words and in NumPy's."""
    args = sample.args
    if len(args) > len(parameters):
        return
    for first in range(len(args) + 1):
        rest = parameters[first : len(args)]
        choices = [(name, *NUMPY.get(name, ())) for name in rest]
        extra = [(name, *NUMPY.get(name, ())) for name in sample.kwargs]
        for chosen in itertools.islice(itertools.product(*choices, *extra), 8):
            given = dict(zip(chosen, [*args[first:], *sample.kwargs.values()]))
            if len(given) == len(chosen) and (given != sample.kwargs or first < len(args)):
                yield args[:first], given


def call(side: Any, function: Any, args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
    return attempt(lambda: function(*side.carry(args), **side.carry(kwargs)))


def same(a: Any, b: Any) -> bool:
    return not differences(a, b, ORACLE)


def callables(name: str, form: str) -> tuple[Any, Any]:
    """Our function or method of a name, and PyTorch's."""
    if form == "function":
        return tuple(TESTED[name].function(side) for side in (SUBJECT, ORACLE))
    return tuple(getattr(side.Tensor, name, None) for side in (SUBJECT, ORACLE))


# What is called by a rule of its own, or gives random numbers, has no samples to compare here.
FORMS = [
    (name, form)
    for name, entry in TESTED.items()
    for form in ("function", "method")
    if entry.call is None and entry.values and all(map(callable, callables(name, form)))
]


@pytest.mark.parametrize(("name", "form"), FORMS, ids=["-".join(pair) for pair in FORMS])
def test_arguments_by_name(name: str, form: str) -> None:
    entry = TESTED[name]
    ours, theirs = callables(name, form)
    failures, tried, seen = [], 0, set()
    for sample in itertools.islice(entry.samples(), FEW):
        plain, refused = call(ORACLE, theirs, sample.args, sample.kwargs)
        if refused:
            continue
        for parameters in names_of(name):
            for args, kwargs in forms(sample, parameters):
                if form == "method" and not args:
                    continue
                kind = len(args), tuple(kwargs), tuple(map(type, leaves([args, kwargs])))
                want, refused = (None, None) if kind in seen else call(ORACLE, theirs, args, kwargs)
                if kind in seen or refused or not same(plain, want):
                    continue
                seen.add(kind)
                tried += 1
                got, failure = call(SUBJECT, ours, args, kwargs)
                bad = [told(failure)] if failure else differences(want, got, slack=entry.slack)
                if bad:
                    failures.append(f"{len(args)} by position, {', '.join(kwargs)}: {bad[0]}")
    report(failures, tried)


WRONG = {
    "missing": [lambda m: m.exp(), lambda m: m.add(m.ones(2)), lambda m: m.ones(2).mul(),
                lambda m: m.ones(2).unsqueeze(), lambda m: m.transpose(m.ones(2, 3)),
                lambda m: m.ones(2).add_(), lambda m: m.arange()],
    "unknown": [lambda m: m.exp(m.ones(2), foo=1), lambda m: m.ones(2).sum(foo=1),
                lambda m: m.ones(2).clamp_(foo=2), lambda m: m.ones(2).add_(1, out=m.ones(2)),
                lambda m: m.add(m.ones(2), 1, beta=2),
                lambda m: m.stack([m.ones(2)], foo=1), lambda m: m.flip(m.ones(2), axis=(0,))],
    "twice": [lambda m: m.ones(2).sum(0, axis=0), lambda m: m.ones(2).sum(dim=0, axis=0),
              lambda m: m.mul(m.ones(2), 1, x2=1), lambda m: m.std(m.ones(2), 0, axis=0),
              lambda m: m.exp(m.ones(2), x=m.ones(2)), lambda m: m.ones(2).mul_(1, x2=1)],
}  # fmt: skip


@pytest.mark.parametrize("f", [f for fs in WRONG.values() for f in fs])
def test_what_is_missing_unknown_or_given_twice_is_refused(f: Any) -> None:
    (_, want), (_, got) = attempt(f, torch), attempt(f, tt)
    assert isinstance(want, TypeError)
    assert isinstance(got, TypeError), told(got)
