"""Times of ops on the card, against the time of a copy: `python -m tests.cuda.measure` prints JSON.

The measure of an op that does little arithmetic is how near it comes to the card's bandwidth: bytes
that have to be read and written, by the seconds it took, by what a plain copy reaches.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable
from typing import Any

import toytorch

INSIDE = 10  # runs between two events, so that the host is ahead of the card

# An op, and how many times the bytes of one input go through memory at least.
OPS: dict[str, tuple[Callable[[Any, list[Any]], Any], float]] = {
    "copy": (lambda m, a: a[0].clone(), 2),
    "add": (lambda m, a: a[0] + a[1], 3),
    "multiply by a number": (lambda m, a: a[0] * 2.5, 2),
    "exp": (lambda m, a: m.exp(a[0]), 2),
    "gelu": (lambda m, a: m.nn.functional.gelu(a[0]), 2),
    "silu": (lambda m, a: m.nn.functional.silu(a[0]), 2),
    "where": (lambda m, a: m.where(a[0] > 0, a[0], a[1]), 3),
    "transposed copy": (lambda m, a: a[0].t().contiguous(), 2),
    "sum": (lambda m, a: a[0].sum(), 1),
    "sum of rows": (lambda m, a: a[0].sum(1), 1),
    "softmax": (lambda m, a: m.softmax(a[0], 1), 2),
    "layer_norm": (lambda m, a: m.nn.functional.layer_norm(a[0], a[0].shape[1:]), 2),
    "cumsum": (lambda m, a: a[0].cumsum(1), 2),
    "randn": (lambda m, a: m.randn(a[0].shape, device=a[0].device), 1),
}


def iou(m: Any, x1: Any, y1: Any, w1: Any, h1: Any, x2: Any, y2: Any, w2: Any, h2: Any) -> Any:
    """Intersection over union of pairs of boxes: what the course fuses."""
    left, top = m.max(x1, x2), m.max(y1, y2)
    width = m.clamp(m.min(x1 + w1, x2 + w2) - left, min=0)
    height = m.clamp(m.min(y1 + h1, y2 + h2) - top, min=0)
    common = width * height
    return common / m.clamp(w1 * h1 + w2 * h2 - common, min=1e-5)


def seconds(m: Any, run: Callable[[], Any], repeats: int) -> float:
    """The median time of a run on the card, by events around ten; all was compiled before."""
    for _ in range(3):
        run()
    m.cuda.synchronize()
    times = []
    for _ in range(repeats):
        first, last = (m.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(INSIDE):
            run()
        last.record()
        m.cuda.synchronize()
        times.append(first.elapsed_time(last) / INSIDE / 1e3)
    return sorted(times)[len(times) // 2]


def of_module(m: Any, rows: int, columns: int, repeats: int) -> dict[str, float]:
    """The seconds of each op of one package, toytorch or PyTorch."""
    arrays = [m.randn(rows, columns, device="cuda") for _ in range(2)]
    made = {n: seconds(m, lambda op=op: op(m, arrays), repeats) for n, (op, _) in OPS.items()}
    boxes = [m.rand(rows, columns, device="cuda") for _ in range(8)]
    made["iou eager"] = seconds(m, lambda: iou(m, *boxes), repeats)
    traced = m.jit.trace(lambda *a: iou(m, *a), tuple(boxes), check_trace=False)
    made["iou fused"] = seconds(m, lambda: traced(*boxes), repeats)
    return made


def measured(rows: int = 8192, columns: int = 4096, repeats: int = 30) -> dict[str, Any]:
    """Times, bandwidths, and PyTorch's times where its CUDA build is installed."""
    size = 4 * rows * columns
    ours = of_module(toytorch, rows, columns, repeats)
    moved = {name: size * times for name, (_, times) in OPS.items()}
    moved |= {"iou eager": 9 * size, "iou fused": 9 * size}
    made: dict[str, Any] = {
        "shape": [rows, columns],
        "seconds": ours,
        "bandwidth": {name: moved[name] / s for name, s in ours.items()},
        "fused over eager": ours["iou eager"] / ours["iou fused"],
    }
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            made["torch"] = {"version": torch.__version__,
                             "seconds": of_module(torch, rows, columns, repeats)}  # fmt: skip
    return made


def facts() -> dict[str, Any]:
    """The card, and the releases of what drives it."""
    backend = importlib.import_module("toytorch.backends.base").of_kind("cuda")
    runtime = backend.xp.cuda.runtime
    return {
        "card": toytorch.cuda.get_device_name(),
        "capability": "{}.{}".format(*toytorch.cuda.get_device_capability()),
        "driver": runtime.driverGetVersion(),
        "cuda": runtime.runtimeGetVersion(),
        "cupy": backend.xp.__version__,
        "toytorch": toytorch.__version__,
    }


if __name__ == "__main__":
    print(json.dumps({**facts(), "measured": measured()}))
