"""The fast path: for each pointwise op of one or two tensors, one function without detours.

The common call has plain CPU tensors of one floating-point type and nothing that watches. The
function below tests just that, runs the NumPy kernel, fills in the result's slots and, where a
gradient is wanted, the node's. Anything else goes to `dispatch.call`. Numbers, for 10 floats on the
machine of the README: NumPy's own `a + b` takes 0.26 µs, this 0.7, with a graph 1.0; PyTorch 1.2
and 1.9. What costs: every attribute read 10-20 ns, `x.shape` 45, a Python call 60, `*args` 100.

The text is filled in per op (which inputs the derivative saves, which keyword arguments there are)
and can be read with `op.source()`, stepped through in a debugger and seen in tracebacks.
"""

from __future__ import annotations

from _thread import get_ident
from types import FunctionType
from typing import Any

import numpy as np

from toytorch.core import arguments, dispatch, inplace, record, scalars, views
from toytorch.core import write as writes
from toytorch.core.memory_order import placed
from toytorch.core.op import Op
from toytorch.core.storage import Storage
from toytorch.core.tensor import Tensor, as_dtype, wrap_result
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.node import sequence
from toytorch.facts.schema import REQUIRED
from toytorch.kernels import dispatch_stub

UNARY = """\
def {name}(input=REQUIRED, **more):
    if more:
        return call(op, *bound(op, (input,), more))
    try:
        a = input._array
        kind = input.dtype
    except AttributeError:
        return call(op, (input,))
    mode = state.fast_path
    if a.__class__ is ndarray and kind.plain and (mode is None or mode == get_ident()):
        try:
            c = kernel(a)
        except (TypeError, MemoryError):
            return call(op, (input,))
        if c.__class__ is not ndarray:
            c = asarray(c)
        elif not a.flags.c_contiguous:
            c = placed(c, a)
        result = new(Tensor)
        result._array = c
        result.dtype = {dtype}
        result._storage = None
{graph}
        return result
    return call(op, (input,))
"""
UNARY_GRAPH = """\
        if mode is None and input._requires_grad:
            node = {node}()
            node.edges = (input._grad_edge or input,)
            node.seq = next(sequence)
            node.meta = (c.shape, kind)
{save}
            result._requires_grad = True
            result._grad_edge = node
        else:
            result._requires_grad = False
            result._grad_edge = None"""
NO_GRAPH = """\
        result._requires_grad = False
        result._grad_edge = None"""
BINARY = """\
def {name}({params}):{more}{by_size}
    try:
        a = input._array
        kind = input.dtype
        mode = state.fast_path
{number}
        b = other._array
    except AttributeError:
        return {call}(op, (input, other{alpha}))
    if kind is other.dtype and a.__class__ is ndarray and b.__class__ is ndarray and (
            mode is None or mode == get_ident()) and (
            kind.plain):
        try:
            c = {kernel}(a, b)
        except (ValueError, TypeError, MemoryError):  # the general path says it better
            return {call}(op, (input, other{alpha}))
        if c.__class__ is not ndarray:
            c = asarray(c)
        elif not {first}.flags.c_contiguous:
            c = placed(c, {first}, {second})
        result = new(Tensor)
        result._array = c
        result.dtype = {dtype}
        result._storage = None
{graph}
        return result
    return {call}(op, (input, other{alpha}))
"""
NUMBER = """\
        if other.__class__ is float or other.__class__ is int:
            if kind.plain and a.__class__ is ndarray and (
                    mode is None or mode == get_ident()):
                try:
                    c = {kernel}(a, {scalar})
                except (TypeError, OverflowError, MemoryError):
                    return {call}(op, (input, other{alpha}))
                if c.__class__ is not ndarray:
                    c = asarray(c)
                elif not a.flags.c_contiguous:
                    c = placed(c, a, None)
                result = new(Tensor)
                result._array = c
                result.dtype = {dtype}
                result._storage = None
{scalar_graph}
                return result
            return {call}(op, (input, other{alpha}))"""
MORE = """
    if more:
        return call(op, *bound(op, (input, other{alpha}), more))"""
BY_SIZE = """
    # by_size is NumPy's {ufunc}; arrays of {large:,} elements and more are shared among threads. It
    # is a Python function, which counts, for {trial} small calls, and compiled from then on: see
    # toytorch.kernels.dispatch_stub"""
NO_NUMBER = "        # a number is refused by the general path"
BINARY_GRAPH = """\
        wants, other_wants = input._requires_grad, other._requires_grad
        if mode is None and (wants or other_wants):
            node = {node}()
            node.edges = (input._grad_edge or input if wants else None,
                          other._grad_edge or other if other_wants else None)
            node.seq = next(sequence)
            node.meta = (c.shape, kind)
{save}
            result._requires_grad = True
            result._grad_edge = node
        else:
            result._requires_grad = False
            result._grad_edge = None"""
SCALAR_GRAPH = """\
                if mode is None and input._requires_grad:
                    node = {node}()
                    node.edges = (input._grad_edge or input, None)
                    node.seq = next(sequence)
                    node.meta = (c.shape, kind)
{save}
                    result._requires_grad = True
                    result._grad_edge = node
                else:
                    result._requires_grad = False
                    result._grad_edge = None"""


KEEP_RESULT = [
    "kept = new(Tensor)",
    "kept._array = c",
    "kept.dtype = result.dtype",
    "kept._storage = result._storage = Storage(c)",
    "kept._requires_grad = False",
    "kept._grad_edge = None",
]


def saving(op: Op, scalar: bool = False) -> list[str] | None:
    """The lines that save what the derivative names; None where the fast path has no way to."""
    values, versions, before = [], [], []
    python_name = {"self": "input", "other": "other"}
    first_needs = set(op.needs.get("self", ()))
    for name in op.keeps:
        if name == "result" and scalar and name not in first_needs:
            values.append("None")
            versions.append("None")
        elif name == "result":
            before += KEEP_RESULT
            values.append("kept")
            versions.append("0")
        elif name in python_name and name in op.schema.index:
            value = python_name[name]
            version = f"0 if {value}._storage is None else {value}._storage.version"
            if scalar and name == "other":
                values.append(value)
                versions.append("None")
            elif len(op.tensor_at) == 1 or (scalar and name in first_needs):
                values.append(value)
                versions.append(version)
            elif scalar:
                values.append("None")
                versions.append("None")
            else:
                # Only what the wanted gradients need: y of x*y where x wants one.
                wants = {"self": "wants", "other": "other_wants"}
                users = [wants[a] for a in op.needs if name in op.needs[a]]
                if len(users) == 2:  # one of them does, or there would be no node
                    values.append(value)
                    versions.append(version)
                else:
                    values.append(f"{value} if {users[0]} else None")
                    versions.append(f"({version}) if {users[0]} else None")
        elif name == "alpha" and op.schema.args[op.schema.index[name]].default == 1:
            values.append("1")
            versions.append("None")
        else:
            return None
    if not values:
        return ["node.saved = None", "node.versions = ()"]
    return [
        *before,
        f"node.saved = ({', '.join(values)},)",
        f"node.versions = ({', '.join(versions)},)",
    ]


VIEW = """\
def {name}({params}):
    if more:
        return call(op, bound(op, ({args}), more)[0])
{checks}    args = ({args})
    try:
        a = {first}._array
        if (a.__class__ is ndarray and a.size and state.fast_path is None and (
                {first}._no_grad_view is None)) or quick({first}):
            c = {kernel}
            if c.dtype is a.dtype{known}:
                return made_view(op, args, c)
            if state.fast_path is not None:
                return call(op, args)
            result = view_of({first}, c, op.derivatives)
            if {first}._requires_grad and result._base is not None and result.dtype.rank > 1:
                record(op, args, result)
            return result
    except AttributeError:
        return call(op, args)  # which says what is wrong
    return call(op, args)
"""
GENERAL = """\
def {name}({params}):
    if more:
        return call(op, bound(op, ({args},), more)[0]{out})
{checks}    mode = state.fast_path
    if {no_out}(mode is None or mode == get_ident()):
        try:
{arrays}
            plain = {tests}
        except AttributeError:
            plain = False
        if plain:
            try:
                c = {kernel}({passed})
            except (MemoryError, ValueError):  # the general path says it better
                return call(op, ({args},){out})
            if c.__class__ is not ndarray:
                c = asarray(c)
{in_rows}            result = new(Tensor)
            result._array = c
            result.dtype = from_numpy[c.dtype]
            result._storage = None
{graph}
            return result
    return call(op, ({args},){out})
"""
IN_ROWS = """\
            elif not c.flags.c_contiguous:
                c = c.copy("C")
"""
GENERAL_GRAPH = """\
            if mode is None and ({wants}) and result.dtype.rank > 1:
                node = {node}()
                node.edges = ({edges},)
                node.seq = next(sequence)
                node.meta = (c.shape, result.dtype)
{save}
                result._requires_grad = True
                result._grad_edge = node
            else:
                result._requires_grad = False
                result._grad_edge = None"""


SEVERAL = """\
def {name}({params}):
    if more:
        return call(op, bound(op, ({args},), more)[0]{out})
{checks}    mode_ = state.fast_path
    if {no_out}(mode_ is None or mode_ == get_ident()):
        try:
{arrays}
            if {tests}:
                made = {made}
{result}
        except (AttributeError, TypeError, ValueError, OverflowError, MemoryError):
            pass  # the general path says what is wrong
    return call(op, ({args},){out})
"""
WRAPPED = """\
                if made.__class__ is not ndarray:
                    return wrap_result(made)
                result = new(Tensor)
                result._array = made
                result.dtype = from_numpy[made.dtype]
                result._storage = None
                result._requires_grad = False
                result._grad_edge = None
                return result"""
LISTED = """\
            arrays = []
            if {first}.__class__ is not list and {first}.__class__ is not tuple:
                return call(op, ({args},){out})
            for t in {first}:
                a = t._array
                if (a.__class__ is not ndarray or t.dtype is not {first}[0].dtype
                        or (t._requires_grad and mode_ is None)):
                    return call(op, ({args},){out})
                arrays.append(a)"""
OTHER = """\
            a{i} = {name}
            if a{i}.__class__ is float or a{i}.__class__ is int:
                a{i} = a0.dtype.type(a{i})
            elif a{i} is not None:
                if {name}.dtype is not {first}.dtype or ({name}._requires_grad and mode_ is None):
                    return call(op, ({args},){out})
                a{i} = a{i}._array"""


def make_several(op: Op, params: list[str], passed: list[str], checks: str) -> str | None:
    """The source of a fast path, where nobody wants a gradient, for an op that has none with one: of
    several results, of a list of tensors, or a pointwise one with more than two operands."""
    args = op.schema.args
    out = ", out" if op.has_out else ""
    first, values = passed[0], list(passed)
    words = {"first": first, "args": ", ".join(passed), "out": out}
    if op.kernel is None or any("(" in p for p in passed) or op.random:
        return None
    tests = [f"a0.__class__ is ndarray and not (mode_ is None and {first}._requires_grad)"]
    lines = [f"            a0 = {first}._array"]
    values[0] = "a0"
    several = op.many and op.schema.returns == ("Tensor",) * op.count
    if op.kind in ("general", "reduction") and args[0].is_tensor_list and len(op.tensor_at) == 1:
        if op.many or op.promotion != "default":
            return None
        lines = [LISTED.format(**words)]
        tests, values[0] = ["arrays"], "arrays"
    elif op.kind in ("general", "reduction") and several and op.tensor_at == (0,):
        tests.append(f"{first}.dtype.itemsize != 2")
    elif op.kind == "pointwise" and not op.many and op.schema.returns == ("Tensor",):
        plain = op.promotion in ("default", "float", "tensors")
        if not plain and op.promotion != "none":
            return None
        if plain:
            tests.append(f"{first}.dtype.plain")
        for i in op.tensor_at[1:]:
            if args[i].is_tensor_list:
                return None
            name = passed[i]
            if plain:
                lines.append(OTHER.format(i=i, name=name, **words))
                tests.append(f"(a{i} is None or a{i}.__class__ is ndarray or "
                             f"a{i}.__class__ is a0.dtype.type)")  # fmt: skip
            else:
                lines.append(f"            a{i} = {name}._array")
                tests.append(f"a{i}.__class__ is ndarray and {name}.dtype is {passed[op.tensor_at[1]]}"
                             f".dtype and not (mode_ is None and {name}._requires_grad)")  # fmt: skip
            values[i] = f"a{i}"
        numbers = [p for a, p in zip(args, passed) if a.type == "Scalar"]
        tests += [f"{name}.__class__ is not complex" for name in numbers]
        if op.checks is not None:
            tests.append(f"check({first}.dtype, ({', '.join(passed)},)) is None")
    else:
        return None
    made = f"kernel({', '.join(values)})"
    if op.kind == "pointwise" and op.memory in ("", "second", "tensor first"):
        laid = [f"a{i}" for i in op.tensor_at]
        laid = laid[::-1] if op.memory == "second" else laid
        made = f"placed({made}, {', '.join(laid)})"
    return SEVERAL.format(
        name=python_name(op),
        params=", ".join(params),
        args=words["args"],
        out=out,
        checks=checks,
        no_out="out is None and " if op.has_out else "",
        arrays="\n".join(lines),
        tests=" and ".join(tests),
        made=made,
        result="                return [wrap_result(c) for c in made]" if op.many else WRAPPED,
    )


def make_general(op: Op, params: list[str], passed: list[str], checks: str) -> str | None:
    """The source of a fast path for an op with a fixed number of tensors and one result."""
    if op.kind not in ("general", "reduction") or op.many or op.lists or op.kernel is None:
        return None
    numbers = {a.name for a in op.schema.args if a.is_tensor and a.takes_number}
    if numbers & set(op.keeps):
        return None
    arrays, tests, values, wants, edges = [], [], [], [], []
    for i, (a, name) in enumerate(zip(op.schema.args, passed)):
        if "(" in name:
            return None  # ints given one by one
        if not a.is_tensor:
            values.append(name)
            continue
        optional = a.is_optional
        if a.takes_number:  # which goes to the kernel as it is
            number = f"{name}.__class__ is float or {name}.__class__ is int"
            arrays.append(f"a{i} = {name} if {number} else {name}._array")
            tests.append(
                f"({number} or (a{i}.__class__ is ndarray and {name}.dtype.itemsize != 2))"
            )
            values.append(f"a{i}")
            has = f"a{i} is not {name} and {name}._requires_grad"
            if a.name in op.derivatives:
                wants.append(f"({has})")
                edges.append(f"({name}._grad_edge or {name} if {has} else None)")
            else:
                edges.append("None")
            continue
        guard = f"None if {name} is None else " if optional else ""
        arrays.append(f"a{i} = {guard}{name}._array")
        test = f"(a{i}.__class__ is ndarray and not {name}.dtype.reduced)"
        tests.append(f"(a{i} is None or {test})" if optional else test)
        values.append(f"a{i}")
        if a.name in op.derivatives:
            has = (
                f"{name} is not None and {name}._requires_grad"
                if optional
                else f"{name}._requires_grad"
            )
            wants.append(f"({has})")
            edges.append(f"({name}._grad_edge or {name} if {has} else None)")
        else:
            edges.append("None")
    if not arrays:
        return None
    lines = general_saving(op, passed)
    node = "Node" if op.variant is None else f"op.node_variant(variant({', '.join(passed)}))"
    graph = (
        GENERAL_GRAPH.format(
            node=node, wants=" or ".join(wants), edges=", ".join(edges), save=indent(lines, 16)
        )
        if wants
        else indent([line[8:] for line in NO_GRAPH.split("\n")], 12)
    )
    return GENERAL.format(
        name=python_name(op),
        checks=checks,
        params=", ".join(params),
        no_out="out is None and " if op.has_out else "",
        arrays=indent(arrays, 12),
        tests=" and ".join(tests),
        kernel="own_kernel" if runs_itself(op) else "kernel",
        passed=", ".join(["numpy", *values] if runs_itself(op) else values),
        in_rows=IN_ROWS * (runs_itself(op) and op.memory == "rows"),
        graph=graph,
        args=", ".join(passed),
        out=", out" if op.has_out else "",
    )


def runs_itself(op: Op) -> bool:
    """Whether a generated function calls the record's own function of arrays, without the one that
    `op.on_cpu` puts around it to hand over NumPy and to order the result: a detour of 0.2 µs."""
    return op.kernel.__class__ is FunctionType and not op.plain and op.memory in ("", "rows")


def general_saving(op: Op, passed: list[str]) -> list[str]:
    """The lines that save what the derivatives of a general op name."""
    before, values, versions = [], [], []
    for kind, index, users in op.plan:
        if kind == "result":
            before += KEEP_RESULT
            values.append("kept")
            versions.append("0")
        elif kind == "argument" and op.schema.args[index].is_tensor:
            value = passed[index]
            some = (
                f"{value} is not None and ("
                + " or ".join(
                    f"({passed[u]} is not None and {passed[u]}._requires_grad)" for u in users
                )
                + ")"
            )
            values.append(f"{value} if {some} else None")
            versions.append(
                f"None if not ({some}) else 0 if {value}._storage is None "
                f"else {value}._storage.version"
            )
        elif kind == "argument":
            values.append(passed[index])
            versions.append("None")
        else:
            values.append(f"{kind}_of({passed[index]})")
            versions.append("None")
    if not values:
        return ["node.saved = None", "node.versions = ()"]
    return [
        *before,
        f"node.saved = ({', '.join(values)},)",
        f"node.versions = ({', '.join(versions)},)",
    ]


def indent(lines: list[str], width: int) -> str:
    """Lines at a depth."""
    return "\n".join(" " * width + line for line in lines)


def write(op: Op, operator: bool = False) -> str | None:
    """The source for a unary or binary pointwise op, or None where its form is another.

    With `operator`, the form that Python's operator calls: it knows no arguments by name, whose
    dictionary costs about 30 ns a call.
    """
    names = [a.name for a in op.schema.args]
    if (
        op.kind != "pointwise"
        or op.promotion == "none"
        or names not in (["self"], ["self", "other"], ["self", "other", "alpha"])
    ):
        return None
    returns_bool = op.schema.returns[0] == "BoolTensor"
    name = python_name(op)
    save, scalar_save = saving(op), saving(op, scalar=True)
    if save is None or scalar_save is None:
        return None
    differentiable = bool(op.derivatives) and not returns_bool
    plain_scalar = indent([line[8:] for line in NO_GRAPH.split("\n")], 16)
    if len(op.tensor_at) == 1:
        return UNARY.format(
            name=name,
            dtype="bool_" if returns_bool else "kind",
            graph=UNARY_GRAPH.format(node="Node", save=indent(save, 12))
            if differentiable
            else NO_GRAPH,
        )
    node = "Node" if op.variant is None else "op.node_variant(variant(input, other))"
    common = {
        "call": "operate" if operator else "call",
        "alpha": ", 1" * ("alpha" in names),
        "dtype": "bool_" if returns_bool else "kind",
        "first": "b" if op.memory == "second" else "a",
        "second": "a" if op.memory == "second" else "b",
        "kernel": "by_size" if ufunc_of(op) in dispatch_stub.SHARED else "kernel",
    }
    by_size = BY_SIZE.format(
        ufunc=op.plain or op.kernel, large=dispatch_stub.LARGE, trial=dispatch_stub.TRIAL
    )
    number = NUMBER.format(
        **common,
        scalar="other" if isinstance(op.kernel, str) or op.plain else "a.dtype.type(other)",
        scalar_graph=SCALAR_GRAPH.format(node=node, save=indent(scalar_save, 20))
        if differentiable and "self" in op.derivatives
        else plain_scalar,
    )
    return BINARY.format(
        **common,
        name=name,
        params="input, other" if operator else "input=REQUIRED, other=REQUIRED, **more",
        more="" if operator else MORE.format(**common),
        by_size=by_size if common["kernel"] == "by_size" else "",
        number=number if op.schema.args[1].takes_number else NO_NUMBER,
        graph=BINARY_GRAPH.format(node=node, save=indent(save, 12)) if differentiable else NO_GRAPH,
    )


INPLACE = """\
    try:
        if {condition}quick(self) and self.dtype.plain:
            a = self._array
{other}            ufunc({operands}, a)
            bump(self)
            return self
    except (AttributeError, TypeError, OverflowError):
        pass  # the general path says what is wrong
"""
INPLACE_OTHER = """\
            b = other
            if b.__class__ is not float and b.__class__ is not int:
                b = other._array
                if (b.shape != a.shape or b.__class__ is not ndarray
                        or other.dtype is not self.dtype
                        or (other._requires_grad and state.fast_path is None)
                        or (other._storage is self._storage is not None and other is not self)):
                    return inplace(op, {args})
"""


def write_inplace(op: Op) -> str:
    """The lines of an in-place form that write by a ufunc, where the op is one; "" for others."""
    names = [a.name for a in op.schema.args]
    if (
        op.kind != "pointwise"
        or op.promotion == "none"
        or op.schema.returns[0] == "BoolTensor"
        or names not in (["self"], ["self", "other"], ["self", "other", "alpha"])
        or not isinstance(ufunc_of(op), np.ufunc)
        or (len(names) > 1 and not op.schema.args[1].takes_number)
    ):
        return ""
    args = f"({', '.join(names)},)"
    return INPLACE.format(
        condition="alpha.__class__ is int and alpha == 1 and " if "alpha" in names else "",
        other=INPLACE_OTHER.format(args=args) if len(names) > 1 else "",
        operands="a, b" if len(names) > 1 else "a",
    )


def names_in_place(op: Op) -> dict[str, Any]:
    """What the names in these lines stand for."""
    return {
        "quick": writes.quick,
        "bump": inplace.bump,
        "ufunc": ufunc_of(op),
        "state": state,
        "ndarray": np.ndarray,
    }


def ufunc_of(op: Op) -> Any:
    """NumPy's function that the usual call of an op is; None where it is another."""
    name = op.plain or op.kernel
    return getattr(np, name) if isinstance(name, str) else None


def operate(op: Op, args: tuple[Any, ...]) -> Any:
    """An operator's call, which leaves operands that the op does not take to their own class."""
    other = args[1]
    if isinstance(other, Tensor) or scalars.fits(op.schema.args[1], other):
        return dispatch.call(op, args)
    return NotImplemented


def python_name(op: Op) -> str:
    """What an op's function is called in its source."""
    name = op.name.replace(".", "_")
    return name + "_" if name in ("and", "or", "not") else name


def names_for(op: Op, space: dict[str, Any]) -> dict[str, Any]:
    """What the names in a source made from the templates stand for, in the globals `space`."""
    kernel = getattr(np, op.plain) if op.plain else op.on_cpu
    return {
        "numpy": np,
        "own_kernel": op.kernel,
        "by_size": dispatch_stub.by_size(kernel, space),
        "Tensor": Tensor,
        "Node": op.node,
        "op": op,
        "variant": op.variant,
        "call": dispatch.call,
        "operate": operate,
        "kernel": kernel,
        "state": state,
        "ndarray": np.ndarray,
        "asarray": as_array,
        "placed": placed,
        "new": object.__new__,
        "get_ident": get_ident,
        "bool_": types.bool,
        "sequence": sequence,
        "Storage": Storage,
        "from_numpy": types.FROM_NUMPY,
        "shape_of": record.shape_of,
        "dtype_of": record.dtype_of,
        "order_of": record.is_column_major,
        "layout_of": record.layout_of,
        "spread": arguments.spread,
        "bound": arguments.bound,
        "missing": arguments.missing,
        "refuse_dim": arguments.refuse_dim,
        "number": arguments.number,
        "as_dtype": as_dtype,
        "view_of": views.view_of,
        "made_view": views.made_view,
        "quick": views.quick,
        "wrap_result": wrap_result,
        "check": op.checks,
        "record": record.record,
        "REQUIRED": REQUIRED,
    }


def as_array(made: Any) -> Any:
    """A kernel's result that is no NumPy array: a scalar as an array, another device's as it is."""
    return (
        np.asarray(made) if isinstance(made, np.generic) or not hasattr(made, "strides") else made
    )
