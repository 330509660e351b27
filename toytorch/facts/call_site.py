"""How a call was written that is refused: which arguments came by name, and whether it was a method's.

A method is the same function as the package's, whose parameters take arguments by place and by name alike.
So only the program's own code tells, by its instructions. They are read when an error is raised.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType, ModuleType

from toytorch.facts.package import is_ours

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def place(function: str, place: int, *names: str) -> int:
    """The place of an argument among those that a program gave by position, where a method's tensor does
    not count; 0 if one of its names was written. If the call's form is not known, the place itself."""
    called = frame = sys._getframe(1)
    while frame.f_back is not None and of_package(frame):
        called, frame = frame, frame.f_back
    maker = getattr(called.f_globals.get("first_call"), "__self__", None)  # of generated functions
    name = getattr(maker, "name", "")
    steps = steps_to_call(frame) if name and function.endswith(name) else []
    if not steps:
        return place
    if not names_given(frame, steps).isdisjoint(names):
        return 0
    return place - (place > 1 and of_tensor(frame, steps, name))


def of_package(frame: FrameType) -> bool:
    """Whether a frame runs code of this package, also of what it has generated, which has no module."""
    name = frame.f_globals.get("__name__")
    return is_ours(name) or (name is None and frame.f_code.co_filename.startswith("<toytorch"))


def steps_to_call(frame: FrameType) -> list[dis.Instruction]:
    """The instructions up to the call that a frame is at; none where it hands on a list of arguments, or
    is at an operator."""
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and dis.opname[code[at]] == "CACHE":  # behind the instruction
        at -= 2
    if dis.opname[code[at]] not in ("CALL", "CALL_KW"):
        return []
    steps = dis.get_instructions(frame.f_code)
    return [s for s in steps if s.offset <= at and s.opname != "PRECALL"]


def names_given(frame: FrameType, steps: list[dis.Instruction]) -> frozenset[str]:
    """The names of arguments at the last of the instructions."""
    names, call = steps[-2:]
    if call.opname == "CALL_KW" or names.opname == "KW_NAMES":  # from Python 3.13 on, and earlier
        return frozenset(frame.f_code.co_consts[names.arg or 0])
    return frozenset()


def of_tensor(frame: FrameType, steps: list[dis.Instruction], name: str) -> bool:
    """Whether a function is called as an attribute of something that is no module."""
    at = len(steps) - 1
    while not (steps[at].opname in ATTRIBUTES and f"_{name}".endswith(f"_{steps[at].argval}")):
        at -= 1
        if at < 0:
            return False  # by a name of the program's own
    path = list[str]()
    while steps[at - 1].opname in ATTRIBUTES:
        at -= 1
        path.insert(0, steps[at].argval)
    first = steps[at - 1].argval
    owner = frame.f_locals.get(first, frame.f_globals.get(first))
    for attribute in path:
        owner = getattr(owner, attribute, None) if isinstance(owner, ModuleType) else None
    return not isinstance(owner, ModuleType)
