"""RMS norm of inputs in all layouts: strides, numbers, gradients and the steps of the history."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda m, t: t,
    "columns": lambda m, t: (
        t.permute(*range(t.ndim)[::-1]).contiguous().permute(*range(t.ndim)[::-1])
    ),
    "channels last": lambda m, t: t.contiguous(
        memory_format={4: m.channels_last, 5: m.channels_last_3d}.get(t.ndim, m.contiguous_format)
    ),
    "every second": lambda m, t: m.stack([t, t], -1)[..., 0],
    "shown often": lambda m, t: t[:1].expand(t.shape),
    "a part": lambda m, t: m.cat([t, t], -1)[..., 1 : 1 + t.shape[-1]],
}


def steps(made: Any) -> list[str]:
    """The names of the nodes from the result on; the two ways of adding a number are one."""
    names, waiting = [], [made.grad_fn]
    while waiting:
        node = waiting.pop(0)
        names.append(node.name().replace("AddBackward1", "AddBackward0"))
        waiting += [n for n, _ in node.next_functions if n is not None]
    return names


def run(m: Any, shape: tuple[int, ...], dims: int, layout: str, weight: str, kind: str) -> Any:
    dtype = getattr(m, kind)
    t = (m.arange(float(math.prod(shape))).reshape(shape) / 7).to(dtype)
    x = LAYOUTS[layout](m, t).detach().requires_grad_(weight != "alone wants gradients")
    own = shape[len(shape) - dims :]
    w = (m.arange(float(math.prod(own))).reshape(own) + 1).to(dtype)
    w = None if weight == "none" else w.requires_grad_(weight != "wants none")
    made = m.nn.functional.rms_norm(x, own, w)
    names = steps(made)
    (made * made).abs().sum().backward()
    read = m.complex128 if kind == "complex64" else m.float64
    numbers = [
        None if v is None else v.detach().to(read).numpy()
        for v in (made, x.grad, None if w is None else w.grad)
    ]
    return (made.stride(), made.is_contiguous()), names, numbers


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, kind: str) -> None:
    for shape in (
        (3,),
        (2, 3),
        (2, 3, 4),
        (2, 3, 4, 5),
        (2, 1, 4, 5),
        (2, 3, 1, 1),
        (2, 3, 2, 2, 2),
    ):
        for dims in range(1, len(shape) + 1):
            for weight in ("none", "wants gradients", "wants none", "alone wants gradients"):
                case = (shape, dims, layout, weight, kind)
                theirs, ours = run(torch, *case), run(tt, *case)
                assert ours[0] == theirs[0], case
                if len(ours[1]) < len(theirs[1]):  # one kernel
                    ours[1][1:], theirs[1][1:] = [], []
                    assert layout in ("rows", "channels last") or max(shape) == 3, case
                assert ours[1] == theirs[1], case
                close = 3e-2 if kind == "bfloat16" else 1e-4
                for own, their in zip(ours[2], theirs[2]):
                    assert (own is None) is (their is None), case
                    if own is not None:
                        scale = close * max(1, np.abs(their).max())
                        np.testing.assert_allclose(own, their, close, scale, err_msg=str(case))
