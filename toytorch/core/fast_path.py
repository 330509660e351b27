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

import textwrap
from _thread import get_ident
from typing import Any
from weakref import ref

import numpy as np

from toytorch.core import arguments, dispatch, fast_whole, record, scalars, views
from toytorch.core.memory_order import LAYS, placed
from toytorch.core.op import Op
from toytorch.core.storage import Storage
from toytorch.core.tensor import Tensor, alias, as_dtype, wrap_result
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import memory_format
from toytorch.facts.hints import Args
from toytorch.facts.node import sequence
from toytorch.facts.schema import REQUIRED
from toytorch.kernels import dispatch_stub

UNARY = """\
def {name}(input=REQUIRED, **more):
    if more:
        return call(op, *bound(op, (input,), more))
    try:
        a = input._array
        kind = input._dtype
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
{result}
        return result
{whole}    return call(op, (input,))
"""
BINARY = """\
def {name}({params}):{more}{by_size}
    try:
        a = input._array
        kind = input._dtype
        mode = state.fast_path
{number}
        b = other._array
    except AttributeError:
        return {call}(op, (input, other{alpha}))
    if kind is other._dtype and a.__class__ is ndarray and b.__class__ is ndarray and (
            mode is None or mode == get_ident()) and (
            kind.plain):
        try:
            c = {kernel}(a, b)
        except (ValueError, TypeError, MemoryError):  # the general path says it better
            return {call}(op, (input, other{alpha}))
        if c.__class__ is not ndarray:
            c = asarray(c)
        elif not {first}.flags.c_contiguous or (
                c.ndim > {flat} and (1 in c.shape or not {second}.flags.c_contiguous)):
            c = placed(c, {first}, {second})
{result}
        return result
{whole}    return {call}(op, (input, other{alpha}))
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
{result}
                return result
{whole_number}            return {call}(op, (input, other{alpha}))"""
WHOLE = """\
    if kind.short{condition}:
        result = whole(op, kernel, {operands})
        if result is not None:
            return result
"""
MORE = """
    if more:
        (input, other), out = bound(op, (input, other), more)
        return op.function(input, other) if out is None else call(op, (input, other), out)"""
MORE_WITH_ALPHA = """
    if more:
        return {name}_with_more(input, other, **more)"""
BY_SIZE = """
    # by_size is NumPy's {ufunc}; arrays of {large:,} elements and more are shared among threads. It
    # is a Python function, which counts, for {trial} small calls, and compiled from then on: see
    # toytorch.kernels.dispatch_stub"""
NO_NUMBER = "        # a number is refused by the general path"

NO_TENSORS = {"None", "other", "1"}  # what is saved where `other` is a number
EDGES = ",\n" + " " * 14  # from one to the next, on a line of its own


def saving(op: Op, scalar: bool = False) -> list[str] | None:
    """The lines that save what the derivative names; None where the fast path has no way to.

    scalar   the second operand is a number
    """
    from toytorch.core import fast_saved  # when the first such source is written

    saved = []
    asked = set[str]()  # the gradients that have to be wanted for anything to be kept
    for kind, index, users in op.plan:
        some = ""
        if kind not in ("result", "argument") or (index == 2 and op.schema.args[2].default != 1):
            return None
        if index == 2:
            saved.append(("1", "None"))
        elif scalar and kind == "argument" and index == 1:
            saved.append(("other", "None"))
        elif scalar and 0 not in users:
            saved.append(fast_saved.NOTHING)
        elif kind == "result":
            saved.append(fast_saved.RESULT)
        else:  # only what the wanted gradients need: y of x*y where x wants one
            if not scalar and len(op.tensor_at) == 2 and len(users) == 1:
                some = ("wants", "other_wants")[users[0]]
            saved.append(fast_saved.tensor(("input", "other")[index], some))
        asked.add(some)
    lines = fast_saved.lines(saved)
    if saved and scalar and op.variant is not None and {v for v, _ in saved} <= NO_TENSORS:
        return ["node.frees = False", *lines]  # PyTorch's overload for a number keeps no tensor
    if not scalar and len(asked) == 1 and "" not in asked:
        return [f"node.frees = {asked.pop()}", *lines]
    return lines


def result_lines(
    made: str,
    dtype: str,
    wants: str = "",
    edges: str = "",
    save: list[str] | None = None,
    node: str = "Node",
) -> list[str]:
    """The lines that fill in a result's slots and, where a gradient is wanted, its node's.

    made   the name of the array
    dtype  what its type is
    wants  what is asked for a gradient; "" where there is none
    edges  of the node
    save   the lines that save what the derivatives need
    """
    lines = [
        "result = new(Tensor)",
        f"result._array = {made}",
        f"result._dtype = {dtype}",
        "result._storage = None",
    ]
    alone = ["result._requires_grad = False", "result._grad_edge = None"]
    if not wants:
        return lines + alone
    history = [
        f"node = {node}()",
        f"node.edges = ({edges})",
        "node.seq = next(sequence)",
        f"node.meta = ({made}.shape, {'kind' if dtype == 'kind' else 'result._dtype'})",
        *(save or []),
        "result._requires_grad = True",
        "result._grad_edge = node",
    ]
    inside = [indent(block, 4) for block in (history, alone)]
    return [*lines, f"if {wants}:", inside[0], "else:", inside[1]]


def indent(lines: list[str], width: int) -> str:
    """Lines at a depth."""
    return textwrap.indent("\n".join(lines), " " * width)


def write(op: Op, operator: bool = False) -> str | None:
    """The source for a unary or binary pointwise op, or None where its form is another.

    With `operator`, the form that Python's operator calls: it knows no arguments by name, whose
    dictionary costs about 30 ns a call. The function of an op with alpha= leaves calls with arguments
    by name to one called `<name>_with_more`, which `function.make_function` writes beside it.
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
    dtype = "bool_" if returns_bool else "kind"
    plain = result_lines("c", dtype)
    if len(op.tensor_at) == 1:
        wants = "mode is None and input._requires_grad"
        recorded = result_lines("c", dtype, wants, "input._grad_edge or input,", save)
        return UNARY.format(
            name=name,
            result=indent(recorded if differentiable else plain, 8),
            whole=WHOLE.format(operands="input", condition=fast_whole.condition(op)),
        )
    node = "Node" if op.variant is None else "op.node_variant(variant(input, other))"
    common = {
        "call": "operate" if operator else "call",
        "alpha": ", 1" * ("alpha" in names),
        "first": "b" if op.memory == "second" else "a",
        "second": "a" if op.memory == "second" else "b",
        "kernel": "by_size" if ufunc_of(op) in dispatch_stub.SHARED else "kernel",
        "flat": 2 if ufunc_of(op) in dispatch_stub.SHARED else 1,  # NumPy lays matrices as PyTorch
    }
    whole = WHOLE.format(operands="input, other", condition=fast_whole.condition(op))
    by_size = BY_SIZE.format(
        ufunc=op.plain or op.kernel, large=dispatch_stub.LARGE, trial=dispatch_stub.TRIAL
    )
    with_number = result_lines(
        "c", dtype, "mode is None and input._requires_grad", "input._grad_edge or input, None",
        scalar_save, node,
    )  # fmt: skip
    edges = ["input._grad_edge or input if wants else None",
             "other._grad_edge or other if other_wants else None"]  # fmt: skip
    recorded = [
        "wants, other_wants = input._requires_grad, other._requires_grad",
        *result_lines(
            "c", dtype, "mode is None and (wants or other_wants)", EDGES.join(edges), save, node
        ),
    ]
    number = NUMBER.format(
        **common,
        scalar="other" if isinstance(op.kernel, str) or op.plain else "a.dtype.type(other)",
        whole_number=whole and indent(whole.rstrip("\n").split("\n"), 8) + "\n",
        result=indent(with_number if differentiable and "self" in op.derivatives else plain, 16),
    )
    # `bound` looks whether they may be given by name
    only, both = ", /" if op.number_is_self else "", ", /" if op.spelled else ""
    return BINARY.format(
        **common,
        name=name,
        params="input, other"
        if operator
        else f"input=REQUIRED{only * (not both)}, other=REQUIRED{both}, **more",
        more="" if operator else (MORE_WITH_ALPHA if common["alpha"] else MORE).format(name=name),
        by_size=by_size if common["kernel"] == "by_size" else "",
        whole=whole,
        number=number if op.schema.args[1].takes_number else NO_NUMBER,
        result=indent(recorded if differentiable else plain, 8),
    )


def ufunc_of(op: Op) -> Any:
    """NumPy's function that the usual call of an op is; None where it is another."""
    name = op.plain or op.kernel
    return getattr(np, name) if isinstance(name, str) else None


def operate(op: Op, args: Args) -> Any:
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
        "numpy": np, "own_kernel": op.kernel, "by_size": dispatch_stub.by_size(kernel, space),
        "Tensor": Tensor, "Node": op.node, "op": op, "variant": op.variant, "call": dispatch.call,
        "operate": operate, "kernel": kernel, "on_cpu": op.on_cpu, "state": state,
        "ndarray": np.ndarray, "asarray": as_array, "array_of": np.asarray, "generic": np.generic,
        "placed": placed, "lay": LAYS.get(op.memory), "new": object.__new__, "bool_": types.bool,
        "get_ident": get_ident,
        "sequence": sequence, "Storage": Storage, "from_numpy": types.FROM_NUMPY,
        **{f"{trait}_of": found for trait, found in record.TRAITS.items()},
        "spread": arguments.spread, "bound": arguments.bound, "missing": arguments.missing,
        "alone": arguments.alone, "option": arguments.option,
        "as_dim": arguments.as_dim, "number": arguments.number, "as_ints": arguments.as_ints,
        "all_int": arguments.all_int,
        "memory_format": memory_format, "as_typed": arguments.as_typed,
        "whole": fast_whole.unary if len(op.tensor_at) == 1 else fast_whole.binary,
        "as_dtype": as_dtype, "dtype": types.dtype, "view_of": views.view_of,
        "made_view": views.made_view, "plain": views.plain, "note_view": views.note_view,
        "ref": ref, "quick": views.quick, "several_views": views.several_views,
        "wrap_result": wrap_result, "check": op.checks, "record": record.record,
        "tie_many": record.tie_many, "integers": record.integers, "kept_of": alias,
        "REQUIRED": REQUIRED,
    }  # fmt: skip


def as_array(made: Any) -> Any:
    """A kernel's result that is no NumPy array: a scalar as an array, another device's as it is."""
    return (
        np.asarray(made) if isinstance(made, np.generic) or not hasattr(made, "strides") else made
    )
