"""Fast paths of what is not a pointwise op of one or two tensors.

GENERAL is for a fixed number of tensors and one result, MANY for several results, VIEW and VIEWS for a
view and several; `fast_several` has those of more operands and of lists. As in `fast_path`, the function
tests that its arguments are plain, runs the kernel and fills in the slots of the result.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from types import FunctionType

from toytorch.core import fast_saved
from toytorch.core.fast_path import indent, python_name, result_lines
from toytorch.core.memory_order import LAYS
from toytorch.core.op import Op

VIEW = """\
def {name}({params}):
    if more:
        return call(op, bound(op, ({given}), more)[0])
{checks}    args = ({args})
    try:
        a = {first}._array
        if a.__class__ is ndarray and a.size and state.fast_path is None and (
                {first}._no_grad_view is None):
            c, storage = {kernel}, {first}._storage
            if c.dtype is not a.dtype{unknown}:
                result = view_of({first}, c, op.derivatives)
                if {first}._requires_grad and result._base is not None and result._dtype.rank > 1:
                    record(op, args, result)
                return result
            if {first}._requires_grad or storage.__class__ is not Storage:
                return made_view(op, args, c)
            result = new(Tensor)
            result._array = c
            result._dtype = {first}._dtype
            result._storage = storage
            result._requires_grad = False
            result._grad_edge = None
            owner = {first} if {first}._base is None else {first}._base
            result._base = owner
            views, seen = owner._views, ref(result)
            if views and views[-1]() is None:
                views[-1] = seen
            else:
                note_view(owner, seen)
            if storage.version:
                result._born = storage.version
            return result
        if plain({first}):
            c = {kernel}
            if c.dtype is a.dtype{known}:
                return made_view(op, args, c)
    except (AttributeError, OverflowError):
        return call(op, args)  # which says what is wrong
    return call(op, args)
"""
VIEWS = """\
def {name}({params}):
    if more:
        return call(op, bound(op, ({args}), more)[0])
{checks}    args = ({args})
    try:
        if state.fast_path is None and quick({first}):
            return several_views(op, args, kernel({first}._array, {rest}))
    except (AttributeError, TypeError):
        pass  # the general path says what is wrong
    return call(op, args)
"""
HEAD = """\
def {name}({params}):
    if more:
        return call(op, bound(op, ({args},), more)[0]{out})
{checks}    mode_ = state.fast_path
    if {no_out}(mode_ is None or mode_ == get_ident()):
        try:
{arrays}
            plain = {tests}
        except AttributeError:
            plain = False
        if plain:
"""
GENERAL = (
    HEAD
    + """\
            try:
                c = {run}
            except Exception:  # the general path says it better
                return call(op, ({args},){out})
            if c.__class__ is not ndarray:
                c = asarray(c)
{in_rows}{result}
            return result
    return call(op, ({args},){out})
"""
)
MANY = (
    HEAD
    + """\
            results = []
            try:
                made = {run}
            except Exception:  # the general path says it better
                return call(op, ({args},){out})
            for c in made:
                if c.__class__ is not ndarray:
                    if not isinstance(c, generic):
                        results.append(wrap_result(c))
                        continue
                    c = array_of(c)
{in_rows}                result = new(Tensor)
                result._array = c
                result._dtype = from_numpy[c.dtype]
                result._storage = result._grad_edge = None
                result._requires_grad = False
                results.append(result)
            if mode_ is None and ({wants}):
                node = {node}()
                node.edges = ({edges},)
                node.seq = next(sequence)
{save}
                tie_many(op, node, results)
            return results
    return call(op, ({args},){out})
"""
)
IN_ROWS = """\
            elif not c.flags.c_contiguous:
                c = c.copy("C")
"""


def make_general(op: Op, params: list[str], passed: list[str], checks: str) -> str | None:
    """The source of a fast path for an op with a fixed number of tensors and one result."""
    if op.kind not in ("general", "reduction") or op.lists or op.kernel is None:
        return None
    if op.many and (op.schema.returns != ("Tensor",) * op.count or op.random):
        return None
    if op.writes is not None:
        return None
    numbers = {a.name for a in op.schema.args if a.is_tensor and a.takes_number}
    if numbers & set(op.keeps):
        return None
    arrays, tests, values, wants, edges = [], [], [], [], []
    for i, (a, name) in enumerate(zip(op.schema.args, passed)):
        if "(" in name:
            return None  # ints given one by one
        values.append(f"a{i}" if a.is_tensor else name)
        if not a.is_tensor:
            continue
        test = f"a{i}.__class__ is ndarray and not {name}._dtype.reduced"
        has = f"{name}._requires_grad"
        if a.takes_number:  # which goes to the kernel as it is
            number = f"{name}.__class__ is float or {name}.__class__ is int"
            arrays.append(f"a{i} = {name} if {number} else {name}._array")
            test = f"{number} or (a{i}.__class__ is ndarray and {name}._dtype.itemsize != 2)"
            has = f"a{i} is not {name} and {has}"
        elif a.is_optional:
            arrays.append(f"a{i} = None if {name} is None else {name}._array")
            test = f"a{i} is None or ({test})"
            has = f"{name} is not None and {has}"
        else:
            arrays.append(f"a{i} = {name}._array")
        tests.append(f"({test})")
        if a.name in op.derivatives:
            wants.append(f"({has})")
            edges.append(f"({name}._grad_edge or {name} if {has} else None)")
        else:
            edges.append("None")
    if not arrays:
        return None
    node = "Node" if op.variant is None else f"op.node_variant(variant({', '.join(passed)}))"
    own = runs_itself(op)
    in_rows = IN_ROWS if own and op.memory == "rows" else ""
    save = general_saving(op, passed)
    words = {
        "name": python_name(op),
        "checks": checks,
        "params": ", ".join(params),
        "no_out": "out is None and " if op.has_out else "",
        "arrays": indent(arrays, 12),
        "tests": " and ".join(tests),
        "run": run_by(op, values),
        "args": ", ".join(passed),
        "out": ", out" if op.has_out else "",
    }
    if op.many:
        return MANY.format(
            **words,
            node=node,
            edges=", ".join(edges),
            save=indent(save, 16),
            in_rows=textwrap.indent(in_rows, "    "),
            wants=" or ".join(wants) or "False",
        )
    wanted = floating(op, f"mode_ is None and ({' or '.join(wants)})") if wants else ""
    result = result_lines("c", "from_numpy[c.dtype]", wanted, f"{', '.join(edges)},", save, node)
    return GENERAL.format(**words, in_rows=in_rows, result=indent(result, 12))


def floating(op: Op, wants: str) -> str:
    """Where a gradient is wanted of a result that can have one."""
    return f"{wants} and (result._dtype.rank {'== 2' if op.of_reals else '> 1'} or integers(op, result))"


def runs_itself(op: Op, memory: Collection[str] = ("", "rows")) -> bool:
    """Whether a generated function calls the record's own function of arrays, without the one that
    `op.on_cpu` puts around it to hand over NumPy and to order the result: a detour of 0.2 µs."""
    return op.kernel.__class__ is FunctionType and not op.plain and op.memory in memory


def run_by(op: Op, values: list[str], memory: Collection[str] = ("", "rows")) -> str:
    """The call of an op's kernel, which is its own function where that is as good: also in these
    orders of memory."""
    own = f"own_kernel(numpy, {', '.join(values)})"
    if runs_itself(op, LAYS):
        return f"lay({own}, {values[0]})"
    return (
        own
        if runs_itself(op, memory)
        else f"{'on_cpu' if op.plain else 'kernel'}({', '.join(values)})"
    )


def general_saving(op: Op, passed: list[str]) -> list[str]:
    """The lines that save what the derivatives of a general op name."""

    def tensor_at(index: int, users: tuple[int, ...]) -> fast_saved.Saved:
        wants = [f"({passed[u]} is not None and {passed[u]}._requires_grad)" for u in users]
        some = f"{passed[index]} is not None and ({' or '.join(wants)})"
        return fast_saved.tensor(passed[index], some)

    def result_at(index: int) -> fast_saved.Saved:
        return (f"kept_of(results[{index}])", "0") if op.many else fast_saved.RESULT

    saved = fast_saved.by_plan(op, passed, tensor_at, result_at)
    return [*fast_saved.lines(saved), *fast_saved.frees(op, saved)]
