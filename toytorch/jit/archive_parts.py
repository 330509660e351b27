"""What an archive is made of: tensors, values, graphs."""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import Sizes
from toytorch.facts.pytree import tree_flatten, tree_unflatten
from toytorch.facts.schema import REQUIRED
from toytorch.jit import types
from toytorch.jit.check import check
from toytorch.jit.function import ScriptFunction, TracedFunction
from toytorch.jit.ir import CALLS, UNPRINTABLE, Graph, Node
from toytorch.jit.reachable import found_at, of_kind, where_is
from toytorch.jit.read import read
from toytorch.jit.read_parts import Line, literal
from toytorch.jit.script.base import Compiled
from toytorch.jit.script.base import Parameter as Param
from toytorch.jit.script.public import CompiledFunction
from toytorch.jit.text import value_text
from toytorch.nn.parameter import Parameter

DTYPES = {d.name: d for d in vars(dtypes).values() if isinstance(d, dtypes.dtype)}
ERRORS = {
    n: e for n, e in vars(builtins).items() if isinstance(e, type) and issubclass(e, Exception)
}
DEPTH = 100  # of modules and values inside each other

# -- tensors ---------------------------------------------------------------------------------------


class Tensors:
    """The tensors of an archive, each once.

    A tensor whose memory is its own is stored row by row under its number. Any other says where in
    a memory it lies, which is stored under the number of the first tensor there.
    """

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.described: list[dict[str, Any]] = []
        self.memories: dict[tuple[int, int, str], int] = {}

    def number(self, tensor: Any) -> int:
        """Which tensor this is; a new one is added."""
        if id(tensor) not in self.numbers:
            array = tensor if isinstance(tensor, np.ndarray) else tensor.detach().to("cpu")._array
            if not isinstance(array, np.ndarray):
                raise RuntimeError("only dense tensors can be saved in an archive of the compiler")
            kind = array.dtype.name if isinstance(tensor, np.ndarray) else tensor.dtype.name
            number = self.numbers[id(tensor)] = len(self.held)
            lies = {} if isinstance(tensor, np.ndarray) else self.lies(tensor, number)
            self.held.append(tensor)
            self.described.append(
                {
                    "dtype": kind,
                    "shape": list(array.shape),
                    "kind": "array"
                    if isinstance(tensor, np.ndarray)
                    else "parameter"
                    if isinstance(tensor, Parameter)
                    else "tensor",
                    "requires_grad": bool(getattr(tensor, "requires_grad", False)),
                    **lies,
                }
            )
        return self.numbers[id(tensor)]

    def lies(self, tensor: Tensor, number: int) -> dict[str, Any]:
        """Where a tensor lies, unless it has a memory to itself and lies there row by row."""
        if tensor.device.type != "cpu" or tensor.numel() == 0:
            return {}
        flat = tensor._memory().flat()
        first = self.memories.setdefault((flat.ctypes.data, flat.nbytes, tensor.dtype.name), number)
        if first == number and flat.size == tensor.numel() and tensor.is_contiguous():
            return {}
        return {
            "memory": first,
            "offset": tensor.storage_offset(),
            "strides": list(tensor.stride()),
        }

    def bytes(self) -> Iterator[tuple[int, Any]]:
        """The memories by number, little end first."""
        for number, (tensor, about) in enumerate(zip(self.held, self.described)):
            if about.get("memory", number) != number:
                continue
            if "memory" in about:
                flat = tensor.detach()._memory().flat()
            else:
                own = isinstance(tensor, np.ndarray)
                array = tensor if own else tensor.detach().to("cpu")._array
                flat = np.ascontiguousarray(array).reshape(-1)
            yield number, (flat if sys.byteorder == "little" else flat.byteswap()).view(np.uint8)

    @classmethod
    def of(cls, described: Any, reader: Any, place: Any) -> Tensors:
        """The tensors of a file."""
        made = cls()
        memories: dict[int, Any] = {}
        for i, about in enumerate(described):
            shape = tuple(about["shape"])
            if not all(n.__class__ is int and n >= 0 for n in shape):
                raise ValueError(f"tensor {i} has the shape {shape}")
            kind = DTYPES[about["dtype"]]
            number = index(about.get("memory", i))
            if number not in memories:
                record = f"data/{number}"
                if "memory" not in about and (
                    reader.length(record) != math.prod(shape) * kind.itemsize
                ):
                    raise ValueError(
                        f"tensor {i} of shape {list(shape)} and type {kind} has "
                        f"{reader.length(record)} bytes"
                    )
                flat = reader.read(record).view(kind.numpy)
                memories[number] = flat if sys.byteorder == "little" else flat.byteswap()
            if "memory" in about:
                array = lying(memories[number].view(kind.numpy), shape, about)
            else:
                array = memories[number].reshape(shape)
            made.held.append(
                array if about["kind"] == "array" else revived(array, kind, about, place)
            )
        return made


def lying(flat: Any, shape: Sizes, about: dict[str, Any]) -> Any:
    """A view of a memory that does not reach beyond it."""
    offset, strides = index(about["offset"]), [index(s) for s in about["strides"]]
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
    if len(strides) != len(shape) or 0 in shape or last >= flat.size:
        raise ValueError(f"a tensor of shape {list(shape)} reaches beyond its memory")
    size = flat.itemsize
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, [s * size for s in strides])


def revived(array: Any, kind: Any, about: dict[str, Any], place: Any) -> Any:
    """A tensor or parameter over an array."""
    tensor = wrap(array, kind)
    if place is not None:
        tensor = tensor.to(place)
    wanted = bool(about["requires_grad"])
    if about["kind"] == "parameter":
        return Parameter(tensor, wanted)
    return tensor.requires_grad_() if wanted else tensor


class Values:
    """Plain values as JSON: numbers, text, tuples, lists, dictionaries, dtypes, tensors."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors

    def packed(self, value: Any) -> Any:
        """What JSON holds for a value."""
        if isinstance(value, (Tensor, np.ndarray)):
            return {"tensor": self.tensors.number(value)}
        if value is REQUIRED:
            return {"required": True}
        if value.__class__ in (list, tuple) or isinstance(value, tuple):
            kind = "list" if value.__class__ is list else "tuple"
            return {kind: [self.packed(v) for v in value]}
        if value.__class__ is dict:
            return {"dict": [[self.packed(k), self.packed(v)] for k, v in value.items()]}
        text = value_text(value)
        try:
            literal(text, Line(text))
        except ValueError:
            raise RuntimeError(
                f"a value of type {type(value).__name__} cannot be saved in an "
                "archive of the compiler"
            ) from None
        return {"value": text}

    def of(self, packed: Any, depth: int = 0) -> Any:
        """The value again."""
        if depth > DEPTH:
            raise ValueError("values stand too deep in each other")
        ((kind, content),) = packed.items()
        if kind == "value":
            return literal(content, Line(content))
        if kind == "tensor":
            return self.tensors.held[index(content)]
        if kind == "required":
            return REQUIRED
        if kind == "dict":
            return {self.of(k, depth + 1): self.of(v, depth + 1) for k, v in content}
        items = [self.of(v, depth + 1) for v in content]
        return {"list": list, "tuple": tuple}[kind](items)


def holds_tensor(value: object) -> bool:
    """Whether a constant is, or contains, a tensor, whose elements the text does not tell."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_tensor, value))
    if isinstance(value, dict):
        return any(map(holds_tensor, value.values()))
    return isinstance(value, (Tensor, np.ndarray))


def index(number: object) -> int:
    """A place in a list, never counted from its end."""
    if number.__class__ is not int or number < 0:
        raise ValueError(f"expected the number of a tensor, got {number!r}")
    return int(number)


# -- graphs ----------------------------------------------------------------------------------------


def nodes_in_text(graph: Graph) -> list[Node]:
    """All nodes in the order of the printed lines: groups follow the graph they stand in."""
    own = list(graph.walk())
    return own + [
        n
        for node in own
        if isinstance(node.attributes.get("Subgraph"), Graph)
        for n in nodes_in_text(node.attributes["Subgraph"])
    ]


def stored_graph(function: ScriptFunction, values: Values) -> tuple[str, dict[str, Any]]:
    """The text of a function's graph, and what the text does not tell."""
    hidden: dict[str, Any] = {}
    constants = []
    for i, node in enumerate(nodes_in_text(function.graph)):
        told = untold(node)
        if told:
            hidden[str(i)] = told
        constants += [
            values.packed(v)
            for k, v in sorted(node.attributes.items())
            if holds_tensor(v) and not k.startswith("_")
        ]
    name = UNPRINTABLE.sub("_", function.graph.name).replace(".", "_")
    about = {
        "name": name if name.isidentifier() else "forward",
        "hidden": hidden,
        "constants": constants,
        **called(function, values),
    }
    return str(function.graph), about


def untold(node: Node) -> dict[str, Any]:
    """What the printed text of a node does not tell; raises RuntimeError where Python runs it."""
    refuse(node)
    told: dict[str, Any] = {}
    if "_names" in node.attributes:
        told["_names"] = list(node.attributes["_names"])
    if "_types" in node.attributes:
        told["_types"] = list(map(str, node.attributes["_types"]))
    if "_class" in node.attributes:
        told["_class"] = node.attributes["_class"].__name__
        if told["_class"] not in ERRORS:
            raise RuntimeError(f"an archive holds no exceptions of the class {told['_class']}")
    if node.kind.startswith("aten::") and of_kind(node.kind) is not node.op:
        told["_op"] = where_is(node.op)
        if told["_op"] is None:
            raise outside(node)
    return told


def refuse(node: Node) -> None:
    """Refuses a node that Python runs, or that only a plan has."""
    attributes = node.attributes
    if "Subgraph" in attributes and node.kind not in CALLS:
        raise RuntimeError(
            f"{node.kind} is part of a plan; an archive holds graphs before they are optimised"
        )
    if node.kind == "prim::CreateObject" or (
        node.kind in CALLS and not isinstance(attributes.get("Subgraph"), Graph)
    ):
        raise outside(node)
    if node.kind == "prim::TupleConstruct" and "_class" in attributes:
        raise RuntimeError("a named tuple cannot be saved in an archive: its class is Python's")


def outside(node: Node) -> RuntimeError:
    """The error for a node that calls Python."""
    name, at = node.attributes.get("name") or node.kind, f" at {node.source}" if node.source else ""
    return RuntimeError(
        f"Could not export Python function call '{name}'{at}. An archive holds "
        "graphs of the framework's operations only"
    )


def called(function: ScriptFunction, values: Values) -> dict[str, Any]:
    """How a function is called, and what it gives."""
    if isinstance(function, TracedFunction):
        spec = function.spec
        if spec is None:
            shape = None
        else:
            shape = values.packed(tree_unflatten(list(range(spec.num_leaves)), spec))
        return {"traced": True, "result": shape}
    compiled = function.compiled  # type: ignore[attr-defined]  # the other kind
    return {
        "traced": False,
        "returns": str(compiled.returns),
        "params": [
            {
                "name": p.name,
                "type": str(p.type),
                "default": values.packed(p.default),
                "inferred": p.inferred,
                "keyword_only": p.keyword_only,
            }
            for p in compiled.params
        ],
    }


def methods_of(described: Any, reader: Any, values: Values) -> dict[str, ScriptFunction]:
    """The functions of an archive."""
    return {
        str(name): function_of(str(name), about, reader, values)
        for name, about in described.items()
    }


def function_of(name: str, about: Any, reader: Any, values: Values) -> ScriptFunction:
    """One function: its graph read, completed and checked."""
    text = reader.read(about["graph"]).tobytes().decode()
    if not about["name"].isidentifier():
        raise ValueError(f"a graph may not be called {about['name']!r}")
    graph = read(text, about["name"], [values.of(c) for c in about["constants"]])
    nodes = nodes_in_text(graph)
    for node in nodes:
        refuse(node)
        node.op = of_kind(node.kind)
    for i, kept in about["hidden"].items():
        complete(nodes[index(int(i))], kept)
    check(graph)
    if about["traced"]:
        result = about["result"]
        spec = None if result is None else tree_flatten(values.of(result))[1]
        return TracedFunction(name, graph, spec)
    params = [
        Param(
            str(p["name"]),
            type_of(p["type"]),
            values.of(p["default"]),
            bool(p["inferred"]),
            bool(p["keyword_only"]),
        )
        for p in about["params"]
    ]
    return CompiledFunction(Compiled(name, graph, params, type_of(about["returns"])))


def complete(node: Node, kept: Any) -> None:
    """Gives a node what its text does not tell."""
    for key, value in kept.items():
        if key == "_names":
            if not all(isinstance(n, str) and n.isidentifier() for n in value):
                raise ValueError(f"arguments have names, not {value!r}")
            node.attributes[key] = tuple(value)
        elif key == "_types":
            node.attributes[key] = tuple(map(type_of, value))
        elif key == "_class" and node.kind == "prim::RaiseException":
            node.attributes[key] = ERRORS[value]
        elif key == "_op" and node.kind.startswith("aten::"):
            node.op = found_at(*map(str, value))
            if node.op is None:
                raise ValueError(f"there is no operation {value!r}")
        else:
            raise ValueError(f"unknown attribute {key!r} of {node.kind}")


def type_of(text: object) -> types.Type:
    """A type from its text."""
    line = Line(str(text))
    found = line.type()
    if line.rest():
        raise line.wrong("expected the end of a type")
    return found
