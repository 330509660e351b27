"""Collectives among the devices of one process. Like `torch.cuda.nccl`.

They are copies and sums by the devices' own links, so that they run on every device that this
package knows, simulated ones among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.ops.elementwise.limits import maximum, minimum

SUM, PROD, MAX, MIN, AVG = range(5)  # NCCL's numbers
COMBINE: dict[int, Callable[[Tensor, Tensor], Any]] = {
    SUM: lambda a, b: a + b,
    PROD: lambda a, b: a * b,
    MAX: maximum.function,
    MIN: minimum.function,
    AVG: lambda a, b: a + b,
}


def is_available(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors are dense and contiguous, each on a GPU of its own."""
    if any(t.is_sparse or not t.is_contiguous() or not t.is_cuda for t in tensors):
        return False
    return len({t.device for t in tensors}) == len(tensors)


def version() -> tuple[int, int, int]:
    """The version of NCCL on a card, by CuPy; (0, 0, 0) of simulated devices, which need none."""
    try:
        from cupy.cuda import nccl  # an extra, for cards only
    except ImportError:
        return 0, 0, 0
    number = int(nccl.get_version())
    return number // 10000, number // 100 % 100, number % 100


def all_reduce(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor] | None = None,
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
) -> None:
    """Writes the sum of all inputs (or what `op` says) to each output; to the inputs without any.

    >>> with torch.cuda.simulate(devices=2):
    ...     xs = [torch.ones(2, device=f"cuda:{i}") * (i + 1) for i in range(2)]
    ...     torch.cuda.nccl.all_reduce(xs)
    ...     [x.tolist() for x in xs]
    [[3.0, 3.0], [3.0, 3.0]]
    """
    outputs = _checked(inputs) if outputs is None else _checked(outputs)
    total = _combined(_checked(inputs), 0, op)
    for out in outputs:
        out.copy_(total, True)


def reduce(
    inputs: Sequence[Tensor],
    output: Tensor | Sequence[Tensor] | None = None,
    root: int = 0,
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
    *,
    outputs: Sequence[Tensor] | None = None,
) -> None:
    """Writes the sum of all inputs (or what `op` says) to the output, which is `inputs[root]` unless
    another is given."""
    if outputs is not None and output is not None:
        raise ValueError(
            "'output' and 'outputs' can not be both specified. 'outputs' is deprecated in favor of "
            "'output', taking in a single output tensor. The signature of reduce is: "
            "reduce(inputs, output=None, root=0, op=SUM, streams=None, comms=None)."
        )
    several = outputs if outputs is not None else output
    if several is not None and not isinstance(several, Tensor):
        warned.at_call(
            "`nccl.reduce` with an output tensor list is deprecated. Please specify a single output "
            "tensor with argument 'output' instead.",
            FutureWarning,
        )
        several = several[root]
    target = _checked(inputs)[root] if several is None else several
    target.copy_(_combined(inputs, root, op), True)


def broadcast(
    inputs: Sequence[Tensor], root: int = 0, streams: Any = None, comms: Any = None
) -> None:
    """Writes `inputs[root]` to all others."""
    source = _checked(inputs)[root]
    for other in inputs:
        if other is not source:
            other.copy_(source, True)


def all_gather(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], streams: Any = None, comms: Any = None
) -> None:
    """Writes all inputs, one after the other, to each output."""
    for out in _checked(outputs):
        for part, given in zip(out.view(-1).chunk(len(_checked(inputs))), inputs):
            part.copy_(given.reshape(-1), True)


def reduce_scatter(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
) -> None:
    """Writes the k-th part of the sum of all inputs (or of what `op` says) to the k-th output."""
    parts = [t.reshape(-1).chunk(len(_checked(outputs))) for t in _checked(inputs)]
    for k, out in enumerate(outputs):
        total = _combined([p[k] for p in parts], k, op)
        out.view(-1).copy_(total, True)


def _combined(tensors: Sequence[Tensor], root: int, op: int) -> Tensor:
    """All tensors in one, on the device of `tensors[root]`, in the order of the devices."""
    if op not in COMBINE:
        raise ValueError(f"op must be one of SUM, PROD, MAX, MIN and AVG, not {op!r}")
    where = tensors[root].device
    total, *others = [t.to(where, non_blocking=True) for t in tensors]
    for other in others:
        total = COMBINE[op](total, other)
    return total / len(tensors) if op == AVG else total


def _checked(tensors: Any) -> Sequence[Tensor]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise TypeError("Inputs should be a collection of tensors")
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) > 1:
        raise RuntimeError(f"all tensors must have the same shape, but got {sorted(shapes)}")
    return tensors


__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]
