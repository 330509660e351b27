"""The base class of all networks."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from toytorch.autograd.modes import no_grad
from toytorch.core import swap
from toytorch.core.tensor import Tensor, as_dtype, as_type
from toytorch.facts import warned
from toytorch.facts.device import device as device_class
from toytorch.facts.device import memory_format as memory_format_class
from toytorch.facts.dtype import dtype as dtype_class
from toytorch.facts.hints import Args, Device, Fn, Kwargs
from toytorch.facts.node import RemovableHandle
from toytorch.facts.package import is_ours
from toytorch.nn.modules.hooks import (
    EVERYWHERE,
    add,
    as_hook,
    call_with_hooks,
    entry,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from toytorch.nn.modules.registration import REGISTRATION, Tree
from toytorch.nn.modules.state import Stateful
from toytorch.nn.modules.state import _IncompatibleKeys as _IncompatibleKeys
from toytorch.nn.parameter import Parameter, is_lazy

T = TypeVar("T", bound="Module")
HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_node_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
)
ANYWHERE = tuple(EVERYWHERE.values())
_global_parameter_registration_hooks = REGISTRATION["parameter"]  # which libraries call themselves


REST = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
FORMS = (
    f"\n * (torch.device device = None, torch.dtype dtype = None, {REST})"
    f"\n * (torch.dtype dtype, {REST})\n * (Tensor tensor, {REST})\n"
)


def is_op(function: Fn) -> bool:
    """Whether it is an operator: PyTorch's are written in C, and make no methods of a class."""
    generated = function.__code__.co_filename.startswith("<toytorch")
    return generated and is_ours(function.__module__)


class Kinds:
    """What each argument of `Module.to` may be, besides None."""

    device = (device_class, str, int)
    dtype = (dtype_class, type)
    tensor = Tensor
    non_blocking = copy = bool
    memory_format = memory_format_class


def options_of(args: Args, kwargs: Kwargs) -> dict[str, Any]:
    """What `Module.to` is told to change: device, dtype and memory_format, as far as given."""
    first = args[0] if args else None
    words = ["non_blocking", "copy"]
    if isinstance(first, dtype_class):
        words = ["dtype", *words]
    elif isinstance(first, Tensor):
        words = ["tensor", *words]
    else:
        words = ["device", "dtype", *words]
    given = dict(zip(words, args)) | kwargs
    fits = len(args) <= len(words) and not set(words[: len(args)]) & kwargs.keys()
    for word, value in given.items():
        kind: Any = getattr(Kinds, word, ())
        whole = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        fits = fits and (whole or (value is None and kind is not bool))
    if not fits:
        kinds = [*map(name_of, args), *(f"{k}={name_of(v)}" for k, v in kwargs.items())]
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({', '.join(kinds)}), but "
            f"expected one of:{FORMS}"
        )
    if given.pop("copy", False):
        raise RuntimeError(".to() does not accept copy argument")
    like = given.pop("tensor", None)
    if like is not None:
        given |= {"device": like.device, "dtype": like.dtype}
    if given.get("dtype") is not None:
        given["dtype"] = as_dtype(given["dtype"])
    return {k: v for k, v in given.items() if v is not None}


def name_of(value: Any) -> str:
    """A value's type, as PyTorch names it in refusals."""
    ours = isinstance(value, (device_class, dtype_class, memory_format_class))
    return f"torch.{type(value).__name__}" if ours else type(value).__name__


def converted(parameter: Any, values: Tensor) -> Any:
    """A parameter with other values: the same object, unless `torch.__future__` says otherwise."""
    if not (swap.overwrite or swap.swap):
        parameter.data = values
        return parameter
    made = Parameter(values, parameter.requires_grad)
    if swap.overwrite:
        return made
    parameter.grad = None
    swap.swap_tensors(parameter, made)
    return parameter


ONE_KIND_OF_HOOKS = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use "
    "only one of them."
)


class Module(Stateful):
    """A network or a part of one, like `torch.nn.Module`.

    A subclass creates parameters and children as attributes and defines `forward`.

    >>> import toytorch.nn as nn
    >>> class Twice(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = nn.Linear(2, 2)
    ...     def forward(self, x):
    ...         return self.layer(self.layer(x))
    >>> Twice()
    Twice(
      (layer): Linear(in_features=2, out_features=2, bias=True)
    )
    """

    call_super_init = False
    dump_patches = False
    _compiled: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in list(vars(cls).items()):
            if isinstance(value, FunctionType) and is_op(value):
                setattr(cls, name, staticmethod(value))

    def _replicate_for_data_parallel(self) -> Any:
        """A module with the same attributes that may be given other tensors; it has no parameters."""
        replica: Any = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        tables = {"_buffers": dict(self._buffers), "_modules": dict(self._modules)}
        replica.__dict__.update(tables, _parameters={}, _is_replica=True)
        return replica

    def __init__(self, *args: object, **kwargs: object) -> None:
        if kwargs and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{next(iter(kwargs))}'"
            )
        if args and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        super().__init__()
        own = self.__dict__
        own |= {name: OrderedDict() for name in HOOKS}
        own["_modules"] = own.pop("_modules")  # which is pickled after all hooks
        if self.call_super_init:
            super(Tree, self).__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in HOOKS:
            self.__dict__.setdefault(name, {})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the output; every subclass defines its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # -- calling ------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        if self._compiled is not None:
            return self._compiled(*args, **kwargs)
        if not (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or self._node_hooks
            or any(ANYWHERE)
        ):
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    @property
    def _forward_hooks_always_called(self) -> dict[int, bool]:
        """The forward hooks that are called even when `forward` raises, by their numbers."""
        return {key: True for key, hook in self._forward_hooks.items() if as_hook(hook).always}

    @property
    def _forward_hooks_with_kwargs(self) -> dict[int, bool]:
        """The forward hooks that get the keyword arguments."""
        return {key: True for key, hook in self._forward_hooks.items() if as_hook(hook).with_kwargs}

    @property
    def _forward_pre_hooks_with_kwargs(self) -> dict[int, bool]:
        """Those before forward that get the keyword arguments."""
        return {
            key: True for key, hook in self._forward_pre_hooks.items() if as_hook(hook).with_kwargs
        }

    def compile(self, *args: object, **kwargs: object) -> None:
        """Compiles this module's call in place; `toytorch.compile` makes another module."""
        compiler = getattr(sys.modules["toytorch"], "compile", None)
        if compiler is not None:
            self._compiled = compiler(self._call_impl, *args, **kwargs)

    def _call_impl(self, *args: object, **kwargs: object) -> Any:
        """The call with all hooks, compiled or not."""
        return call_with_hooks(self, args, kwargs)

    def register_forward_hook(
        self,
        hook: Fn,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls hook(module, args, output) after forward; it may replace the output.

        prepend      before the hooks that are there already
        with_kwargs  hook(module, args, kwargs, output)
        always_call  also when forward raises
        """
        return add(self._forward_hooks, entry(hook, with_kwargs, always_call), prepend)

    def register_forward_pre_hook(
        self, hook: Fn, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, args) before forward; it may replace the arguments."""
        return add(self._forward_pre_hooks, entry(hook, with_kwargs), prepend)

    def register_full_backward_pre_hook(self, hook: Fn, prepend: bool = False) -> RemovableHandle:
        """Calls hook(module, grad_output) before backward passes; it may replace grad_output."""
        return add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Fn, prepend: bool = False) -> RemovableHandle:
        """Calls hook(module, grad_input, grad_output) after backward; it may replace grad_input."""
        if self._node_hooks:
            raise RuntimeError(ONE_KIND_OF_HOOKS)
        return add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Fn) -> RemovableHandle:
        """The older form: calls hook(module, ...) with the gradients of the last node alone."""
        if self._backward_hooks:
            raise RuntimeError(ONE_KIND_OF_HOOKS)
        return add(self._node_hooks, hook)

    # -- changing everything at once ----------------------------------------------------------

    def apply(self: T, fn: Callable[[Module], Any]) -> T:
        """Calls fn on every module below and on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replaces every parameter's and buffer's values by fn of them."""
        for child in self.children() if recurse else ():
            child._apply(fn)
        with no_grad():
            for name, p in list(self._parameters.items()):
                if p is None:
                    continue
                grad, made = p.grad, fn(p)
                if made is not p or swap.overwrite:
                    self._parameters[name] = p = converted(p, made)
                if grad is not None:
                    made = fn(grad)
                    if made is not grad:
                        made = made.detach().requires_grad_(grad.requires_grad)
                    p._grad = made
            for name, b in self._buffers.items():
                if is_lazy(b):
                    b.data = fn(b)  # it has to stay what it is
                elif b is not None:
                    self._buffers[name] = fn(b)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Parameters and buffers with another floating type, on another device, or both.

        `to(dtype)`, `to(device, dtype)`, `to(tensor)` and `to(memory_format=channels_last)`, which
        concerns tensors of four and five dimensions alone.
        """
        options = options_of(args, kwargs)
        target, form = options.pop("dtype", None), options.pop("memory_format", None)
        if target is not None and target.rank < 2:
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got "
                f"desired dtype={target}"
            )
        if target is not None and target.is_complex:
            warned.at_call(
                "Complex modules are a new feature under active development whose design may change, "
                "and some modules might not work as expected when using complex tensors as parameters "
                "or buffers. Please file an issue at https://github.com/pytorch/pytorch/issues/new?"
                "template=bug-report.yml if a complex module does not work as expected."
            )

        def convert(t: Tensor) -> Any:
            chosen = dict(options)
            if target is not None and t.dtype.rank >= 2:
                chosen["dtype"] = target
            try:
                moved = t.to(**chosen) if chosen else t
            except NotImplementedError as e:
                raise NotImplementedError(
                    f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when "
                    "moving module from meta to a different device."
                ) from None
            if form is not None and t.ndim in (4, 5):
                return moved.to(memory_format=form)
            return moved

        return self._apply(convert)

    def to_empty(self: T, *, device: Device, recurse: bool = True) -> T:
        """New memory on a device, its values not set."""
        return self._apply(lambda t: t.new_empty(t.shape, device=device), recurse)

    def _cast(self: T, name: str) -> T:
        return self._apply(lambda t: getattr(t, name)() if t.dtype.is_floating_point else t)

    def float(self: T) -> T:
        """Floating-point state as float32."""
        return self._cast("float")

    def double(self: T) -> T:
        """Floating-point state as float64."""
        return self._cast("double")

    def half(self: T) -> T:
        """Floating-point state as float16."""
        return self._cast("half")

    def bfloat16(self: T) -> T:
        """Floating-point state as bfloat16."""
        return self._cast("bfloat16")

    def cpu(self: T) -> T:
        """State in the CPU's memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: T, device: Device = None) -> T:
        """State on a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def type(self: T, dst_type: Any) -> T:
        """State in another type."""
        target = as_type(dst_type)
        return self._apply(lambda t: t.to(dtype=target))

    def share_memory(self: T) -> T:
        """State in memory that other processes can see."""
        return self._apply(lambda t: t.share_memory_())

    def train(self: T, mode: bool = True) -> T:
        """Switches dropout and the like on."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        object.__setattr__(self, "training", mode)
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: T) -> T:
        """Switches dropout and the like off."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Says for all parameters whether gradients are wanted."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to 0."""
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                elif p.grad.grad_fn is not None:
                    p.grad = p.grad.detach().zero_()
                else:
                    p.grad.requires_grad_(False).zero_()

    # -- printing -----------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the brackets after the name."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def __repr__(self) -> str:
        text = self.extra_repr()
        extra = text.split("\n") if text else []
        children = [
            f"({name}): {_addindent(repr(child), 2)}" for name, child in self._modules.items()
        ]
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + children) + "\n)"


def _addindent(s_: str, numSpaces: int) -> str:
    """Lines after the first moved to the right; blank ones have nothing in them."""
    first, *others = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line if line.strip() else "" for line in others)])


__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip


class _Tables(ModuleType):
    """This module, whose tables of hooks for all modules can be replaced, as programs do."""


def _table(moment: str) -> property:
    def show(self: ModuleType) -> dict[int, Any]:
        return EVERYWHERE[moment]

    def replace(self: ModuleType, table: dict[int, Any]) -> None:
        kept = dict(table)
        EVERYWHERE[moment].clear()
        if moment == "_backward_hooks":
            EVERYWHERE["_node_hooks"].clear()  # PyTorch keeps both kinds in one table
        EVERYWHERE[moment].update(kept)

    return property(show, replace, doc=f"The {moment[1:]} of every module.")


for _moment in ("forward_pre_hooks", "forward_hooks", "backward_pre_hooks", "backward_hooks"):
    setattr(_Tables, f"_global_{_moment}", _table(f"_{_moment}"))
sys.modules[__name__].__class__ = _Tables
