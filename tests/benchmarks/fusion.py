"""Compiled functions against PyTorch eager, torch.compile, JAX and our own eager.

    python -m tests.benchmarks.fusion [-k TEXT] [--threads N] [--samples N] [--no-others]

All sides take turns in one run; what is printed are medians of the ratios of neighbouring samples
to PyTorch eager, the bytes each way of running moves, and how long our kernels take to compile and
to come from the cache. torch.compile needs a C++ compiler, JAX its package; a side that is not
there is left out.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TOYTORCH_THREADS"):
    os.environ[_name] = _threads  # before NumPy and PyTorch are imported, which read them once
os.environ["JAX_PLATFORMS"] = "cpu"
if _threads == "1":
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

Build = Callable[[Any], Callable[..., Any]]


@dataclass(frozen=True)
class Fused:
    """A function of tensors, written for PyTorch's names, and the ratio that was asked for."""

    name: str
    build: Build
    shapes: tuple[tuple[int, ...], ...]
    target: float
    jax: Build | None = None


def iou(m: Any) -> Callable[..., Any]:
    """Intersection over union of boxes given by corner and size."""

    def f(x1: Any, y1: Any, w1: Any, h1: Any, x2: Any, y2: Any, w2: Any, h2: Any) -> Any:
        left, top = m.max(x1, x2), m.max(y1, y2)
        w = m.clamp(m.min(x1 + w1, x2 + w2) - left, min=0)
        h = m.clamp(m.min(y1 + h1, y2 + h2) - top, min=0)
        both = w * h
        return both / m.clamp(w1 * h1 + w2 * h2 - both, min=1e-5)

    return f


def squares(m: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        for _ in range(5):
            x = x * x
        return x

    return f


def lstm(m: Any) -> Callable[..., Any]:
    """The pointwise part of an LSTM cell."""

    def f(gates: Any, c: Any) -> Any:
        i, f, g, o = gates.chunk(4, 1)
        new = m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g)
        return m.sigmoid(o) * m.tanh(new), new

    return f


def gelu(m: Any) -> Callable[..., Any]:
    def f(x: Any, bias: Any, residual: Any) -> Any:
        return m.nn.functional.gelu(x + bias) + residual

    return f


def scaled_exp(m: Any) -> Callable[..., Any]:
    def f(x: Any, shift: Any, scale: Any) -> Any:
        return m.exp(x - shift) / scale

    return f


def softmax(m: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        e = m.exp(x - m.amax(x, 1, keepdim=True))
        return e / m.sum(e, 1, keepdim=True)

    return f


def layer_norm(m: Any) -> Callable[..., Any]:
    def f(x: Any, w: Any, b: Any) -> Any:
        d = x - x.mean(1, keepdim=True)
        return d * m.rsqrt((d * d).mean(1, keepdim=True) + 1e-5) * w + b

    return f


def adam(m: Any) -> Callable[..., Any]:
    def f(p: Any, g: Any, first: Any, second: Any) -> Any:
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g * g
        return p - 1e-3 * (first / 0.1) / (m.sqrt(second / 0.001) + 1e-8), first, second

    return f


def masked_softmax(m: Any) -> Callable[..., Any]:
    def f(x: Any, mask: Any) -> Any:
        return m.softmax((x * 0.125).masked_fill(mask > 0.6, float("-inf")), -1)

    return f


def rms_norm(m: Any) -> Callable[..., Any]:
    return lambda x, w: x * m.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def log_sum(m: Any) -> Callable[..., Any]:
    return lambda x: m.logsumexp(x * 2, 1)


def transposed(m: Any) -> Callable[..., Any]:
    return lambda x, y: m.tanh(x.T + y)


def mish(m: Any) -> Callable[..., Any]:
    return lambda x: x * m.tanh(m.nn.functional.softplus(x))


def huber(m: Any) -> Callable[..., Any]:
    def f(x: Any, y: Any) -> Any:
        d = m.abs(x - y)
        return m.where(d < 1, 0.5 * d * d, d - 0.5).mean()

    return f


def unit_rows(m: Any) -> Callable[..., Any]:
    return lambda x: x / x.norm(dim=1, keepdim=True)


def jax_layer_norm(m: Any) -> Callable[..., Any]:
    def f(x: Any, w: Any, b: Any) -> Any:
        d = x - x.mean(1, keepdims=True)
        return d * m.lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-5) * w + b

    return f


def jax_adam(m: Any) -> Callable[..., Any]:
    return adam(m.numpy)


def jax_masked(m: Any) -> Callable[..., Any]:
    return lambda x, k: m.nn.softmax(m.numpy.where(k > 0.6, -m.numpy.inf, x * 0.125), -1)


def jax_rms_norm(m: Any) -> Callable[..., Any]:
    return lambda x, w: x * m.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def jax_log_sum(m: Any) -> Callable[..., Any]:
    return lambda x: m.nn.logsumexp(x * 2, 1)


def jax_mish(m: Any) -> Callable[..., Any]:
    return lambda x: x * m.numpy.tanh(m.nn.softplus(x))


def jax_huber(m: Any) -> Callable[..., Any]:
    return huber(m.numpy)


def jax_unit_rows(m: Any) -> Callable[..., Any]:
    return lambda x: x / m.numpy.linalg.norm(x, axis=1, keepdims=True)


def jax_iou(m: Any) -> Callable[..., Any]:
    def f(x1: Any, y1: Any, w1: Any, h1: Any, x2: Any, y2: Any, w2: Any, h2: Any) -> Any:
        np = m.numpy
        w = np.maximum(np.minimum(x1 + w1, x2 + w2) - np.maximum(x1, x2), 0)
        h = np.maximum(np.minimum(y1 + h1, y2 + h2) - np.maximum(y1, y2), 0)
        both = w * h
        return both / np.maximum(w1 * h1 + w2 * h2 - both, 1e-5)

    return f


def jax_lstm(m: Any) -> Callable[..., Any]:
    def f(gates: Any, c: Any) -> Any:
        i, f, g, o = m.numpy.split(gates, 4, 1)
        sigmoid, tanh = m.nn.sigmoid, m.numpy.tanh
        new = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(new), new

    return f


def jax_gelu(m: Any) -> Callable[..., Any]:
    return lambda x, bias, residual: m.nn.gelu(x + bias, approximate=False) + residual


def jax_softmax(m: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        e = m.numpy.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return f


SQUARE, ROW = (1000, 1000), (1000,)
CASES = [
    Fused("IoU of 100,000 boxes", iou, ((100, 1000),) * 8, 0.15, jax_iou),
    Fused("x*x five times, 2 million", squares, ((2000, 1000),), 0.22, squares),
    Fused("LSTM cell, pointwise, 64x512", lstm, ((64, 2048), (64, 512)), 0.55, jax_lstm),
    Fused("gelu(x + b) + r, 512x1024", gelu, ((512, 1024), (1024,), (512, 1024)), 0.22, jax_gelu),
    Fused(
        "exp(x - m) / s, 1000x1000",
        scaled_exp,
        ((1000, 1000), (1000, 1), (1000, 1)),
        0.55,
        lambda m: lambda x, a, s: m.numpy.exp(x - a) / s,
    ),
    Fused("softmax from its parts, 1000x1000", softmax, (SQUARE,), 0.30, jax_softmax),
    Fused("layer norm from its parts", layer_norm, (SQUARE, ROW, ROW), 0.35, jax_layer_norm),
    Fused("Adam from its parts", adam, (SQUARE,) * 4, 0.20, jax_adam),
    Fused(
        "masked softmax, 8x128x128", masked_softmax, ((8, 128, 128), (128, 128)), 0.4, jax_masked
    ),
    Fused("RMS norm from its parts", rms_norm, (SQUARE, ROW), 0.35, jax_rms_norm),
    Fused("logsumexp of 2x", log_sum, (SQUARE,), 0.4, jax_log_sum),
    Fused("tanh(x.T + y)", transposed, (SQUARE,) * 2, 0.5, lambda m: transposed(m.numpy)),
    Fused("x tanh(softplus(x))", mish, (SQUARE,), 0.35, jax_mish),
    Fused("Huber loss from its parts", huber, (SQUARE,) * 2, 0.25, jax_huber),
    Fused("rows of length 1", unit_rows, (SQUARE,), 1.0, jax_unit_rows),
]


def sides(case: Fused, others: bool) -> tuple[dict[str, Callable[[], Any]], tuple[int, int]]:
    """What each side runs, and the bytes moved by our eager and our compiled function."""
    import numpy as np
    import torch as theirs

    import toytorch as ours

    theirs.set_num_threads(int(_threads))
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, np.float32) + np.float32(0.1) for shape in case.shapes]
    a = [ours.from_numpy(x) for x in arrays]
    b = [theirs.from_numpy(x) for x in arrays]
    traced = ours.jit.trace(case.build(ours), tuple(a), check_trace=False)
    eager, reference = case.build(ours), case.build(theirs)
    works = {
        "compiled": lambda: traced(*a),
        "eager": lambda: eager(*a),
        "PyTorch": lambda: reference(*b),
    }
    if others:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                other = theirs.compile(reference)
                other(*b)
                works["torch.compile"] = lambda: other(*b)
            except Exception as error:  # whatever its compiler lacks
                print(f"no torch.compile: {type(error).__name__}", file=sys.stderr)
        try:
            import jax

            assert case.jax is not None
            jitted = jax.jit(case.jax(jax))
            c = [jax.numpy.asarray(x) for x in arrays]
            works["JAX"] = lambda: jax.block_until_ready(jitted(*c))
        except ImportError:
            print("no JAX here", file=sys.stderr)
    return works, bytes_moved(eager, a)


def bytes_moved(f: Callable[..., Any], inputs: list[Any]) -> tuple[int, int]:
    """Bytes that go through memory: op by op, and compiled."""
    from toytorch.viz.compiler.read import plan_of
    from toytorch.viz.compiler.traffic import parts_of, total

    plan = plan_of(f, inputs)
    return total(parts_of(plan.partition.forward)), total(parts_of(plan.optimised))


def kernel_ms(case: Fused) -> float:
    """Milliseconds in which this process gets the kernels of a function: compiled or read."""
    import numpy as np

    import toytorch as ours
    from toytorch import jit
    from toytorch.jit.fuser import kernels

    x = ours.ones(10)
    jit.trace(lambda x: (x + 1).exp(), x)(x)  # LLVM itself is loaded
    inputs = [ours.from_numpy(np.ones(shape, np.float32)) for shape in case.shapes]
    traced = jit.trace(case.build(ours), tuple(inputs), check_trace=False)
    spent = 0.0
    plain = kernels.compiled

    def timed(*group: Any) -> Any:
        nonlocal spent
        start = time.perf_counter()
        made = plain(*group)
        spent += time.perf_counter() - start
        return made

    kernels.compiled = timed
    traced(*inputs)
    return spent * 1e3


def compile_times(name: str) -> list[float]:
    """`kernel_ms` in two new processes that share a new cache: cold, and from the cache."""
    with tempfile.TemporaryDirectory() as cache:
        return [
            float(
                subprocess.run(
                    [sys.executable, "-m", "tests.benchmarks.fusion", "--compile", name],
                    env={**os.environ, "TOYTORCH_CACHE": cache},
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for _ in range(2)
        ]


def measure(works: dict[str, Callable[[], Any]], samples: int) -> dict[str, tuple[float, float]]:
    """For each side its median time, and the median of its ratios to PyTorch eager's."""
    start = time.perf_counter()
    for work in works.values():
        for _ in range(5):
            work()
    works["PyTorch"]()
    start = time.perf_counter()
    works["PyTorch"]()
    least = 3e-3 if _threads == "1" else 30e-3  # threads of others watch for work for some time
    inner = max(1, int(least / max(time.perf_counter() - start, 1e-6)))
    taken: dict[str, list[float]] = {side: [] for side in works}
    gc.disable()
    for i in range(samples):
        order = list(works) if i % 2 else list(works)[::-1]
        for side in order:
            work = works[side]
            start = time.perf_counter()
            for _ in range(inner):
                work()
            taken[side].append((time.perf_counter() - start) / inner)
    gc.enable()
    return {
        side: (
            statistics.median(times),
            statistics.median(t / r for t, r in zip(times, taken["PyTorch"])),
        )
        for side, times in taken.items()
    }


def main() -> int:
    p = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.fusion",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("-k", default="", metavar="TEXT", help="only functions whose name holds this")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--samples", type=int, default=41)
    p.add_argument("--no-others", action="store_true", help="without torch.compile and JAX")
    p.add_argument("--compile", default="", help=argparse.SUPPRESS)  # for `compile_times`
    options = p.parse_args()
    if options.compile:
        print(kernel_ms(next(c for c in CASES if c.name == options.compile)))
        return 0
    print(f"threads {options.threads}; ratios to PyTorch eager; kernels' milliseconds; megabytes")
    names = ("compiled", "eager", "torch.compile", "JAX")
    print(
        f"{'':36}{'PyTorch':>10}"
        + "".join(f"{n:>14}" for n in names)
        + f"{'wanted':>9}{'cold':>7}{'cached':>8}{'MB eager':>10}{'fused':>7}"
    )
    for case in CASES:
        if options.k not in case.name:
            continue
        cold, cached = compile_times(case.name)
        works, (before, after) = sides(case, not options.no_others)
        found = measure(works, options.samples)
        print(
            f"{case.name:36}{found['PyTorch'][0] * 1e6:>7.0f} µs"
            + "".join(f"{found[n][1]:>14.2f}" if n in found else f"{'-':>14}" for n in names)
            + f"{case.target:>9}{cold:>7.0f}{cached:>8.1f}{before / 1e6:>10.1f}"
            + f"{after / 1e6:>7.1f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
