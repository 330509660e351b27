"""Arguments divided among devices, and results gathered from them, in whatever they are nested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import Kwargs
from toytorch.nn.parallel._functions import Gather, Scatter


def is_namedtuple(value: object) -> bool:
    """Whether it is a tuple whose parts have names."""
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Arguments for each device: tensors are divided along `dim`, all else is given to each."""

    def divided(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            return list(Scatter.apply(list(target_gpus), None, dim, value))
        if is_namedtuple(value):
            return [type(value)(*parts) for parts in zip(*map(divided, value))]
        if isinstance(value, tuple) and value:
            return list(zip(*map(divided, value)))
        if isinstance(value, list) and value:
            return [list(parts) for parts in zip(*map(divided, value))]
        if isinstance(value, dict) and value:
            return [type(value)(items) for items in zip(*map(divided, value.items()))]
        return [value for _ in target_gpus]

    return divided(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: Kwargs | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional and keyword arguments for each device, as many of the one as of the other."""
    first = scatter(inputs, target_gpus, dim) if inputs else []
    second = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(first), len(second))
    first += [() for _ in range(count - len(first))]
    second += [{} for _ in range(count - len(second))]
    return tuple(first), tuple(second)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Results of several devices as one, on one device: tensors side by side along `dim`."""

    def joined(parts: Sequence[Any]) -> Any:
        first = parts[0]
        if isinstance(first, Tensor):
            if dim == 0 and not first.ndim:
                warned.at_call(
                    "Was asked to gather along dimension 0, but all input tensors were scalars; "
                    "will instead unsqueeze and return a vector."
                )
            return Gather.apply(target_device, dim, *parts)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(part) != len(first) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, joined([part[key] for part in parts])) for key in first)
        if is_namedtuple(first):
            return type(first)._make(map(joined, zip(*parts)))
        return type(first)(map(joined, zip(*parts)))

    return joined(outputs)
