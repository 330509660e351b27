"""Loops over arrays, compiled for this machine when they are first run.

NumPy goes through memory once per operation; `p -= lr * g` is two passes and a temporary. A Loop is
the same line in one pass: LLVM compiles it, through llvmlite, with this processor's vector
instructions. No compiler needs to be installed. Compiling takes some 20 ms, so small arrays are
left to NumPy.

    >>> import numpy as np
    >>> step = Loop("p = p - lr * g", arrays="p g", numbers="lr")
    >>> p, g = np.ones(5000, "float32"), np.ones(5000, "float32")
    >>> step(p, g, 0.5), p[0]
    (True, np.float32(0.5))
"""

from __future__ import annotations

import ast
import ctypes
import os
import threading
from typing import Any, ClassVar

import numpy as np

from toytorch.backends.native_math import Math

SMALLEST = 4096  # elements; below, a call costs more than it saves
ENABLED = os.environ.get("TOYTORCH_NATIVE") != "0"
# Where a NumPy array object keeps the address of its elements: right after what every object has.
# Handing over the object's address (`id`) costs 30 ns, `array.ctypes.data` 700.
DATA = object.__basicsize__
_lock = threading.Lock()
_engine: Any = None
_features: dict[str, bool] = {}


def works() -> bool:
    """Whether loops can run here: an array keeps its address where we look for it."""
    probe = np.zeros(1)
    return ENABLED and ctypes.c_void_p.from_address(id(probe) + DATA).value == probe.ctypes.data


def has(feature: str) -> bool:
    """Whether this processor has a feature, by LLVM's name."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return False
    if not _features:
        _features.update(llvm.get_host_cpu_features())
    return bool(_features.get(feature))


def dense(a: Any) -> bool:
    """Whether an array that is not in row-major order fills one piece of memory all the same.

    Column-major matrices do, and images whose channels lie last.
    """
    return bool(a.flags.f_contiguous or (
        a.ndim == 4 and a.transpose(0, 2, 3, 1).flags.c_contiguous))


class Loop:
    """Assignments carried out for every element of equally long arrays, in one pass.

    text     lines such as "m = b * m + (1 - b) * g"; + - * /, sqrt, exp, erf, maximum(x, y),
             comparisons and `a if x > y else b`. A name that is assigned and no array is a value
             in between.
    arrays   names of the arrays, in the order of the call
    numbers  names of the numbers that follow them
    """

    def __init__(self, text: str, arrays: str, numbers: str = "") -> None:
        self.text, self.arrays, self.numbers = text, arrays.split(), numbers.split()
        self.compiled: dict[str, Any] = {}

    def __call__(self, *args: Any) -> bool:
        """Runs the loop and says so; False, and nothing done, where NumPy has to do it."""
        first = args[0]
        size, kind = first.size, first.dtype.char
        if size < SMALLEST or kind not in "fd":
            return False
        plain = first.flags.c_contiguous
        if not plain and not dense(first):
            return False
        addresses = []
        for a in args[:len(self.arrays)]:
            if a.__class__ is not np.ndarray or a.dtype.char != kind or a.size != size:
                return False
            same = a.flags.c_contiguous if plain else (a.strides == first.strides
                                                       and a.shape == first.shape)
            if not (same and a.flags.aligned):
                return False
            addresses.append(id(a))
        run = self.compiled.get(kind)
        if run is None:
            run = self.compiled[kind] = self.compile(kind)
        if run is False:
            return False
        run(size, *addresses, *args[len(self.arrays):])
        return True

    def of(self, xp: Any, *arrays: Any) -> Any:
        """The first array of the loop, made anew from the others; None where NumPy has to do it."""
        like = arrays[0]
        if xp is not np or like.size < SMALLEST:
            return None
        made = np.empty_like(like)
        return made if self(made, *arrays) else None

    def compile(self, kind: str) -> Any:
        """The loop as a ctypes function over elements of one type ("f" or "d")."""
        if not works():
            return False
        number = ctypes.c_float if kind == "f" else ctypes.c_double
        return compiled(lambda ir: loop_module(ir, self, kind), "loop", [
            ctypes.c_int64, *[ctypes.c_void_p] * len(self.arrays), *[number] * len(self.numbers)])


def compiled(build: Any, name: str, arguments: list[Any]) -> Any:
    """A ctypes function from a function that builds LLVM's text; False without llvmlite."""
    global _engine
    try:
        import llvmlite.binding as llvm
        from llvmlite import ir
    except ImportError:
        return False
    with _lock:
        if _engine is None:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            target = llvm.Target.from_default_triple().create_target_machine(
                cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(),
                opt=3)
            _engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target), target, []
        engine, target, kept = _engine
        module = llvm.parse_assembly(str(build(ir)))
        module.triple = target.triple
        module.data_layout = str(target.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.loop_unrolling = options.slp_vectorization = True
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        engine.add_module(module)
        engine.finalize_object()
        kept.append(module)
        address = engine.get_function_address(name)
        engine.remove_module(module)  # so that the next may use the name; its code stays
    return ctypes.CFUNCTYPE(None, *arguments)(address)


# -- from the text of a loop to LLVM --------------------------------------------------------------


def loop_module(ir: Any, loop: Loop, kind: str) -> Any:
    """A module with the function `loop(n, array..., number...)`."""
    real = ir.FloatType() if kind == "f" else ir.DoubleType()
    size, pointer = ir.IntType(64), real.as_pointer()
    module = ir.Module("loop")
    objects = [ir.IntType(8).as_pointer()] * len(loop.arrays)
    function = ir.Function(module, ir.FunctionType(
        ir.VoidType(), [size, *objects, *[real] * len(loop.numbers)]), "loop")
    n, *rest = function.args
    entry, body, end = (function.append_basic_block(b) for b in ("entry", "body", "end"))
    b = ir.IRBuilder(entry)
    data = {name: elements(ir, b, obj, pointer) for name, obj in zip(loop.arrays, rest)}
    values = dict(zip(loop.numbers, rest[len(loop.arrays):]))
    b.cbranch(b.icmp_signed(">", n, size(0)), body, end)
    b.position_at_end(body)
    i = b.phi(size)
    i.add_incoming(size(0), entry)
    places = {name: b.gep(p, [i]) for name, p in data.items()}
    formula = Formula(ir, b, real, places, values)
    for line in ast.parse(loop.text).body:
        formula.assign(line)
    following = b.add(i, size(1), flags=["nsw"])
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, n), body, end)
    ir.IRBuilder(end).ret_void()
    return module


def elements(ir: Any, b: Any, array: Any, pointer: Any) -> Any:
    """The address of the elements of an array object."""
    place = b.gep(array, [ir.IntType(64)(DATA)])
    return b.load(b.bitcast(place, pointer.as_pointer()))


class Formula:
    """Turns Python's expressions into LLVM's instructions.

    "contract" lets a product and a sum become one instruction, which rounds once instead of twice.
    """

    FLAGS = ("contract",)
    ARITHMETIC: ClassVar = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
    TESTS: ClassVar = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
                       ast.NotEq: "!="}

    def __init__(self, ir: Any, b: Any, real: Any, places: dict[str, Any],
                 values: dict[str, Any]) -> None:
        self.ir, self.b, self.real, self.places, self.values = ir, b, real, places, values

    def assign(self, line: Any) -> None:
        """One line, name = expression."""
        name = line.targets[0].id
        value = self.values[name] = self.value(line.value)
        if name in self.places:
            self.b.store(value, self.places[name])

    def value(self, e: Any) -> Any:
        """The instruction that computes an expression."""
        b = self.b
        if isinstance(e, ast.Constant):
            return self.real(float(e.value))  # type: ignore[arg-type]  # loops hold numbers only
        if isinstance(e, ast.Name):
            if e.id not in self.values:
                self.values[e.id] = b.load(self.places[e.id])
            return self.values[e.id]
        if isinstance(e, ast.BinOp):
            make = getattr(b, self.ARITHMETIC[type(e.op)])
            return make(self.value(e.left), self.value(e.right), flags=self.FLAGS)
        if isinstance(e, ast.UnaryOp):
            return b.fneg(self.value(e.operand))
        if isinstance(e, ast.IfExp):
            return b.select(self.value(e.test), self.value(e.body), self.value(e.orelse))
        if isinstance(e, ast.Compare):
            return b.fcmp_ordered(self.TESTS[type(e.ops[0])], self.value(e.left),
                                  self.value(e.comparators[0]))
        if isinstance(e, ast.Call) and e.func.id in ("exp", "erf"):  # type: ignore[attr-defined]
            made = getattr(Math(self.ir, b, self.real), e.func.id)  # type: ignore[attr-defined]
            return made(self.value(e.args[0]))
        if isinstance(e, ast.Call) and e.func.id == "sqrt":  # type: ignore[attr-defined]
            sqrt = b.module.declare_intrinsic("llvm.sqrt", [self.real])
            return b.call(sqrt, [self.value(e.args[0])])
        if isinstance(e, ast.Call) and e.func.id == "maximum":  # type: ignore[attr-defined]
            x, y = (self.value(a) for a in e.args)  # NaN stays NaN, as in NumPy
            greater = b.fcmp_unordered(">", x, y)
            return b.select(b.fcmp_unordered("uno", y, y), y, b.select(greater, x, y))
        raise ValueError(f"a loop cannot say {ast.unparse(e)!r}")
