"""From tensors to arrays and back: promotion, the device, and the call of the kernel.

Operands of a pointwise op meet in one type; half types are computed in float32.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from toytorch.backends import base
from toytorch.backends.sparse import TABLES, Kernels
from toytorch.core.arguments import not_a_tensor
from toytorch.core.memory_order import kept, placed, row_major
from toytorch.core.op import Op
from toytorch.core.scalars import as_element
from toytorch.core.tensor import Tensor, new
from toytorch.facts import dtype as types
from toytorch.facts.device import device as device_class
from toytorch.facts.dtype import FROM_NUMPY, dtype, from_numpy_dtype, of_scalar, promote
from toytorch.facts.hints import Array, ArrayModule, Scalar
from toytorch.facts.schema import Argument
from toytorch.facts.size import broadcast_pair

NUMBERS = (bool, int, float, complex, np.number, np.bool_)
REDUCED = (types.float16, types.bfloat16)
FULL = (types.float32, types.float64)


def compute(op: Op, args: tuple[Any, ...], target: Array | None = None) -> Any:
    """The kernel's results, as arrays; `target` is what an op in place will write them to."""
    if op.kind == "pointwise":
        return compute_pointwise(op, args)
    if op.kind == "create":
        return op.kernel(*args)
    arrays, xp, half = list(args), None, None
    for i in op.tensor_at:  # the common case: plain arrays on the CPU
        a = args[i]
        if a is None and op.schema.args[i].is_optional:
            continue
        if not isinstance(a, Tensor) or a._array.__class__ is not ndarray or a.dtype.reduced:
            break
        arrays[i] = a._array
    else:
        return op.on_cpu(*arrays)
    if base.queued:
        backend, operands = queue_of(op, args)
        if backend is not None:
            return on_queue(backend, op, args, operands, target)
    arrays, mixed = list(args), False
    for i in op.tensor_at:
        a = arrays[i]
        if isinstance(a, Tensor):
            arrays[i], xp = a._array, same_device(xp, a, op)
            if op.upcast and a.dtype in REDUCED:
                mixed = mixed or half not in (None, a.dtype)  # float16 and bfloat16: float32
                half, arrays[i] = a.dtype, kept(arrays[i].astype("float32"), arrays[i])
            elif op.upcast:
                refuse_storage_only(op, a.dtype)
        elif op.schema.args[i].is_tensor_list:
            check_list(op, i, a)
            arrays[i] = [t._array for t in a]
            for t in a:
                xp = same_device(xp, t, op)
        elif not fits(op.schema.args[i], a):
            raise TypeError(not_a_tensor(op, i, a))
    if half is not None and op.checks is not None:
        op.checks(None, args)  # the kernel sees arrays of one type
    if mixed or (half is not None and isinstance(arrays[-1], dtype)):
        half = None  # dtype= was given: the kernel's result has it
    xp = xp or np
    results = op.kernel_on(xp)(*arrays)
    return results if half is None else down(results, half)


def queue_of(op: Op, args: tuple[Any, ...]) -> tuple[Any, list[Tensor]]:
    """The backend that keeps the time of a call's operands, None if there is none; the operands."""
    operands = []
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            operands.append(a)
        elif a.__class__ in (list, tuple):
            operands += [t for t in a if isinstance(t, Tensor)]
    found = None
    for t in operands:
        array = t._array.values if t._array.__class__ in TABLES else t._array
        backend = base.queued.get(array.__class__)
        if backend is not None and (found is None or backend.name != "cpu"):
            found = backend
    return found, operands


def on_queue(
    backend: Any,
    op: Op,
    args: tuple[Any, ...],
    operands: list[Tensor],
    target: Array | None = None,
    common: dtype | None = None,
) -> Any:
    """Hands a call over to a backend that keeps time: it calls back with arrays of the host."""
    dense = target is None and common is None  # whether all operands are dense and of full size
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            dense = dense and not a.dtype.reduced and a._array.__class__ not in TABLES
            continue
        argument = op.schema.args[i]
        dense = dense and a is None and argument.is_optional and op.kind != "pointwise"
        if not (argument.is_tensor_list or fits(argument, a)):
            raise TypeError(not_a_tensor(op, i, a))
    where, apart = None, False
    if len(operands) > 1:
        places = [t.device for t in operands]
        where = next((p for p in places if p.type == backend.name), None)
        apart = where is not None and any(p is not where and p != where for p in places)
    if op.across == "always" or (op.across and apart):
        return op.on_cpu(*(a._array if isinstance(a, Tensor) else a for a in args))
    if apart:
        assert where is not None  # else there is nothing to be apart from
        refuse_elsewhere(op, args, operands, where)

    host_args = tuple([bare(a) for a in args])
    replaced = sum([new is not old for new, old in zip(host_args, args)])
    plain = dense = dense and replaced == len(operands)  # else lists, or tensors for numbers
    if dense and op.kind == "pointwise":
        plain = nothing_to_promote(op, args, operands)
        if plain and op.checks is not None:
            op.checks(operands[0].dtype, args)

    def kernel(*arrays: Any) -> Any:
        if plain and op.kind != "pointwise":
            return op.on_cpu(*arrays)
        if plain:  # as the fast path of the CPU: of wrong shapes the general path says it better
            with contextlib.suppress(ValueError, TypeError):
                made = op.on_cpu(*arrays)
                return in_order(op, made, [arrays[i] for i in op.tensor_at])
        host = tuple(dressed(new, old) for new, old in zip(arrays, args))
        if op.kind == "pointwise":
            out = arrays[op.tensor_at[0]] if target is not None and target.ndim else None
            return compute_pointwise(op, host, out, common)
        return compute(op, host)

    more: dict[str, Any] = {"waits": True} if op.data_dependent else {}
    if op.flops is not None and op.kind != "pointwise":  # else one for each element
        more.update(flops=op.flops(*args), product=True)
    return backend.launch(op.name, kernel, host_args, target=target, **more)


def nothing_to_promote(op: Op, args: tuple[Any, ...], operands: list[Tensor]) -> bool:
    """Whether a pointwise op can run on its operands as they are: floats of one type."""
    kind = operands[0].dtype
    if op.promotion not in ("default", "float", "tensors") or kind not in FULL:
        return False
    for t in operands:
        if t.dtype is not kind or not t._array.ndim:
            return False
    return complex not in [a.__class__ for a in args]


def bare(value: Any) -> Any:
    """An argument with arrays for tensors."""
    if isinstance(value, Tensor):
        return value._array
    if value.__class__ in (list, tuple) and any(isinstance(v, Tensor) for v in value):
        return value.__class__(bare(v) for v in value)
    return value


def dressed(value: Any, like: Any) -> Any:
    """An argument with tensors where `like` has them."""
    if isinstance(like, Tensor):
        tensor = wrap_result(value)
        tensor.dtype = like.dtype
        return tensor
    if like.__class__ in (list, tuple) and any(isinstance(v, Tensor) for v in like):
        return like.__class__(dressed(v, old) for v, old in zip(value, like))
    return value


def refuse_elsewhere(
    op: Op, args: tuple[Any, ...], operands: list[Tensor], where: device_class
) -> None:
    """Refuses operands on several devices, but for numbers in tensors and indices of the CPU."""
    for t in operands:
        here = t.device
        if here == where or (op.kind == "pointwise" and not t._array.ndim and here.type == "cpu"):
            continue
        if op.host_indices and here.type == "cpu" and t is not args[0]:
            continue
        if op.kind == "pointwise" or here.type != "cpu":
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{where} and {here}!"
            )
        name = next((n for i, n in op.tensor_names if args[i] is t), "tensors")
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but got {name} is on {here}, "
            f"different from other tensors on {where} (when checking argument in method "
            f"wrapper_CUDA_{op.name})"
        )


def down(results: Array | tuple[Array, ...], half: dtype) -> Any:
    """Results computed in float32, in the half type of the operands."""
    if isinstance(results, tuple):
        return tuple(down(r, half) for r in results)
    return results.astype(half.numpy) if results.dtype == np.float32 else results


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
        raise TypeError(
            f"{op.name}(): argument '{name}' (position {i + 1}) must be tuple of "
            f"Tensors, not {type(value).__name__}"
        )
    for k, t in enumerate(value):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"expected Tensor as element {k} in argument {i}, but got {type(t).__name__}"
            )


def fits(argument: Argument, value: object) -> bool:
    """Whether something that is no tensor may stand where the schema has one."""
    if value is None:
        return bool(argument.is_optional)
    return bool(argument.takes_number) and isinstance(value, NUMBERS)


def in_order(op: Op, result: Any, operands: list[Any]) -> Any:
    """A pointwise result in the order of memory that PyTorch gives it, for these operands."""
    if op.memory == "tensor first":
        if not isinstance(operands[0], ndarray):
            return row_major(result)
        return placed(result, *operands)
    if op.memory not in ("", "second"):
        return result
    return placed(result, *(operands[::-1] if op.memory else operands))


def refuse_storage_only(op: Op, common: dtype | None) -> None:
    """Refuses to compute numbers of eight bits, which can be compared and converted only."""
    if common is not None and common.storage_only:
        name = op.name.replace(".", "_")
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.legacy}'")


def common_dtype(op: Op, args: tuple[Any, ...]) -> dtype:
    """The type in which the operands of a pointwise op meet."""
    dims: list[dtype] = []
    zeros: list[dtype] = []
    numbers: list[dtype] = []
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            (dims if a._array.ndim else zeros).append(a.dtype)
        elif not fits(op.schema.args[i], a):
            raise TypeError(not_a_tensor(op, i, a))
        elif a is not None and op.promotion != "tensors":
            numbers.append(of_scalar(a))
    return promote(tuple(dims), tuple(zeros), tuple(numbers))


def compute_pointwise(
    op: Op, args: tuple[Any, ...], target: Array | None = None, common: dtype | None = None
) -> Any:
    """Promotes the operands and runs the kernel; half types are computed in float32.

    `common` is the type in which the operands meet, where the caller knows it.
    """
    for a in args:
        if isinstance(a, ndarray):  # x + array works, as it does in PyTorch
            args = tuple(wrap_result(a) if isinstance(a, ndarray) else a for a in args)
            break
    if base.queued:
        backend, operands = queue_of(op, args)
        if backend is not None:
            return on_queue(backend, op, args, operands, target, common)
    arrays, where = list(args), None
    xp: Any = None
    for i in op.tensor_at:
        a = args[i]
        if not isinstance(a, Tensor):
            if op.promotion == "none" and not fits(op.schema.args[i], a):
                raise TypeError(not_a_tensor(op, i, a))
        elif a._array.__class__ in TABLES:
            xp = table_of(xp, TABLES[a._array.__class__])
        elif a._array.__class__ is not ndarray:
            if where is not None and where != a.device and a.ndim:
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at "
                    f"least two devices, {where} and {a.device}!"
                )
            where = a.device
            xp = xp or base.of_array(a._array).xp
    if xp is None:
        xp = np
    if op.promotion != "none":
        if common is None:
            common = common_dtype(op, args)
        if op.promotion == "float" and common.rank < 2:
            common = types.get_default_dtype()
        if op.checks is not None:
            op.checks(common, args)
        if complex in [a.__class__ for a in args] and not common.is_complex:
            refuse_complex(common)
    reduced = half = common in REDUCED or (common is not None and common.storage_only)
    own: Any = None if common is None else common.numpy
    if reduced and op.narrow:
        at = op.schema.index[op.narrow]
        if arrays[at].__class__ is float:
            arrays[at] = float(own.type(arrays[at]))
    if half and op.in_halves:
        half = False
    work = np.float32 if half else own
    ready: list[Any] = []
    lying: list[Any] = []  # the operands as PyTorch has them, which computes on halves themselves
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            array = a._array
            if where is not None and array.__class__ is ndarray:
                if a.ndim:
                    raise RuntimeError(
                        "Expected all tensors to be on the same device, but found "
                        f"at least two devices, {where} and cpu!"
                    )
                array = xp.asarray(array)
            if work is None or array.dtype == work:
                arrays[i] = array
            elif half and a.dtype is common:
                arrays[i] = array.astype(work)
                ready.append(arrays[i])
                lying.append(array)
                continue
            else:
                if (
                    half
                    and common is not None
                    and (a.ndim or op.schema.args[i].name != op.wide_number)
                ):
                    array = array.astype(common.numpy)
                arrays[i] = kept(array.astype(work), array)
        elif a is not None:
            arrays[i] = scalar(xp, a, common, work)
            if half and op.schema.args[i].name != op.wide_number:
                arrays[i] = kept(arrays[i].astype(own).astype(work), arrays[i])
            beside = next(
                (t.dtype for t in args if isinstance(t, Tensor) and t.dtype.rank == 2), None
            )
            if work is None and beside in REDUCED and a.__class__ is not complex:
                arrays[i] = arrays[i].astype(
                    beside.numpy
                )  # which NumPy does not know how to promote
        ready.append(arrays[i])
        lying.append(arrays[i])
    for i, a in enumerate(arrays):
        if isinstance(a, Tensor):  # a tensor for a number, such as alpha
            arrays[i] = a = a.item()
        if (
            common is not None
            and common.rank == 1
            and op.schema.args[i].type == "Scalar"
            and (common is not types.int64 if a.__class__ is int else a - a != 0)
        ):  # NumPy refuses to wrap a number, PyTorch one without end
            arrays[i] = as_element(np, a, common.numpy)[()]
    if op.spreads and xp is np and np.dtype(work).kind == "c" and arrays[-1] == 1:
        at = op.schema.index[op.spreads]
        ready[op.tensor_at.index(at)] = arrays[at] = spread_infinity(arrays[at])
    try:
        if (
            target is not None
            and target.dtype == work
            and xp.__class__ is not Kernels
            and (
                isinstance(op.kernel, str)
                or (op.plain and len(args) == 3 and args[2].__class__ is int and args[2] == 1)
            )
        ):
            for array in ready:
                if array.shape not in ((), target.shape):
                    break
            else:
                return op.into(xp)(*ready, out=target)
        result = op.kernel_on(xp)(*arrays)
        if xp is np:
            result = in_order(op, result, lying)
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
    if reduced and result.dtype == np.float32:  # a numeral beside bfloat16 makes it of CuPy's, too
        refuse_storage_only(op, common)
        result = kept(result.astype(common.numpy), result)  # type: ignore[union-attr]  # reduced has a dtype
    return result


def spread_infinity(b: Array) -> Any:
    """b·(1 + 0i) as C computes it: infinity times 0 is NaN, in the other part."""
    finite = np.isfinite(b)
    if finite.all():
        return b
    real = np.where(np.isfinite(b.imag), b.real, np.nan)
    imag = np.where(np.isfinite(b.real), b.imag, np.nan)
    made = np.empty(b.shape, b.dtype)
    made.real, made.imag = real, imag
    return made


def scalar(xp: ArrayModule, value: Scalar, common: dtype | None, work: Any) -> Any:
    """A number of the common type; integers wrap, as C's do. It is no array, so that kernels tell it
    from a tensor without dimensions (`power` does)."""
    if hasattr(xp, "RawModule"):  # a kernel on a card takes NumPy's scalars along
        return scalar(np, value, common, work)[()]
    if common is None:
        return xp.asarray(value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    made = xp.asarray(value).astype(work)
    return made[()] if xp is np else made


def refuse_complex(common: dtype) -> None:
    """Refuses a complex number as an option of an op of real numbers, or of integers."""
    kind = {"float32": "float", "float64": "double", "int64": "int64_t"}.get(common.name, "float")
    raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def raise_shapes(shapes: list[tuple[int, ...]]) -> None:
    """PyTorch's error for operands that do not broadcast."""
    shape = shapes[0]
    for other in shapes[1:]:
        shape = broadcast_pair(shape, other)
    raise RuntimeError(f"operands of shapes {shapes} do not broadcast")


def wrap_result(array: Array) -> Tensor:
    """A tensor over a kernel's result, which may be a scalar where it should be a 0-d array."""
    if array.__class__ is not ndarray and (
        isinstance(array, np.generic) or not hasattr(array, "strides")
    ):
        array = np.asarray(array)
    tensor: Tensor = new(Tensor)
    tensor._array = array
    tensor.dtype = FROM_NUMPY.get(array.dtype) or from_numpy_dtype(array.dtype)
    tensor._requires_grad = False
    tensor._grad_edge = tensor._storage = None
    return tensor
