"""The shapes and types of a graph's results, by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

from toytorch import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    dtype,
    memory_format,
)
from toytorch.fx.interpreter import Interpreter
from toytorch.fx.node import Argument, Node
from toytorch.utils._pytree import tree_map

FORMATS = (contiguous_format, channels_last, channels_last_3d)


class TensorMetadata(NamedTuple):
    """What a tensor is like, without its elements."""

    shape: tuple[int, ...]
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor) -> TensorMetadata:
    """What is kept of a result."""
    ranks = {channels_last: 4, channels_last_3d: 5}
    lies = next(
        (
            f
            for f in FORMATS
            if ranks.get(f, result.ndim) == result.ndim and result.is_contiguous(memory_format=f)
        ),
        None,
    )
    known = result.shape, result.dtype, result.requires_grad, result.stride()
    return TensorMetadata(*known, lies, False, {})


class ShapeProp(Interpreter):
    """Notes at each node, as `meta["tensor_meta"]`, the shape and type of its result.

    >>> module = torch.fx.symbolic_trace(lambda x: x.sum(0))
    >>> _ = ShapeProp(module).propagate(torch.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in module.graph.nodes]
    [(2, 3), (3,), (3,)]
    """

    def run_node(self, n: Node) -> Any:
        """The node's result, of which the facts are noted."""
        result = super().run_node(n)
        tensors = list[Tensor]()

        def facts(value: object) -> object:
            if not isinstance(value, Tensor):
                return value
            tensors.append(value)
            return _extract_tensor_metadata(value)

        noted = tree_map(facts, result)
        if tensors:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Argument) -> Any:
        """Runs the graph on these inputs."""
        return super().run(*args)
