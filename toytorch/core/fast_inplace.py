"""The fast paths of in-place forms.

INPLACE is for ops that are one of NumPy's functions of arrays (ufuncs), which write where they read.
POINTWISE makes the result of few elements and copies it. RECORDED is for ops with a derivative: it also
makes the node that the write leaves in the graph. DRAWN is for random numbers, of which no gradient
comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core import fast_saved, fast_whole, inplace
from toytorch.core import write as writes
from toytorch.core.arguments import TYPED
from toytorch.core.fast_path import indent, names_for, ufunc_of
from toytorch.core.fast_several import NUMBER
from toytorch.core.memory_order import assign
from toytorch.core.op import Op
from toytorch.facts.schema import Argument

INPLACE = """\
    try:
        if {condition}quick(self) and self._dtype.plain:
            a, fits = self._array, True
{other}            if fits:
                ufunc({operands}, a)
                bump(self)
                return self
{whole}    except (AttributeError, TypeError, OverflowError):
        pass  # the general path says what is wrong
"""
WHOLE = """\
        elif self._dtype.whole and {condition}quick(self) and whole(op, ufunc, self, other):
            bump(self)
            return self
"""
INPLACE_OTHER = """\
            b = other
            if b.__class__ is not float and b.__class__ is not int:
                b = other._array
                fits = (b.shape == a.shape and b.__class__ is ndarray
                        and other._dtype is self._dtype
                        and not (other._requires_grad and state.fast_path is None)
                        and not (other._storage is self._storage is not None and other is not self))
"""


POINTWISE = """\
    try:
        if quick(self) and self._dtype.plain and self._array.size < {few}{numbers}:
            a0 = self._array
{operands}            c = kernel({values})
            if c.__class__ is ndarray and c.shape == a0.shape and c.dtype is a0.dtype:
                a0[...] = c
                bump(self)
                return self
    except (AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
        pass  # the general path says what is wrong
"""
OPERAND = """\
            a{i} = {name}
{number}            {if_} a{i} is not None:
                if ({name}._dtype is not self._dtype
                        or ({name}._requires_grad and state.fast_path is None)
                        or ({name}._storage is self._storage is not None and {name} is not self)):
                    return inplace(op, {args})
                a{i} = a{i}._array
                if a{i}.__class__ is not ndarray:
                    return inplace(op, {args})
"""
RECORDED = """\
    mode_ = state.fast_path
    if mode_ is None or mode_ == get_ident():
        try:
            a0, s0 = self._array, self._storage
            if (a0.__class__ is ndarray and (s0 is None or s0.__class__ is Storage)
                    and self._dtype.plain and (a0.flags.c_contiguous or 0 not in a0.strides){tests}):
                before = old_edge(self) if mode_ is None else None
                w0 = mode_ is None and (before is not None or self._requires_grad)
{operands}                recorded = {wants}
                if not recorded or recordable(self):
                    c = kernel({values})
                    if c.__class__ is not ndarray:
                        c = asarray(c)
                    if c.shape == a0.shape{same}:
                        if recorded:
                            node = {node}()
                            node.edges = ({edges},)
                            node.seq = next(sequence)
                            node.meta = (a0.shape, self._dtype)
{save}
                        if c is not a0:
                            assign(a0, c)
                        bump(self)
                        if recorded:
                            rebase(self, node)
                        return self
        except (AttributeError, TypeError, ValueError, ArithmeticError, LookupError, RuntimeError):
            pass  # the general path says what is wrong
"""
RECORDED_TENSOR = """\
                a{i} = {name}._array
                w{i} = mode_ is None and {name}._requires_grad
                if ({shared}{alike}
                        or a{i}.__class__ is not ndarray):
                    return inplace(op, {args})
"""
RECORDED_OPERAND = """\
                a{i}, w{i} = {name}, False
                if {tensor}:
                    a{i} = {name}._array
                    w{i} = mode_ is None and {name}._requires_grad
                    if ({shared}{alike}
                            or a{i}.__class__ is not ndarray):
                        return inplace(op, {args})
"""
RECORDED_INDICES = """\
                for t in {name}:
                    if t is not None and (t.__class__ is not Tensor or t._storage is s0 is not None
                            or t._array.__class__ is not ndarray):
                        return inplace(op, {args})
"""
RECORDED_LIST = """\
                if {name}.__class__ is not list and {name}.__class__ is not tuple:
                    return inplace(op, {args})
                w{i}, a{i} = True, [None if t is None else t._array for t in {name}]
                for t, a in zip({name}, a{i}):
                    if t is not None and (a.__class__ is not ndarray or t is self
                            or t._storage is s0 is not None or t._requires_grad):
                        return inplace(op, {args})
"""
DRAWN = """\
    try:
        if quick(self) and self._dtype.plain{tests}:
            assign(self._array, kernel(self._array, {options}))
            bump(self)
            return self
    except (AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
        pass  # nothing has been drawn; the general path says what is wrong
"""
FEW = 4096  # elements; of more, the general path writes the result where it belongs as it is made


def write_inplace(op: Op) -> str:
    """The lines in front of an in-place form that do the usual call; "" where there are none."""
    if op.random:
        return drawn(op)
    ufunc, recorded = by_ufunc(op), with_history(op)
    if op.kind == "pointwise" and recorded:  # which also does what is not recorded
        return ufunc + recorded
    return ufunc + by_kernel(op) * (len(op.schema.args) > 1 or not ufunc) + recorded


def drawn(op: Op) -> str:
    """The lines for a tensor that is filled with random numbers, by options that are no tensors."""
    options = op.schema.args[1:]
    if op.kind != "general" or op.upcast or op.many or op.schema.returns != ("Tensor",):
        return ""
    return DRAWN.format(
        tests="".join(number_test(a) if a.is_tensor else option_test(a) for a in options),
        options=", ".join(a.name for a in options),
    )


def with_history(op: Op) -> str:
    """The lines for a write to a tensor of floats that a graph may know of; "" where the general path
    has more to look at: ops whose results lie elsewhere, are drawn, or that have no derivative."""
    args = op.schema.args
    if (
        op.kind not in ("pointwise", "general", "reduction")
        or op.schema.returns != ("Tensor",)
        or not op.derivatives
        or args[0].name not in op.derivatives
        or op.many
        or op.lost
        or op.kernel is None
        or any(kind == "result" and 0 not in users for kind, _, users in op.plan)
        or (op.kind == "pointwise" and op.promotion not in ("default", "float", "tensors"))
    ):
        return ""
    pointwise = op.kind == "pointwise"
    names = [a.name for a in args]
    given = f"({', '.join(names)},)"
    values = [f"a{i}" if i in op.tensor_at else name for i, name in enumerate(names)]
    operands = "".join(operand_lines(op, i, given) for i in range(1, len(args)))
    tests = f" and a0.size < {FEW}" if pointwise else ""
    tests += "".join(option_test(a) for i, a in enumerate(args) if i not in op.tensor_at)
    if pointwise and op.checks is not None:
        tests += f" and check(self._dtype, {given}) is None"
    wanted = [0, *(i for i in op.tensor_at[1:] if names[i] in op.derivatives)]
    wanted = [i for i in wanted if not args[i].is_tensor_list]
    edges = ["before", *(edge_of(op, i) for i in op.tensor_at[1:])]

    def tensor_at(index: int, users: tuple[int, ...]) -> fast_saved.Saved:
        some = " or ".join(f"w{u}" for u in users)
        if not index:
            return f"snapshot(self) if {some} else None", f"0 if {some} else None"
        return fast_saved.tensor(names[index], some, f"a{index}.__class__ is ndarray")

    saved = fast_saved.by_plan(
        op, names, tensor_at, lambda index: ("kept_of(self)", "self._storage.version + 1")
    )
    return RECORDED.format(
        tests=tests,
        operands=operands,
        wants=" or ".join(f"w{i}" for i in wanted),
        values=", ".join(values),
        same=" and c.dtype is a0.dtype" * pointwise,
        node="Node" if op.variant is None else f"op.node_variant(variant({', '.join(names)}))",
        edges=", ".join(edges),
        save=indent([*fast_saved.lines(saved), *fast_saved.frees(op, saved)], 28),
    )


def operand_lines(op: Op, i: int, given: str) -> str:
    """The lines that look at argument i, which call the general path where it is not what they know."""
    a, pointwise = op.schema.args[i], op.kind == "pointwise"
    if a.type == "Indices":
        return RECORDED_INDICES.format(name=a.name, args=given)
    if i not in op.tensor_at:
        return ""
    if a.is_tensor_list:
        return RECORDED_LIST.format(i=i, name=a.name, args=given)
    kind, own = f"{a.name}._dtype", f"{a.name} is self"
    words = {
        "i": i,
        "name": a.name,
        "args": given,
        "shared": (f"({own} and w0)" if pointwise else own)
        + f" or ({a.name}._storage is s0 is not None and {a.name} is not self)",
        "alike": f" or {kind} is not self._dtype" if pointwise else f" or {kind}.reduced",
    }
    number = f"a{i}.__class__ is float or a{i}.__class__ is int" if a.takes_number else ""
    tests = [f"a{i} is not None"] * a.is_optional + [f"not ({number})"] * bool(number)
    if not tests:
        return RECORDED_TENSOR.format(**words)
    lines = RECORDED_OPERAND.format(**words, tensor=" and ".join(tests))
    if pointwise and number:
        lines += f"                elif {number}:\n"
        lines += f"                    a{i} = a0.dtype.type(a{i})\n"
    return lines


def option_test(a: Argument) -> str:
    """What is asked of an argument that is no operand, before all else."""
    if a.type == "Indices":
        return ""
    if a.type in ("Scalar", "float"):
        return number_test(a)
    if a.type.startswith("dtype"):
        return f" and {a.name} is None"
    if a.type in TYPED:
        return f" and {a.name}.__class__ is {a.type}"
    return f" and {a.name}.__class__ is not Tensor"


def number_test(a: Argument) -> str:
    return f" and ({a.name}.__class__ is float or {a.name}.__class__ is int)"


def edge_of(op: Op, i: int) -> str:
    """Where operand i's gradient goes."""
    name = op.schema.args[i].name
    if op.schema.args[i].is_tensor_list:
        return f"*[None] * len({name})"
    return f"({name}._grad_edge or {name}) if w{i} else None" if name in op.derivatives else "None"


def by_kernel(op: Op) -> str:
    """The lines for a pointwise op of tensors and numbers."""
    if (
        op.kind != "pointwise"
        or op.promotion not in ("default", "float", "tensors")
        or op.schema.returns != ("Tensor",)
        or op.many
        or op.kernel is None
    ):
        return ""
    args = f"({', '.join(a.name for a in op.schema.args)},)"
    operands, values, numbers = "", ["a0"], ""
    for i, a in list(enumerate(op.schema.args))[1:]:
        if a.is_tensor_list:
            return ""
        if a.is_tensor:
            number, if_ = (NUMBER.format(i=i), "elif") if a.takes_number else ("", "if")
            operands += OPERAND.format(i=i, name=a.name, args=args, number=number, if_=if_)
            values.append(f"a{i}")
        elif a.type in ("Scalar", "float"):
            numbers += number_test(a)
            values.append(a.name)
        else:
            return ""
    if op.checks is not None:
        numbers += f" and check(self._dtype, {args}) is None"
    return POINTWISE.format(
        few=FEW, numbers=numbers, operands=operands, values=", ".join(values), args=args
    )


def by_ufunc(op: Op) -> str:
    """The lines that write by a ufunc, where the op is one; "" for others."""
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
    condition = "alpha.__class__ is int and alpha == 1 and " if "alpha" in names else ""
    return INPLACE.format(
        condition=condition,
        whole=WHOLE.format(condition=condition) if len(names) > 1 and fast_whole.fits(op) else "",
        other=INPLACE_OTHER if len(names) > 1 else "",
        operands="a, b" if len(names) > 1 else "a",
    )


def names_in_place(op: Op) -> dict[str, Any]:
    """What the names in these lines stand for."""
    return {
        **names_for(op, {}), "quick": writes.quick, "Node": op.node_of_writes, "assign": assign,
        "asarray": np.asarray, "snapshot": inplace.snapshot, "old_edge": inplace.old_edge,
        "recordable": inplace.recordable, "rebase": inplace.rebase, "bump": inplace.bump,
        "ufunc": ufunc_of(op), "whole": fast_whole.written, "kernel": op.on_cpu,
    }  # fmt: skip
