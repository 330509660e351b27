"""Kernels that are launched: on a card by CuPy, anywhere else by the emulator."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.cuda.emulator.arguments import number
from toytorch.cuda.emulator.check import compiled
from toytorch.cuda.emulator.errors import KernelError, Source
from toytorch.cuda.emulator.launch import Size, dims, launch
from toytorch.cuda.emulator.program import Program
from toytorch.cuda.emulator.report import Launch
from toytorch.cuda.emulator.types import Pointer
from toytorch.facts.trace import RaceError, RaceWarning

HOST = (np.ndarray, np.generic)


class Kernel:
    """A kernel; `k[grid, block](*arguments)` launches it, and so does `k(grid, block, arguments)`.

    A third number in the brackets is the bytes of dynamic shared memory. Tensors and arrays are
    changed in place. A launch in emulation returns its report, a launch on a card None.

    >>> from toytorch.cuda import kernel
    >>> fill = kernel("__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }")
    >>> x = np.zeros(3, np.float32)
    >>> fill(1, 3, (x, 2.5))
    <launch of fill: grid (1, 1, 1), block (3, 1, 1)>
    >>> x
    array([2.5, 2.5, 2.5], dtype=float32)
    """

    def __init__(
        self,
        source: str,
        name: str | None,
        block: Size,
        shared_mem: int,
        races: str,
        options: tuple[str, ...],
        file: str,
    ) -> None:
        self.source, self.block, self.shared_mem = Source(source, file), block, shared_mem
        self.races, self.options = races, options
        self.program: Program = compiled(source, name, defines_of(options), file)
        self.name = name or self.program.kernel.name

    def __repr__(self) -> str:
        parameters = ", ".join(f"{type} {name}" for name, type in self.program.kernel.parameters)
        return f"<kernel {self.name}({parameters})>"

    def __getitem__(self, shape: Any) -> Callable[..., Launch | None]:
        """`k[grid]`, `k[grid, block]` and `k[grid, block, shared_mem]`; sizes may be tuples."""
        parts = shape if isinstance(shape, tuple) else (shape,)
        if not 1 <= len(parts) <= 3:
            raise TypeError(f"{self.name}[grid, block, shared_mem] takes no {len(parts)} values")
        grid = parts[0]
        block = parts[1] if len(parts) > 1 else self.block
        shared = parts[2] if len(parts) > 2 else self.shared_mem
        return lambda *arguments: self(grid, block, arguments, shared_mem=shared)

    def __call__(
        self, grid: Size, block: Size, args: Sequence[Any], *, shared_mem: int | None = None
    ) -> Launch | None:
        """Launches as `cupy.RawKernel` does; the report of an emulation."""
        shared = self.shared_mem if shared_mem is None else shared_mem
        arguments = [arrays_of(argument) for argument in args]
        backend = base.of_kind("cuda")
        there = [a for a in arguments if hasattr(a, "dtype") and not isinstance(a, HOST)]
        if any(isinstance(a, backend.array_type) for a in there):
            if any(isinstance(a, np.ndarray) for a in arguments):
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{backend.device(there[0])} and cpu!"
                )
            if not hasattr(backend, "launch"):
                self.on_card(dims(grid, "grid"), dims(block, "block"), arguments, shared)
                self.wrote(args)
                return None
            done = self.simulated(backend, grid, block, arguments, shared)
        else:
            done = launch(self.program, self.source, grid, block, arguments, shared)
        self.wrote(args)
        if done.races and self.races != "list":
            text = "\n".join(str(race) for race in done.races)
            if self.races == "error":
                raise RaceError(text)
            warnings.warn(text, RaceWarning, stacklevel=2)
        return done

    def wrote(self, args: Sequence[Any]) -> None:
        """Counts a write for every tensor that the kernel may have written to."""
        for argument, (_, type) in zip(args, self.program.kernel.parameters):
            if isinstance(argument, Tensor) and isinstance(type, Pointer) and not type.const:
                bump(argument)  # what autograd saved of it is no longer what was saved

    def simulated(
        self, backend: Any, grid: Size, block: Size, arguments: list[Any], shared_mem: int
    ) -> Launch:
        """Emulates on a simulated device, whose stream is charged with it. Faults are reported at
        once, where a card would be silent or say it later."""
        found: list[Launch | KernelError] = []

        def run(*given: object) -> None:
            try:
                found.append(launch(self.program, self.source, grid, block, given, shared_mem))
            except KernelError as error:
                found.append(error)

        parameters = self.program.kernel.parameters
        writes = [
            argument
            for argument, (_, type) in zip(arguments, parameters)
            if isinstance(type, Pointer) and not type.const and argument is not None
        ]
        backend.launch(self.name, run, tuple(arguments), writes=writes)
        if isinstance(found[0], KernelError):
            raise found[0]
        return found[0]

    # on a card

    @functools.cached_property
    def compiled(self) -> Any:
        """CuPy's kernel, compiled by NVIDIA's compiler."""
        cupy = base.of_kind("cuda").xp
        text = with_prelude(self.source.text)
        if 'extern "C"' in text:
            return cupy.RawKernel(text, self.name, options=self.options)
        module = cupy.RawModule(
            code=text, options=("--std=c++17", *self.options), name_expressions=[self.name]
        )
        return module.get_function(self.name)

    def on_card(self, grid: Any, block: Any, arguments: list[Any], shared_mem: int) -> None:
        """Launches on the current device and stream; numbers get the types of the parameters."""
        given = []
        for value, (name, type) in zip(arguments, self.program.kernel.parameters, strict=True):
            given.append(value if isinstance(type, Pointer) else number(name, type, value))
        self.compiled(grid, block, tuple(given), shared_mem=shared_mem)


def arrays_of(argument: object) -> Any:
    """The array of a tensor; other arguments stay what they are."""
    if not isinstance(argument, Tensor):
        return argument
    return argument._array


# What NVIDIA's run-time compiler lacks without the host's headers, and the emulator knows.
PRELUDE = {
    "INFINITY": "#define INFINITY __int_as_float(0x7f800000)",
    "NAN": "#define NAN __int_as_float(0x7fffffff)",
    "FLT_MAX": "#define FLT_MAX 3.402823466e+38f",
    "FLT_MIN": "#define FLT_MIN 1.175494351e-38f",
    "FLT_EPSILON": "#define FLT_EPSILON 1.192092896e-07f",
    "DBL_MAX": "#define DBL_MAX 1.7976931348623158e+308",
    "INT_MAX": "#define INT_MAX 2147483647",
    "INT_MIN": "#define INT_MIN (-2147483647 - 1)",
    "UINT_MAX": "#define UINT_MAX 4294967295u",
    "M_PI": "#define M_PI 3.14159265358979323846",
    "CUDART_INF_F": "#define CUDART_INF_F __int_as_float(0x7f800000)",
    "CUDART_PI_F": "#define CUDART_PI_F 3.141592654f",
    "uint": "typedef unsigned int uint;",
    "int8_t": "typedef signed char int8_t;",
    "uint8_t": "typedef unsigned char uint8_t;",
    "int16_t": "typedef short int16_t;",
    "uint16_t": "typedef unsigned short uint16_t;",
    "int32_t": "typedef int int32_t;",
    "uint32_t": "typedef unsigned int uint32_t;",
    "int64_t": "typedef long int64_t;",
    "uint64_t": "typedef unsigned long uint64_t;",
}


def with_prelude(text: str) -> str:
    """A source with definitions of the names above that it uses, unless it includes headers.

    >>> print(with_prelude("uint k;"))
    typedef unsigned int uint;
    #line 1
    uint k;
    """
    if "#include" in text:
        return text
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    used = [line for name, line in PRELUDE.items() if name in words]
    return "\n".join([*used, "#line 1", text])


def defines_of(options: Sequence[str]) -> dict[str, str]:
    """The macros among a compiler's options.

    >>> defines_of(["-DTILE=16", "-DDEBUG", "--use_fast_math"])
    {'TILE': '16', 'DEBUG': '1'}
    """
    found = {}
    for option in options:
        if option.startswith("-D"):
            name, _, value = option[2:].strip().partition("=")
            found[name] = value or "1"
    return found
