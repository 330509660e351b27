"""Some hundred programs of the second generator, and every way to write some hundred calls.

`python -m tests.outside --seeds 0:20000` and `python -m tests.outside.forms` do the same at length.
"""

from __future__ import annotations

import pytest

from tests.oracle import SELFTEST
from tests.outside import forms, signatures
from tests.outside.search import look

pytest.importorskip("expecttest", reason="programs are drawn from PyTorch's database, too")
pytestmark = pytest.mark.skipif(SELFTEST, reason="PyTorch is compared with itself")
SEEDS = range(160)
KNOWN = {  # of these, what is left to mend
    1: "the base of what a product gives, which PyTorch makes as a view",
    8: "out= of a softmax that requires a gradient, which PyTorch does not notice",
    61: "the gradient of elu at NaN, which in PyTorch depends on the number of elements",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", SEEDS[::20])
def test_programs_do_the_same(first: int) -> None:
    wrong = {}
    for seed in range(first, first + 20):
        found = look(seed)
        if found is not None and seed not in KNOWN:
            lines = found.program.lines[: found.line + 1]
            wrong[seed] = (found.group, "\n".join(lines), found.difference)
    assert not wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_every_form_that_pytorch_takes(part: int) -> None:
    """An eighth of the database; `python -m tests.outside.forms` goes through all of it."""
    count, refused = forms.refused(signatures.database()[part::32])
    assert count > 40
    assert not refused


def test_classes_take_the_same_arguments() -> None:
    for name, theirs, ours in forms.classes():
        if ours is None or name in forms.LEFT:
            assert name in forms.LEFT, name
            continue
        want, got = ([a.partition("=")[0] for a in forms.arguments_of(c)] for c in (theirs, ours))
        assert got[: len(want)] == want, name
