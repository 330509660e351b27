"""Results and gradients on 1, 2 and 4 threads, bit for bit, on PyTorch's database of operators.

python -m tests.ops.threads_check             five samples of all entries, some with 100,000 elements
python -m tests.ops.threads_check float64     of another type

Everything is divided among threads that can be. Memory that nobody has written to differs, and large
products that are left to BLAS, which divides them otherwise for each number of threads.
"""

from __future__ import annotations

import itertools
import sys
from functools import partial
from typing import Any

import numpy as np

from tests.ops.entries import each, resize
from tests.oracle import ORACLE, SUBJECT, attempt, leaves, torch, tt
from toytorch.loops.runtime import jit

SIZES = {"XS": 16, "S": 48, "M": 56, "L": 64}  # of the database's dimensions, as it calls them
SAMPLES, SECONDS = 5, 12  # of an entry
UNSET = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


def bits(results: Any) -> list[bytes]:
    """What tensors hold."""
    dense = [t for t in leaves(results) if isinstance(t, tt.Tensor) and t.layout is tt.strided]
    return [
        np.asarray(t.detach().resolve_conj().resolve_neg().cpu()._array).tobytes() for t in dense
    ]


def run(function: Any, args: Any, kwargs: Any) -> list[bytes]:
    """The results of a call, and its gradients."""
    tt.manual_seed(0)
    args, kwargs = SUBJECT.carry(args), SUBJECT.carry(kwargs)
    results = function(*args, **kwargs)
    found = bits(results)
    made = [t for t in leaves(results) if isinstance(t, tt.Tensor) and t.requires_grad]
    given = [
        t for t in leaves([list(args), kwargs]) if isinstance(t, tt.Tensor) and t.requires_grad
    ]
    if made and given:
        gs = [tt.arange(t.numel()).double().cos().reshape(t.shape).to(t.dtype) for t in made]
        found += bits(tt.autograd.grad(made, given, gs, allow_unused=True))
    return found


def check(kind: Any, name: str, info: Any, function: Any) -> tuple[int, int, list[str]]:
    """How many samples were compared and had more than 4,096 elements, and which differ."""
    compared, large, bad = 0, 0, list[str]()
    for sample in itertools.islice(
        info.sample_inputs("cpu", kind, info.supports_autograd), SAMPLES
    ):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        made = []
        for threads in (1, 2, 4):
            tt.set_num_threads(threads)
            made.append(attempt(run, function, args, kwargs)[0])
        if None in made:
            continue
        compared += 1
        large += max((t.numel() for t in ORACLE.tensors([list(args), kwargs])), default=0) >= 4096
        if not made[0] == made[1] == made[2]:
            bad.append(f"{name}: {sample.summary()[:150]}")
    return compared, large, bad


def main() -> None:
    resize(SIZES)
    jit.WORK = 1
    kind = getattr(torch, (sys.argv[1:] or ["float32"])[0])
    totals = np.zeros(2, int)
    for _, (*counts, bad) in each(partial(check, kind), kind, SECONDS, leave_out=UNSET):
        totals += counts
        print(*bad, sep="\n", end="\n" * bool(bad), flush=True)
    print(f"{totals[0]} samples, {totals[1]} of them with more than 4,096 elements")


if __name__ == "__main__":
    main()
