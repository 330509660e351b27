"""The node class of an op, MulBackward0 and its kin: its `apply` is written from the record.

`apply` runs the derivatives on tensors; `apply_arrays`, where all derivatives are formulas, on bare
arrays.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.core.formulas import Derivative, in_one_launch
from toytorch.core.inplace import AsStridedBackward0
from toytorch.core.tensor import Tensor, new, wrap
from toytorch.facts import state
from toytorch.facts.dtype import bfloat16, float16, float32
from toytorch.facts.hints import Array, DType, Fn, Sizes
from toytorch.facts.node import BUILT_IN, SAVED_TWICE, Node, Output, check_version, unpacked
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.loops.runtime.jit import SMALLEST

if TYPE_CHECKING:
    from toytorch.core.op import Op

HALVES = (float16, bfloat16)

COEFFICIENTS = ("tensor", "tensors", "number")  # of kept values: what derivatives multiply by
HOLDERS = {"tensor", "tensors", "indices"}  # kept values that hold memory until a node frees it

WORDS = ("where", "logical_not")  # of conditions in formulas


def generate(name: str, source: str, namespace: dict[str, Any]) -> None:
    """Compiles source in a way that debuggers, tracebacks and `inspect` can show it."""
    filename = f"<toytorch {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace.setdefault("__name__", __name__)  # divisions by 0 are quiet in our modules alone
    exec(compile(source, filename, "exec"), namespace)  # the source is made from records only


def revive(value: Tensor | None, node: Node, index: int) -> Any:
    """A saved result as the user knows it: with its history, for derivatives of derivatives."""
    if not state.local.grad or value is None:
        return value
    tensor: Tensor = new(Tensor)
    tensor._array, tensor._dtype, tensor._storage = value._array, value._dtype, value._storage
    tensor._requires_grad = tensor._dtype.rank > 1  # places of a maximum have no history
    edge = Output(node, index) if node.many else node
    tensor._grad_edge = edge if tensor._requires_grad else None
    if value._tangents is not None:
        tensor._tangents = value._tangents
    if value._batches is not None:
        tensor._batches = value._batches
    if node.slices is not None:  # written through a view: its history leads through the base
        tensor._grad_edge = AsStridedBackward0.of_part(node.slices(), node.meta)
    return tensor


def repeated_dims(found: tuple[int, ...], shape: Sizes) -> tuple[int, ...]:
    """The dimensions along which a shape was broadcast to the one found."""
    lead = len(found) - len(shape)
    return (
        *range(lead),
        *[i + lead for i, n in enumerate(shape) if n == 1 and found[i + lead] != 1],
    )


def fit(grad: Tensor, shape: Sizes, dtype: DType) -> Tensor:
    """A gradient in the shape and type of its input: undoes broadcasting and promotion."""
    if grad._dtype.is_complex and not dtype.is_complex:
        grad = grad.real
    array_shape = grad._array.shape
    if array_shape != shape:
        lead = len(array_shape) - len(shape)
        dims = repeated_dims(array_shape, shape)
        if dims:
            grad = grad.sum(dims, True)
        if grad._array.shape != shape:
            grad = grad.reshape(shape) if lead >= 0 else grad.expand(shape)
    if grad._dtype is not dtype:
        grad = grad.to(dtype)
    return grad


def fit_array(grad: Array, shape: Sizes, dtype: DType) -> Tensor | Array:
    """`fit` of a bare array; few numbers are added up as the sum of a tensor would add them."""
    few = 0 < grad.size < SMALLEST and grad.dtype.char in "fd" and grad.dtype == dtype.numpy
    if few and 0 < len(shape) <= grad.ndim:
        dims = repeated_dims(grad.shape, shape)
        return np.add.reduce(grad, axis=dims, keepdims=True).reshape(shape)
    return fit(wrap(grad), shape, dtype)


def factors_of(names: Sequence[str]) -> set[str]:
    """What a derivative's parameters read of what is kept."""
    return set(names) | {name.partition("_")[0] for name in names}


def any_complex(*kept: Any) -> bool:
    """Whether there is a complex number or a tensor of some."""
    return any(
        k._dtype.is_complex
        if isinstance(k, Tensor)
        else any_complex(*k)
        if isinstance(k, (list, tuple))
        else isinstance(k, complex)
        for k in kept
    )


def transposed(op: Op, name: str) -> str:
    """What the check of a saved operand is told of it in addition."""
    return ", transposed=True" if name == op.transposed else ""


def make_node_class(op: Op) -> type[Node]:
    """MulBackward0 and its kin: a Node whose `apply` runs the record's derivatives."""
    source = apply_source(op)
    namespace: dict[str, Any] = {
        "SAVED_TWICE": SAVED_TWICE, "check_version": check_version, "revive": revive, "fit": fit,
        "fit_array": fit_array, "any_complex": any_complex, "OP": op.name, "unpacked": unpacked,
        "ndarray": np.ndarray, "asarray": np.asarray,
    }  # fmt: skip
    for name, d in op.derivatives.items():
        if op.rounds_once:
            d = in_one_launch(f"{op.name}_backward", rounded_once(d, op.rounds_once))
        namespace[f"d_{name}"] = d
    if op.derivatives and op.formulas.keys() == op.derivatives.keys():
        source += "\n\n" + arrays_source(op)
        for name, formula in op.formulas.items():
            words = formula.array_words()
            if formula.inline:
                namespace.update({w: words[w] for w in (*WORDS, *formula.formula.words)})
            else:
                namespace[f"arrays_{name}"] = formula.of_arrays()
    generate(f"{op.name}: {op.node_name}", source, namespace)

    def saved_items(node: Node) -> list[tuple[str, Any]]:
        if op.keeps and node.saved is None:
            raise RuntimeError(SAVED_TWICE)
        return list(zip(op.keeps, unpacked(node.saved or ())))

    kinds = kinds_of(op)
    tensors = [name for name, kind in kinds.items() if kind in ("tensor", "tensors")]
    return type(
        op.node_name,
        (Node,),
        {
            **{f"_saved_{spelled(op, name)}": reader(op, name) for name in op.keeps},
            **{
                f"_raw_saved_{spelled(op, name)}": raw_reader(op.keeps.index(name))
                for name in tensors
            },
            "__slots__": (),
            "op": op,
            "apply": namespace["apply"],
            "count": op.count,
            "many": op.many,
            "frees": not HOLDERS.isdisjoint(kinds.values()),
            "source": source,
            "apply_arrays": namespace.get("apply_arrays"),
            "bare": "apply_arrays" in namespace,
            "saved_items": saved_items,
            "__module__": BUILT_IN,
        },
    )


LAYERS = ("output", "values")  # first results of layers, whose results have no names in PyTorch


def spelled(op: Op, name: str) -> str:
    """What PyTorch calls a value that a node keeps."""
    names, number = op.schema.result_names, name.removeprefix("result")
    if number.isdigit() and number != name and names and (op.has_method or names[0] not in LAYERS):
        return names[int(number)]
    owner, _, trait = name.rpartition("_")
    return f"{owner}_sym_sizes" if trait == "shape" else op.spelled.get(name, name)


REDUCTIONS = ("none", "mean", "sum")  # in the order of their numbers


def in_numbers(op: Op, name: str) -> Fn | None:
    """How PyTorch keeps a value: sizes and the like as tuples, a reduction as a number."""
    kind = op.schema.args[op.schema.index[name]].type if name in op.schema.index else ""
    if kind.startswith("int["):
        return lambda v: v if v is None else tuple(v) if isinstance(v, (tuple, list)) else (v,)
    return (lambda v: REDUCTIONS.index(v)) if name == "reduction" else None


def reader(op: Op, name: str) -> property:
    """What a node gives of a value that it keeps."""
    place = op.keeps.index(name)
    what, index, _ = op.plan[place]

    def read(node: Node) -> Any:
        value, turned = node.saved_items()[place][1], in_numbers(op, name)
        if isinstance(value, Tensor) and node.versions[place] is not None:
            check_version(op.name, name, value, node.versions[place], node, True)
        if turned is not None:
            return turned(value)
        if value.__class__ is list:
            return tuple(value)
        return revive(value, node, max(index, 0)) if what == "result" else value

    return property(read)


def raw_reader(place: int) -> property:
    """What a node gives of the tensors that it keeps at a place, as `SavedTensor`s."""

    def read(node: Node) -> Any:
        from toytorch.facts.saved import saved_in  # seldom needed

        value = None if node.saved is None else node.saved[place]
        if isinstance(value, (list, tuple)):
            return tuple(saved_in(node, place, i) for i in range(len(value)))
        return saved_in(node, place)

    return property(read)


def apply_source(op: Op) -> str:
    """`apply`: the derivatives on tensors. It gives a gradient, or None, for each edge."""
    lines = [f"def apply(node, {'gs' if op.many else 'g'}):"]
    kinds = kinds_of(op)
    if op.keeps:
        lines += [
            "    saved = node.saved",
            "    if saved is None:",
            "        raise RuntimeError(SAVED_TWICE)",
            f"    {', '.join(op.keeps)}, = unpacked(saved) if node.packed else saved",
        ]
    for i, (name, (what, index, _)) in enumerate(zip(op.keeps, op.plan)):
        if kinds[name] == "tensor":
            lines += [
                f"    seen = node.versions[{i}]",
                "    if seen is not None and seen != (",
                f"            0 if {name}._storage is None else {name}._storage.version):",
                f"        check_version(OP, {name!r}, {name}, seen, node{transposed(op, name)})",
            ]
        if what == "result":
            lines += [f"    {name} = revive({name}, node, {max(index, 0)})"]
    # What a derivative may multiply by that may be complex, of all that it keeps: what moves or adds
    # up elements by real numbers is the same rule for complex gradients, and need not conjugate.
    conjugated = COEFFICIENTS if op.holomorphic and not op.many else ()
    factors = [name for name, kind in kinds.items() if kind in conjugated]
    lines += ["    edges = node.edges"]
    shared = any("work" in names for names in op.needs.values())
    if shared:
        lines += ["    work = {}"]
    outs = []
    for i, (_, name) in enumerate(op.tensor_names):
        needed = op.needs.get(name)
        own = [n for n in factors if shared or n in factors_of(needed or ())]
        listed = op.schema.args[op.tensor_at[i]].is_tensor_list
        if needed is None and not listed:
            outs.append("None")
            continue
        lines += gradient_lines(name, needed, own, i, listed)
        outs.append("*grads" if listed else f"g{i}")
    return "\n".join([*lines, f"    return ({', '.join(outs)},)"]) + "\n"


def gradient_lines(
    name: str, needed: tuple[str, ...] | None, factors: list[str], i: int, listed: bool
) -> list[str]:
    """The lines of `apply` for one operand.

    needed   what its derivative is given
    factors  the names of what it may multiply by that may be complex
    i        the place of its edge; of a list, of the first, to which the rest of them belong
    """
    turning = list[str]()
    if factors and needed is not None:
        needed = tuple(["h" if n == "g" else n for n in needed])
        turning = [
            f"conjugate = g._dtype.is_complex and any_complex({', '.join(factors)})",
            "h = g.conj() if conjugate else g",
        ]
    call = f"d_{name}({', '.join(needed or ())})"
    if listed:
        back = ["if conjugate:", "    grads = [x if x is None else x.conj() for x in grads]"]
        return [
            "    " + line
            for line in (
                *turning,
                f"grads = {call} if edges else ()",
                f"edges_list = edges[{i}:]",
                *(back if turning else ()),
                "grads = [None if e is None or x is None else "
                "(x if x._array.shape == e.meta[0] and x._dtype is e.meta[1] else "
                "fit(x, *e.meta)) for x, e in zip(grads, edges_list)]",
            )
        ]
    back = [f"    if conjugate and g{i}._dtype.is_complex:", f"        g{i} = g{i}.conj()"]
    return [
        f"    g{i} = None",
        f"    e = edges[{i}]",
        "    if e is not None:",
        *[
            "        " + line
            for line in (
                *turning,
                f"g{i} = {call}",
                f"if g{i} is not None:",
                *(back if turning else ()),
                "    shape, dtype = e.meta",
                f"    if g{i}._array.shape != shape or g{i}._dtype is not dtype:",
                f"        g{i} = fit(g{i}, shape, dtype)",
            )
        ],
    ]


def rounded_once(derivative: Fn, names: str) -> Fn:
    """A derivative that computes with half types in float32, and rounds its result."""

    @functools.wraps(derivative, updated=())
    def once(g: Tensor, *args: object) -> Any:
        if g.dtype not in HALVES or g.dtype.name not in names.split():
            return derivative(g, *args)
        wide = [a.to(float32) if isinstance(a, Tensor) and a.dtype in HALVES else a for a in args]
        made = derivative(g.to(float32), *wide)
        return made if made is None else made.to(g.dtype)

    return once


def arrays_source(op: Op) -> str:
    """`apply_arrays`: the derivatives on NumPy arrays, for a pass that nobody differentiates.

    It gives pairs of an edge and its gradient, for the edges where one is wanted.
    """
    lines = ["def apply_arrays(node, g):"]
    if op.keeps:
        kinds = kinds_of(op)
        versions = [f"seen{i}" if kinds[n] == "tensor" else "_" for i, n in enumerate(op.keeps)]
        lines += [
            "    saved = node.saved",
            "    if saved is None:",
            "        raise RuntimeError(SAVED_TWICE)",
            f"    {', '.join(op.keeps)}, = saved",
            f"    {', '.join(versions)}, = node.versions",
        ]
        for i, name in enumerate(op.keeps):
            if kinds[name] == "tensor":
                lines += [
                    f"    if seen{i} is not None:",
                    f"        memory = {name}._storage",
                    f"        if seen{i} != (0 if memory is None else memory.version):",
                    f"            check_version(OP, {name!r}, {name}, seen{i}, node{transposed(op, name)})",
                    f"        {name} = {name}._array",
                ]
    edges = [f"e{i}" for i in range(len(op.tensor_names))]
    lines += [f"    {', '.join(edges)}, = node.edges", "    meta = node.meta"]
    names = [(i, n) for i, (_, n) in enumerate(op.tensor_names) if n in op.needs]
    for i, name in names:
        lines += [
            f"    if e{i} is not None:",
            f"        g{i} = {gradient_of_arrays(op.formulas[name], name)}",
            f"        if g{i}.__class__ is not ndarray:",
            f"            g{i} = asarray(g{i})",
        ]
        if of_number(op, name):
            lines += [
                f"        if g{i}.dtype != g.dtype:",
                f"            g{i} = g{i}.astype(g.dtype)",
            ]
        if op.kind == "pointwise":  # what has the result's shape and type fits there
            lines += [f"        if e{i}.meta != meta:"]
        else:
            lines += [
                f"        shape, kind = e{i}.meta",
                f"        if g{i}.shape != shape or kind is not meta[1]:",
            ]
        lines += [f"            g{i} = fit_array(g{i}, *e{i}.meta)"]
        if i is not names[-1][0] and len(names) == 2:
            lines += [f"        if e{names[-1][0]} is None:", f"            return (e{i}, g{i}),"]
        elif len(names) > 2:
            lines += ["    else:", f"        g{i} = None"]
    if len(names) > 2:
        lines += [f"    return {', '.join(f'(e{i}, g{i})' for i, _ in names)}"]
        return "\n".join(lines) + "\n"
    first, last = names[0][0], names[-1][0]
    if len(names) == 2:
        lines += [
            f"        if e{first} is not None:",
            f"            return (e{first}, g{first}), (e{last}, g{last})",
        ]
    lines += [f"        return (e{last}, g{last}),", "    return ()"]
    return "\n".join(lines) + "\n"


def of_number(op: Op, name: str) -> bool:
    """Whether a derivative calls functions of what may be a number, which give NumPy's float64."""
    text = op.formulas[name].inline
    given = [op.schema.args[op.schema.index[n]] for n in op.needs[name] if n in op.schema.index]
    return (not text or "(" in text) and any(a.takes_number for a in given)


def held_apply(op: Op) -> Fn | None:
    """`apply_arrays` for arrays of devices to which whole calls are handed over, with tensors as
    gradients; None where a derivative is more than calls of records and products or sums, which are
    the same launches as those of tensors."""
    if not op.node.bare or not all(calls_only(f.inline) for f in op.formulas.values()):
        return None
    if op.kind == "view" or any(
        f.late(word).is_view for f in op.formulas.values() for word in called(f.inline)
    ):  # which are no launches
        return None
    source = arrays_source(op)
    namespace: dict[str, Any] = {
        "SAVED_TWICE": SAVED_TWICE, "check_version": check_version, "OP": op.name,
        "ndarray": None, "asarray": lambda made: made,
        "fit_array": lambda made, *meta: fit(wrap(made), *meta),
    }  # fmt: skip
    for formula in op.formulas.values():
        for word in called(formula.inline):
            namespace[word] = formula.late(word).on_held
    generate(f"{op.name}: {op.node_name} on devices", source, namespace)
    arrays = namespace["apply_arrays"]

    def apply_held(node: Node, g: Any) -> Any:
        return [
            (e, made if made is None or made.__class__ is Tensor else wrap(made))
            for e, made in arrays(node, g)
        ]

    return apply_held


def called(text: str) -> list[str]:
    """The names of functions in an expression."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [node.func.id for node in calls if isinstance(node.func, ast.Name)]


SAME_LAUNCHES = (
    ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.BinOp, ast.Mult,
    ast.Add, ast.Sub, ast.UnaryOp, ast.USub,
)  # fmt: skip


def calls_only(text: str) -> bool:
    """Whether an expression has record's functions, products, sums and transposes only.

    >>> calls_only("mm(g.T, self)"), calls_only("g * (self > 0)"), calls_only("")
    (True, False, False)
    """
    if not text or any(word in FUNCTIONS or word == "filled" for word in called(text)):
        return False
    return all(
        isinstance(node, SAME_LAUNCHES) or (isinstance(node, ast.Attribute) and node.attr == "T")
        for node in ast.walk(ast.parse(text, mode="eval"))
    )


def gradient_of_arrays(derivative: Derivative, name: str) -> str:
    """What `apply_arrays` says: the formula itself, or a call of its function."""
    return derivative.inline or f"arrays_{name}({', '.join(derivative.params)})"


def kinds_of(op: Op) -> dict[str, str]:
    """What each kept name may hold: a tensor (whose version matters), tensors, indices (the tensors of
    one), a number that may be complex, or another value."""
    kinds = {}
    for name in op.keeps:
        i = op.schema.index.get(name)
        a = None if i is None else op.schema.args[i]
        if a is None:
            kinds[name] = "tensor" if name.startswith("result") else "value"
        elif a.is_tensor or a.is_tensor_list:
            kinds[name] = "tensor" if a.is_tensor else "tensors"
        elif a.type == "Indices":
            kinds[name] = "indices"
        else:
            kinds[name] = "number" if a.takes_number or "Scalar" in a.type else "value"
    return kinds
