"""Functions in LLVM's words, compiled for this machine: products, convolutions, pools and rows.

`backends.loops` writes its kernels itself; what is here serves those that are written by hand. No
compiler needs to be installed. Compiling takes some 20 ms, so small arrays are left to NumPy.
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


# -- from text to LLVM ----------------------------------------------------------------------------


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
