"""From a Program and a Layout to loops.

Without reductions there is one loop over the last axis, inside one over all others. With them, a
row (or a block of columns) is gone over several times while it lies in the cache: first for what
the first reductions need, then for what follows from those, and so on. A value that a later pass
needs again is computed again if that is cheap, and kept in the output's memory or in scratch
otherwise, so that no exp is computed twice.

    >>> from toytorch.loops.schedule.layout import Layout
    >>> p = Program.parse("x[i,j] -> y[i,j]\\n e = exp(x)\\n y = e / sum[j](e)")
    >>> rows = Layout("rows", (("i",), ("j",)), (False, True), ("1", "1"), (), ("y", "x"))
    >>> print(schedule(p, rows))
    rows r from lo to hi:
        var a_total float64 = 0.0
        serial k from 0 to n1 step 1024:
            rest = sub(n1, k)
            size = minimum(rest, 1024)
            var a_part float32 = 0.0
            lanes j from 0 to size:
                x_0 = x[r, k + j]
                e_0 = exp(x_0)
                a_part = add(a_part, e_0)
                y[r, k + j] = e_0
            a_wide = cast(a_part)
            a_total = add(a_total, a_wide)
        join a_total by add
        a_0 = cast(a_total)
        lanes j_0 from 0 to n1:
            e_1 = y[r, j_0]
            y_0 = div(e_1, a_0)
            y[r, j_0] = y_0
"""

from __future__ import annotations

from toytorch.loops.language.program import Program
from toytorch.loops.schedule.columns import Columns
from toytorch.loops.schedule.flat import Flat
from toytorch.loops.schedule.layout import Layout
from toytorch.loops.schedule.nest import Nest
from toytorch.loops.schedule.rows import Rows


def schedule(program: Program, layout: Layout, flat: bool = False) -> Nest:
    """The loops of a program over arrays of a layout.

    flat   as GPUs like it: without reductions one loop over the elements of all axes; no pieces
    """
    if layout.mode == "rows":
        return Rows(program, layout).nest(flat)
    if layout.mode == "columns":
        return Columns(program, layout).nest()
    return Flat(program, layout).nest(flat)
