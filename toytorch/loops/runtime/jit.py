"""From LLVM's text to functions that Python can call.

A kernel becomes an object file, which is kept (`cache`) and linked into the process: that of a
program as `Compiled`, whatever is written by hand through `addresses`. A program's kernel is called
as a builtin function, which takes CPython 0.1 µs; ctypes would take ten times as long.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Callable
from functools import cache as once
from pathlib import Path
from typing import Any

import numpy as np

from toytorch.loops import processor
from toytorch.loops.generators.llvm import LOOP
from toytorch.loops.llvm import half
from toytorch.loops.llvm.builder import ir
from toytorch.loops.runtime import cache
from toytorch.loops.runtime.entry_point import C_FUNCTIONS, CONTEXT, FUNCTIONS, EntryPoint
from toytorch.loops.runtime.trampoline import (
    DATA,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    STRIDES,
    TYPE_NUMBER,
    Trampoline,
    kernel_descriptor,
)
from toytorch.loops.schedule.nest import Nest

SMALLEST = 4096  # elements; below, a call of compiled code costs more than it saves
WORK = 1 << 19  # additions on one thread, some 5 µs; more is worth sharing
TRAFFIC = 2  # additions that reading or writing an element costs
TRIAL = 64  # small calls before LLVM is loaded for them
METH_FASTCALL = 0x80
LLVM = (20,)  # the oldest that the suites of kernels were run with, that of llvmlite 0.45
NAME = "kernel"  # of every kernel in its own module: equal texts are equal files
MACHINE = {"opt": 3, "reloc": "pic", "codemodel": "jitdefault"}  # options of LLVM's
_lock = threading.RLock()
_asked = 0  # small calls
_kept: list[Any] = []  # what compiled code refers to
_linked: dict[str, tuple[Any, dict[str, int]]] = {}  # what keeps code, and addresses in it, by name
_by_hand: dict[str, dict[str, int]] = {}  # addresses of code that is written by hand, by what it is


@once
def works() -> bool:
    """Whether kernels can run here: llvmlite is there, and arrays keep things where we look.

    Another package's demands may bring an older llvmlite than ours. LLVM 15 ends the process at
    some of our kernels.
    """
    if os.environ.get("TOYTORCH_NATIVE") == "0" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        from llvmlite.binding import llvm_version_info  # llvmlite may be missing
    except ImportError:
        return False
    if llvm_version_info < LLVM:
        return False
    probe = np.zeros((2, 3), "float32")

    def word(address: int, index: int, type: Any = ctypes.c_int64) -> int:
        return int(type.from_address(address + index * ctypes.sizeof(type)).value)

    here = id(probe)
    return (
        word(here, DATA) == probe.ctypes.data
        and word(here, RANK, ctypes.c_int32) == 2
        and [word(word(here, SHAPE), k) for k in (0, 1)] == [2, 3]
        and [word(word(here, STRIDES), k) for k in (0, 1)] == [12, 4]
        and word(here, FLAGS, ctypes.c_int32) & 3 == 1
        and word(here, DTYPE) == id(probe.dtype)
        and word(id(probe.dtype), TYPE_NUMBER, ctypes.c_int32) == probe.dtype.num
        and word(here, object.__basicsize__ // 8 - 1) == id(np.ndarray)
    )


def address_by_ctypes(array: Any) -> int:
    """Where an array begins, as NumPy says it, which takes it 1.7 µs."""
    return int(array.ctypes.data)


word_at = ctypes.c_ssize_t.from_address


def address_by_word(array: Any) -> int:
    """Where an array begins, read where CPython's NumPy keeps it, in 0.3 µs."""
    return word_at(id(array) + 8 * DATA).value


def keeps_address(probe: Any) -> bool:
    """Whether arrays keep the address of their memory where `address_by_word` looks. Where nothing
    is compiled, nobody is to read memory either: an answer that is marked may not."""
    return (
        sys.implementation.name == "cpython"
        and os.environ.get("TOYTORCH_NATIVE") != "0"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and address_by_word(probe) == address_by_ctypes(probe)
    )


address_of = address_by_word if keeps_address(np.zeros(2)) else address_by_ctypes


@once
def context() -> Any:
    """The words that kernels need of CPython and NumPy, in the order of CONTEXT."""
    words = {
        "ndarray": id(np.ndarray), "threads": 1, "queue": 0, "post": 0, "bfloat16": -1,
        "True": id(True), "False": id(False), "None": id(None),
    }  # fmt: skip
    try:
        import ml_dtypes  # an optional package

        words["bfloat16"] = np.dtype(ml_dtypes.bfloat16).num
    except ImportError:
        pass
    library = ctypes.CDLL("msvcrt") if sys.platform == "win32" else ctypes.CDLL(None)
    for names, holder in ((C_FUNCTIONS, library), (FUNCTIONS, ctypes.pythonapi)):
        for name in names:
            words[name] = ctypes.cast(getattr(holder, name), ctypes.c_void_p).value or 0
    return np.array([words[name] for name in CONTEXT], "int64")


def optimised(machine: Any, text: str) -> Any:
    """LLVM's module of a text, optimised for one of its machines."""
    import llvmlite.binding as llvm  # an optional package

    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)  # 3 takes a third longer
    options.loop_vectorization = options.loop_unrolling = True
    options.slp_vectorization = False  # there is nothing straight-line to find
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def compiled(machine: Any, text: str) -> bytes:
    """The object file of a module for a machine."""
    return bytes(machine.emit_object(optimised(machine, text)))


class Target:
    """This processor, as LLVM knows it."""

    def __init__(self) -> None:
        import llvmlite  # an optional package
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        self.processor = processor.this()
        self.cpu, self.features = self.processor.name, self.processor.features
        self.machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=self.cpu, features=self.features, **MACHINE
        )
        self.linker = llvm.create_lljit_compiler(self.machine, use_jit_link=True)
        self.words = f"{llvmlite.__version__} {llvm.llvm_version_info} {self.processor}"

    def link(self, code: bytes, name: str, parts: tuple[str, ...]) -> dict[str, int]:
        """The addresses of the functions PART_kernel in an object file, which is linked once."""
        with _lock:
            if name not in _linked:
                library = self.llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
                for part in parts:
                    library.export_symbol(f"{part}_{NAME}")
                tracker = library.link(self.linker, name)
                _linked[name] = tracker, {p: int(tracker[f"{p}_{NAME}"]) for p in parts}
            return _linked[name][1]


@once
def target() -> Target:
    return Target()


@once
def sources() -> str:
    """A digest of the files that write kernels: other code makes other kernels."""
    package = Path(__file__).parents[2]
    files = sorted((*package.glob("loops/**/*.py"), *package.glob("kernels/**/*.py")))
    return cache.digest(*(p.read_text("utf-8") for p in files))


def object_code(name: str, write: Callable[[], str]) -> tuple[bytes, bool]:
    """The object file of a module, and whether it was kept; else it comes with the package, or is
    compiled, and is kept."""
    code = cache.read(name)
    if code is not None:
        return code, True
    from toytorch.loops.runtime import standard  # where all is kept, it is not needed

    text = write()
    code = standard.find(text) or compiled(target().machine, text)
    cache.write(name, code)
    return code, False


def addresses(what: str, write: Callable[[str], str], parts: tuple[str, ...]) -> dict[str, int]:
    """The addresses of the functions PART_kernel in the module write("kernel"), compiled when it is
    first needed. `what` says what is written, beyond the files that write it."""
    with _lock:
        if what not in _by_hand:
            name = "c" + cache.digest(what, target().words, sources())
            code, _ = object_code(name, lambda: write(NAME))
            _by_hand[what] = target().link(code, name, parts)
        return _by_hand[what]


def pays(count: int) -> bool:
    """Whether work on `count` numbers is for compiled code: LLVM takes 50 ms to load, so a program
    with few small calls does without, unless something else has loaded it."""
    global _asked
    if _linked:
        return True
    _asked += 1
    return (count >= SMALLEST or _asked > TRIAL) and works()


def in_use() -> bool:
    """Whether LLVM has been loaded, and code of it linked."""
    return bool(_linked)


def families() -> set[str]:
    """The first words of all that is written by hand and has been used."""
    return {what.split()[0] for what in _by_hand}


def llvm_text(nest: Nest, name: str) -> str:
    """The module of a kernel."""
    module = ir().Module(name)
    EntryPoint(module, nest, name, target().processor)
    # A loop's note has to name itself, which llvmlite cannot write.
    text = re.sub(rf'(!\d+) = !{{ !"{LOOP}", ', r"\1 = distinct !{ \1, ", str(module))
    text += half.functions(text, target().processor)
    # LLVM itself prefers 256 bits where 512 would slow older processors down.
    wide = f'"prefer-vector-width"="{8 * target().processor.vector}"'
    return text.replace("noinline nounwind", f"noinline nounwind {wide}")


class Compiled:
    """A kernel's code: `call` is its function for Python."""

    def __init__(self, words: str, nest: Nest, cost: int) -> None:
        """words: what the kernel is; cost: that of an element, in additions."""
        with _lock:
            self.name = "k" + cache.digest(words, target().words, sources())
            code, self.cached = object_code(self.name, lambda: llvm_text(nest, NAME))
            self.address = run = target().link(code, self.name, ("run",))["run"]
            limit = max(WORK // (cost + TRAFFIC * len(nest.arrays)), 1)
            descriptor = kernel_descriptor(nest, run, context(), limit)
            self.call = builtin(trampoline(), "kernel", descriptor)


@once
def trampoline() -> int:
    """The address of the function through which all kernels of programs are called."""
    return addresses("trampoline", lambda name: Trampoline(name).text(), ("call",))["call"]


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def builtin(address: int, name: str, self: Any) -> Any:
    """A builtin function of the code at an address, with an array as its `self`."""
    made = method(address, name)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.POINTER(MethodDef), ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.byref(made), self, None)


@once
def method(address: int, name: str) -> MethodDef:
    """CPython's description of the code at an address, which all functions of it share."""
    return MethodDef(name.encode(), address, METH_FASTCALL, None)


def outlive() -> None:
    """Keeps code, and what it refers to, beyond the interpreter's end: threads that run it end with the
    process, which is later."""
    for thing in (_kept, _linked, target()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def keep(*things: object) -> None:
    """Keeps what compiled code refers to."""
    _kept.extend(things)
