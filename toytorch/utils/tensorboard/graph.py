"""A model as TensorBoard's graph: the nodes that a backward pass would visit, seen forwards.

The model runs once. Who called whom is known from hooks: a node belongs to the innermost module
during whose call it was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toytorch.autograd.engine import by_sequence, reachable
from toytorch.autograd.modes import enable_grad
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Sizes
from toytorch.facts.node import Node, as_function, node_of, sequence
from toytorch.facts.pytree import tree_leaves
from toytorch.utils.tensorboard.protos import proto

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


class Scopes:
    """Which node numbers were given out during the call of which module."""

    def __init__(self, model: Module) -> None:
        self.calls: list[tuple[int, int, str]] = []  # first and last number, name of the scope
        self._open: list[int] = []
        self._handles = []
        for path, module in model.named_modules():
            scope = scope_of(model, path)
            self._handles += [
                module.register_forward_pre_hook(self._begin),
                module.register_forward_hook(self._end(scope), always_call=True),
            ]

    def _begin(self, module: Module, args: tuple[Tensor, ...]) -> None:
        self._open.append(next(sequence))

    def _end(self, scope: str) -> Any:
        def hook(module: Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            self.calls.append((self._open.pop(), next(sequence), scope))

        return hook

    def of(self, node: Node) -> str:
        """The scope of a node: of all calls around it the one that began last."""
        around = [call for call in self.calls if call[0] < node.seq < call[1]]
        return max(around)[2] if around else ""

    def remove(self) -> None:
        """Takes the hooks away."""
        for handle in self._handles:
            handle.remove()


def scope_of(model: Module, path: str) -> str:
    """PyTorch's name of a module in the graph: Net/Linear[fc1].

    >>> from toytorch import nn
    >>> scope_of(nn.Sequential(nn.Linear(1, 1)), "0")
    'Sequential/Linear[0]'
    """
    parts, module = [type(model).__name__], model
    for name in path.split(".") if path else ():
        module = getattr(module, name)
        parts.append(f"{type(module).__name__}[{name}]")
    return "/".join(parts)


def graph_of(model: Module, inputs: object, verbose: bool = False) -> Any:
    """The GraphDef of model(*inputs), in evaluation mode; gradients are not touched."""
    given = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    names: dict[int, str] = {}
    seen = []
    for number, value in enumerate(given):
        if isinstance(value, Tensor) and value.is_floating_point():
            value = value.detach().requires_grad_()
            names[id(value)] = f"input/input.{number}" if number else "input/input"
        seen.append(value)
    for path, parameter in model.named_parameters():
        module, _, name = path.rpartition(".")
        names[id(parameter)] = f"{scope_of(model, module)}/{name}"
    training, scopes = model.training, Scopes(model)
    model.eval()
    try:
        with enable_grad():
            outputs = [t for t in tree_leaves(model(*seen)) if isinstance(t, Tensor)]
    finally:
        scopes.remove()
        model.train(training)
    graph = definition(outputs, names, scopes)
    if verbose:
        print(graph)
    return graph


def definition(outputs: list[Tensor], names: dict[int, str], scopes: Scopes) -> Any:
    """The messages of leaves, nodes and outputs, each after those it reads from."""
    messages: dict[int, Any] = {}
    roots = [node_of(t._grad_edge) for t in outputs if t._grad_edge is not None]
    counts: dict[str, int] = {}
    for node in reversed(by_sequence(reachable(roots))):
        sources = []
        for edge in node.edges:
            source = node_of(edge)
            if source is None:
                continue
            if not source.is_node and id(source) not in messages:
                name = names.get(id(source), f"constant.{len(messages)}")
                kind = "IO Node" if name.startswith("input") else "prim::Param"
                messages[id(source)] = message(name, kind, [], source.shape)
            sources.append(messages[id(source)].name)
        kind = node.name().removesuffix("Backward0").removesuffix("Backward1")
        name = "/".join(part for part in (scopes.of(node), kind) if part)
        counts[name] = counts.get(name, -1) + 1
        if counts[name]:
            name += f".{counts[name]}"
        messages[id(node)] = message(name, f"aten::{kind.lower()}", sources, node.result_shapes[0])
    results = [
        message(
            f"output/output.{i + 1}",
            "IO Node",
            [messages[id(as_function(t._grad_edge)[0])].name],
            t.shape,
        )
        for i, t in enumerate(outputs)
        if t._grad_edge is not None
    ]
    return proto("graph").GraphDef(
        node=[*messages.values(), *results], versions=proto("versions").VersionDef(producer=22)
    )


def message(name: str, kind: str, sources: list[str], shape: Sizes) -> Any:
    """A node of TensorBoard's graph."""
    sizes, attribute = proto("shape").TensorShapeProto, proto("attribute").AttrValue
    shapes = attribute.ListValue(shape=[sizes(dim=[sizes.Dim(size=n) for n in shape])])
    return proto("node").NodeDef(
        name=name, op=kind, input=sources, attr={"_output_shapes": attribute(list=shapes)}
    )
