"""Other types, other devices, other layouts, and tensors made in the likeness of a tensor."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.sparse import SparseArray
from toytorch.core import inplace as writing
from toytorch.core import write
from toytorch.core.arguments import spread
from toytorch.core.memory_order import has_channels_last, is_channels_last
from toytorch.core.op import Op
from toytorch.core.storage import InferenceStorage, ShownInference, Storage
from toytorch.core.tensor import Tensor, alias, as_dtype, strides_of
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.composed import composed
from toytorch.facts.device import device as device_class
from toytorch.facts.device import given
from toytorch.facts.device import memory_format as format_class
from toytorch.facts.hints import (
    Args,
    Array,
    Device,
    DType,
    Ints,
    Kwargs,
    Layout,
    MemoryFormat,
    Scalar,
    Shape,
)
from toytorch.facts.node import Detached
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import infer_size
from toytorch.facts.size import is_contiguous as is_row_major
from toytorch.ops.creation import create, from_data, memory
from toytorch.ops.define import creating, public, relaying, relayout, takes_words
from toytorch.ops.shaping import copies, view


def _to_device(xp: Any, a: Any, device: Any, non_blocking: bool) -> Any:
    source = base.of_array(a)
    target = base.of_device(device)
    for keeper in (source, target):
        if hasattr(keeper, "transfer"):  # it keeps the time that a copy takes
            return keeper.transfer(a, device, non_blocking)
    with target.on(device):
        if source is target:
            return a.copy()
        return target.from_numpy(source.to_numpy(a))


move: Op = relayout(
    "_to_device(Tensor self, device device, device source, bool non_blocking=False) -> Tensor",
    lambda xp, a, device, source, non_blocking: _to_device(xp, a, device, non_blocking),
    across="always",
    node="ToCopyBackward0",
    d_self=lambda g, source: move.function(g, source, g.device),
    doc="The values on another device.",
)


NUMBERS: dict[type, Any] = {
    bool: types.bool,
    int: types.int64,
    float: types.float64,
    complex: types.complex128,
}  # what a number given for a type stands for


FLAGS = dict.fromkeys(["non_blocking", "copy"], bool)
WHERE = (str, device_class, int, type(None))
TYPED = (types.dtype, type)
USUAL = [[device_class, types.dtype], [str, types.dtype]]
FORMS: tuple[dict[str, Any], ...] = (  # of the arguments of `to`: by place, what each may be
    {"tensor": Tensor, **FLAGS},
    {"dtype": TYPED, **FLAGS},
    {"device": WHERE, "dtype": (*TYPED, type(None)), **FLAGS},
)
OPTIONS = ("tensor", *FORMS[2], "memory_format")


@functools.lru_cache(256)
def _in_form(placed: tuple[type, ...], named: tuple[tuple[str, type], ...]) -> tuple[str, ...]:
    """The names of what `to` was called with, by place and by name, in these classes; TypeError where
    it fits none of its forms."""
    words = dict(named)
    for form in FORMS:
        given = {**dict(zip(form, placed)), **words}
        kinds = {**form, "memory_format": format_class}
        if (
            len(given) == len(placed) + len(words)
            and given.keys() <= kinds.keys()
            and all(
                issubclass(c, kinds[n]) and (kinds[n] is bool or c is not bool)
                for n, c in given.items()
            )
        ):
            return tuple(given)
    got = [c.__name__ for c in placed] + [f"{n}={c.__name__}" for n, c in words.items()]
    raise TypeError(f"to() received an invalid combination of arguments - got ({', '.join(got)})")


def _by_name(args: Args, words: Kwargs) -> Kwargs:
    """What `to` was called with, by name."""
    first = args[0].__class__ if args else None
    if first in NUMBERS and (args[1].__class__ is bool if args[1:] else first is not int):
        args = (NUMBERS[first], *args[1:])  # a number stands for the type of numbers
    named = tuple([(n, v.__class__) for n, v in words.items()])
    return dict(zip(_in_form(tuple([a.__class__ for a in args]), named), (*args, *words.values())))


def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: Any = False,
    copy: Any = False,
    memory_format: MemoryFormat | None = None,
    tensor: Any = None,
) -> Tensor:
    """The tensor with another type or on another device; itself where nothing changes.

    >>> Tensor([1, 2]).to(types.int64)
    tensor([1, 2])
    """
    where: Any = device if not args else args[0] if len(args) == 1 and device is None else None
    where = where.type if isinstance(where, device_class) else where
    if (
        where.__class__ is str
        and where == "cpu"
        and self._array.__class__ is np.ndarray  # it is there, as in most programs
        and state.fast_path is not state.SLOW
        and dtype is memory_format is tensor is None
        and copy is False
    ):
        return self
    bare = non_blocking is copy is False and device is memory_format is tensor is None
    if bare and dtype is None and len(args) == 1 and args[0].__class__ is types.dtype:
        dtype = args[0]
    elif bare and dtype is None and [a.__class__ for a in args] in USUAL:
        device, dtype = args
    elif not bare or args or dtype.__class__ is not types.dtype:
        values = (tensor, device, dtype, non_blocking, copy, memory_format)
        words = zip(OPTIONS, () if bare and dtype is None else values)
        given = _by_name(args, {n: v for n, v in words if v is not None and v is not False})
        tensor, device, dtype, non_blocking, copy, memory_format = map(given.get, OPTIONS)
    if tensor is not None:
        dtype, device = tensor.dtype, tensor.device
    result = self
    if device is not None:
        target = device_class(device)
        here = self.device
        if target.type != here.type or (target.index is not None and target.index != here.index):
            base.of_device(target)
            result = move.function(result, target, here, bool(non_blocking))
    if dtype is not None:
        wanted = as_dtype(dtype)
        if result._dtype is not wanted:
            result = copies.cast.function(result, dtype=wanted)
    if memory_format is not None and memory_format.name != "preserve_format":
        if result is self and not copy and memory_format.name == suggested_format(self._array):
            return self  # whatever its strides
        if result is self or not is_contiguous(result, memory_format=memory_format):
            return copies.clone.function(result, memory_format=memory_format)
        return result
    if copy and result is self:
        result = self.clone()
    return result


def suggested_format(array: Array) -> str:
    """The format that strides look like: channels last, or else rows, whatever they are."""
    if not has_channels_last(array):
        return "contiguous_format"
    return "channels_last" if array.ndim == 4 else "channels_last_3d"


def _caster(name: str, dtype: DType | None) -> Any:
    def method(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
        if memory_format is not None:
            return to(self, dtype, memory_format=memory_format)
        return self if self._dtype is dtype else copies.cast.function(self, dtype=dtype)

    method.__name__ = name
    method.__doc__ = f"The values as {dtype}."
    return method


for _name, _dtype in {
    "float": types.float32, "double": types.float64, "half": types.float16,
    "bfloat16": types.bfloat16, "long": types.int64, "int": types.int32, "short": types.int16,
    "char": types.int8, "byte": types.uint8, "bool": types.bool, "cfloat": types.complex64,
    "cdouble": types.complex128, "chalf": types.complex32,
}.items():  # fmt: skip
    setattr(Tensor, _name, _caster(_name, _dtype))


@takes_words()
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The values in the type of another tensor."""
    return to(self, other.dtype)


def cpu(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """The tensor in the CPU's memory."""
    return to(self, device="cpu")


def cuda(
    self: Tensor,
    device: Device = None,
    non_blocking: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """The tensor on a GPU; RuntimeError where there is none."""
    target = device_class("cuda" if device is None else device)
    if target.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    base.of_device(target)
    return to(self, device=target, non_blocking=non_blocking)


def is_contiguous(self: Tensor, *, memory_format: MemoryFormat | None = None) -> bool:
    """Whether elements in row-major order lie side by side in memory.

    With `memory_format=toytorch.channels_last` the order (N, H, W, C) of images (N, C, H, W).

    >>> from toytorch.facts.device import channels_last
    >>> Tensor(2, 3, 4, 4).contiguous(memory_format=channels_last).stride()
    (48, 1, 12, 3)
    """
    array = self._array
    if memory_format is None and array.__class__ is np.ndarray:
        return bool(array.flags.c_contiguous)
    if array.__class__ is not np.ndarray and self._compressed:
        raise RuntimeError(
            f"Sparse {self.layout.name[-3:].upper()} tensors do not have is_contiguous"
        )
    if memory_format is not None and memory_format.name in copies.CHANNELS_LAST:
        if array.ndim != copies.CHANNELS_LAST[memory_format.name] or (
            array.__class__ is SparseArray
        ):
            return False
        if not array.size:  # PyTorch asks strides all the same
            return is_channels_last(array.shape, strides_of(array), 1)
        return bool(np.moveaxis(array, 1, -1).flags.c_contiguous)
    if array.flags.c_contiguous:
        return array.__class__ is not SparseArray
    return is_row_major(array.shape, strides_of(array))


def contiguous(self: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """The tensor in row-major memory, or that of a format; itself where it is so already."""
    array = self._array
    if memory_format is None and array.__class__ is np.ndarray and array.flags.c_contiguous:
        return self
    form = CONTIGUOUS if memory_format is None else memory_format
    if is_contiguous(self, memory_format=form):
        return self
    if form.name == "preserve_format":
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return copies.clone.function(self, memory_format=form)


CONTIGUOUS = format_class("contiguous_format")


def read_anew(source: Tensor, made: Tensor) -> Tensor:
    """Bytes read as a type: of inference tensors, and in inference mode, a tensor of their own, which is
    an inference tensor where the mode is on."""
    memory = source._memory()
    if state.local.inference or isinstance(memory, (InferenceStorage, ShownInference)):
        counted = InferenceStorage if state.local.inference else Storage
        made._storage = counted(memory.array, memory.memory)
        made._storage.origin = memory
        made._base = made._no_grad_view = None
    return made


@takes_words()
def view_(self: Tensor, *shape_: object, dtype: DType | None = None) -> Tensor:
    """`view` in all its forms."""
    if shape_ and shape_[0].__class__ is int and dtype is None:
        return view.view_.function(self, *shape_)
    if dtype is not None or (len(shape_) == 1 and isinstance(shape_[0], (types.dtype, type))):
        asked: Any = dtype or shape_[0]
        wanted = as_dtype(asked)
        return read_anew(self, view.view_dtype.function(self, wanted))
    if not shape_:
        raise TypeError("view() received an invalid combination of arguments - got ()")
    return view.view_.function(self, *shape_)


def _view(self: Tensor, *shape: object, **more: Any) -> Tensor:
    """The same memory in another shape, or read as another type."""
    if shape and not more:
        made = view.quick_view(self, shape)
        if made is not None:
            return made
    return view_(self, *shape, **more)


@public("reshape")
def reshape(input: Tensor, *shape_: Ints, shape: Shape | None = None) -> Tensor:
    """The same elements in another shape: a view where strides allow it, else a copy.

    >>> reshape(Tensor([1, 2, 3, 4]), (2, -1)).shape
    torch.Size([2, 2])
    """
    if shape is None and shape_ and input.__class__ is Tensor:
        first: Any = shape_[0]
        several = first.__class__ is tuple or first.__class__ is list
        wanted = tuple(first) if several and len(shape_) == 1 else shape_
        made = view.quick_view(input, wanted, copies=True)
        if made is not None:
            return made
    if shape is None and not shape_:
        raise TypeError('reshape() missing 1 required positional arguments: "shape"')
    given = spread(shape_ if shape is None else (shape,), "reshape", "shape")
    wanted = infer_size(given, input._array.size)
    array = input._array
    if input._compressed:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
    if array.__class__ is SparseArray:
        raise RuntimeError("reshape is not implemented for sparse tensors")
    if not array.flags.c_contiguous and view.copied_as(array.shape, strides_of(array), wanted):
        wanted = given if state.fast_path is state.SLOW else wanted
        return view.unsafe_viewed(contiguous(input), wanted)
    if state.fast_path is state.SLOW:  # a trace keeps the -1, which fits other sizes too
        wanted = given
    traced = any(hasattr(mode, "refuse_leaf") for mode in state.local.modes)
    if not (array.flags.c_contiguous or traced):
        return view.reshape_alias.function(input, wanted)
    return view.view_.function(input, wanted)


@takes_words()
@relaying
def detach_(self: Tensor) -> Tensor:
    """Cuts the tensor from its history, in place."""
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution."
        )
    if self._grad_edge is not None and not self.is_inference():  # nodes may have saved it
        memory = self._memory()
        memory.version = Detached(memory.version, self)
    if state.fast_path is state.SLOW:
        self._array = _watched_detach(self)._array  # whoever traces sees where a history ends
    self._grad_edge = None
    self.requires_grad_(False)
    self._tangents = None
    return self


@public("detach", creates=True, shares=True)
def detach(self: Tensor) -> Tensor:
    """A tensor over the same memory, and of the same version, that no graph knows of."""
    return _watched_detach(self) if state.fast_path is state.SLOW else _detach(self)


def _detach(self: Tensor) -> Tensor:
    """`detach` itself."""
    found = alias(self)
    if found._storage.__class__ is InferenceStorage:
        found._storage = found._storage.shown()
    if self._names is not None:
        found._names = self._names
    if self._batches is not None:
        found._batches = {mode: whole.detach() for mode, whole in self._batches.items()}
    return found


_watched_detach = creating(composed(shares=True)(_detach), "detach")


def _new(name: str) -> Any:
    factory = getattr(create, name)

    def method(
        self: Tensor,
        *size: Shape | float,
        dtype: DType | None = None,
        device: Device = None,
        requires_grad: bool = False,
        layout: Layout | None = None,
        pin_memory: bool = False,
        **more: Any,
    ) -> Tensor:
        if (
            self._array.__class__ is np.ndarray
            and state.fast_path is not state.SLOW
            and (dtype, device, layout) == (None, None, None)
            and (requires_grad, pin_memory, more) == (False, False, {})
        ):
            made = create.plain_new(name, size, self.dtype)
            if made is not None:
                return made
        if self._batches is not None:
            shape: Any = size[0] if size and hasattr(size[0], "__len__") else more.pop("size", size)
            rest = size[1:] if size and shape is size[0] else ()
            made = memory.of_each(
                self,
                lambda whole, n: method(
                    whole, (n, *shape), *rest, dtype=dtype, requires_grad=requires_grad, **more
                ),
            )
            if made is not None:
                return made
        own = {"dtype": dtype, "device": device, "layout": layout}
        more |= {k: getattr(self, k) if v is None else v for k, v in own.items()}
        return factory(*size, requires_grad=requires_grad, pin_memory=pin_memory, **more)

    method.__name__ = f"new_{name}"
    method.__doc__ = f"`{name}` with the type and place of this tensor unless others are given."
    return method


def new_tensor(
    self: Tensor,
    data: Array | Scalar | Sequence[int],
    *,
    dtype: DType | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of data with the type and place of this tensor."""
    if isinstance(data, Tensor):
        from_data.warn_of_copy("tensor.new_tensor")
    return from_data.of_data(data, dtype or self.dtype, given(device, self.device), requires_grad)


def new(
    self: Tensor,
    *args: object,
    device: Device = None,
    size: Shape | None = None,
    indices: Tensor | None = None,
    values: Tensor | None = None,
) -> Tensor:
    """`Tensor(…)` with the type and place of this tensor: older than `new_empty` and `new_tensor`.

    >>> torch.tensor([1, 2]).new([3])
    tensor([3])
    """
    if self.is_sparse:
        from toytorch.ops.sparse.create import new_sparse  # which is built on this file

        held = [t for t in (indices, values) if t is not None]
        return new_sparse(self, [*args[:2], *held, *args[2:]], given(device, self.device), size)
    if size is not None:
        args = tuple(size)
    from toytorch.core.older_constructor import make_legacy  # seldom asked for

    made = make_legacy(Tensor, *args, type=self.dtype)
    return to(made, device=self.device if device is None else device)


@takes_words(x2="other")
def copy_(self: Tensor, other: Tensor | complex, non_blocking: bool = False) -> Tensor:
    """Writes the elements of other, cast and broadcast to this tensor."""
    if other is self:
        if (self._requires_grad or state.fast_path is state.SLOW) and not writing.overlaps(self):
            return _copy_inplace(self, self)  # which has a node of its own
        writing.check(self, state.local.grad and self._requires_grad)
        writing.bump(self)
        return self
    if isinstance(other, (bool, int, float, complex)):
        wide = types.complex128 if isinstance(other, complex) else types.float64
        kind = None if isinstance(other, int) else wide  # all digits that Python's number has
        return _copy_inplace(self, from_data.tensor(other, dtype=kind))
    if not isinstance(other, Tensor):
        raise wrong_argument("copy_", "other", 1, "Tensor", other)
    if (
        other._dtype is self._dtype
        and other._array.__class__ is np.ndarray
        and other._array.shape == self._array.shape
        and write.quick(self)
        and not (other._requires_grad and state.fast_path is None)
        and not writing.one_memory(other._storage, self._storage)
    ):
        self._array[...] = other._array
        writing.bump(self)
        return self
    over = bool(base.queued) and base.hands_over(self._array, other._array)
    if other.device != self.device and not (over and not other._requires_grad):
        other = to(other, device=self.device, non_blocking=non_blocking)
    if over:
        return _copy_inplace(self, other, non_blocking)
    return _copy_inplace(self, other)  # the op's in-place form


_copy_inplace = Tensor.copy_  # type: ignore[attr-defined]  # attached by ops.shape


def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Shape,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`empty_strided` with the type and place of this tensor unless others are given."""
    return create.empty_strided(
        size,
        stride,
        dtype=dtype or self.dtype,
        device=given(device, self.device),
        requires_grad=requires_grad,
    )


_methods = (to, type_as, cpu, cuda, is_contiguous, contiguous, reshape, detach, detach_, new)
METHODS = {f.__name__: f for f in (*_methods, new_tensor, copy_, new_empty_strided)}
METHODS["view"] = _view
_view.__name__ = "view"
METHODS.update({f"new_{n}": _new(n) for n in ("zeros", "ones", "empty", "full")})
for _name, _method in [*METHODS.items(), *memory.METHODS.items()]:
    setattr(Tensor, _name, _method)
