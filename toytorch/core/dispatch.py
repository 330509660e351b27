"""The general path of every call, in the order in which things happen.

    watchers      modes (tracing, profiling, the course's injection point) may take the call over
    promotion     operands of a pointwise op meet in one type
    kernel        the backend's arrays in, arrays out
    autograd      a Node remembers what the derivative needs

`toytorch.core.fast_path` holds the fast path for the common case; a test holds the two equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends import sparse as sparse_arrays
from toytorch.backends.sparse import SparseArray
from toytorch.core import inplace as writing
from toytorch.core.arguments import not_a_tensor
from toytorch.core.op import Op
from toytorch.core.storage import InferenceStorage
from toytorch.core.tensor import Tensor, alias, new
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.dtype import FROM_NUMPY, dtype, from_numpy_dtype, of_scalar, promote
from toytorch.facts.hints import Array, ArrayModule, Scalar
from toytorch.facts.node import Node, Output, pack, remember, sequence
from toytorch.facts.schema import Argument
from toytorch.facts.size import broadcast_pair

ndarray = np.ndarray
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
REDUCED = (types.float16, types.bfloat16)
SPARSE = sparse_arrays.backend.xp


def call(op: Op, args: tuple[Any, ...], out: Tensor | None = None) -> Any:
    """Runs `op` on arguments in the order of its signature."""
    if state.fast_path is not state.SLOW:
        return run(op, args, out)
    if state.profiler is not None:
        return state.profiler.around(f"aten::{op.name}", args, hand_over, op, args, out)
    return hand_over(op, args, out)


def hand_over(op: Op, args: tuple[Any, ...], out: Tensor | None) -> Any:
    """`call` where somebody watches: the innermost mode that takes calls gets this one."""
    for mode in reversed(state.local.modes):
        take_over = getattr(mode, "on_call", None)
        if take_over is not None:
            with state.below(mode):
                return take_over(op, args, out)
    if state.everywhere is not None:
        return state.everywhere.on_call(op, args, out)
    return run(op, args, out)


def run(op: Op, args: tuple[Any, ...], out: Tensor | None = None) -> Any:
    """`call` below the modes."""
    if op.kind == "view" and getattr(args[0], "_array", None).__class__ is not SparseArray:
        return run_view(op, args)  # of a sparse tensor, a view is a copy
    if out is not None:
        refuse_grad(op.name, [args[i] for i in op.tensor_at], out)
    results = compute(op, args)
    if out is not None:
        return write_out(op, args, results, out)
    if op.many:
        tensors: Any = [wrap_result(r) for r in results]
    else:
        tensors = wrap_result(results)
    if op.derivatives and wants_grad(op, args) and state.local.grad:
        record(op, args, tensors)
    if state.local.inference:
        for t in tensors if op.many else [tensors]:
            t._storage = InferenceStorage(t._array)
    return tensors


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


# -- kernels ----------------------------------------------------------------------------------


def compute(op: Op, args: tuple[Any, ...]) -> Any:
    """The kernel's results, as arrays."""
    if op.kind == "pointwise":
        return compute_pointwise(op, args)
    if op.kind == "create":
        return op.kernel(*args)
    arrays, xp, half = list(args), None, None
    for i in op.tensor_at:  # the common case: plain arrays on the CPU
        a = args[i]
        if a is None and op.schema.args[i].is_optional:
            continue
        if (
            not isinstance(a, Tensor)
            or a._array.__class__ is not ndarray
            or (a.dtype.itemsize == 2 and a.dtype in REDUCED)
        ):
            break
        arrays[i] = a._array
    else:
        return op.on_cpu(*arrays)
    arrays = list(args)
    for i in op.tensor_at:
        a = arrays[i]
        if isinstance(a, Tensor):
            arrays[i], xp = a._array, same_device(xp, a, op)
            if op.upcast and a.dtype in REDUCED:
                half, arrays[i] = a.dtype, arrays[i].astype("float32")
        elif op.schema.args[i].is_tensor_list:
            check_list(op, i, a)
            arrays[i] = [t._array for t in a]
            for t in a:
                xp = same_device(xp, t, op)
        elif not fits(op.schema.args[i], a):
            raise TypeError(not_a_tensor(op, i, a))
    if half is not None and isinstance(arrays[-1], dtype):
        half = None  # dtype= was given: the kernel's result has it
    xp = xp or np
    results = op.kernel_on(xp)(*arrays)
    return results if half is None else down(results, half)


def down(results: Array | tuple[Array, ...], half: dtype) -> Any:
    """Results computed in float32, in the half type of the operands."""
    if isinstance(results, tuple):
        return tuple(down(r, half) for r in results)
    return results.astype(half.numpy) if results.dtype == np.float32 else results


def same_device(xp: Any, tensor: Tensor, op: Op) -> Any:
    """The array module of `tensor`, which must be the one found before."""
    found = np if tensor._array.__class__ is ndarray else base.of_array(tensor._array).xp
    if xp is not None and found is not xp:
        if SPARSE in (xp, found):
            return SPARSE  # its kernels take dense operands too
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two "
            f"devices, cuda:0 and cpu! (when checking arguments of {op.name})"
        )
    return found


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
        elif a is not None:
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
    arrays, where = list(args), None
    xp: Any = None
    for i in op.tensor_at:
        a = args[i]
        if not isinstance(a, Tensor):
            if op.promotion == "none" and not fits(op.schema.args[i], a):
                raise TypeError(not_a_tensor(op, i, a))
        elif a._array.__class__ is SparseArray:
            xp = SPARSE
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
    half = common in REDUCED
    work = np.float32 if half else common.numpy if common is not None else None
    ready: list[Any] = []
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
            arrays[i] = array if work is None or array.dtype == work else array.astype(work)
        elif a is not None:
            arrays[i] = scalar(xp, a, common, work)
        ready.append(arrays[i])
    for i, a in enumerate(arrays):
        if isinstance(a, Tensor):  # a tensor for a number, such as alpha
            arrays[i] = a.item()
    try:
        if (
            target is not None
            and target.dtype == work
            and xp is not SPARSE
            and (
                isinstance(op.kernel, str)
                or (op.plain and len(args) == 3 and args[2].__class__ is int and args[2] == 1)
            )
        ):
            for array in ready:
                if array.shape not in ((), target.shape):
                    break
            else:
                kernel = getattr(xp, op.plain) if op.plain else op.kernel_on(xp)
                return kernel(*ready, out=target)
        result = op.kernel_on(xp)(*arrays)
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
    if half and result.dtype == np.float32:
        result = result.astype(common.numpy)  # type: ignore[union-attr]  # half has a dtype
    return result


def scalar(xp: ArrayModule, value: Scalar, common: dtype | None, work: Any) -> Any:
    """A number as a 0-d array of the common type; integers wrap, as C's do."""
    if common is None:
        return xp.asarray(value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return xp.asarray(value).astype(work)


def raise_shapes(shapes: list[tuple[int, ...]]) -> None:
    """PyTorch's error for operands that do not broadcast."""
    shape = shapes[0]
    for other in shapes[1:]:
        shape = broadcast_pair(shape, other)
    raise RuntimeError(f"operands of shapes {shapes} do not broadcast")


# -- autograd ---------------------------------------------------------------------------------


def wants_grad(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether any tensor argument requires a gradient."""
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            if a._requires_grad:
                return True
        elif a.__class__ in (list, tuple) and any(
            t._requires_grad for t in a if isinstance(t, Tensor)
        ):
            return True
    return False


def edge(tensor: Tensor) -> Any:
    """Where the gradient of `tensor` goes."""
    if not isinstance(tensor, Tensor) or not tensor._requires_grad:
        return None
    return tensor._grad_edge or tensor


def record(op: Op, args: tuple[Any, ...], results: Any, overwritten: Tensor | None = None) -> Any:
    """Makes the node of a call and ties the results to it."""
    many = results.__class__ in (list, tuple)
    if not many and results.dtype.rank < 2:
        return None
    node: Node = new(op.node if op.variant is None else op.node_variant(op.variant(*args)))
    edges: list[Any] = []
    derivatives = op.derivatives
    for i, name in op.tensor_names:
        a = args[i]
        if a.__class__ in (list, tuple):
            edges += [edge(t) for t in a]
        elif name in derivatives and isinstance(a, Tensor) and a._requires_grad:
            edges.append(a._grad_edge or a)
        else:
            edges.append(None)
    if overwritten is not None:
        edges[0] = writing.old_edge(overwritten) if op.schema.args[0].name in derivatives else None
    node.edges, node.seq = tuple(edges), next(sequence)
    if state.anomaly is not None:
        remember(node)
    if node.bare and any(not plain_operand(op, args[i], results) for i in op.tensor_at):
        node.bare = False  # promotion, and sparse operands, are the tensors' business
    keep(op, node, args, results, overwritten)
    if many:
        tie_many(op, node, results)
    else:
        node.meta = results._array.shape, results.dtype
        if overwritten is None:
            results._requires_grad, results._grad_edge = True, node
    return node


def plain_operand(op: Op, operand: Any, result: Tensor) -> bool:
    """Whether derivatives may be computed on the bare array of an operand."""
    pointwise = op.kind == "pointwise"
    if not isinstance(operand, Tensor):
        return not pointwise or getattr(operand, "dtype", result.dtype) is result.dtype
    return operand._array.__class__ is ndarray and (not pointwise or operand.dtype is result.dtype)


def tie_many(op: Op, node: Node, results: Tensor | list[Tensor]) -> None:
    """Ties several results to their node."""
    node.meta = [(r._array.shape, r.dtype) for r in results]
    node.__dict__["count"] = len(results)
    for i, r in enumerate(results):
        if r.dtype.rank > 1 and (len(op.results) == 1 or op.results[i]):
            r._requires_grad, r._grad_edge = True, Output(node, i)


def keep(
    op: Op, node: Node, args: tuple[Any, ...], results: Any, overwritten: Tensor | None
) -> None:
    """Saves what the derivatives name, each tensor with the version it has now."""
    if not op.plan:
        node.saved, node.versions = None, ()
        return
    saved: list[Any] = []
    versions: list[int | None] = []
    for kind, index, users in op.plan:
        version = None
        if kind == "argument":
            value = args[index]
            if isinstance(value, Tensor):
                if not any(asks(args[u], overwritten) for u in users):
                    value = None
                elif value is overwritten and index == 0:
                    value = writing.snapshot(value)
                    version = 0
                else:
                    version = 0 if value._storage is None else value._storage.version
        elif kind == "result" and not any(isinstance(args[u], (Tensor, list)) for u in users):
            value = None  # only a number would ask for it, as of pow with a number as exponent
        elif kind == "result":
            value = alias(results if index < 0 else results[index])
            version = value._storage.version + (overwritten is not None)
        else:
            value = TRAITS[kind](args[index])
        saved.append(value)
        versions.append(version)
    node.saved, node.versions = tuple(saved), tuple(versions)
    if state.local.saved_hooks and overwritten is None:
        pack(node)


def asks(argument: Tensor | float, overwritten: Tensor | None) -> bool:
    """Whether the gradient of an argument will be computed."""
    if isinstance(argument, Tensor):
        return argument._requires_grad or (
            argument is overwritten and writing.old_edge(argument) is not None
        )
    return isinstance(argument, (list, tuple))


def shape_of(value: Any) -> Any:
    """The shape of a tensor argument (of each, for a list; none for a number)."""
    if isinstance(value, Tensor):
        return value._array.shape
    return [t._array.shape for t in value] if isinstance(value, (list, tuple)) else ()


def dtype_of(value: Any) -> Any:
    """The type of a tensor argument (of each, for a list; none for a number)."""
    if isinstance(value, Tensor):
        return value.dtype
    return [t.dtype for t in value] if isinstance(value, (list, tuple)) else None


def is_column_major(value: Any) -> bool:
    """Whether a matrix lies in memory column by column."""
    flags = value._array.flags
    return bool(flags.f_contiguous and not flags.c_contiguous)


def layout_of(value: Any) -> Any:
    """The shape, strides and storage offset of a tensor."""
    return tuple(value._array.shape), value.stride(), value.storage_offset()


TRAITS = {"shape": shape_of, "dtype": dtype_of, "order": is_column_major, "layout": layout_of}

# -- views ------------------------------------------------------------------------------------


def run_view(op: Op, args: tuple[Any, ...]) -> Any:
    """A view: a new layout over the memory of the first argument."""
    source = args[0]
    if not isinstance(source, Tensor):
        raise TypeError(not_a_tensor(op, 0, source))
    if source._no_grad_view and source._requires_grad and state.local.grad:
        edge(source)  # which may be refused
    array = source._array
    xp = np if array.__class__ is ndarray else base.of_array(array).xp
    layouts = op.kernel_on(xp)(array, *args[1:])
    if layouts.__class__ is list:
        views: Any = [view_of(source, a) for a in layouts]
    else:
        views = view_of(source, layouts)
    if not op.derivatives or source.dtype.rank < 2:
        return views
    if source._requires_grad and state.local.grad:
        record(op, args, views)
    why = source._no_grad_view
    if not state.local.grad:
        why = NO_GRAD_VIEW
    elif why is not None and why is not NO_GRAD_VIEW:
        why = MANY_VIEWS % (0, op.node_name)
    many = views.__class__ is list
    if why is not None or many:
        for i, v in enumerate(views if many else [views]):
            one_of_many = many and state.local.grad
            writing.protect(v, MANY_VIEWS % (i, op.node_name) if one_of_many else why)
            if source._requires_grad and v._grad_edge is None and v.dtype.rank > 1:
                v._requires_grad = v._ignores_grad = True  # as its base, though nothing is recorded
    return views


NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want "
    "the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
MANY_VIEWS = (
    "Output %d of %s is a view and is being modified inplace. This view is the output of a "
    "function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)


def view_of(source: Tensor, array: Array) -> Tensor:
    """A tensor over part of the memory of `source`."""
    view: Tensor = new(Tensor)
    view._array = array
    own = source._array.dtype
    view.dtype = (
        source.dtype if array.dtype is own or array.dtype == own else (FROM_NUMPY[array.dtype])
    )
    view._requires_grad, view._grad_edge, view._storage = (
        False,
        None,
        source._storage or source._memory(),
    )
    if (
        view.dtype is source.dtype or source.dtype.is_complex or (view.dtype.is_complex)
    ):  # bytes read anew have no gradient
        writing.register_view(source, view)
    return view


# -- writing ----------------------------------------------------------------------------------


def inplace(op: Op, args: tuple[Any, ...], timed: bool = False) -> Tensor:
    """Runs `op` and writes the result into its first argument."""
    if state.profiler is not None and not timed:
        return state.profiler.around(  # it returns what we do
            f"aten::{op.name}_", args, inplace, op, args, True
        )
    target = args[0]
    if not isinstance(target, Tensor):
        raise TypeError(
            f"descriptor '{op.name}_' for 'torch._C.TensorBase' objects doesn't apply "
            f"to a '{type(target).__name__}' object"
        )
    for mode in reversed(state.local.modes):
        take_over = getattr(mode, "on_inplace", None)
        if take_over is not None:
            with state.below(mode):
                return take_over(op, args)  # it returns what we do
    if state.everywhere is not None:
        state.everywhere.on_inplace(op, args)
    needs = (
        state.local.grad
        and bool(op.derivatives)
        and (wants_grad(op, args) or (target._base is not None and target._base._requires_grad))
    )
    if op.derivatives or op.schema.returns[0] != "BoolTensor":  # logical_not_ asks nobody
        writing.check(target, needs)
    if not (op.overlap(*args) if callable(op.overlap) else op.overlap):
        writing.refuse_overlap(target)
    common = None
    if op.kind == "pointwise":
        writing.refuse_shared(target, args)
        if op.promotion != "none":
            common = common_dtype(op, args)
            check_cast(op, common, target.dtype)
    # The node is made before the write: it copies what the write destroys, and remembers the
    # versions that its other inputs have now.
    node = record(op, args, target, overwritten=target) if needs else None
    array = target._array if target._array.ndim else None
    if op.kind == "pointwise":
        result = compute_pointwise(op, args, array, common)
    else:
        result = compute(op, args)
    if result is not target._array:
        write(op, target, result)
    writing.bump(target)
    if node is not None:
        if state.local.saved_hooks and node.saved is not None:
            pack(node)  # now that a saved result is there
        writing.rebase(target, node)
    return target


def check_cast(op: Op, common: dtype, to: dtype) -> None:
    """Refuses a result of operands of a common type whose category the target cannot hold."""
    if op.promotion == "float" and common.rank < 2:
        common = types.get_default_dtype()
    if op.promotion == "count" and common is types.bool:
        common = types.int64
    if op.schema.returns[0] == "BoolTensor":
        common = types.bool
    if common.rank > to.rank and not (common.rank == 1 and to.rank == 1):
        raise RuntimeError(
            f"result type {common.legacy} can't be cast to the desired output type {to.legacy}"
        )


def write(op: Op, target: Tensor, result: Any) -> None:
    """Puts a result where the target's elements are."""
    if np.shape(result) != target._array.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast "
            f"shape {list(np.shape(result))}"
        )
    if op.overlap and writing.overlaps(target):  # elements that share a place: the new one counts
        changed = target._array != result
        target._array[changed] = result[changed]
    else:
        target._array[...] = result


def refuse_grad(name: str, args: Sequence[Any], out: Tensor) -> None:
    """Refuses out= where a graph would be recorded."""
    tensors = [*args, *(out if isinstance(out, (tuple, list)) else (out,))]
    flat = [t for a in tensors for t in (a if isinstance(a, (list, tuple)) else (a,))]
    if state.local.grad and any(isinstance(t, Tensor) and t._requires_grad for t in flat):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def write_out(op: Op, args: tuple[Any, ...], results: Any, out: Any) -> Any:
    """Puts results into the tensors given as out=, resizing them where needed."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    arrays = results if isinstance(results, tuple) else (results,)
    for o, array in zip(outs, arrays):
        if op.kind == "pointwise" and isinstance(o, Tensor):
            writing.refuse_shared(o, (None, *args))
        array = np.asarray(array) if isinstance(array, np.generic) else array
        if op.apart.startswith("memory") and isinstance(o, Tensor):
            writing.refuse_overlap(o)
            writing.refuse_arguments(o, args, array.shape)
        if not isinstance(o, Tensor):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(o).__name__}")
        made = FROM_NUMPY.get(array.dtype) or from_numpy_dtype(array.dtype)
        if op.apart.endswith("type") and made is not o.dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {made.name}, but got {o.dtype.name} instead"
            )
        if made.rank > o.dtype.rank and made is not o.dtype:
            raise RuntimeError(
                f"result type {made.legacy} can't be cast to the desired output "
                f"type {o.dtype.legacy}"
            )
        if o._array.shape != array.shape:
            if o._array.size:
                warnings.warn(
                    f"An output with one or more elements was resized since it had shape "
                    f"{list(o.shape)}, which does not match the required output shape "
                    f"{list(array.shape)}.",
                    UserWarning,
                    stacklevel=4,
                )
            o._array, o._storage = (
                np.asarray(array, o.dtype.numpy)
                if array.__class__ is ndarray
                else array.astype(o.dtype.numpy),
                None,
            )
        else:
            writing.refuse_overlap(o)
            o._array[...] = array
        writing.bump(o)
    return out
