"""Loops over arrays: a program over named dimensions, compiled into one kernel.

    >>> from toytorch import loops
    >>> p = loops.Program.parse("x[i,j], w[j] -> y[i]\\n y = sum[j](x * w)")
    >>> x, w, y = np.ones((2, 3), "float32"), np.arange(3, dtype="float32"), np.empty(2, "float32")
    >>> loops.run(p, y, x, w); y
    array([3., 3.], dtype=float32)

A Program (`language`) says what is to be computed. With the layout of the arrays,
`schedule` makes a nest of loops of it, for which the `generators` write Python, LLVM's text and CUDA
C. `runtime` compiles, keeps, picks and calls kernels, and shares their work among threads.
"""

from toytorch.facts.package import show as _show
from toytorch.loops.language.primitives import supports
from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import Array, Reduce, Scalar, Step, Unsupported
from toytorch.loops.runtime.kernel import Kernel, Recipe, compile_program, run
from toytorch.loops.runtime.threads import set_thread_count, thread_count

_show(globals())
