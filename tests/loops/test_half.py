"""float16 on processors that cannot convert it: every number, and every way of rounding."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from toytorch.loops import processor
from toytorch.loops.llvm import half
from toytorch.loops.runtime import jit

if not jit.works():
    pytest.skip("kernels need llvmlite", allow_module_level=True)

LOOP = """
define void @{name}_kernel(ptr %a, ptr %b, i64 %n) {{
start:
  br label %turn
turn:
  %i = phi i64 [0, %start], [%next, %turn]
  %from = getelementptr {a}, ptr %a, i64 %i
  %to = getelementptr {b}, ptr %b, i64 %i
  %x = load {a}, ptr %from
  %y = call {b} @{function}({a} %x)
  store {b} %y, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %turn, label %done
done:
  ret void
}}
"""
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.fixture(scope="module")
def convert() -> Any:
    """convert(which, from, to), on arrays."""
    text = (
        half.FROM_FLOAT
        + half.TO_FLOAT
        + LOOP.format(name="widen", a="half", b="float", function="__extendhfsf2")
        + LOOP.format(name="narrow", a="float", b="half", function="__truncsfhf2")
    )
    target = jit.target()
    found = target.link(jit.compiled(target.machine, text), "half", ("widen", "narrow"))
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

    def run(which: str, a: Any, b: Any) -> None:
        kind(found[which])(a.ctypes.data, b.ctypes.data, a.size)

    return run


def test_all_numbers_are_widened(convert: Any) -> None:
    made = np.empty(ALL.shape, np.float32)
    convert("widen", ALL, made)
    number = ~np.isnan(ALL)
    want = ALL.astype(np.float32)
    np.testing.assert_array_equal(made[number].view(np.uint32), want[number].view(np.uint32))
    assert np.isnan(made[~number]).all()


def test_numbers_are_rounded_to_the_nearest_and_ties_to_even(convert: Any) -> None:
    """All halves, what lies just beside them and between them, and random bits."""
    bits = ALL[~np.isnan(ALL)].astype(np.float32).view(np.uint32)
    beside = [bits + np.uint32(step) for step in (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF)]
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, dtype=np.uint32)
    given = np.concatenate([*beside, drawn]).view(np.float32)
    made = np.empty(given.shape, np.float16)
    convert("narrow", given, made)
    number = ~np.isnan(given)
    with np.errstate(over="ignore", under="ignore"):
        want = given[number].astype(np.float16)
    np.testing.assert_array_equal(made[number].view(np.uint16), want.view(np.uint16))
    assert np.isnan(made[~number]).all()


def test_only_processors_that_need_them_get_functions() -> None:
    able = processor.this()._replace(half=True)
    assert half.functions("float double", able) == ""
    assert half.functions("half float", able) == ""
    assert half.functions("half double", able) == half.FROM_DOUBLE
    unable = able._replace(half=False)
    assert "__extendhfsf2" in half.functions("half float", unable)
