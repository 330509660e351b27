"""Tensors that a module learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core import subclasses
from toytorch.core.subclasses import DisableTorchFunctionSubclass, disabled_torch_function_impl
from toytorch.core.tensor import Tensor, like_class, wrap
from toytorch.facts.device import given
from toytorch.facts.hints import Device, DType, Fn, Shape


class _ParameterMeta(type):
    """Parameters are also objects of users' classes that were made parameters, which stay what they
    are."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        told = cls is Parameter and isinstance(instance, Tensor)
        return told and getattr(instance, "_is_param", False) is True


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module finds among its attributes, like `torch.nn.Parameter`.

    >>> Parameter(Tensor([1, 2]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__: Any = disabled_torch_function_impl
    _is_param = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = wrap(np.empty(0, np.float32))
        if not isinstance(data, Tensor):
            raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach'")
        if data.is_nested:  # which stays what it is, with values of its own that are learned
            return data.detach().requires_grad_(requires_grad)
        if data.__class__ is not Tensor and subclasses.asks(data.__class__):
            return _of_subclass(data, requires_grad)
        made = like_class(cls, data)
        made.requires_grad_(requires_grad)
        return made

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            copy = like_class(type(self), self.detach().clone())
            copy._requires_grad = self._requires_grad
            memo[id(self)] = copy
        return memo[id(self)]


def _of_subclass(data: Tensor, requires_grad: bool) -> Any:
    """A parameter that stays an object of the user's class.

    Raises RuntimeError where the class's `detach` gives something else.
    """
    made: Any = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
            "detach() returns an instance of the same type, but return type "
            f"{type(made).__name__} was found instead. To use the type as a Parameter, please correct "
            "the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    vars(made)["_is_param"] = True
    return made


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not learned."""

    __slots__ = ()
    __torch_function__ = disabled_torch_function_impl
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = like_class(cls, Tensor() if data is None else data)
        made.persistent = persistent
        return made


# -- tensors whose shape is not known yet ---------------------------------------------------------

NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
    "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)


# What can be done with a tensor of which nothing but type and device are known.
ALLOWED = frozenset(
    """__hash__ size copy_ is_complex is_floating_point half float double char short int long cuda
    cpu to get_device""".split()  # noqa: SIM905 - a list of names that reads as one
)


class Uninitialized(Tensor):
    """A tensor without a shape, until `materialize` gives it one.

    Functions of tensors refuse it. They ask (`toytorch.overrides`) from when there is the first one.
    """

    __slots__ = ()
    becomes: type

    @classmethod
    def __torch_function__(cls, func: Fn, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ALLOWED or func.__name__ in ("__get__", "__set__"):
            return disabled_torch_function_impl(func, types, args, kwargs)
        shown = f"<method '{func.__name__}' of 'torch._C.TensorBase' objects>"
        if func.__name__ in ("__deepcopy__", "__len__"):  # which PyTorch states in Python
            shown = str(func)
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {shown}. This error happens when you are "
            "using a `LazyModule` or explicitly manipulating `torch.nn.parameter."
            f"{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy batch to "
            "initialize the parameters before calling torch functions"
        )

    def materialize(self, shape: Shape, device: Device = None, dtype: DType | None = None) -> None:
        """Takes memory for a shape, and the class of an ordinary parameter or buffer."""
        with DisableTorchFunctionSubclass():
            kind = dtype or self.dtype
            self.data = self.new_empty(shape, device=given(device, self.device), dtype=kind)
        self.__class__ = self.becomes

    @property
    def shape(self) -> Any:
        raise RuntimeError(NO_SHAPE)

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._requires_grad, self.device, self.dtype)


def _nothing(device: Device, dtype: DType | None) -> Tensor:
    subclasses.appeared()
    made: Any = Tensor()
    return made.to(**{k: v for k, v in (("device", device), ("dtype", dtype)) if v is not None})


UninitializedTensorMixin = Uninitialized  # PyTorch's name


class UninitializedParameter(Uninitialized, Parameter):
    """A parameter of a lazy module before its first call."""

    __slots__ = ()
    becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Device = None, dtype: DType | None = None
    ) -> Any:
        made = like_class(cls, _nothing(device, dtype))
        made._requires_grad = requires_grad
        return made

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            maker, given = self.__reduce_ex__(2)
            memo[id(self)] = maker(*given)
        return memo[id(self)]

    def __init__(
        self, requires_grad: bool = True, device: Device = None, dtype: DType | None = None
    ) -> None:
        """Nothing is left to do after __new__."""


class UninitializedBuffer(Uninitialized):
    """A buffer of a lazy module before its first call."""

    __slots__ = ()
    becomes = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Device = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ) -> Any:
        made = like_class(cls, _nothing(device, dtype))
        made._requires_grad, made.persistent = requires_grad, persistent
        return made

    def __init__(
        self,
        requires_grad: bool = False,
        device: Device = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ) -> None:
        """Nothing is left to do after __new__."""

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        return self.__torch_function__(Tensor.__deepcopy__, (type(self),))


def is_lazy(tensor: Tensor | None) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(tensor, Uninitialized)


__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]
