"""From a straight-line graph to one Python function over arrays.

    def forward(x, y):
        v2 = multiply(x, y)
        v3 = tanh(v2, out=v2)
        return v3,

Shapes, types and what aliases what are known, so nothing is asked when it runs: no dispatch, no
promotion, no tensors. A value is dropped after its last use, and a result may take the memory of an
operand that nobody needs any more (`memory.reusable`). Ops that need the tensors' own rules
(writes, half-precision types) are called through the dispatcher.
"""

from __future__ import annotations

import keyword
from typing import Any

import numpy as np

from toytorch.core import dispatch, write
from toytorch.core.compute import times_unit
from toytorch.core.memory_order import with_layout
from toytorch.core.node_class import generate
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import Fn
from toytorch.facts.pytree import tree_leaves
from toytorch.facts.size import contiguous_strides
from toytorch.jit import types
from toytorch.jit.codegen_types import numpy_type, work_type
from toytorch.jit.fuser import kernels
from toytorch.jit.ir import Graph, Node, Value
from toytorch.jit.passes import memory

HALF = (dtypes.float16, dtypes.bfloat16)


class Writer:
    """Writes the function of one graph over an array module; `names` is what its source refers to."""

    def __init__(self, graph: Graph, xp: Any = np) -> None:
        self.xp = xp
        self.name, self.outputs = graph.name, graph.outputs
        inputs, outputs = graph.inputs, graph.outputs
        self.inputs = inputs = [v for v in inputs if isinstance(v.type, types.Tensor)]
        self.nodes = [n for n in graph.nodes if not n.is_constant]
        self.names: dict[str, Any] = {
            "__name__": "toytorch.jit", "asarray": np.asarray, "ndarray": np.ndarray,
            "empty": xp.empty, "call": dispatch.call, "inplace": write.inplace, "wrap": wrap,
        }  # fmt: skip
        self.local: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []
        self.reuse = memory.reusable(inputs, self.nodes, outputs)
        self.last = memory.last_uses(inputs, self.nodes, outputs)

    def function(self) -> tuple[Fn, str]:
        """The compiled function and its source."""
        params = ", ".join(self.place(v) for v in self.inputs)
        for i, node in enumerate(self.nodes):
            self.node(node)
            gone = [self.local[v] for v in self.last.get(i, ()) if v in self.local]
            if gone:
                self.lines.append(f"del {', '.join(gone)}")
        results = "".join(f"{self.use(v)}, " for v in self.outputs).rstrip()
        self.lines.append(f"return ({results})" if results else "return ()")
        body = "\n".join("    " + line for line in self.lines)
        source = f"def {self.name}({params}):\n{body}\n"
        generate(f"plan {self.name}", source, self.names)
        return self.names[self.name], source

    # -- names -------------------------------------------------------------------------------------

    def place(self, v: Value) -> str:
        """The variable of a value."""
        found = self.local.get(v)
        if found is None:
            found = base = identifier("" if v.name[0].isalpha() else "v", v)
            i = 0
            while found in self.taken or found in self.names or keyword.iskeyword(found):
                i += 1
                found = f"{base}_{i}"
            self.local[v] = found
            self.taken.add(found)
        return found

    def given(self, thing: Any, hint: str) -> str:
        """A name for something the source refers to."""
        name, i = hint, 0
        while name in self.taken or (name in self.names and self.names[name] is not thing):
            i += 1
            name = f"{hint}_{i}"
        self.names[name] = thing
        return name

    def use(self, v: Value) -> str:
        """How a value is written where it is used."""
        if not v.is_constant:
            return self.place(v)
        value = v.constant
        if isinstance(value, Tensor):
            array = value._array
            return self.given(
                array if self.xp is np else self.xp.asarray(array), identifier("c", v)
            )
        if value is None or value.__class__ in (int, bool, str):
            return repr(value)
        if value.__class__ is tuple and all(i.__class__ is int for i in value):
            return repr(value)
        return self.given(value, identifier("c", v))

    # -- nodes -------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """The lines of one node."""
        if node.kind == "prim::FusionGroup":
            self.lines += kernels.lines(node, self)
        elif node.kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            parts = "".join(self.use(v) + ", " for v in node.inputs).rstrip()
            made = f"[{parts}]" if node.kind == "prim::ListConstruct" else f"({parts})"
            self.lines.append(f"{self.place(node.output)} = {made}")
        elif node.kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            targets = "".join(self.place(v) + ", " for v in node.outputs)
            self.lines.append(f"{targets.rstrip()} = {self.use(node.inputs[0])}")
        elif node.record is None:
            self.created(node)
        elif node.writes or needs_tensors(node):
            self.through_dispatch(node)
        elif node.record.kind == "pointwise":
            self.pointwise(node, node.record)
        else:
            self.kernel(node, node.record)

    def created(self, node: Node) -> None:
        """A new tensor, from a factory."""
        names = node.attributes.get("_names", ())
        split = len(node.inputs) - len(names)
        args = [self.tensor(v) for v in node.inputs[:split]]
        args += [f"{n}={self.tensor(v)}" for n, v in zip(names, node.inputs[split:])]
        factory = self.given(node.op, getattr(node.op, "__name__", "create"))
        call = f"{factory}({', '.join(args)})"
        if len(node.outputs) == 1:
            self.lines.append(f"{self.place(node.output)} = {call}._array")
        else:
            targets = ", ".join(self.place(v) for v in node.outputs) or "()"
            leaves = self.given(tree_leaves, "tree_leaves")
            self.lines.append(f"{targets} = (t._array for t in {leaves}({call}))")

    def through_dispatch(self, node: Node) -> None:
        """The op on tensors made for it."""
        op: Any = node.record
        args = "".join(self.tensor(v) + ", " for v in node.inputs)
        run = "inplace" if node.writes else "call"
        made = f"{run}({self.given(op, 'op_' + plain(op.name))}, ({args.rstrip()}))"
        if not op.many:
            self.lines.append(f"{self.place(node.output)} = {made}._array")
        elif len(node.outputs) == 1:
            self.lines.append(f"{self.place(node.output)} = [t._array for t in {made}]")
        else:
            targets = ", ".join(self.place(v) for v in node.outputs)
            self.lines.append(f"{targets} = (t._array for t in {made})")

    def tensor(self, v: Value) -> str:
        """A value as the tensor, or list of tensors, that the dispatcher wants."""
        if isinstance(v.type, types.Tensor):
            return f"wrap({self.use(v)})"
        if holds_tensors(v.type):
            return f"{self.given(as_tensors, 'as_tensors')}({self.use(v)})"
        return self.use(v)

    def pointwise(self, node: Node, op: Op) -> None:
        """One pass of NumPy over operands brought to their common type."""
        work = work_type(node)
        operands = []
        for i, v in enumerate(node.inputs):
            text = self.use(v)
            if i in op.tensor_at and isinstance(v.type, types.Tensor):
                if work is not None and numpy_type(v) != work:
                    text = f"{text}.astype({self.given(work, 'to_' + work.name)})"
            elif i in op.tensor_at and v.node is not None:
                value = v.node.attributes["value"]
                if value is not None:
                    number = np.asarray(value).astype(
                        numpy_type(node.output) if work is None else work
                    )
                    # A device takes it along; a power of complex numbers tells it from a tensor.
                    number = number if self.xp is np and number.dtype.kind != "c" else number[()]
                    text = self.given(number, identifier("c", v))
            operands.append(text)
        out, result = node.output, ""
        unit_last = len(operands) == 3 and node.inputs[2].constant == 1
        simple = op.plain and unit_last
        kind: Any = node.output.type
        if unit_last and op.spreads and kind.dtype is not None and kind.dtype.is_complex:
            at = op.schema.index[op.spreads.lstrip("-")]
            unit = self.given(times_unit, "times_unit")
            to = self.given(kind.dtype.numpy, kind.dtype.name)
            operands[at] = f"{unit}({operands[at]}, {to}, {op.spreads[0] == '-'})"
        if simple:
            operands.pop()
        kernel: Any = getattr(self.xp, op.plain) if simple else self.kernel_of(op)
        if (isinstance(op.kernel, str) or simple) and isinstance(kernel, np.ufunc):
            target = self.reuse.get(out)
            result = f", out={self.place(target)}" if target is not None else ""
        name = self.given(kernel, plain(op.plain if simple else op.name))
        self.lines.append(f"{self.place(out)} = {name}({', '.join(operands)}{result})")
        if not result:
            self.as_array(out)
            self.as_laid(node)

    def kernel(self, node: Node, op: Op) -> None:
        """The record's kernel on arrays."""
        name = self.given(self.kernel_of(op), plain(op.name))
        args = ", ".join(map(self.use, node.inputs))
        targets = ", ".join(self.place(v) for v in node.outputs)
        comma = (
            "," if len(node.outputs) == 1 and op.many and op.schema.returns[0] != "Tensor[]" else ""
        )
        self.lines.append(f"{targets}{comma} = {name}({args})")
        for v in node.outputs:
            self.as_array(v)

    def kernel_of(self, op: Op) -> Any:
        """The record's kernel over the array module."""
        return op.on_cpu if self.xp is np else op.kernel_on(self.xp)

    def as_laid(self, node: Node) -> None:
        """NumPy has an order of its own where operands are not in rows."""
        t: Any = node.output.type
        given = [v.type for v in node.inputs if isinstance(v.type, types.Tensor)]
        if self.xp is not np or t.strides is None or t.shape is None or all(map(in_rows, given)):
            return
        steps = tuple(s * t.dtype.numpy.itemsize for s in t.strides)
        laid = self.given(with_layout, "with_layout")
        name = self.place(node.output)
        self.lines.append(f"if {name}.strides != {steps!r}: {name} = {laid}({name}, {steps!r})")

    def as_array(self, v: Value) -> None:
        """NumPy gives a scalar where an array of no dimensions is wanted."""
        if self.xp is np and isinstance(v.type, types.Tensor) and v.type.shape == ():
            name = self.place(v)
            self.lines.append(f"if {name}.__class__ is not ndarray: {name} = asarray({name})")


def in_rows(t: Any) -> bool:
    """Whether a tensor's type says that it lies in rows."""
    return t.strides is not None and t.strides == contiguous_strides(t.shape)


def identifier(prefix: str, v: Value) -> str:
    """The name of a value as Python's; a name may have come from a file."""
    name = prefix + v.name.replace(".", "_")
    return name if name.isascii() and name.isidentifier() else "v"


def plain(name: str) -> str:
    """An op's name as Python's."""
    name = name.replace(".", "_")
    taken = ("and", "or", "not", "del", "def", "empty", "call", "wrap")
    return name + "_" if name in taken else name


def needs_tensors(node: Node) -> bool:
    """Whether the dispatcher has rules here that a plain call of the kernel has not."""
    values = [v for v in (*node.inputs, *node.outputs) if isinstance(v.type, types.Tensor)]
    if any(
        v.type.dtype in HALF or v.type.dtype is None  # type: ignore[attr-defined]  # tensors
        for v in values
    ):
        return True
    record: Any = node.record
    return record.kind == "layout" or any(
        holds_tensors(v.type) and not a.is_tensor_list
        for v, a in zip(node.inputs, record.schema.args)
    )


def holds_tensors(t: types.Type) -> bool:
    """Whether a list or tuple has tensors in it."""
    if isinstance(t, (types.List, types.Optional)):
        return isinstance(t.element, types.Tensor) or holds_tensors(t.element)
    return isinstance(t, (types.Tuple, types.Union)) and any(
        isinstance(e, types.Tensor) or holds_tensors(e) for e in t.elements
    )


def as_tensors(item: object) -> Any:
    """Tensors in the place of arrays, in lists and tuples."""
    if item.__class__ in (list, tuple):
        return item.__class__(map(as_tensors, item))
    return wrap(item) if item.__class__ is np.ndarray else item
