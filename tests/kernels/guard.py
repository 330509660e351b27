"""Memory in which every access outside an array is seen: a pytest plugin.

    GUARD=end python -m pytest -p tests.kernels.guard tests/kernels

NumPy asks the handler below for the memory of every array. Each gets pages of its own beside pages
that nobody may touch. With GUARD=end an array ends where a forbidden page begins, with GUARD=start it
begins where one ends: reading or writing past it there ends the process with a segmentation fault.
(With GUARD=end there is no forbidden page before it: Linux gives a process some 65,000 areas of
memory with rights of their own, and the arrays of one suite need nearly as many.) What is left of
the array's own pages on its other side holds a pattern; if that has changed when the memory is given
back, the process ends with an abort. `faulthandler` names the test either way.

With GUARD_WIDE=1 kernels are written for 32 registers of 512 bits, whatever the processor has: LLVM
makes narrower vectors of them, and they go over the same elements. With GUARD_SMALL=1 kernels run
for arrays of any size, not only where they are worth it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import sys
from typing import Any

import numpy as np

from toytorch.loops import processor
from toytorch.loops.runtime import jit

SIDE = os.environ.get("GUARD", "end")
# One page for the sizes, one forbidden page, the array's pages, one forbidden page. The array
# begins in the first of its pages wherever it lies, so `free` finds the sizes two pages before.
# The handler is compiled since NumPy calls it while errors are under way, where Python cannot run.
CODE = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @mprotect(ptr, i64, i32)
declare i32 @munmap(ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare void @abort()

define ptr @malloc_kernel(ptr %start, i64 %asked) {
  %size = call i64 @llvm.umax.i64(i64 %asked, i64 1)
  %up = add i64 %size, PAGE_1
  %pages = and i64 %up, -PAGE
  %all = add i64 %pages, THREE
  %base = call ptr @mmap(ptr null, i64 %all, i32 0, i32 MAP, i32 -1, i64 0)
  %word = ptrtoint ptr %base to i64
  %failed = icmp eq i64 %word, -1
  br i1 %failed, label %none, label %some
none:
  ret ptr null
some:
  %at_start = icmp ne ptr %start, null
  %before = add i64 %pages, TWO
  %open = select i1 %at_start, i64 PAGE, i64 %before
  %a = call i32 @mprotect(ptr %base, i64 %open, i32 3)
  %first = getelementptr i8, ptr %base, i64 TWO
  %b = call i32 @mprotect(ptr %first, i64 %pages, i32 3)
  %c = call ptr @memset(ptr %first, i32 165, i64 %pages)
  store i64 %asked, ptr %base
  %second = getelementptr i64, ptr %base, i64 1
  store i64 %pages, ptr %second
  %left = sub i64 %pages, %size
  %offset = select i1 %at_start, i64 0, i64 %left
  %third = getelementptr i64, ptr %base, i64 2
  store i64 %offset, ptr %third
  %place = getelementptr i8, ptr %first, i64 %offset
  ret ptr %place
}
declare i64 @llvm.umax.i64(i64, i64)

define ptr @calloc_kernel(ptr %start, i64 %count, i64 %each) {
  %size = mul i64 %count, %each
  %place = call ptr @malloc_kernel(ptr %start, i64 %size)
  %failed = icmp eq ptr %place, null
  br i1 %failed, label %done, label %some
some:
  %a = call ptr @memset(ptr %place, i32 0, i64 %size)
  br label %done
done:
  ret ptr %place
}

define ptr @base_guard(ptr %place) {
  %word = ptrtoint ptr %place to i64
  %page = and i64 %word, -PAGE
  %head = sub i64 %page, TWO
  %base = inttoptr i64 %head to ptr
  ret ptr %base
}

define void @check_guard(ptr %from, i64 %count) {
start:
  br label %test
test:
  %i = phi i64 [0, %start], [%next, %turn]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %turn, label %done
turn:
  %at = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %at
  %next = add i64 %i, 1
  %same = icmp eq i8 %byte, -91
  br i1 %same, label %test, label %damaged
damaged:
  call void @abort()
  unreachable
done:
  ret void
}

define void @free_kernel(ptr %start, ptr %place, i64 %unused) {
  %nothing = icmp eq ptr %place, null
  br i1 %nothing, label %done, label %some
some:
  %base = call ptr @base_guard(ptr %place)
  %asked = load i64, ptr %base
  %size = call i64 @llvm.umax.i64(i64 %asked, i64 1)
  %second = getelementptr i64, ptr %base, i64 1
  %pages = load i64, ptr %second
  %third = getelementptr i64, ptr %base, i64 2
  %offset = load i64, ptr %third
  %first = getelementptr i8, ptr %base, i64 TWO
  call void @check_guard(ptr %first, i64 %offset)
  %end = getelementptr i8, ptr %place, i64 %size
  %before = add i64 %offset, %size
  %rest = sub i64 %pages, %before
  call void @check_guard(ptr %end, i64 %rest)
  %all = add i64 %pages, THREE
  %a = call i32 @munmap(ptr %base, i64 %all)
  br label %done
done:
  ret void
}

define ptr @realloc_kernel(ptr %start, ptr %place, i64 %size) {
  %made = call ptr @malloc_kernel(ptr %start, i64 %size)
  %nothing = icmp eq ptr %place, null
  br i1 %nothing, label %done, label %some
some:
  %base = call ptr @base_guard(ptr %place)
  %before = load i64, ptr %base
  %kept = call i64 @llvm.umin.i64(i64 %before, i64 %size)
  %a = call ptr @memcpy(ptr %made, ptr %place, i64 %kept)
  call void @free_kernel(ptr %start, ptr %place, i64 0)
  br label %done
done:
  ret ptr %made
}
declare i64 @llvm.umin.i64(i64, i64)
"""
PARTS = ("malloc", "calloc", "realloc", "free")  # in the order of NumPy's table


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8),
                ("context", ctypes.c_void_p), ("functions", ctypes.c_void_p * 4))  # fmt: skip


def handler() -> Handler:
    page = mmap.PAGESIZE
    text = CODE
    for word, value in {"PAGE_1": page - 1, "PAGE": page, "THREE": 3 * page, "TWO": 2 * page,
                        "MAP": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}.items():  # fmt: skip
        text = text.replace(word, str(value))
    target = jit.target()
    found = target.link(jit.compiled(target.machine, text), "guard", PARTS)
    return Handler(b"guard", 1, int(SIDE == "start"),
                   (ctypes.c_void_p * 4)(*(found[part] for part in PARTS)))  # fmt: skip


def install() -> Handler:
    """NumPy's arrays of this thread get guarded memory from now on."""
    made = handler()
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    table = api.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
    set_handler = ctypes.c_void_p.from_address(table + 304 * ctypes.sizeof(ctypes.c_void_p)).value
    capsule = api.PyCapsule_New(ctypes.addressof(made), b"mem_handler", None)
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler)(capsule)
    if np.empty(3).ctypes.data % mmap.PAGESIZE not in (0, mmap.PAGESIZE - 24):
        raise RuntimeError("NumPy does not use the guarded memory")
    return made


def small_arrays_are_compiled_for() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("toytorch.") and isinstance(vars(module).get("SMALLEST"), int):
            module.SMALLEST = 2  # numbers without dimensions have no loops


def wide() -> None:
    able = processor.this()._replace(vector=64, registers=32, masks=True)
    processor.this = lambda: able  # type: ignore[assignment]  # for the whole process


kept: list[Handler] = []  # for as long as there are arrays


def start() -> None:
    """What the environment asks for."""
    faulthandler.enable()
    if os.environ.get("GUARD_WIDE"):
        wide()
    if os.environ.get("GUARD_SMALL"):
        small_arrays_are_compiled_for()
    kept.append(install())


def pytest_configure(config: Any) -> None:
    import toytorch

    toytorch.set_num_threads(1)
    start()


def pytest_unconfigure(config: Any) -> None:
    """Writes down which families of kernels ran: the first words of what they are called."""
    if "GUARD_SEEN" in os.environ:
        with open(os.environ["GUARD_SEEN"], "w") as file:
            file.write(" ".join(jit.families()))


def pytest_report_header() -> str:
    return f"arrays lie at the {SIDE} of guarded memory"
