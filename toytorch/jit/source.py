"""A graph as Python source, in the style of PyTorch's `.code`.

What is written here can be read again (`torch.jit.CompilationUnit`, `ScriptModule.define`) and
gives the same graph: one statement for each node, the names of ops as in the graph, and three words
that are no Python: `annotate(T, x)`, `unchecked_cast(T, x)`, `uninitialized(T)`. `ops.aten.select`
is the record `select` where `torch.select` is another function.
"""

from __future__ import annotations

import keyword
import math
import sys
from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.schema import REQUIRED
from toytorch.jit import types
from toytorch.jit.builtins import BUILTINS, Builtin
from toytorch.jit.ir import Block, Graph, Node, Value, uses
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import joined

CONVERSIONS = {"Int": "int", "Float": "float", "Bool": "bool", "Complex": "complex", "str": "str"}
NAMES = (
    "torch ops print int float bool str complex range getattr isinstance annotate unchecked_cast "
    "uninitialized List Dict Tuple Optional Any Tensor inf nan math object number"
)
RESERVED = frozenset((*keyword.kwlist, *NAMES.split()))
INDEXED = ("aten::__getitem__.Tensor", "aten::__setitem__.Tensor")


def source_of(graph: Graph) -> str:
    """The source of a graph; functions it calls stand before it.

    >>> @torch.jit.script
    ... def f(x, n: int):
    ...     return (x + n).sum()
    >>> print(f.code)
    def f(x: Tensor,
        n: int) -> Tensor:
      _0 = torch.add(x, n)
      _1 = torch.sum(_0)
      return _1
    """
    writer = Writer()
    text = writer.function(graph, graph.name)
    return "\n".join([*writer.called.values(), text])


class Writer:
    """Writes one graph, and the functions it calls."""

    def __init__(self, called: dict[str, str] | None = None) -> None:
        self.called = {} if called is None else called  # texts of functions, by name
        self.callees: dict[int, str] = {}
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set(RESERVED)
        self.count = 0
        self.constants: list[Tensor] = []
        self.inlined: set[Value] = set()  # indices, which are written where they are used

    # -- names and values --------------------------------------------------------------------------

    def name(self, value: Value) -> str:
        """The name of a value; it gets one when it is first asked for."""
        if value not in self.names:
            self.names[value] = self.fresh(value.name)
        return self.names[value]

    def fresh(self, wanted: str) -> str:
        """A name that is not taken."""
        base = "".join(c if c.isalnum() else "_" for c in wanted)
        while not base or base[0].isdigit() or base in self.taken:
            base, self.count = f"_{self.count}", self.count + 1
        self.taken.add(base)
        return base

    def text(self, value: Value) -> str:
        """A value as it is written where it is used: its name, or the constant itself."""
        node = value.node
        if value.is_constant:
            return self.literal(value.constant)
        if node is not None and node.kind == "prim::Uninitialized":
            return f"uninitialized({spelled(value.type)})"
        return self.name(value)

    def texts(self, values: list[Value]) -> str:
        """Several values between commas."""
        return ", ".join(map(self.text, values))

    def literal(self, value: Any) -> str:
        """A constant."""
        if isinstance(value, Tensor):
            self.constants.append(value)
            return f"CONSTANTS.c{len(self.constants) - 1}"
        if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        if value is Ellipsis:
            return "..."
        if isinstance(value, complex):
            return f"{value.imag!r}j" if value.real == 0 else repr(value)
        if type(value).__name__ == "device":
            return f'torch.device("{value}")'
        return repr(value)

    # -- functions and blocks ---------------------------------------------------------------------

    def function(self, graph: Graph, name: str) -> str:
        """A whole function."""
        self.find_indices(graph)
        inputs = list(graph.inputs)
        params = []
        for v in inputs:
            kind = v.type.__class__ is types.Class
            params.append(self.name(v) if kind else f"{self.name(v)}: {spelled(v.type)}")
        lines = self.block(graph, "  ")
        outputs = graph.outputs
        if len(outputs) == 1:
            result, value = spelled(outputs[0].type), self.text(outputs[0])
        else:
            result = f"Tuple[{', '.join(spelled(v.type) for v in outputs)}]"
            value = f"({self.texts(outputs)})"
        head = f"def {name}({(',' + chr(10) + '    ').join(params)}) -> {result}:"
        return "\n".join([head, *lines, f"  return {value}"]) + "\n"

    def find_indices(self, graph: Graph) -> None:
        """Indices of tensors that are used as such and nowhere else."""
        for value, places in uses(graph).items():
            node = value.node
            if node is not None and (
                node.kind == "prim::slice"
                or (
                    node.kind == "prim::TupleConstruct"
                    and all(n is not None and n.kind in INDEXED and i == 1 for n, i in places)
                )
            ):
                self.inlined.add(value)

    def block(self, block: Block, indent: str) -> list[str]:
        """The statements of a block."""
        lines: list[str] = []
        for node in block.nodes:
            found = self.node(node, indent)
            around = ["torch.no_grad()"] if node.attributes.get("no_grad") else []
            around += [
                f"torch.autocast({where!r}, torch.{kind}, {enabled})"
                for where, kind, enabled in node.attributes.get("autocast", ())
            ]
            if around and found:
                lines += [f"{indent}with {', '.join(around)}:", *("  " + line for line in found)]
            else:
                lines += found
        return lines

    def node(self, node: Node, indent: str) -> list[str]:
        """The statements of one node."""
        if node.kind in ("prim::Constant", "prim::Uninitialized"):
            return []
        if node.kind == "prim::If":
            return self.branches(node, indent)
        if node.kind == "prim::Loop":
            return self.loop(node, indent)
        if node.outputs and all(v in self.inlined for v in node.outputs):
            return []
        if node.kind == "prim::SetAttr":
            owner, value = map(self.text, node.inputs)
            return [f"{indent}{owner}.{node.attributes['name']} = {value}"]
        if node.kind == "prim::RaiseException":
            kind = node.attributes.get("name", "RuntimeError")
            return [f"{indent}raise {kind}({self.texts(node.inputs)})"]
        if node.kind in ("aten::_set_item.t", "aten::_set_item.Dict"):
            owner, place, value = map(self.text, node.inputs)
            return [f"{indent}{owner}[{place}] = {value}"]
        if node.kind == "aten::__setitem__.Tensor":
            owner, _, value = map(self.text, node.inputs)
            return [f"{indent}{owner}[{self.index(node.inputs[1])}] = {value}"]
        right = self.expression(node)
        left = ", ".join(map(self.name, node.outputs))
        if node.kind in ("prim::TupleUnpack", "prim::ListUnpack") and len(node.outputs) == 1:
            left += ","
        return [f"{indent}{left} = {right}" if left else indent + right]

    def assignment(self, names: list[str], values: list[Value], indent: str) -> list[str]:
        """All at once, so that values may change places."""
        pairs = [(n, self.text(v)) for n, v in zip(names, values)]
        if not pairs:
            return []
        return [f"{indent}{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}"]

    def branches(self, node: Node, indent: str) -> list[str]:
        """if and else."""
        names = [self.name(v) for v in node.outputs]
        lines = []
        for word, block in zip((f"if {self.text(node.inputs[0])}:", "else:"), node.blocks):
            inner = self.block(block, indent + "  ")
            inner += self.assignment(names, block.outputs, indent + "  ")
            lines += [indent + word, *(inner or [f"{indent}  pass"])]
        return lines

    def loop(self, node: Node, indent: str) -> list[str]:
        """for over a range, or while."""
        body, deeper = node.blocks[0], indent + "  "
        carried = [self.name(v) for v in node.outputs]
        self.names.update(zip(body.inputs[1:], carried))
        counts = always(node.inputs[1]) and always(body.outputs[0])
        if counts:
            lines = self.assignment(carried, node.inputs[2:], indent)
            head = f"for {self.name(body.inputs[0])} in range({self.text(node.inputs[0])}):"
            inner = self.block(body, deeper)
            inner += self.assignment(carried, body.outputs[1:], deeper)
        else:
            test = self.fresh("")
            lines = self.assignment([test, *carried], node.inputs[1:], indent)
            head = f"while {test}:"
            inner = self.block(body, deeper)
            inner += self.assignment([test, *carried], body.outputs, deeper)
        return [*lines, indent + head, *(inner or [deeper + "pass"])]

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, node: Node) -> str:
        """The right-hand side of a node's statement."""
        if node.kind.startswith("aten::"):
            return self.operation(node)
        write = getattr(self, "on_" + node.kind[6:], None)
        if write is not None:
            return str(write(node, self.texts(node.inputs)))
        if node.kind.startswith("prim::") and len(node.inputs) == 1 and len(node.outputs) == 1:
            return f"{self.text(node.inputs[0])}.{node.kind[6:]}"  # prim::dtype
        raise RuntimeError(f"{node.kind} cannot be written as source")

    def on_ListConstruct(self, node: Node, inputs: str) -> str:
        kind = node.output.type
        assert isinstance(kind, types.List)
        plain = node.inputs and joined([v.type for v in node.inputs]) == kind.element
        return f"[{inputs}]" if plain else f"annotate({spelled(kind)}, [{inputs}])"

    def on_TupleConstruct(self, node: Node, inputs: str) -> str:
        named = node.attributes.get("_class")
        if named is not None:
            return f"{named.__name__}({inputs})"
        return f"({inputs}{',' * (len(node.inputs) == 1)})"

    def on_DictConstruct(self, node: Node, inputs: str) -> str:
        keys, values = node.inputs[::2], node.inputs[1::2]
        body = ", ".join(f"{self.text(k)}: {self.text(v)}" for k, v in zip(keys, values))
        kind = node.output.type
        plain = (
            keys
            and isinstance(kind, types.Dict)
            and (joined([v.type for v in values]) == kind.value)
        )
        return f"{{{body}}}" if plain else f"annotate({spelled(kind)}, {{{body}}})"

    def on_TupleUnpack(self, node: Node, inputs: str) -> str:
        return inputs

    on_ListUnpack = on_TupleUnpack

    def on_TupleIndex(self, node: Node, inputs: str) -> str:
        return f"{inputs}[{node.attributes['index']}]"

    def on_GetAttr(self, node: Node, inputs: str) -> str:
        name = node.attributes["name"]
        return f"{inputs}.{name}" if name.isidentifier() else f'getattr({inputs}, "{name}")'

    def on_CreateObject(self, node: Node, inputs: str) -> str:
        name = node.attributes["name"]
        return f"{name}.__new__({name})"

    def on_Print(self, node: Node, inputs: str) -> str:
        return f"print({inputs})"

    def on_unchecked_cast(self, node: Node, inputs: str) -> str:
        return f"unchecked_cast({spelled(node.output.type)}, {inputs})"

    def on_unchecked_unwrap_optional(self, node: Node, inputs: str) -> str:
        return f"torch.jit._unwrap_optional({inputs})"

    def on_isinstance(self, node: Node, inputs: str) -> str:
        kinds = ", ".join(spelled(t) for t in node.attributes["_types"])
        return f"isinstance({inputs}, ({kinds},))"

    def on_CallFunction(self, node: Node, inputs: str) -> str:
        graph = node.attributes.get("Subgraph")
        if graph is None:
            return f"{node.attributes['name']}({self.with_names(node, node.inputs)})"
        name = self.callees.get(id(graph))
        if name is None:
            inner = Writer(self.called)
            inner.callees = self.callees
            name = graph.name if graph.name.isidentifier() else "_function"
            while name in self.called:
                name += "_"
            name = self.callees[id(graph)] = name
            self.taken.add(name)
            text = inner.function(graph, name)
            self.called[name] = text
        return f"{name}({inputs})"

    def on_CallMethod(self, node: Node, inputs: str) -> str:
        owner, name = self.text(node.inputs[0]), node.attributes["name"]
        args = self.with_names(node, node.inputs[1:])
        return f"{owner}({args})" if name == "__call__" else f"{owner}.{name}({args})"

    def with_names(self, node: Node, values: list[Value]) -> str:
        """Arguments, the last of them by name."""
        names = node.attributes.get("_names", ())
        split = len(values) - len(names)
        parts = [self.text(v) for v in values[:split]]
        return ", ".join(parts + [f"{n}={self.text(v)}" for n, v in zip(names, values[split:])])

    # -- operations -------------------------------------------------------------------------------

    def operation(self, node: Node) -> str:
        """An `aten::` node."""
        base = node.kind[6:].partition(".")[0]
        if node.kind == "aten::__getitem__.Tensor":
            return f"{self.text(node.inputs[0])}[{self.index(node.inputs[1])}]"
        if isinstance(node.op, Builtin) or BUILTINS.get(node.kind[6:]) is node.op:
            if base == "__getitem__":
                return f"{self.text(node.inputs[0])}[{self.text(node.inputs[1])}]"
            word = CONVERSIONS.get(base) or f"torch.{base}"
            return f"{word}({self.texts(node.inputs)})"
        if isinstance(node.op, Op):
            return self.record(node, node.op)
        return self.composed(node, base)

    def record(self, node: Node, op: Op) -> str:
        """A record: what has its default is left out."""
        args, skipped = [], False
        for a, v in zip(op.schema.args, node.inputs):
            constant = v.constant if v.is_constant else REQUIRED
            if (
                a.default is not REQUIRED
                and constant.__class__ is a.default.__class__
                and (constant == a.default)
            ):
                skipped = True
            else:
                named = skipped or a.keyword_only
                args.append(f"{a.name}={self.text(v)}" if named else self.text(v))
        if node.writes:
            return f"{args[0]}.{op.name}_({', '.join(args[1:])})"
        torch = sys.modules["toytorch"]
        plain = op.name.isidentifier() and (
            getattr(torch, op.name, None) is op.function
            or (not hasattr(torch, op.name) and getattr(Tensor, op.name, None) is op.function)
        )
        name = f"torch.{op.name}" if plain else f"ops.aten.{op.name.replace('.', '__')}"
        return f"{name}({', '.join(args)})"

    def composed(self, node: Node, base: str) -> str:
        """A function composed of records, under the name by which it is found again."""
        for path in (base, base.replace("_", ".", 1), f"nn.functional.{base}"):
            if find(path) is node.op:
                return f"torch.{path}({self.with_names(node, node.inputs)})"
        if getattr(Tensor, base, None) is node.op:
            rest = self.with_names(node, node.inputs[1:])
            return f"{self.text(node.inputs[0])}.{base}({rest})"
        name = getattr(node.op, "__name__", base)
        for place in ("", "nn.functional."):
            if find(place + name) is node.op:
                return f"torch.{place}{name}({self.with_names(node, node.inputs)})"
        return f"ops.python.{name}({self.with_names(node, node.inputs)})"

    def index(self, value: Value) -> str:
        """What stands between the brackets of an index."""
        node = value.node
        if value not in self.inlined or node is None:
            return self.text(value)
        if node.kind == "prim::slice":
            low, high, step = (
                "" if text == "None" else text for text in map(self.text, node.inputs)
            )
            return f"{low}:{high}" + (f":{step}" if step else "")
        inner = ", ".join(map(self.index, node.inputs))
        return inner + "," if len(node.inputs) == 1 else inner


def always(value: Value) -> bool:
    """Whether a value is the constant True."""
    return value.node is not None and value.node.attributes.get("value") is True


def find(path: str) -> Any:
    """The function that `torch.<path>` names, or None."""
    found: Any = sys.modules["toytorch"]
    for part in path.split("."):
        found = getattr(found, part, None)
    return found
