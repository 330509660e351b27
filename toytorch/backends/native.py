"""Functions in LLVM's words, compiled for this machine: products, convolutions and pools.

`backends.loops` writes its kernels itself; what is here serves those that are written by hand. No
compiler needs to be installed. Compiling takes some 20 ms, so small arrays are left to NumPy.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import numpy as np

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


def elements(ir: Any, b: Any, array: Any, pointer: Any) -> Any:
    """The address of the elements of an array object."""
    place = b.gep(array, [ir.IntType(64)(DATA)])
    return b.load(b.bitcast(place, pointer.as_pointer()))
