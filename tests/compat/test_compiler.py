"""`torch.compiler` and compiled functions, as programs use them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import torch, tt

ROOT = Path(__file__).parents[2]


def compiled(t: Any, function: Any) -> Any:
    return t.compile(function, backend="eager")


def stances(t: Any) -> list[Any]:
    """What a compiled function answers under each stance."""

    @lambda f: compiled(t, f)
    def f(x: Any) -> Any:
        return x + 1 if t.compiler.is_compiling() else x - 1

    found: list[Any] = []

    def note(size: int) -> None:
        try:
            found.append(f(t.zeros(size)).tolist())
        except RuntimeError as error:
            found.append(str(error)[:69])

    stance = t.compiler.set_stance
    note(2)
    with stance("force_eager"):
        note(2)
        note(3)
    note(2)
    with stance("fail_on_recompile"):
        note(2)
        note(3)
    with stance("eager_on_recompile"):
        note(2)
        note(3)
        with stance("default"):
            note(4)
        note(4)
    stance("force_eager")(note)(2)
    note(2)
    stance("force_eager")
    note(2)
    stance("default")
    note(2)
    return found


def test_stances_say_how_compiled_functions_run() -> None:
    # PyTorch in a process of its own: when it refuses to compile anew it leaves Python's evaluation of
    # frames changed for good. Every call then holds its arguments once more, which `write.move` takes
    # for views to be looked for: 0.1 s for each out= of the tests that follow.
    asked = f"import torch; from {__name__} import stances; print(stances(torch))"
    theirs = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert stances(tt) == ast.literal_eval(theirs.stdout)


MADE = {
    "strided": lambda t, k: t.nested.nested_tensor([t.ones(2, 3) * k, t.ones(k + 1, 3)]),
    "jagged": lambda t, k: t.nested.nested_tensor(
        [t.ones(2, 3) * k, t.ones(k + 1, 3)], layout=t.jagged
    ),
    "masked": lambda t, k: t.masked.masked_tensor(
        t.arange(4.0) + k, t.tensor([True, False, True, k % 2 == 0])
    ),
    "own": lambda t, k: t.full((2,), float(k)).as_subclass(own_class(t)),
}


def own_class(t: Any) -> type:
    class Counted(t.Tensor):  # type: ignore[misc, name-defined]  # the class of either side
        pass

    return Counted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MADE)
def test_tensors_of_other_classes_stay_what_they_are(kind: str) -> None:
    f = tt.compile(lambda x: x * 2 + 1)
    for k in range(3):
        x = MADE[kind](tt, k)
        got, want = f(x), MADE[kind](torch, k) * 2 + 1
        assert type(got) is type(x)
        assert str(got) == str(want)
