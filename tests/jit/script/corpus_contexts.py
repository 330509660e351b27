"""Programs about `with`."""

from __future__ import annotations

import toytorch as torch
from tests.jit.script.case import G, T, calls

SQUARE = T([[1.0, 2.0], [3.0, 4.001]], grad=True)


def twice(x):
    return x * 2


@calls((G,))
def calls_without_gradients(x):
    with torch.no_grad():
        y = twice(x)
        for i in range(2):
            y = twice(y)
    return y, y.requires_grad, x * y


@calls((SQUARE,))
def half_precision(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        z = y + x
    return y.float(), z, y.dtype == torch.bfloat16


@calls((SQUARE,))
def half_precision_off_inside(x):
    with torch.autocast("cpu"):
        y = torch.mm(x, x)
        with torch.amp.autocast("cpu", enabled=False):
            z = torch.mm(x, x)
    return y.float() + z


def product(x):
    return torch.nn.functional.linear(x, x)


@calls((SQUARE,))
def calls_in_half_precision(x):
    with torch.no_grad(), torch.autocast("cpu", torch.float16):
        y = product(x)
    return y.float(), product(x)


@calls((G,))
def named_part(x):
    with torch.profiler.record_function("part"):
        return x * 2
