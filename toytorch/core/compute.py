"""From tensors to arrays and back: promotion, the device, and the call of the kernel.

Operands of a pointwise op meet in one type; half types are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from toytorch.backends import base, generic
from toytorch.backends.sparse import TABLES, Kernels
from toytorch.core.arguments import not_a_tensor
from toytorch.core.formulas import FormulaKernel
from toytorch.core.memory_order import in_order, kept
from toytorch.core.op import Op
from toytorch.core.queued import at_once, handed_over
from toytorch.core.scalars import as_element, fits, scalar
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.device import device as device_class
from toytorch.facts.dtype import dtype, of_scalar, promote
from toytorch.facts.hints import Args, Array, Sizes
from toytorch.facts.schema import class_of, wrong_argument
from toytorch.facts.size import broadcast_pair
from toytorch.loops.runtime.jit import SMALLEST

REDUCED = (types.float16, types.bfloat16)
HALF_MOST = 65504.0  # the largest number of float16


def compute(op: Op, args: Args, target: Array | None = None) -> Any:
    """The kernel's results, as arrays; `target` is what an op in place will write them to."""
    if base.queued and target is None:
        made = at_once(op, args)
        if made is not NotImplemented:
            return made
    if op.kind == "pointwise":
        return compute_pointwise(op, args)
    arrays = list(args)
    for i in op.tensor_at:  # the common case: plain arrays on the CPU
        a = args[i]
        if a is None and op.schema.args[i].is_optional:
            continue
        if not isinstance(a, Tensor) or a._array.__class__ is not ndarray or a._dtype.reduced:
            break
        arrays[i] = a._array
    else:
        return op.on_cpu(*arrays)
    if base.queued:
        made = handed_over(op, args, compute_held, target)
        if made is not NotImplemented:
            return made
    made = of_halves(op, args) if op.halves else None
    if made is None:
        made = of_first(op, args)
    return widened(op, args) if made is None else made


def widened(op: Op, args: Args) -> Any:
    """The kernel's results for tensors of any one device and for lists of them. Half types are
    computed in float32 where the record says so, and results have them again: but not if there are
    two of them, or if dtype= names another."""
    arrays, xp, halves = opened(op, args)
    if halves and op.checks is not None:
        try:
            op.checks(None, args)  # the kernel sees arrays of one type
        except RuntimeError:
            refuse_earlier(op, xp, args, arrays)
            raise
    half = halves.pop() if len(halves) == 1 else None
    if half is not None and isinstance(arrays[-1], dtype):
        if arrays[-1] is half and op.schema.args[-1].is_optional:
            arrays[-1] = None  # it says what would be anyway
        else:
            half = None
    if half is None:
        return op.kernel_on(xp)(*arrays)
    made = None
    if op.halves and xp.__class__ is not Kernels:  # sparse arrays have none
        made = generic.attempt(xp, op.halves, half.numpy, *arrays)
    return down(op.kernel_on(xp)(*arrays), half) if made is None else made


def opened(op: Op, args: Args) -> tuple[list[Any], Any, set[dtype]]:
    """The arguments with arrays for tensors, the module of these arrays, and which half types were
    widened to float32."""
    arrays, xp, halves = list(args), None, set[dtype]()
    for i in op.tensor_at:
        a = arrays[i]
        if isinstance(a, Tensor):
            arrays[i], xp = a._array, same_device(xp, a, op)
            if op.upcast and a._dtype in REDUCED:
                halves.add(a._dtype)
                arrays[i] = kept(retyped(arrays[i], np.float32), arrays[i])
            elif op.upcast:
                refuse_storage_only(op, a._dtype)
        elif op.schema.args[i].is_tensor_list:
            check_list(op, i, a)
            arrays[i] = [t._array for t in a]
            for t in a:
                xp = same_device(xp, t, op)
        elif not fits(op.schema.args[i], a):
            raise TypeError(not_a_tensor(op, i, a))
    return arrays, xp or np, halves


def refuse_earlier(op: Op, xp: Any, args: Args, arrays: Sequence[Any]) -> None:
    """What a kernel says of operands of several types, one of them a half type, unless that is what it
    refuses: float64 stands for half types beside float32, so that it sees two types."""
    kinds = [a.dtype for a in args if isinstance(a, Tensor)]
    stand_in = types.float64 if types.float32 in kinds else types.float32
    given = [
        retyped(x, stand_in.numpy) if isinstance(a, Tensor) and a.dtype in REDUCED else x
        for a, x in zip(args, arrays)
    ]
    try:
        op.kernel_on(xp)(*given)
    except (RuntimeError, IndexError) as error:
        if stand_in.legacy.lower() not in str(error).lower():  # whichever way it says a name
            raise


def of_halves(op: Op, args: Args) -> Any:
    """What a device's kernel makes of half types as they are, all of one; None where they have to be
    widened first, as for NumPy's arrays always."""
    tensors = [args[i] for i in op.tensor_at if args[i] is not None]
    first = tensors[0] if tensors else None
    if not isinstance(first, Tensor) or first._array.__class__ is ndarray:
        return None
    if first._array.__class__ in TABLES or first._dtype not in REDUCED:
        return None
    if any(t.__class__ is not first.__class__ or t._dtype is not first._dtype for t in tensors):
        return None
    given = [a._array if isinstance(a, Tensor) else a for a in args]
    return generic.attempt(base.of_array(first._array).xp, f"{op.halves}, not widened", *given)


def of_first(op: Op, args: Args) -> Any:
    """What the record's own kernel (`upcast`) makes of a half type in its first operand, an array of
    NumPy's; None where it has to be widened first."""
    first = args[0]
    if not isinstance(first, Tensor) or first._dtype not in REDUCED:
        return None
    if first._array.__class__ is not ndarray or isinstance(op.upcast, bool):
        return None
    made = op.upcast(first._array, *args[1:])
    return made if made is None else down(made, first._dtype)


def compute_held(op: Op, args: Args, target: Array | None, common: dtype | None) -> Any:
    """`compute` on the arrays of the host that stand for a device's."""
    if op.kind == "pointwise":
        return compute_pointwise(op, args, target, common)
    return compute(op, args)


def down(results: Array | tuple[Array, ...], half: dtype) -> Any:
    """Results computed in float32, in the half type of the operands."""
    if isinstance(results, tuple):
        return tuple(down(r, half) for r in results)
    return retyped(results, half.numpy) if results.dtype == np.float32 else results


def same_device(xp: Any, tensor: Tensor, op: Op) -> Any:
    """The array module of `tensor`, which must be the one found before."""
    found = np if tensor._array.__class__ is ndarray else base.of_array(tensor._array).xp
    if xp is not None and found is not xp:
        if xp.__class__ is Kernels or found.__class__ is Kernels:
            return table_of(xp, found)  # its kernels take dense operands too
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two "
            f"devices, cuda:0 and cpu! (when checking arguments of {op.name})"
        )
    return found


def table_of(xp: Any, found: Any) -> Any:
    """Of two array modules the table of sparse kernels; that of compressed arrays, if one is."""
    tables = [m for m in (xp, found) if m.__class__ is Kernels]
    return tables[0] if len(tables) == 1 or tables[0].where != "SparseCPU" else tables[1]


def check_list(op: Op, i: int, value: Sequence[Tensor]) -> None:
    """Refuses what is no list of tensors."""
    name = op.schema.args[i].name
    if not isinstance(value, (list, tuple)):
        raise wrong_argument(op.name, name, i + 1, "tuple of Tensors", value)
    for k, t in enumerate(value):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"expected Tensor as element {k} in argument {i}, but got {class_of(t)}"
            )


def refuse_storage_only(op: Op, common: dtype | None) -> None:
    """Refuses to compute numbers of eight bits, which can be compared and converted only."""
    if common is not None and common.storage_only and not (common.is_complex and op.of_pairs):
        name = op.name.replace(".", "_")
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.legacy}'")


def common_dtype(op: Op, args: Args) -> dtype:
    """The type in which the operands of a pointwise op meet."""
    dims: list[dtype] = []
    zeros: list[dtype] = []
    numbers: list[dtype] = []
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            (dims if a._array.ndim else zeros).append(a._dtype)
        elif not fits(op.schema.args[i], a):
            raise TypeError(not_a_tensor(op, i, a))
        elif a is not None and op.promotion != "tensors":
            numbers.append(of_scalar(a))
    return promote(tuple(dims), tuple(zeros), tuple(numbers))


def compute_pointwise(
    op: Op, args: Args, target: Array | None = None, common: dtype | None = None
) -> Any:
    """Promotes the operands and runs the kernel; half types are computed in float32.

    `common` is the type in which the operands meet, where the caller knows it.
    """
    if base.queued:
        made = handed_over(op, args, compute_held, target, common)
        if made is not NotImplemented:
            return made
    xp, where = module_of(op, args)
    if op.promotion != "none":
        if common is None:
            common = common_dtype(op, args)
        if op.promotion == "float" and common.rank < 2:
            common = types.get_default_dtype()
        if op.checks is not None:
            op.checks(common, args)
        if complex in [a.__class__ for a in args] and not common.is_complex:
            refuse_complex(common)
    else:
        args = numbers_in_type(op, args)
    reduced = common in REDUCED or (common is not None and common.storage_only)
    half = reduced and not op.in_halves
    if half and xp is not np and common in REDUCED and op.takes_halves(xp):
        half = False
    if half and xp is np and common in REDUCED:
        made = in_one_loop(op, args, common, target)
        if made is not None:
            return made
    own: Any = None if common is None else common.numpy
    work = own if common is None or not half else common.wide
    arrays, lying = converted(op, args, xp, where, common, half)
    if reduced and op.narrow:
        at = op.schema.index[op.narrow]
        if arrays[at].__class__ is float:
            value = own.type(arrays[at])
            arrays[at] = value if op.in_halves else float(value)  # a float would widen bfloat16
    options_in_type(op, arrays, common)
    if op.spreads and xp is np and np.dtype(work).kind == "c" and arrays[-1] == 1:
        at = op.schema.index[op.spreads.lstrip("-")]
        arrays[at] = times_unit(arrays[at], work, op.spreads[0] == "-")
    try:
        result = None
        if reduced and op.halves:
            result = generic.attempt(xp, op.halves, own, *arrays)
            result = result if result is None else in_order(op, result, lying)
        if result is None:
            result = run_pointwise(op, xp, args, arrays, lying, target, work)
    except TypeError as error:
        if common is not None and "not supported for the input types" in str(error):
            raise NotImplementedError(
                f"\"{op.name.replace('.', '_')}_cpu\" not implemented for '{common.legacy}'"
            ) from None
        raise
    except ValueError as error:
        if "broadcast" in str(error):
            raise_shapes([arrays[i].shape for i in op.tensor_at if arrays[i] is not None])
        raise
    # A numeral beside bfloat16 makes it float32 of CuPy's, too.
    if reduced and result.dtype in (np.float32, np.complex64):
        refuse_storage_only(op, common)
        kind: Any = common if result.dtype.kind == "c" else common.to_real()  # type: ignore[union-attr]  # reduced has a dtype
        result = kept(retyped(result, kind.numpy), result)
    return result


def numbers_in_type(op: Op, args: Args) -> tuple[Any, ...]:
    """Arguments of an op that promotes nothing, where a number has the type of the tensor that stands
    for the other one; NumPy would take a number for float64."""
    beside = [i for i in op.tensor_at if op.schema.args[i].takes_number]
    kinds = {args[i]._dtype for i in beside if isinstance(args[i], Tensor)}
    if len(kinds) != 1:
        return args
    (kind,) = kinds
    return tuple(
        kind.numpy.type(a)
        if i in beside and a.__class__ in (bool, int, float) and of_scalar(a).rank <= kind.rank
        else a
        for i, a in enumerate(args)
    )


def retyped(a: Any, kind: Any) -> Any:
    """An array in another type; half types of large arrays by the kernel of conversions, for which
    NumPy takes ten times as long."""
    made = None
    if a.__class__ is ndarray or isinstance(a, np.generic):
        made = generic.attempt(np, "cast", a, np.dtype(kind)) if a.size >= SMALLEST else None
    elif a.__class__ not in TABLES:
        made = generic.attempt(base.of_array(a).xp, "cast", a, np.dtype(kind))
    return a.astype(kind) if made is None else made


def module_of(op: Op, args: Args) -> tuple[Any, device_class | None]:
    """The array module of a pointwise op's operands, and their device if it is not the CPU."""
    xp: Any = None
    where = None
    for i in op.tensor_at:
        a = args[i]
        if not isinstance(a, Tensor):
            if op.promotion == "none" and not fits(op.schema.args[i], a):
                raise TypeError(not_a_tensor(op, i, a))
        elif a._array.__class__ in TABLES:
            xp = table_of(xp, TABLES[a._array.__class__])
        elif a._array.__class__ is not ndarray:
            if where is not None and where != a.device and a.ndim:
                refuse_two_devices(where, a.device)
            where = a.device
            xp = xp or base.of_array(a._array).xp
    return np if xp is None else xp, where


def converted(
    op: Op, args: Args, xp: Any, where: device_class | None, common: dtype | None, half: bool
) -> tuple[list[Any], list[Any]]:
    """The arguments with arrays in the type of the computation for operands; and the operands as
    PyTorch has them, which computes on half types themselves."""
    own: Any = None if common is None else common.numpy
    work = own if common is None or not half else common.wide
    rounds = half and (xp is np or own.kind != types.PAIR)  # which CuPy has not
    arrays, lying = list(args), []
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            array = a._array
            if where is not None and array.__class__ is ndarray:
                if a.ndim:
                    refuse_two_devices(where, "cpu")
                array = xp.asarray(array)
            if work is None or array.dtype == work:
                arrays[i] = array
            elif half and a._dtype is common:
                arrays[i] = retyped(array, work)
                lying.append(array)
                continue
            else:
                wide = not a.ndim and op.schema.args[i].name == op.wide_number
                narrow = retyped(array, own) if rounds and not wide else array
                arrays[i] = kept(retyped(narrow, work), array)
        elif a is not None:
            arrays[i] = scalar(xp, a, common, work)
            if rounds and op.schema.args[i].name != op.wide_number:
                arrays[i] = kept(arrays[i].astype(own).astype(work), arrays[i])
            beside = next(
                (t._dtype for t in args if isinstance(t, Tensor) and t._dtype.rank == 2), None
            )
            if work is None and beside in REDUCED and a.__class__ is not complex:
                arrays[i] = arrays[i].astype(  # which NumPy does not know how to promote
                    beside.numpy
                )
        lying.append(arrays[i])
    return arrays, lying


def in_one_loop(op: Op, args: Args, common: dtype, target: Array | None) -> Array | None:
    """The result for operands of a half type, by the loop of the formula; None where it takes several
    steps: for operands that lie otherwise than in rows or are of several types."""
    given = list[Any]()
    if op.half_loop is None or not (target is None or target.flags.c_contiguous):
        return None
    written = 0  # operands that are the target: a loop reads it once
    for a, value in zip(op.schema.args, args):
        if isinstance(value, Tensor):
            if value._dtype is not common or not value.ndim:
                return None
            value = value._array
            if target is not None and np.may_share_memory(value, target):
                written += 1
                if value is not target or written > 1:
                    return None
        elif value.__class__ in (bool, int, float):
            if not -HALF_MOST < value < HALF_MOST:  # others are no numbers of float16
                return None
            if (a.is_tensor and a.name != op.wide_number) or a.name == op.narrow:
                value = float(common.numpy.type(value))
        elif value is not None:
            return None
        given.append(value)
    return op.half_loop(given, target)


def options_in_type(op: Op, arrays: list[Any], common: dtype | None) -> None:
    """Brings the numbers among the arguments that are no operands, such as alpha, into the type of
    integers: NumPy refuses to wrap a number, PyTorch one without end."""
    for i, a in enumerate(arrays):
        if isinstance(a, Tensor):  # a tensor for a number
            arrays[i] = a = a.item()
        if (
            common is not None
            and common.rank == 1
            and op.schema.args[i].type == "Scalar"
            and (common is not types.int64 if a.__class__ is int else a - a != 0)
        ):
            arrays[i] = as_element(np, a, common.numpy)[()]


def run_pointwise(
    op: Op,
    xp: Any,
    args: Args,
    arrays: list[Any],
    lying: list[Any],
    target: Array | None,
    work: Any,
) -> Any:
    """The kernel's result: at once in `target`, where that has its type and shape and there is a
    kernel that takes a place to write to."""
    if (
        target is not None
        and target.dtype == work
        and xp.__class__ is not Kernels
        and (
            isinstance(op.kernel, str)
            or (op.plain and len(args) == 3 and args[2].__class__ is int and args[2] == 1)
        )
    ):
        operands = [arrays[i] for i in op.tensor_at]
        for array in operands:
            if array.shape not in ((), target.shape):
                break
        else:
            return op.into(xp)(*operands, out=target)
    if target is not None and target.dtype == work and op.kernel.__class__ is FormulaKernel:
        made = op.kernel.into(target, arrays) if xp is np else in_place_on(op, xp, arrays, target)
        if made is not None:
            return made
    result = op.kernel_on(xp)(*arrays)
    return in_order(op, result, lying) if xp is np else result


def in_place_on(op: Op, xp: Any, arrays: list[Any], target: Array) -> Any:
    """The result of a device's kernel of the formula in `target`; None where there is none."""
    if not op.takes_halves(xp) or len(arrays) != len(op.schema.args):
        return None
    params = [a.name for a in op.schema.args]
    return generic.attempt(xp, "formula", op.formula, params, tuple(arrays), target)


def refuse_two_devices(where: device_class, other: object) -> NoReturn:
    """Refuses operands on two devices."""
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{where} and {other}!"
    )


def times_unit(value: Any, kind: Any, minus: bool) -> Any:
    """b·(1 + 0i), or -(b·(-1 + 0i)), as C computes it: infinity times 0 is NaN, in the other part, and
    a part that is 0 gets the sign of a sum."""
    b = np.asarray(value, kind)
    real, imag = b.real, b.imag
    if real.all() and imag.all() and np.isfinite(b).all():
        return b
    made = np.empty_like(b)
    if minus:
        made.real, made.imag = -(-real - 0 * imag), -(-imag + 0 * real)
    else:
        made.real, made.imag = real - 0 * imag, imag + 0 * real
    return made


def refuse_complex(common: dtype) -> None:
    """Refuses a complex number as an option of an op of real numbers, or of integers."""
    kind = {"float32": "float", "float64": "double", "int64": "int64_t"}.get(common.name, "float")
    raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def raise_shapes(shapes: list[Sizes]) -> None:
    """PyTorch's error for operands that do not broadcast."""
    shape = shapes[0]
    for other in shapes[1:]:
        shape = broadcast_pair(shape, other)
    raise RuntimeError(f"operands of shapes {shapes} do not broadcast")
