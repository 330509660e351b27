"""1,000 random programs agree with PyTorch: values, dtypes, errors, first and second gradients."""

from __future__ import annotations

from hypothesis import given, settings

from tests.autograd.programs import Program, execute, gradients, programs
from tests.oracle import ORACLE, SUBJECT, attempt, differences, told


@settings(max_examples=1000)
@given(programs())
def test_random_programs(program: Program) -> None:
    want = execute(program, ORACLE)
    got = execute(program, SUBJECT, want[2])
    assert got[2] == want[2], f"errors of the steps\n{program}"
    bad = differences(want[1], got[1], slack=5)
    assert not bad, f"{'; '.join(bad[:4])}\n{program}"
    flags = [[(v.requires_grad, v.is_leaf) for v in run[1]] for run in (want, got)]
    assert flags[1] == flags[0], f"(requires_grad, is_leaf)\n{program}"
    twice = len(program.steps) % 3 == 0
    (theirs, refused), (ours, failure) = (
        attempt(gradients, side, run[0], run[1], twice)
        for side, run in ((ORACLE, want), (SUBJECT, got))
    )
    assert type(failure) is type(refused), (
        f"{told(failure)}, in PyTorch: {told(refused)}\n{program}"
    )
    if refused is None:
        bad = differences(theirs, ours, slack=20)
        assert not bad, f"gradients: {'; '.join(bad)}\n{program}"
