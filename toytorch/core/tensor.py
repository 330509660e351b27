"""The tensor: a strided view of memory, and its place in the graph. It knows no operation.

Ops are attached as methods by `toytorch.ops`; they make results with `wrap`, or by filling in the
five slots that every tensor has. What few tensors need is a default of the class, which a tensor
overrides in its `__dict__`. (A `__getattr__` would make every attribute read three times slower.)
"""

from __future__ import annotations

import copyreg
import gc
import sys
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.backends import base, no_elements
from toytorch.backends.sparse import TABLES, SparseArray
from toytorch.core.storage import (
    Conjugated,
    InferenceStorage,
    ShownInference,
    Storage,
    UncountedStorage,
)
from toytorch.core.storages import LEGACY, TypedStorage, UntypedStorage
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.composed import composed
from toytorch.facts.device import contiguous_format, cpu, device, layout_name, sparse_csr, strided
from toytorch.facts.device import layout as layout_class
from toytorch.facts.dtype import FROM_NUMPY, IN_C, dtype, from_numpy_dtype
from toytorch.facts.dtype import dtype as dtype_class
from toytorch.facts.hints import Array, DType
from toytorch.facts.node import AccumulateGrad, Node, Output, RemovableHandle, as_function, sequence
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import Size, contiguous_strides, wrap_dim

new = object.__new__
size_of = tuple.__new__  # what arrays have are numbers, which `Size` need not look at
ndarray = np.ndarray
NO_VALUE = (
    "vmap: It looks like you're calling .{0}() on a Tensor. We don't support vmap over "
    "calling .{0}() on a Tensor, please try to rewrite what you're doing with other operations. If "
    "error is occurring somewhere inside PyTorch internals, please file a bug report."
)
NOT_COPIED = (  # what copies of a tensor do not take over
    "_grad", "_base", "_views", "_hooks", "_accumulator_ref", "_retained", "_post_hooks",
    "_no_grad_view", "_born", "_ignores_grad", "_used_as", "_batches", "_tangents",
)  # fmt: skip
CAN_REQUIRE = "Tensors of floating point and complex dtype can require gradients"


class Tensor:
    """An n-dimensional array that records what is done to it, like `torch.Tensor`.

    `_array` is the backend's strided array, `_requires_grad` whether gradients are wanted, `_grad_edge` where they
    go (None for a leaf), `_storage` the shared memory, made when first needed.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_array", "_dtype", "_grad_edge", "_requires_grad", "_storage",
    )  # fmt: skip
    _grad: Any = None  # what backward accumulated
    _grad_kind: Any = ...  # the type of gradients; None for any, ... for the tensor's own
    _base: Any = None  # the tensor whose memory this is a view of
    _views: Any = None  # weak references to the views of this tensor
    _hooks: Any = None  # hooks on a leaf's gradient
    _post_hooks: Any = None  # hooks on a leaf, after accumulation
    _accumulator_ref: Any = None  # a weak reference to a leaf's AccumulateGrad
    _retained: Any = None  # the hook of retain_grad, which has moved to the newest history
    is_node = False  # a leaf tensor ends an edge of the graph as a Node does, and is none
    _no_grad_view: Any = None  # why a view must not be written to, if so
    _born = 0  # how many writes to its memory a view has not seen
    # Whether it asks for gradients only because its base does, and drops those that arrive.
    _ignores_grad = False
    # Of a leaf whose `data` was replaced: (shape, dtype, number of the newest node) before that.
    _used_as: Any = None
    _names: Any = None  # the names of the dimensions, if they have any (see ops/named_dims.py)
    _batches: Any = None  # inside vmap: {Batch: the whole batch that this is one example of}
    _tangents: Any = None  # forward mode: {level: derivative along its direction}
    __hash__ = object.__hash__
    __array_priority__ = 1000
    is_quantized = is_mkldnn = is_nested = False
    is_mps = is_xpu = is_xla = is_ipu = is_hpu = is_mtia = is_maia = is_vulkan = False

    if TYPE_CHECKING:  # the slots, and the methods and operators that toytorch.ops attaches
        _array: Any
        _dtype: dtype_class
        _grad_edge: Any
        _requires_grad: bool
        _storage: Any
        _follow_base: Any
        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __neg__: Any
        __pow__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any
        __and__: Any
        __or__: Any
        __invert__: Any
        __matmul__: Any
        __getitem__: Any
        __setitem__: Any
        __iter__: Any
        __rtruediv__: Any
        __rpow__: Any
        __floordiv__: Any
        __mod__: Any
        __xor__: Any
        __abs__: Any

        def __eq__(self, other: object) -> Any: ...  # a tensor, or NotImplemented
        def __ne__(self, other: object) -> Any: ...

        def __getattr__(self, name: str) -> Any: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        from toytorch.core.older_constructor import make_legacy  # which needs this class

        return make_legacy(cls, *args, **kwargs)

    # -- shape and memory ---------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The sizes of all dimensions."""
        return size_of(Size, self._array.shape)

    def size(self, dim: int | None = None, **more: int | None) -> Any:
        """The sizes, or the size of one dimension."""
        if more:  # by NumPy's word
            return self.size(axis_of("size", dim, more))
        if dim is None:
            return size_of(Size, self._array.shape)
        if dim.__class__ is not int:
            if isinstance(dim, bool) or not (dim in self.names or hasattr(dim, "__index__")):
                raise wrong_argument("size", "dim", 1, "int", dim)
            dim = self.names.index(dim) if isinstance(dim, str) else int(dim)
        return self._array.shape[wrap_dim(dim, self._array.ndim, wrap_scalar=False)]

    @property
    def dtype(self) -> dtype_class:
        """The type of the elements. Inner code reads the slot, which is faster."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._array.ndim)

    def dim(self) -> int:
        """The number of dimensions."""
        return int(self._array.ndim)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return int(self._array.size)

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element."""
        return self._dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        if self.is_sparse:
            raise RuntimeError(
                "nbytes is not defined for sparse tensors.  If you want the size of "
                "the constituent tensors, add the nbytes of the indices and values."
            )
        return self.numel() * self._dtype.itemsize

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return int(self._array.shape[0])

    def stride(self, dim: int | None = None, **more: int | None) -> Any:
        """Steps in elements, for each dimension or for one."""
        if more:
            return self.stride(axis_of("stride", dim, more))
        array = self._array
        if array.__class__ is not ndarray and self._compressed:
            raise RuntimeError("Sparse CSR tensors do not have strides")
        strides = strides_of(array)
        return strides if dim is None else strides[wrap_dim(dim, array.ndim, wrap_scalar=False)]

    def storage_offset(self) -> int:
        """Elements between the start of the storage and the first element."""
        if self.layout is not strided:
            return 0
        if not self._array.size:
            return no_elements.offset(self._array, self._memory().flat())
        backend = base.of_array(self._array)
        start = backend.data_ptr(self._memory().flat())
        return (backend.data_ptr(self._array) - start) // self._dtype.itemsize

    @composed(reads="memory")
    def data_ptr(self) -> int:
        """The address of the first element."""
        if self._storage.__class__ is Conjugated:  # as programs see it, the memory it conjugates
            return int(base.of_array(self._array).data_ptr(self._array)) + self._storage.shift()
        return base.of_array(self._array).data_ptr(self._array)

    def _memory(self) -> Storage:
        """The storage, made now if this tensor had none."""
        if self._storage is None:
            self._storage = Storage(self._array)
        return self._storage

    def storage(self) -> TypedStorage:
        """The elements of the whole memory, in memory order."""
        warned.once(warned.TYPED_STORAGE)
        return self._typed_storage()

    def _typed_storage(self) -> TypedStorage:
        return TypedStorage.of(self._memory(), self._dtype)

    @property
    def volatile(self) -> bool:
        """No tensor is; before `no_grad` there were tensors that left no history."""
        warned.at_call("volatile was removed (Variable.volatile is always False)")
        return False

    def storage_type(self) -> Any:
        """The older class of its storage, such as `torch.FloatStorage`."""
        return next(c for c in LEGACY if c.dtype is self._dtype)

    def untyped_storage(self) -> UntypedStorage:
        """The bytes of the whole memory."""
        if self.layout is not strided:
            base.of_array(self._array).flat(self._array)  # which says that there is none
        return UntypedStorage.of(self._memory())

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both show the same elements of the same memory in the same way."""
        mine, other = self._memory(), tensor._memory()
        if not self._array.size and mine.array is not other.array:
            return False  # all empty memory has the same address
        same = mine is other or mine.memory_at() == other.memory_at()
        return (
            self.shape == tensor.shape
            and strides_of(self._array) == strides_of(tensor._array)
            and self.storage_offset() == tensor.storage_offset()
            and same
        )

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The dimensions from the one with the largest steps in memory to the one with the smallest.

        With `ambiguity_check`, RuntimeError where sizes of 1 leave several answers, or, given memory
        formats, where not exactly one of them fits. Like `torch.Tensor.dim_order`.
        """
        from toytorch.core.memory_order import dim_order  # a circle otherwise

        if self.layout is not strided:
            raise AttributeError(
                f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to "
                "convert to a dense tensor first."
            )
        return dim_order(
            tuple(self.shape),
            strides_of(self._array),
            ambiguity_check,
            lambda f: self.is_contiguous(memory_format=f),
        )

    def is_distributed(self) -> bool:
        """Whether it is spread over processes, which none is."""
        return False

    @property
    def _cdata(self) -> int:
        """A number that no other tensor has at the same time."""
        return id(self)

    def _is_view(self) -> bool:
        """Whether this is a view of another tensor's memory."""
        return self._base is not None

    @property
    def _version(self) -> int:
        if isinstance(self._storage, InferenceStorage):
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._storage is None else int(self._storage.version)

    @property
    def device(self) -> device:
        """Where the memory is."""
        array = self._array
        return cpu if array.__class__ is ndarray else base.of_array(array).device(array)

    is_cuda = property(lambda self: self.device.type == "cuda", doc="Whether it is on a GPU.")
    is_cpu = property(
        lambda self: self.device.type == "cpu", doc="Whether it is in the CPU's memory."
    )
    is_meta = property(
        lambda self: self.device.type == "meta",
        doc="Whether it has no memory: a shape, a type and strides alone.",
    )

    def get_device(self) -> int:
        """The number of the GPU, or -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    @property
    def is_sparse(self) -> bool:
        """Whether only some elements are in memory, by their coordinates."""
        return self._array.__class__ is SparseArray

    @property
    def layout(self) -> layout_class:
        """How the elements lie in memory."""
        return self._array.layout if self._array.__class__ in TABLES else strided

    @property
    def is_sparse_csr(self) -> bool:
        """Whether only some elements are in memory, row by row."""
        return self.layout is sparse_csr

    @property
    def _compressed(self) -> bool:
        """Whether only some elements are in memory, by rows or columns (of blocks)."""
        return self._array.__class__ in TABLES and self._array.__class__ is not SparseArray

    def is_floating_point(self) -> bool:
        """Whether the elements are real floating-point numbers."""
        return self._dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the elements are complex."""
        return self._dtype.is_complex

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._inference

    @property
    def _inference(self) -> bool:
        return self._storage.__class__ in (InferenceStorage, ShownInference)  # views share it

    def is_signed(self) -> bool:
        """Whether the elements can be negative."""
        return self._dtype.is_signed

    # -- graph --------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and self._grad_edge is not None:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if value and self._dtype.rank < 2:
            raise RuntimeError(f"only {CAN_REQUIRE}")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Says whether gradients are wanted; in place."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        if self._grad_edge is not None and not requires_grad:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you "
                "want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and self._dtype.rank < 2:
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients"
                if self.__class__ is Tensor
                else f"Only {CAN_REQUIRE}"
            )
        if requires_grad and not state.local.inference and self.is_inference():
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            )
        if not requires_grad and self._ignores_grad:
            return self  # its base still asks for gradients
        self._requires_grad = bool(requires_grad)
        if self._ignores_grad:  # else nothing is written to what `vars` shows
            self._ignores_grad = False
        for ref in self._views or ():
            view = ref()
            if view is None:
                continue
            if view._ignores_grad and not requires_grad:
                view._requires_grad = view._ignores_grad = False
            if view._grad_edge is not None:
                view._follow_base()
            elif requires_grad and not view._requires_grad:
                view._requires_grad = view._ignores_grad = True
                view._follow_base()
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made this tensor."""
        return not self._grad_edge

    @property
    def grad_fn(self) -> Node | None:
        """The Node that made this tensor; None for a leaf."""
        return None if self._grad_edge is None else as_function(self._grad_edge)[0]

    @property
    def output_nr(self) -> int:
        """Which result of `grad_fn` this is."""
        return self._grad_edge.index if self._grad_edge.__class__ is Output else 0

    @property
    def meta(self) -> tuple[Any, dtype_class]:
        """(shape, dtype): what a gradient that arrives at this leaf must have."""
        known = None if self._used_as is None else self._used_as_known()
        return (self._array.shape, self._dtype) if known is None else known

    @property
    def grad(self) -> Tensor | None:
        """What backward accumulated here."""
        if self._grad is None and self._grad_edge is not None and not self._retained:
            warned.at_call(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
                "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
                "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more "
                "information."
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    "assigned grad expected to be a Tensor or None but got grad of "
                    f"type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            kind = self._dtype if self._grad_kind is ... else self._grad_kind
            if kind is not None and value._dtype is not kind:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{IN_C.get(value._dtype.name)}' to a "
                    f"tensor with grad_dtype '{kind.legacy}'. The gradient must match the "
                    "tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's "
                    "grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
                    "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may "
                    "break downstream systems that assume they match."
                )
            if value.device.type != self.device.type:
                raise RuntimeError(
                    f"attempting to assign a gradient with device type '{value.device.type}' to a "
                    f"tensor with device type '{self.device.type}'. Please ensure that the gradient "
                    "and the tensor are on the same device"
                )
            if value._array.shape != self._array.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
                    f"size '{list(self.shape)}'. Please ensure that the gradient and the tensor are "
                    "the same size"
                )
            if value.device != self.device:
                raise RuntimeError(
                    f"attempting to assign a gradient located on device with index "
                    f"'{value.device.index}' to a tensor located on device with index "
                    f"'{self.device.index}'. Please ensure that the gradient and the tensor are on "
                    "the same device"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self) -> dtype_class | None:
        """The type that gradients of this leaf get: its own, unless it was set; None lets any be."""
        if self._grad_edge is not None:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        kind: dtype_class | None = self._dtype if self._grad_kind is ... else self._grad_kind
        return kind

    @grad_dtype.setter
    def grad_dtype(self, value: dtype_class | None) -> None:
        if self._grad_edge is not None:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        if value is not None and not isinstance(value, dtype_class):
            raise RuntimeError(
                f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
            )
        if value is not None and self._grad is not None and self._grad._dtype is not value:
            raise RuntimeError(
                f"Cannot set grad_dtype to '{value.legacy}' because there is already a gradient with "
                f"dtype '{IN_C.get(self._grad._dtype.name)}'. Please clear the gradient (.grad = None) "
                "before changing grad_dtype, or ensure the new grad_dtype matches the existing "
                "gradient's dtype."
            )
        self._grad_kind = value

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf."""
        return bool(self._retained)

    def retain_grad(self) -> None:
        """Makes backward fill in `.grad` of this tensor though it is no leaf."""
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._grad_edge is None or self._retained:
            return
        me = weakref.ref(self)

        def keep(grads: Tensor) -> None:
            tensor = me()
            if tensor is not None:
                g = grads if not isinstance(grads, list) else grads[tensor.output_nr]
                if g is not None:
                    with_grad = g.clone(memory_format=contiguous_format)
                    tensor._grad = with_grad if tensor._grad is None else tensor._grad + g

        node = as_function(self._grad_edge)[0]
        self._retained = RemovableHandle(node.hooks_of("retain"), keep)

    def _keep_retaining(self) -> None:
        """Follows a write: the gradient that is kept is the one of the new value."""
        self._retained.remove()
        self._retained = None
        self.retain_grad()

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(grad) when the gradient is known; what it returns takes its place."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._grad_edge is None:
            if self._hooks is None:
                self._hooks = {}
            return RemovableHandle(self._hooks, hook)
        node, index = as_function(self._grad_edge)
        return RemovableHandle(node.hooks_of(index), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(tensor) after a gradient was added to this leaf's `.grad`."""
        if self._grad_edge is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._post_hooks is None:
            self._post_hooks = {}
        return RemovableHandle(self._post_hooks, hook)

    def _accumulator(self) -> Node | None:
        """The AccumulateGrad node of this leaf, the same one for as long as anyone holds it."""
        if not self._requires_grad or self._ignores_grad:
            return None
        found = self._accumulator_ref() if self._accumulator_ref is not None else None
        if found is None:
            found = AccumulateGrad(self)
            self._accumulator_ref = weakref.ref(found)
        return found

    def _used_as_known(self, at_leaf: bool = False) -> Any:
        """The shape and the type that the node which a backward pass runs knows of this leaf, where
        it got others after the node was made; else None. At the leaf newer nodes are held to the same,
        as long as any from before is there: PyTorch's share its node, unless it got another type."""
        shape, kind, changed = self._used_as
        running = state.local.backward_pass
        if running is None:
            return None
        if -1 < running.at < changed:
            return shape, kind
        if at_leaf and kind is self._dtype:
            if sent_to(self, changed):
                return shape, kind
            self._used_as = None  # nobody will ask again
        return None

    def _accumulate(self, grad: Any) -> None:
        """Adds a gradient to `.grad`; None, where none arrived, is shown to hooks."""
        if self._ignores_grad:
            return
        if self._hooks:
            for hook in list(self._hooks.values()):
                replaced = hook(grad)
                if replaced is not None and grad is not None and replaced.shape != grad.shape:
                    raise RuntimeError(
                        f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value"
                    )
                grad = grad if replaced is None else replaced
        end = None if self._accumulator_ref is None else self._accumulator_ref()
        hooks = None if end is None else end.hooks
        for hook in list(hooks.get("before", {}).values()) if hooks else ():
            replaced = hook((grad,))
            grad = grad if replaced is None else replaced[0]
        if grad is None:
            return
        old = self._grad
        if old is None:
            self._grad = grad
        elif old._array.__class__ in TABLES and grad._array.__class__ not in TABLES:
            self._grad = grad + old
        elif state.local.grad:
            self._grad = old + grad  # create_graph: the sum is itself differentiable
        else:
            old.add_(grad)
        for hook in list(self._post_hooks.values()) if self._post_hooks else ():
            said = hook(self)
            if said is self:  # as `lambda p: p.add_(…)` gives it back
                continue
            if isinstance(said, Tensor):
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
            if said is not None:
                raise TypeError(f"expected Variable, but hook returned '{type(said).__name__}'")
        for hook in list(hooks.get("after", {}).values()) if hooks else ():
            hook((), (grad,))

    # -- values -------------------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> Any:
        """The elements as a NumPy array over the same memory."""
        if self.layout is not strided:
            kind = layout_name(self.layout)
            raise TypeError(
                f"can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first."
            )
        if force:
            return base.of_array(self._array).to_numpy(self._array)
        if self._requires_grad and state.local.grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use "
                "tensor.detach().numpy() instead."
            )
        if self._array.__class__ is not ndarray and self.is_cuda:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use "
                "Tensor.cpu() to copy the tensor to host memory first."
            )
        if self._dtype.extended:
            raise TypeError(f"Got unsupported ScalarType {self._dtype.legacy}")
        self._memory().fixed = True
        if self._array.__class__ in base.queued:  # pinned: a copy to it may be under way
            return base.of_array(self._array).to_numpy(self._array)
        return self._array.view()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("a copy is needed to change the dtype")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(
        self, array: Array, context: object = None, return_scalar: bool = False
    ) -> Any:
        """What NumPy's functions make of tensors: tensors again."""
        return wrap(array.astype(np.uint8) if array.dtype == bool else np.asarray(array))

    def __dir__(self) -> list[str]:
        found = set(super().__dir__())
        return sorted(found if self.is_cuda else found - {"__cuda_array_interface__"})

    @property
    def __cuda_array_interface__(self) -> Any:
        """Where and how the elements lie on a GPU, for other libraries."""
        if not self.is_cuda:
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If "
                "CUDA data is required use tensor.cuda() to copy tensor to device memory."
            )
        if self._requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients "
                "aren't required, use var.detach() to get Variable that doesn't require grad."
            )
        return self._array.__cuda_array_interface__

    def item(self) -> Any:
        """The one element as a Python number."""
        if self._batches is not None:
            raise RuntimeError(NO_VALUE.format("item"))
        if self._array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar"
            )
        array = self._array.astype(self._dtype.wide) if self._dtype.extended else self._array
        return array.item()

    @composed(reads="elements")
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        if self._batches is not None:
            raise RuntimeError(NO_VALUE.format("tolist"))
        array = base.of_array(self._array).to_numpy(self._array)
        return (array.astype(self._dtype.wide) if self._dtype.extended else array).tolist()

    def __bool__(self) -> bool:
        if self._batches is not None:
            raise RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent "
                "control flow. We don't support that yet, please file an issue at "
                "https://github.com/pytorch/pytorch/issues ."
            )
        if self._array.size != 1:
            what = "no values" if not self._array.size else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self._array.item())

    def _one(self) -> Any:
        if self._batches is not None:
            raise RuntimeError(NO_VALUE.format("item"))
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def _real(self, kind: str) -> Any:
        value = self._one()
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
            return value.real
        return value

    def __int__(self) -> int:
        if self._requires_grad and state.local.grad:
            warn_of_history()
        return int(self._real("int64_t"))

    def __float__(self) -> float:
        if self._requires_grad and state.local.grad:
            warn_of_history()
        return float(self._real("double"))

    def __complex__(self) -> complex:
        return complex(self._one())

    def __index__(self) -> int:
        if self._dtype.rank > 1 or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0 and type(self) is Tensor and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def type(self, dtype: DType | None = None, non_blocking: bool = False) -> Any:
        """The legacy type name ("torch.FloatTensor"), or a cast where a type is given."""
        if dtype is not None:
            name = dtype if isinstance(dtype, str) else getattr(dtype, "__module__", "")
            found = as_type(dtype)
            if isinstance(dtype, types.dtype) or not name.startswith("torch"):
                return self.to(found)
            where = "cuda" if name.startswith("torch.cuda") else "cpu"  # an older class of tensors
            return self.to(self.device if self.device.type == where else where, found)
        where = "cuda." * self.is_cuda + "sparse." * self.is_sparse
        return f"torch.{where}{self._dtype.legacy}Tensor"

    @property
    def data(self) -> Tensor:
        """A tensor over the same memory that no graph knows of; writes to it are not counted."""
        tensor = wrap(self._array, self._dtype)
        memory = self._storage or self._memory()
        if memory.__class__ is not Storage and isinstance(memory, InferenceStorage):
            tensor._storage = memory.shown()
        elif memory.__class__ is not Storage and isinstance(memory, ShownInference):
            tensor._storage = ShownInference(memory.array, memory.memory)
        else:
            tensor._storage = memory.counted_anew(0)
        return tensor

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires_grad and value._dtype.rank < 2:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        if (self._array.__class__ in TABLES) is not (value._array.__class__ in TABLES):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                "incompatible tensor type."
            )
        other = value._dtype is not self._dtype or value._array.shape != self._array.shape
        if other:
            keep_form(self)
        memory = value._memory()
        if isinstance(self._storage, InferenceStorage):  # made in inference mode: it has no count
            kind = InferenceStorage if value._inference else UncountedStorage
            self._storage = kind(memory.array, memory.memory)
        elif value._inference:
            count, self._storage = self._version, ShownInference(memory.array, memory.memory)
            self._storage.version = count
        else:
            count = self._version
            elsewhere = getattr(self._storage, "counter", None)
            if self._storage is not None and (elsewhere or sys.getrefcount(self._storage) > 2):
                at = Storage.memory_at(memory)  # conjugates say that they lie in another memory
                if (
                    Storage.memory_at(self._storage) != at or not at[1]
                ):  # else it is as it should be
                    self._storage = memory.counted_with(elsewhere or self._storage)
            else:
                self._storage = memory.counted_anew(count)
        self._array, self._dtype = value._array, value._dtype

    # -- copies -------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if self._grad_edge is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
                "because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        if self.layout is not strided:
            made = like(self, self._array.copy())
        else:  # of the whole memory, so that what shares it shares the copy
            made = rebuild(type(self), deepcopy(self._memory(), memo), *self._layout())
        memo[id(self)] = made
        made._requires_grad = self._requires_grad
        if self._grad is not None:
            made._grad = self._grad.__deepcopy__(memo)
        set_state(made, deepcopy(self._state(), memo))
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """How `copy.copy` makes a tensor over the same memory, and `pickle` one over its bytes."""
        warn_of_hooks(self)
        cls = None if type(self) is Tensor else type(self)  # pickle would look Tensor up in torch
        held = (self._array, self._dtype)
        if self.layout is strided:
            held = (self._memory(), *self._layout())
        return _rebuild, (cls, self._requires_grad, self._state(), *held)

    def _layout(self) -> tuple[Any, ...]:
        """How this tensor lies in its memory: type, sizes, strides and offset."""
        return self._dtype, tuple(self._array.shape), strides_of(self._array), self.storage_offset()

    def _state(self) -> Any:
        """What the user gave this tensor: attributes, or what its class says; None if nothing."""
        cls = type(self)
        if getattr(cls, "__getstate__", None) is not getattr(object, "__getstate__", None):
            return self.__getstate__()
        state = {k: v for k, v in self.__dict__.items() if k not in NOT_COPIED}
        slots: list[str] = copyreg._slotnames(cls)  # type: ignore[attr-defined]  # not in the stubs
        held = {
            k: getattr(self, k) for k in slots if k not in Tensor.__slots__ and hasattr(self, k)
        }
        return (state, held) if held else state or None

    def __setstate__(self, state: dict[str, Any] | tuple[Any, ...] | None) -> None:
        """For subclasses that call it: the attributes that `__reduce_ex__` gave."""
        if self._grad_edge is not None:
            raise RuntimeError("__setstate__ can be only called on leaf Tensors")
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():
                setattr(self, name, value)


def set_state(tensor: Tensor, state: dict[str, Any] | tuple[Any, ...] | None) -> None:
    """Gives a copy the state of what it is a copy of."""
    if state is not None:
        tensor.__setstate__(state)


def warn_of_history() -> None:
    """Says, once, that a Python number does not remember where it comes from."""
    warned.once(warned.SCALAR)


def warn_of_hooks(tensor: Tensor) -> None:
    """Says that a leaf's hooks are not copied, unless the user said so."""
    for hook in (tensor._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warned.at_call(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning"
            )


def rebuild(
    cls: type, memory: Storage, kind: dtype, size: Any, stride: Sequence[int], offset: int
) -> Any:
    """A tensor over some memory."""
    flat = memory.flat()
    if flat.dtype != kind.numpy:  # the memory is known by the type of another view
        whole = flat.nbytes // kind.itemsize * kind.itemsize
        flat = flat.view("uint8")[:whole].view(kind.numpy)
    made = of_class(cls)
    made._array = base.of_array(flat).as_strided(flat, size, stride, offset)
    made._dtype, made._requires_grad, made._grad_edge = kind, False, None
    made._storage = memory.counted_anew(1)  # as after `set_`, by which PyTorch makes it
    return made


def _rebuild(
    cls: type | None,
    requires_grad: bool,
    state: dict[str, Any] | tuple[Any, ...] | None,
    held: Any,
    kind: dtype,
    *layout: Any,
) -> Tensor:
    if layout:
        made = rebuild(cls or Tensor, held, kind, *layout)
    else:  # a sparse tensor has no strides
        made = like_class(cls or Tensor, wrap(held, kind))
    made._requires_grad = requires_grad
    set_state(made, state)
    return made


def keep_form(leaf: Tensor) -> None:
    """Notes, of a leaf that gets another shape or type, what graphs know of it until now."""
    if leaf._requires_grad and leaf._grad_edge is None:
        form, before = (leaf._array.shape, leaf.dtype), leaf._used_as
        if before is not None and before[1] is leaf.dtype and sent_to(leaf, before[2]):
            form = before[:2]
        state.data_changed = next(sequence)
        leaf._used_as = *form, state.data_changed


def sent_to(leaf: Tensor, before: int) -> bool:
    """Whether there is a node, made before this number of all, that sends gradients to a leaf."""
    return any(
        isinstance(node, Node) and node.edges is edges and node.seq < before
        for edges in gc.get_referrers(leaf)
        if edges.__class__ is tuple
        for node in gc.get_referrers(edges)
    )


def axis_of(name: str, dim: int | None, more: dict[str, int | None]) -> int | None:
    """The dimension that a call names by NumPy's word `axis`, and no other way."""
    for word in more:
        if word != "axis" or dim is not None:
            raise TypeError(f"{name}() got an unexpected keyword argument '{word}'")
    return more["axis"]


def strides_of(array: Array) -> tuple[int, ...]:
    """Strides in elements; where there are none, and NumPy gave no strides, those of rows."""
    if not array.size and not any(array.strides):
        return contiguous_strides(array.shape)
    step = array.itemsize
    return tuple([s // step for s in array.strides])


def wrap(array: Any, dtype: dtype | None = None) -> Tensor:
    """A tensor over an array that nothing else holds."""
    tensor: Tensor = new(Tensor)
    tensor._array = array
    tensor._dtype = dtype or FROM_NUMPY.get(array.dtype) or from_numpy_dtype(array.dtype)
    tensor._requires_grad = False
    tensor._grad_edge = tensor._storage = None
    if state.local.inference:
        tensor._storage = InferenceStorage(array)
    return tensor


def wrap_result(array: Array) -> Tensor:
    """A tensor over a kernel's result, which may be a scalar where it should be a 0-d array."""
    if (
        array.__class__ is not ndarray
        and array.__class__ not in base.queued
        and (isinstance(array, np.generic) or not hasattr(array, "strides"))
    ):
        array = np.asarray(array)
    tensor: Tensor = new(Tensor)
    tensor._array = array
    tensor._dtype = FROM_NUMPY.get(array.dtype) or from_numpy_dtype(array.dtype)
    tensor._requires_grad = False
    tensor._grad_edge = tensor._storage = None
    return tensor


def beside(like: Tensor, array: Any) -> Tensor:
    """A tensor with the elements of a NumPy array, on the device of another one."""
    if like._array.__class__ is ndarray:
        return wrap(array)
    backend = base.of_array(like._array)
    with backend.on(like.device):
        return wrap(backend.from_numpy(array))


def alias(source: Tensor) -> Tensor:
    """A tensor over the memory of `source`, sharing its version, with no history."""
    tensor: Tensor = new(Tensor)
    tensor._array, tensor._dtype, tensor._storage = source._array, source._dtype, source._memory()
    tensor._requires_grad, tensor._grad_edge = False, None
    if source._batches is not None:
        tensor._batches = source._batches
    return tensor


appeared: Callable[[Any], None] = lambda tensor: None  # noqa: E731  # what core/subclasses.py puts here


def finish() -> None:
    """Lets properties that none may set say so, and methods their names, in PyTorch's words."""

    def refusing(name: str) -> Callable[[Tensor, Any], None]:
        def refuse(self: Tensor, value: Any) -> None:
            raise AttributeError(
                f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable"
            )

        return refuse

    for name, own in list(vars(Tensor).items()):
        if isinstance(own, property) and own.fset is None:
            setattr(Tensor, name, own.setter(refusing(name)))
        elif isinstance(own, FunctionType) and own.__qualname__.partition("<")[1]:  # a closure
            own.__qualname__ = name


def of_class(cls: type) -> Any:
    """A tensor of a class, of which nothing is filled in yet."""
    made: Any = new(cls)
    if cls is not Tensor:
        appeared(made)
    return made


def like_class(cls: type, source: Tensor) -> Any:
    """A tensor of class `cls` over the memory of `source`, with no history."""
    tensor = of_class(cls)
    tensor._array, tensor._dtype, tensor._storage = source._array, source._dtype, source._memory()
    tensor._requires_grad, tensor._grad_edge = False, None
    return tensor


def like(source: Tensor, array: Any) -> Any:
    """A tensor of the class of `source` over a new array."""
    tensor = of_class(type(source))
    tensor._array, tensor._dtype = array, source._dtype
    tensor._requires_grad, tensor._grad_edge, tensor._storage = False, None, None
    return tensor


def as_dtype(value: DType) -> dtype:
    """A dtype from a dtype or a Python type."""
    if isinstance(value, dtype):
        return value
    if value.__class__ is type and value in (float, int, bool, complex):
        return {
            float: types.float64,
            int: types.int64,
            bool: types.bool,
            complex: types.complex128,
        }[value]
    raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(value).__name__}")


def as_type(value: DType) -> dtype:
    """`as_dtype`, or the type of a legacy name like "torch.FloatTensor" or of its class."""
    general: Any = value  # the class of all tensors, or its name
    if general is Tensor or general == "torch.Tensor":
        return types.get_default_dtype()
    if isinstance(value, str):
        name = value.rsplit(".", 1)[-1].removesuffix("Tensor")
        for d in types.STORED:
            if d.legacy == name:
                return d
    found = value if isinstance(value, dtype) else getattr(value, "dtype", None)
    if isinstance(found, dtype):
        return found
    raise ValueError(f"invalid type: '{getattr(value, '__name__', value)}'")
