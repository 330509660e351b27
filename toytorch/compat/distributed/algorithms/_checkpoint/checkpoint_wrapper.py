"""Modules around others whose activations are computed again, or kept elsewhere.

Training scripts for several GPUs wrap the blocks of a transformer in these; a single process can do
so, too. Parameters keep the names that they have without the wrapper.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from typing import Any

from toytorch.autograd.graph import save_on_cpu
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter
from toytorch.utils.checkpoint import checkpoint

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(enum.Enum):
    """The ways of `torch.utils.checkpoint`."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


def renamed(state: dict[str, Any], old: str, new: str) -> None:
    """Lets all names that begin with `old` begin with `new`."""
    for name in [n for n in state if n.startswith(old)] if old != new else []:
        state[new + name[len(old) :]] = state.pop(name)


class ActivationWrapper(Module):
    """A module that is called by way of another, and looks like it from outside."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def forward(self, *args: object, **kwargs: object) -> Any:
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_CHECKPOINT_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        wrapped: Any = self._checkpoint_wrapped_module
        return wrapped[key]

    def named_parameters(self, *args: object, **kwargs: object) -> Iterator[tuple[str, Parameter]]:
        """The parameters, by the names that they have without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(
        module: Module, state_dict: dict[str, Any], prefix: str, *args: object
    ) -> dict[str, Any]:
        renamed(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(
        module: Module, state_dict: dict[str, Any], prefix: str, *args: object
    ) -> None:
        renamed(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """Keeps what backward needs in the memory of the CPU."""

    def forward(self, *args: object, **kwargs: object) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes what backward needs again."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: object,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=reentrant)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: object, **kwargs: object) -> Any:
        wrapped = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(wrapped, *args, **kwargs)
        count = len(args)  # the reentrant way takes arguments by position only

        def call(*given: object) -> Any:
            return wrapped(*given[:count], **dict(zip(kwargs, given[count:])))

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module, with what backward needs in the memory of the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: object,
) -> Module:
    """The module, each call of which is checkpointed.

    >>> from toytorch import nn
    >>> [name for name, _ in checkpoint_wrapper(nn.Linear(2, 1)).named_parameters()]
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wraps modules within a model, in place: those for which check_fn(module) is true, or that a policy
    chooses by (module=, recurse=, nonwrapped_numel=). The model itself is not wrapped."""

    def asked(module: Module, recurse: bool, nonwrapped_numel: int) -> bool:
        return recurse or check_fn(module)

    policy = auto_wrap_policy or asked

    def wrapped(module: Module, top: bool) -> tuple[Module, int]:
        """The module or its wrapper, and how many elements of parameters are in wrappers now."""
        count, inside = sum(p.numel() for p in module.parameters()), 0
        if not policy(module=module, recurse=True, nonwrapped_numel=count):
            return module, 0
        for name, child in list(module.named_children()):
            made, held = wrapped(child, False)
            setattr(module, name, made)
            inside += held
        if top or not policy(module=module, recurse=False, nonwrapped_numel=count - inside):
            return module, inside
        return checkpoint_wrapper_fn(module), count

    wrapped(model, True)
