"""Fast paths, as in `fast_path`, of pointwise ops with more than two operands, of ops of a list of
tensors, and, where no gradient is wanted, of ops with several results.
"""

from __future__ import annotations

from typing import NamedTuple

from toytorch.core import fast_saved
from toytorch.core.fast_general import floating, run_by
from toytorch.core.fast_path import indent, python_name, result_lines
from toytorch.core.op import Op

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
LISTED = """\
            arrays, edges, recorded = [], [], False
            if {first}.__class__ is not list and {first}.__class__ is not tuple:
                return call(op, ({args},){out})
            for t in {first}:
                a = t._array
                if a.__class__ is not ndarray or t._dtype is not {first}[0]._dtype:
                    return call(op, ({args},){out})
                arrays.append(a)
                if t._requires_grad and mode_ is None:{no_history}
                    edges.append(t._grad_edge or t)
                    recorded = True
                else:
                    edges.append(None)"""
LIST_WRAPPED = "                return [wrap_result(c) for c in made]"
OTHERS = ["if made.__class__ is not ndarray:", "    return wrap_result(made)"]
ARRAYS = ["if made.__class__ is not ndarray:", "    made = asarray(made)"]  # where a node is made
DTYPE = "from_numpy[made.dtype]"
OTHER = """\
            w{i}, a{i} = False, {name}
{number}            {if_} a{i} is not None:
                w{i} = mode_ is None and {name}._requires_grad
                if {name}._dtype is not {first}._dtype{no_history}:
                    return call(op, ({args},){out})
                a{i} = a{i}._array"""
PLACED = """
                if {first}.__class__ is not ndarray or not {first}.flags.c_contiguous or (
                        made.__class__ is not ndarray or made.shape != {first}.shape or 1 in made.shape):
                    made = placed(made, {laid})"""
NUMBER = """\
            if a{i}.__class__ is float or a{i}.__class__ is int:
                a{i} = a0.dtype.type(a{i})
"""

FIRST = "            a0 = {first}._array"
UNWANTED = "a0.__class__ is ndarray and not (mode_ is None and {first}._requires_grad)"


class Reading(NamedTuple):
    """How a fast path reads operands: its lines, what has to hold, what the kernel is called with,
    and the lines that give a result with a history, "" where nobody wants one."""

    lines: list[str]
    tests: list[str]
    values: list[str]
    history: str = ""


def make_several(op: Op, params: list[str], passed: list[str], checks: str) -> str | None:
    """The source of a fast path, where nobody wants a gradient, for an op that has none with one: of
    several results, of a list of tensors, or a pointwise one with more than two operands."""
    if op.kernel is None or any("(" in p for p in passed) or op.random:
        return None
    out = ", out" if op.has_out else ""
    words = {"first": passed[0], "args": ", ".join(passed), "out": out}
    reading = None
    if op.kind == "pointwise":
        reading = read_pointwise(op, passed, words)
    elif op.kind in ("general", "reduction"):
        a_list = op.schema.args[0].is_tensor_list and len(op.tensor_at) == 1
        reading = (read_list if a_list else read_first)(op, passed, words)
    if reading is None:
        return None
    made = run_by(op, reading.values, ("",))
    if op.kind == "pointwise" and op.memory in ("", "second", "tensor first"):
        laid = [f"a{i}" for i in op.tensor_at]
        laid = laid[::-1] if op.memory == "second" else laid
        made += PLACED.format(first=laid[0], laid=", ".join(laid))
    result = reading.history or returned(OTHERS, result_lines("made", DTYPE))
    return SEVERAL.format(
        name=python_name(op),
        params=", ".join(params),
        args=words["args"],
        out=out,
        checks=checks,
        no_out="out is None and " if op.has_out else "",
        arrays="\n".join(reading.lines),
        tests=" and ".join(reading.tests),
        made=made,
        result=LIST_WRAPPED if op.many else result,
    )


def read_list(op: Op, passed: list[str], words: dict[str, str]) -> Reading | None:
    """Of an op whose only tensors are those of a list."""
    if op.many or op.promotion != "default":
        return None
    history = history_of_list(op, passed)
    leave = f"\n                    return call(op, ({words['args']},){words['out']})"
    lines = [LISTED.format(**words, no_history="" if history else leave)]
    return Reading(lines, ["arrays"], ["arrays", *passed[1:]], history)


def read_first(op: Op, passed: list[str], words: dict[str, str]) -> Reading | None:
    """Of an op of one tensor with several results."""
    if not op.many or op.schema.returns != ("Tensor",) * op.count or op.tensor_at != (0,):
        return None
    tests = [UNWANTED.format(**words), f"{passed[0]}._dtype.itemsize != 2"]
    return Reading([FIRST.format(**words)], tests, ["a0", *passed[1:]])


def read_pointwise(op: Op, passed: list[str], words: dict[str, str]) -> Reading | None:
    """Of a pointwise op, however many operands it has."""
    plain = op.promotion in ("default", "float", "tensors")
    if op.many or op.schema.returns != ("Tensor",) or not (plain or op.promotion == "none"):
        return None
    args, first, values = op.schema.args, passed[0], ["a0", *passed[1:]]
    history = history_of(op, passed)
    lines, tests = [FIRST.format(**words)], [UNWANTED.format(**words)]
    if history:
        tests = ["a0.__class__ is ndarray"]
        lines.append(f"            w0 = mode_ is None and {first}._requires_grad")
    if plain:
        tests.append(f"{first}._dtype.plain")
    for i in op.tensor_at[1:]:
        if args[i].is_tensor_list:
            return None
        name = passed[i]
        if plain:
            number, if_ = (NUMBER.format(i=i), "elif") if args[i].takes_number else ("", "if")
            other = {**words, "no_history": "" if history else f" or w{i}"}
            lines.append(OTHER.format(i=i, name=name, number=number, if_=if_, **other))
            tests.append(f"(a{i} is None or a{i}.__class__ is ndarray or "
                         f"a{i}.__class__ is a0.dtype.type)")  # fmt: skip
        else:
            lines.append(f"            a{i} = {name}._array")
            lines.append(f"            w{i} = mode_ is None and {name}._requires_grad")
            tests.append(f"a{i}.__class__ is ndarray and {name}._dtype is {passed[op.tensor_at[1]]}"
                         f"._dtype" + ("" if history else f" and not w{i}"))  # fmt: skip
        values[i] = f"a{i}"
    numbers = [p for a, p in zip(args, passed) if a.type == "Scalar"]
    tests += [f"{name}.__class__ is not complex" for name in numbers]
    if op.checks is not None:
        tests.append(f"check({first}._dtype, ({', '.join(passed)},)) is None")
    return Reading(lines, tests, values, history)


def returned(before: list[str], result: list[str]) -> str:
    """The lines that give a result back."""
    return indent([*before, *result, "return result"], 16)


def history_of_list(op: Op, passed: list[str]) -> str:
    """The lines that make the result of an op of a list of tensors and its node, where one of them
    wants a gradient; "" where there is none, or the general path has to look at more."""
    if not op.derivatives or op.variant is not None or op.many:
        return ""
    if any(kind == "result" for kind, _, _ in op.plan):
        return ""
    saved = fast_saved.by_plan(op, passed, lambda index, users: (passed[index], "None"))
    wants = "recorded and (result._dtype.rank > 1 or integers(op, result))"
    return returned(ARRAYS, result_lines("made", DTYPE, wants, "*edges,", fast_saved.lines(saved)))


def history_of(op: Op, passed: list[str]) -> str:
    """The lines that make the result of a pointwise op and its node, where an operand i wants a
    gradient (w<i>); "" where there is none, or the general path has to look at more."""
    if not op.derivatives or any(k == "result" and 0 not in users for k, _, users in op.plan):
        return ""
    wanted = [i for i in op.tensor_at if op.schema.args[i].name in op.derivatives]
    edges = [
        f"({passed[i]}._grad_edge or {passed[i]}) if w{i} else None" if i in wanted else "None"
        for i in op.tensor_at
    ]

    def tensor_at(index: int, users: tuple[int, ...]) -> fast_saved.Saved:
        some = " or ".join(f"w{u}" for u in users)
        return fast_saved.tensor(passed[index], some, f"a{index}.__class__ is ndarray")

    saved = fast_saved.by_plan(op, passed, tensor_at)
    lines = [*fast_saved.lines(saved, "made"), *fast_saved.frees(op, saved)]
    node = "Node" if op.variant is None else f"op.node_variant(variant({', '.join(passed)}))"
    wants = floating(op, f"({' or '.join(f'w{i}' for i in wanted)})")
    result = result_lines("made", DTYPE, wants, f"{', '.join(edges)},", lines, node)
    return returned(ARRAYS, result)
