"""Calls that write: `x.add_(y)` and `out=`."""

from __future__ import annotations

import gc
import re
import sys
from _thread import get_ident
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from toytorch.backends import base
from toytorch.core import inplace as writing
from toytorch.core import subclasses
from toytorch.core.arguments import option, plain_numbers
from toytorch.core.compute import common_dtype, compute, compute_pointwise
from toytorch.core.memory_order import assign, kept
from toytorch.core.op import Op
from toytorch.core.record import record, wants_grad
from toytorch.core.storage import Conjugated, Mirrored, Storage
from toytorch.core.tensor import Tensor, keep_form, strides_of
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.dtype import FROM_NUMPY, cannot_cast, dtype, from_numpy_dtype, promote
from toytorch.facts.hints import Args, Shape, Sizes
from toytorch.facts.node import lost_class, pack
from toytorch.facts.size import broadcast_pair, cannot_broadcast, wrap_dim

# What PyTorch says when its kernel runs, after it has asked where the operands lie.
IN_KERNEL = re.compile(
    "^NotImplementedError|is out of bounds|out of range: tried|out of range in|mismatch: value tensor"
)
FILLED = "tensor[mask] = scalar"  # how PyTorch spells out that a place gets one number


def quick(target: Tensor) -> bool:
    """Whether writing into a tensor is no more than writing into its array and counting it: nobody
    watches or wants its gradient, and each of its elements has a place of its own."""
    mode, array, storage = state.fast_path, target._array, target._storage
    if array.__class__ is not ndarray:
        return False
    if mode is None:
        base = target._base
        if target._requires_grad or (base is not None and base._requires_grad):
            return False
    elif mode != get_ident():
        return False
    return (storage is None or storage.__class__ is Storage) and (
        array.flags.c_contiguous or 0 not in array.strides
    )


def inplace(op: Op, args: Args, timed: bool = False) -> Tensor:
    """Runs `op` and writes the result into its first argument."""
    args = plain_numbers(args)
    if op.option_at:
        args = tuple([option(op, i, a) if i in op.option_at else a for i, a in enumerate(args)])
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
    if subclasses.below is not None:
        made: Tensor = subclasses.below.write(op, args)
        if made is not NotImplemented:
            return made
    if state.everywhere is not None:
        state.everywhere.on_inplace(op, args)
    needs = (
        state.local.grad
        and bool(op.derivatives)
        and (wants_grad(op, args) or (target._base is not None and target._base._requires_grad))
    )
    common = None
    if op.kind == "pointwise" and op.promotion != "none":
        common = common_dtype(op, args)
    if op.derivatives or op.schema.returns[0] != "BoolTensor":  # logical_not_ asks nobody
        writing.check_history(target, needs)
    if op.sparse == "entries" and getattr(target._array, "coalesced", True) is False:
        raise RuntimeError(f"{op.name}_ requires coalesced input")
    # Where elements go to places that others name, what the arguments must be is asked first.
    late = op.apart not in (False, "first", "partly") and op.kind != "pointwise"
    if not late:
        try:
            refuse_places(op, args, target)
        except RuntimeError:
            if op.kind == "pointwise":
                refuse_meaningless(op, args)
            elif op.apart == "first":  # but for the dimension
                wrap_dim(args[op.schema.index["dim"]], target._array.ndim)
            raise
    if common is not None:
        if op.out_type == "alike":
            op.checks(common, args)
        check_cast(op, common, target._dtype)
    # The node is made before the write: it copies what the write destroys, and remembers the
    # versions that its other inputs have now.
    node = record(op, args, target, overwritten=target) if needs else None
    if op.lost and node is not None:
        node.__class__ = lost_class(node.__class__, op.lost)
    array = target._array
    if not array.ndim and array.__class__ not in base.queued:
        array = None
    if op.kind == "pointwise":
        try:
            result = compute_pointwise(op, args, array, common)
        except NotImplementedError as error:
            if lacks_kernel(error):
                refuse_before_kernel(op, args, None, target)
            raise
    else:
        try:
            result = compute(op, args, array)
        except (RuntimeError, IndexError) as error:
            if late and IN_KERNEL.search(f"{type(error).__name__}: {error}"):
                refuse_places(op, args, target)
            raise
        if late:
            refuse_places(op, args, target)
    if result is not target._array:
        write(op, target, result)
    writing.refuse_inference(target)
    writing.bump(target)
    if node is not None:
        if state.local.saved_hooks and node.saved is not None:
            pack(node)  # now that a saved result is there
        writing.rebase(target, node)
    return target


def refuse_places(op: Op, args: Args, target: Tensor) -> None:
    """Refuses to write in place where elements share memory, with each other or with an operand."""
    if not overlapping(op, args):
        writing.refuse_overlap(target)
    # What is filled in is read before anything is written, so it may lie in the same memory.
    lasting = args[:-1] if op.overlap == FILLED else args
    if op.apart not in (False, "partly"):
        writing.refuse_any_shared(target, lasting[1:])
    if op.overlap.__class__ is str and writing.overlaps(target):
        warned.at_call(
            f"Use of {op.name}_ on expanded tensors is deprecated. Please clone() the tensor before "
            "performing this operation. This also applies to advanced indexing e.g. "
            f"{op.overlap}"
        )
    elsewhere = op.across == "between" and not overlapping(op, args)  # a copy that moves something
    if op.kind == "pointwise" or op.overlap.__class__ is str or elsewhere:
        writing.refuse_shared(target, lasting)


def overlapping(op: Op, args: Args) -> bool:
    """Whether a call may write where one place of memory is several elements."""
    return bool(op.overlap(*args) if callable(op.overlap) else op.overlap)


def lacks_kernel(error: Exception) -> bool:
    """Whether a refusal is for want of a kernel, `"exp" not implemented for 'Half'`; others come
    before anything is asked of shapes and of out=."""
    return str(error).startswith('"')


def refuse_meaningless(op: Op, args: Args) -> None:
    """Refuses operands for which an op has no meaning, as complex ones of `sign`."""
    try:
        compute_pointwise(op, args)
    except NotImplementedError as error:
        if not lacks_kernel(error):
            raise
    except Exception:
        pass  # what is wrong with the operands comes later


def refuse_before_kernel(op: Op, args: Args, out: Any, target: Tensor | None = None) -> None:
    """What PyTorch says of a pointwise call before it looks for a kernel, which there is none of:
    of an out= that overlaps itself, of shapes, also of what is written to in place (`target`), and
    of types that out= cannot hold."""
    if isinstance(out, Tensor):
        writing.refuse_overlap(out)
    shape: Sizes = ()
    for i in op.tensor_at:
        if isinstance(args[i], Tensor):
            shape = broadcast_pair(shape, tuple(args[i]._array.shape))
    if target is not None and shape != target._array.shape:
        raise cannot_broadcast(target.shape, shape)
    if isinstance(out, Tensor):
        writing.refuse_shared(out, (None, *args))
    if isinstance(out, Tensor) and op.promotion != "none":
        common = common_dtype(op, args)
        if out_type_of(op, args) in ("found", "modulus") and common is not out._dtype:
            raise RuntimeError(refusal("found", op.name, common, out._dtype))
        check_cast(op, common, out._dtype)


def check_cast(op: Op, common: dtype, to: dtype) -> None:
    """Refuses a result of operands of a common type whose category the target cannot hold."""
    if op.promotion == "float" and common.rank < 2:
        common = types.get_default_dtype()
    if op.promotion == "count" and common is types.bool:
        common = types.int64
    if op.schema.returns[0] == "BoolTensor":
        common = types.bool
    if common.rank > to.rank and not (common.rank == 1 and to.rank == 1):
        raise cannot_cast(common, to)


def write(op: Op, target: Tensor, result: Any) -> None:
    """Puts a result where the target's elements are."""
    if np.shape(result) != target._array.shape:
        raise cannot_broadcast(target.shape, np.shape(result))
    if op.overlap and writing.overlaps(target):  # elements that share a place: the new one counts
        changed = target._array != result
        target._array[changed] = result[changed]
    else:
        assign(target._array, result)


def out_type_of(op: Op, args: Args) -> str:
    """How an op asks for out='s type in a call: one that is "found beside numbers" casts its result
    where another operand than the first is a tensor."""
    if op.out_type == "found beside numbers":
        return "" if any(isinstance(a, Tensor) for a in args[1:]) else "found"
    return op.out_type


OUT_TYPES = {  # what PyTorch says where out= has another type than the result
    "modulus": "Found dtype {Got} but expected {Want}",
    "part": "torch.{name}() expects {result} to have {part} but got {got}",
    "same": "Expected out tensor to have dtype {want}, but got {got} instead",
    "given": "Expected out tensor to have dtype {want}, but got {got} instead",
    "found": "Found dtype {Got} but expected {Want}",
    "boolean": "{name} does not support non-boolean outputs.",
    "matched": "Expected the dtype for input and out to match, but got {Want} for input's dtype and "
    "{Got} for out's dtype.",
    "scalar": "{name}: Expected out tensor to have scalar type {Want} but got scalar type{Got}",
    "truth": "{name} only supports bool tensor for result, got: {Got}",
    "indices": "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
    "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype {Got} "
    "and out_int32 flag is False",
    "expected": "expected scalar_type {Want} but found {Got}",
    "object": "Expected object of scalar type {Want} but got scalar type {Got} for argument 'out'",
    "hash": "Expected result to be of dtype uint64, but got {Got}",
    "result": "expected scalar type '{Want}' but got '{Got}' for {result} output",
    "output": "output {result} must be of same type as input",
    "selected": "{name}(): self and result must have the same scalar type",
}
# Those by which PyTorch refuses an out= before it looks at the arguments.
ASKED_FIRST = ("matched", "truth", "expected", "result")


def fits_modulus(self: Any, made: dtype, out: Tensor) -> bool:
    """Whether the moduli of complex numbers, of a type, may be put into out=: of floating numbers
    any type, of complex ones the operand's. RuntimeError as of any other op for integers."""
    if not self._dtype.is_complex:
        return False
    if out._dtype.rank < made.rank:
        raise cannot_cast(made, out._dtype)
    if out._dtype.is_complex and out._dtype is not self._dtype:
        raise RuntimeError(refusal("found", "abs", self._dtype, out._dtype))
    return True


def refusal(how: str, name: str, want: dtype, got: dtype, result: str = "") -> str:
    """What to say of an out= of another type, for a result of a name."""
    return OUT_TYPES[how].format(
        result=result,
        name=name,
        want=c_name(want),
        part=f"dtype {c_name(want)}" if want.rank > 1 else f"{c_name(want)} dtype",
        got=c_name(got),
        Want=want.legacy,
        Got=got.legacy,
    )


def c_name(kind: dtype) -> str:
    """A type's name in C++."""
    return {
        "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float",
        "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
        "int8": "signed char", "uint8": "unsigned char", "complex64": "c10::complex<float>",
        "complex128": "c10::complex<double>", "uint16": "short unsigned int",
        "uint32": "unsigned int", "uint64": "long unsigned int",
    }.get(kind.name, kind.name)  # fmt: skip


def refuse_first(op: Op, args: Args, out: Tensor) -> None:
    """Refuses an out= by its type and by where it lies, before anything is asked of the arguments
    but the dimension."""
    wrap_dim(args[op.schema.index["dim"]], args[0]._array.ndim)
    if out._dtype is not args[0]._dtype:
        raise RuntimeError(refusal("same", op.name, args[0]._dtype, out._dtype))
    if out._array.shape == args[0]._array.shape:
        writing.refuse_overlap(out)
    writing.refuse_arguments(out, args[1:], args[0]._array.shape)


def refuse_type(op: Op, args: Args, out: Any) -> None:
    """What PyTorch says of an out= of another type than the one that is asked for, before it looks
    for a kernel, which there is none of."""
    want = args[op.schema.index["dtype"]] or args[0]._dtype
    if isinstance(out, Tensor) and out._dtype is not want:
        raise RuntimeError(refusal("same", op.name, want, out._dtype))


def refuse_other_type(op: Op, args: Args, out: Any) -> None:
    """`refuse_type` for ops whose results have the type of their first operand, or are places."""
    want, how = args[0]._dtype, op.out_type
    if how == "truth":
        want = types.uint8 if out._dtype is types.uint8 else types.bool
    elif how == "indices":
        want = types.int32 if args[op.schema.index["out_int32"]] else types.int64
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for place, (o, same) in enumerate(zip(outs, op.results)):
        if how and same:
            wrong = o._dtype is not want
        elif same:  # cast
            wrong = o._dtype.rank < want.rank
        else:  # numbers of places; what comes first and has no derivative is a permutation
            wrong = o._dtype.rank != 1 and (place > 0 or o._dtype is not want)
        if wrong:
            result = op.schema.result_names[place] if op.many else ""
            raise RuntimeError(refusal(how or "same", op.name, want, o._dtype, result))


def refuse_joined(tensors: Sequence[Tensor], out: Tensor) -> None:
    """What PyTorch says of an out= that cannot hold the common type of the tensors to be joined,
    before it compares their shapes."""
    if all(t._array.ndim for t in tensors):
        made = promote(tuple(t._dtype for t in tensors), (), ())
        if made.rank > out._dtype.rank:
            raise TypeError(NOT_JOINED + out._dtype.legacy)


NOT_JOINED = "torch.cat(): input types can't be cast to the desired output type "


def refuse_grad(name: str, args: Sequence[Any], out: Tensor | tuple[Tensor, ...]) -> None:
    """Refuses out= where a graph would be recorded; tells modes that it would."""
    if state.fast_path is state.SLOW:
        for mode in state.local.modes:
            tell = getattr(mode, "on_refusal", None)
            if tell is not None:
                tell(name, out)
    tensors = [*args, *(out if isinstance(out, (tuple, list)) else (out,))]
    flat = [t for a in tensors for t in (a if isinstance(a, (list, tuple)) else (a,))]
    if state.local.grad and any(isinstance(t, Tensor) and t._requires_grad for t in flat):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def need_out(name: str, out: Any, count: int) -> None:
    """Refuses an out= that is not a tensor or, for several results, not as many tensors (of a list
    of results, count -1, any number)."""
    if count == 1:
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        return
    if not isinstance(out, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}"
        )
    if count >= 0 and len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")
    for i, o in enumerate(out):
        if not isinstance(o, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 'out', but got {type(o).__name__}"
            )


def refuse_leaf(aten: str, out: Any, traced: bool = False) -> None:
    """Refuses an out= that is a leaf which requires a gradient, for what has no derivative; of what
    is `traced`, only the tracer knows the leaves."""
    if state.fast_path is state.SLOW and isinstance(out, Tensor):
        asked = [getattr(mode, "stands_for_leaf", None) for mode in state.local.modes]
        traced = traced or any(ask(out) for ask in asked if ask is not None)
    leaf = traced or (isinstance(out, Tensor) and out._requires_grad and out._grad_edge is None)
    base = out._base if isinstance(out, Tensor) else None
    if base is not None and (base._requires_grad or out._requires_grad):
        leaf = leaf or base._grad_edge is None
    if leaf and state.local.grad:
        raise RuntimeError(
            f"aten::{aten}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def take(target: Tensor, array: Any) -> None:
    """Gives a tensor the shape and the elements of an array: in its memory, as far as that goes."""
    keep_form(target)
    kind, storage = target._dtype.numpy, target._memory()
    flat = storage.flat()
    if array.__class__ is not ndarray or flat.__class__ is not ndarray:
        made = np.asarray(array, kind) if array.__class__ is ndarray else array.astype(kind)
        target._array, target._storage = made, storage.__class__(made)
        target._storage.version = storage.version
        return
    start, step = target.storage_offset(), np.dtype(kind).itemsize
    flat = flat.view(np.uint8)[: flat.nbytes // step * step].view(kind)
    if np.may_share_memory(array, flat):
        array = array.copy()
    if start + array.size > flat.size:
        storage.refuse_resizing()
        grown = np.empty(start + array.size, kind)
        grown[: flat.size] = flat
        move(storage, grown, but=target)
        flat = grown
    strides = [s // array.itemsize for s in kept(array, array).strides]
    target._array = base.of_array(flat).as_strided(flat, array.shape, strides, start)
    target._array[...] = array


def references(held: Any, calls: int) -> int:
    """What getrefcount says of an argument that is handed on for some calls."""
    return references(held, calls - 1) if calls else sys.getrefcount(held)


def references_alone(calls: int) -> int:
    """The same of what one other thing holds and one local name (Python 3.14 counts fewer)."""
    holder = [object()]
    held = holder[0]
    return references(held, calls)


ALONE = tuple(references_alone(calls) for calls in range(2))


def move(storage: Storage, flat: Any, but: Tensor, calls: int = 0) -> None:
    """Gives a storage other memory, and with it all tensors that show some of it, but one.

    calls  how many lie between this one and that whose local name holds the storage
    """
    # Views are known to their base only, and what `detach` gives to nobody: they are looked for
    # where more holds the storage than the tensor, the callers' names and ours.
    seen = sys.getrefcount(storage) > ALONE[calls]
    storages = [storage, *(storage.others() if seen or hasattr(storage, "origin") else ())]
    held = [t for s in storages for t in gc.get_referrers(s)] if seen or storages[1:] else ()
    tensors = [t for t in held if isinstance(t, Tensor) and t is not but]
    places = [t.storage_offset() for t in tensors]
    for one in storages:
        if isinstance(one, (Mirrored, Conjugated)):
            one.part()
        one.array = one.memory = flat
    for t, start in zip(tensors, places):
        kind, step = t._array.dtype, t._array.itemsize
        whole = flat.view(np.uint8)[: flat.nbytes // step * step].view(kind)
        shape, strides = t._array.shape, strides_of(t._array)
        t._array = base.of_array(whole).as_strided(whole, shape, strides, start)


def warn_of_size(out: Tensor, shape: Shape) -> None:
    """Warns of an out= with elements, and of another shape than the result."""
    if out._array.size and out._array.shape != tuple(shape):
        warned.at_call(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape {list(shape)}. "
            "This behavior is deprecated, and in a future PyTorch release outputs will not be "
            "resized unless they have zero elements. You can explicitly reuse an out tensor t by "
            "resizing it, inplace, to zero elements with t.resize_(0)."
        )


def in_rows(op: Op, args: Args) -> bool:
    """Whether an out= that is given its shape by this call lies in rows, however the result lies."""
    return bool(op.out_rows(*args) if callable(op.out_rows) else op.out_rows)


def write_out(op: Op, args: Args, results: Any, out: Any) -> Any:
    """Puts results into the tensors given as out=, resizing them where needed."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    arrays = results if isinstance(results, tuple) else (results,)
    how = out_type_of(op, args)
    for place, (o, array) in enumerate(zip(outs, arrays)):
        shares = overlapping(op, args)
        if callable(op.overlap) and o._array.shape == np.shape(array):
            shares = False  # what is allowed in place, and to an out= that is laid anew
        if op.kind == "pointwise" and not shares and op.apart != "never":
            writing.refuse_shared(o, (None, *args))
        array = np.asarray(array) if isinstance(array, np.generic) else array
        made = FROM_NUMPY.get(array.dtype) or from_numpy_dtype(array.dtype)
        if made.rank > o._dtype.rank and how in ("joined", "stacked"):
            if how == "stacked" and array.ndim > 1 and o._array.size < array.size:
                o._memory().refuse_resizing()
            raise TypeError(NOT_JOINED + o._dtype.legacy)
        same = o._array.shape == array.shape
        if op.apart in ("own", "own in place") or (same and op.apart in (True, "views")):
            writing.refuse_overlap(o)
        if callable(op.apart):
            writing.refuse_overlap(o)
            writing.refuse_shared(o, (None, *op.apart(*args)))
        elif op.apart in (True, "own", "views"):
            read = args
            if op.apart == "views":  # of which PyTorch asks, not of the tensors
                read = tuple(t for t in args[0] if t._array.size)
            elif how == "joined":  # which passes over vectors of nothing
                read = tuple(t for t in args[0] if t._array.shape != (0,))
            writing.refuse_arguments(o, read, array.shape)
        elif op.apart == "partly":
            read = tuple(t for t in args if not writing.lies_in_rows(t, o, array.size))
            if o._array.shape == array.shape:
                writing.refuse_overlap(o)
                writing.refuse_shared(o, (None, *read))
            else:  # with its new shape it may lie over part of another tensor
                writing.refuse_arguments(o, read, array.shape)
        elif op.apart in ("in place", "own in place"):
            writing.refuse_arguments(o, args[1:], array.shape)
        if how == "truth" and o._dtype in (types.bool, types.uint8):  # as masks once were
            made, array = o._dtype, array.astype(o._dtype.numpy)
        if how not in ("", "alike", "joined", "stacked", "fractions") and made is not o._dtype:
            result = op.schema.result_names[place] if op.many else ""
            if not (how == "modulus" and fits_modulus(args[0], made, o)):
                raise RuntimeError(refusal(how, op.name, made, o._dtype, result))
        if op.many and made is types.int64 is not o._dtype and how == "":
            raise RuntimeError(refusal("same", op.name, made, o._dtype))  # numbers of places
        asked = op.schema.index.get("dtype")
        if asked is not None and args[asked] is not None and made is not o._dtype:
            raise RuntimeError(refusal("same", op.name, made, o._dtype))
        if made.rank > o._dtype.rank and made is not o._dtype:
            raise cannot_cast(made, o._dtype)
        if o._array.shape != array.shape:
            if op.kind == "pointwise" and any(a is o for a in args):
                raise cannot_broadcast(o.shape, array.shape)
            warn_of_size(o, array.shape)
            rows = array.__class__ is ndarray and in_rows(op, args)
            take(o, np.asarray(array, order="C") if rows else array)
        else:
            if not shares:
                writing.refuse_overlap(o)
            o._array[...] = array
        writing.refuse_inference(o)
        writing.bump(o)
        if state.local.grad:
            writing.refresh(o if o._base is None else o._base)
    return out
