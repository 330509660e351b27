"""How many of toytorch's functions a call passes: `python -m tests.walks [NAME]`.

A learner follows a call with a debugger; these are the steps. With a name, the calls are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import toytorch as torch

Walk = Callable[[], Any]


def write_to_a_view() -> Walk:
    """`x[1:3].add_(1)`, as calls 2, 3, … of a program go."""
    x = torch.zeros(5)
    x[1:3].add_(1)
    return lambda: x[1:3].add_(1)


def compiled_again() -> Walk:
    """The second call of a compiled function."""
    f = torch.compile(lambda x, y: (x * y + 1).relu())
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    f(x, y)
    return lambda: f(x, y)


def first_convolution() -> Walk:
    """The first convolution of a program."""
    x = torch.ones(8, 16, 32, 32, requires_grad=True)
    w = torch.ones(32, 16, 3, 3, requires_grad=True)
    return lambda: torch.nn.functional.conv2d(x, w)


def first_convolution_backward() -> Walk:
    """The first backward pass of a convolution."""
    y = first_convolution()().sum()
    return y.backward


WALKS = {
    "x[1:3].add_(1)": write_to_a_view,
    "second call of a compiled function": compiled_again,
    "first convolution": first_convolution,
    "backward of the first convolution": first_convolution_backward,
}


def steps(walk: Walk) -> list[tuple[str, str]]:
    """The functions of toytorch that a call passes, written and generated, in order: (file, name).

    Those of other packages are not counted: the first call of a program imports llvmlite.
    """
    found: list[tuple[str, str]] = []
    own = str(Path(torch.__file__).parent), "<toytorch", "<string>"  # of a dataclass's methods

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(own):
            found.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return found


def main(arguments: list[str]) -> None:
    """The command line."""
    root = str(Path(torch.__file__).parent.parent) + "/"
    for name, make in WALKS.items():
        if arguments and arguments[0] not in name:
            continue
        found = steps(make())
        print(f"{len(found):6} calls in {len({f for f, _ in found}):3} files: {name}")
        if arguments:
            for file, function in found:
                print(f"       {file.removeprefix(root)}: {function}")


if __name__ == "__main__":
    main(sys.argv[1:])
