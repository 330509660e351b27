"""`toytorch.cuda.kernel`: kernels in CUDA C, on a card or in emulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toytorch.cuda.emulator.errors import CompileError, KernelError
from toytorch.facts.hints import Ints

if TYPE_CHECKING:
    from toytorch.cuda.kernels import Kernel

__all__ = ["CompileError", "KernelError", "kernel"]

RACES = ("error", "warn", "list")


def kernel(
    source: str,
    name: str | None = None,
    *,
    block: Ints = 256,
    shared_mem: int = 0,
    races: str = "error",
    options: Sequence[str] = (),
    file: str = "kernel.cu",
) -> Kernel:
    """A kernel of a source in CUDA C, to be launched on tensors and NumPy arrays.

    On tensors of the CPU it runs in an emulator, with no GPU and no compiler: for all threads of many
    blocks at once, with every address, every pair of accesses and every barrier checked. On tensors
    of a card, CuPy compiles and launches it; on those of a simulated device it runs in the emulator, and
    the device's stream is charged with it.

    `name` chooses among several kernels of the source, and the arguments of a template, as in
    "scale<float>". `block` and `shared_mem` are the defaults of a launch. `races` says what happens
    when threads race: "error" raises RaceError behind the launch, "warn" warns, "list" only lists
    them in the report. `options` are those of `cupy.RawKernel`; the emulator reads "-DNAME=VALUE".

    Raises CompileError, with the place, where the source is not what the emulator understands.

    >>> add = torch.cuda.kernel('''
    ... extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) out[i] = x[i] + y[i];
    ... }''')
    >>> x, out = torch.arange(6.0), torch.empty(6)
    >>> add[1, 32](x, x, out, 6)
    <launch of add: grid (1, 1, 1), block (32, 1, 1)>
    >>> out
    tensor([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    from toytorch.cuda.kernels import Kernel  # the emulator is loaded with the first kernel

    if races not in RACES:
        raise ValueError(f"races is one of {', '.join(RACES)}, not {races!r}")
    return Kernel(source, name, block, shared_mem, races, tuple(options), file)
