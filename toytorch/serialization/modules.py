"""Whole modules in files: what PyTorch keeps of a module, and what toytorch does.

A module is written as its class and its attributes. It comes back without any call: an object of
one of toytorch's own classes, whose attributes are checked one by one and set.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from toytorch import nn
from toytorch.core.public_modules import pytorch_module
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.facts.package import is_ours
from toytorch.nn.modules.hooks import Hook, entry
from toytorch.nn.modules.linear import NonDynamicallyQuantizableLinear
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter
from toytorch.optim.swa_utils import AveragedModel
from toytorch.serialization import allowed
from toytorch.serialization.rebuild import require

STATE_DICT_HOOKS = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
HOOKS = (
    *STATE_DICT_HOOKS, "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks",
    "_backward_hooks", "_node_hooks",
)  # fmt: skip
PYTORCHS = {  # what only PyTorch keeps; it follows from the rest
    "_is_full_backward_hook", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_always_called", "_flat_weights", "_flat_weights_names", "_flat_weight_refs",
}  # fmt: skip
KEPT = {"_all_weights", "_qkv_same_embed_dim", "_reversed_padding_repeated_twice", "_size", "_keys"}


# -- to a file ------------------------------------------------------------------------------------


def exported(module: Module, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a module as PyTorch keeps them."""
    made = {k: v for k, v in state.items() if k not in HOOKS and k != "_compiled"}
    for name in HOOKS[:-1]:
        hooks = state.get(name) or {}
        made[name] = OrderedDict(
            (k, h.call if isinstance(h, Hook) else h) for k, h in hooks.items()
        )
    for name, flag in (
        ("_forward_hooks", "with_kwargs"),
        ("_forward_pre_hooks", "with_kwargs"),
        ("_forward_hooks", "always_called"),
    ):
        made[f"{name}_{flag}"] = OrderedDict(
            (k, True)
            for k, h in (state.get(name) or {}).items()
            if isinstance(h, Hook) and (h.with_kwargs if flag == "with_kwargs" else h.always)
        )
    older = state.get("_node_hooks")
    made["_is_full_backward_hook"] = False if older else True if made["_backward_hooks"] else None
    if older:
        made["_backward_hooks"] = OrderedDict(older)
    if isinstance(module, nn.RNNBase):
        made["_flat_weights_names"] = [n for names in module._all_weights for n in names]
        made["_flat_weights"] = [getattr(module, n) for n in made["_flat_weights_names"]]
    if isinstance(module, nn.MultiheadAttention):
        for name in ("bias_k", "bias_v"):
            if module._parameters.get(name) is None:
                made[name] = None
    return made


# -- from a file ----------------------------------------------------------------------------------


def classes() -> dict[str, type]:
    """Every class of `torch.nn` by its name in files."""
    found = [v for v in vars(nn).values() if isinstance(v, type) and issubclass(v, nn.Module)]
    return {
        f"{pytorch_module(c.__module__, c.__name__)}.{c.__name__}": c
        for c in (*found, NonDynamicallyQuantizableLinear, AveragedModel)
        if is_ours(c.__module__)
    }


def imported(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a module of class `cls`, checked, as toytorch keeps them."""
    require(
        type(state) is dict and all(type(k) is str for k in state),
        "the state of a module must be a dict of its attributes",
    )
    made: dict[str, Any] = {}
    for name, value in state.items():
        if name in HOOKS:
            made[name] = _hooks(cls, name, value, state)
        elif name in PARTS:
            made[name] = _part(name, value)
        elif name not in PYTORCHS and not (value is None and name in ("bias_k", "bias_v")):
            require(
                not is_ours(cls.__module__) or _is_attribute(cls, name),
                f"a {cls.__name__} has no attribute {name!r} that a file may set",
            )
            made[name] = value
    for name in ("_parameters", "_buffers", "_modules"):
        require(name in made, f"the state of a module lacks {name}")
    if issubclass(cls, nn.MultiheadAttention):
        for name in ("bias_k", "bias_v"):
            made["_parameters"].setdefault(name, None)
    made.setdefault("_non_persistent_buffers_set", set())
    for name in HOOKS:
        made.setdefault(name, {})
    return made


def _is_attribute(cls: type, name: str) -> bool:
    held = getattr(cls, name, None)
    return name in KEPT or (
        name.isidentifier()
        and not name.startswith("_")
        and not callable(held)
        and not hasattr(type(held), "__get__")
    )


def _hooks(cls: type, name: str, hooks: dict[int, Fn], state: dict[str, Any]) -> dict[Any, Any]:
    require(isinstance(hooks, dict), f"{name} of a module must be a dict")
    for hook in hooks.values():
        if not callable(hook) or allowed.name_of(hook) is None:
            raise UnpicklingError(
                f"a {cls.__name__} in this file has hooks ({name}), which are code. Remove them "
                "before you save the module (a lazy module has them until its first call), save "
                "its state_dict(), or allow the functions with "
                "`torch.serialization.add_safe_globals`"
            )
    if name in ("_forward_hooks", "_forward_pre_hooks"):
        flags = [state.get(f"{name}_{flag}") or {} for flag in ("with_kwargs", "always_called")]
        return {k: entry(h, *(k in f for f in flags)) for k, h in hooks.items()}
    return dict(hooks)


def _part(name: str, value: Any) -> Any:
    what, is_right = PARTS[name]
    if name in ("training", "_non_persistent_buffers_set"):
        require(is_right(value), f"{name} of a module must be {what}")
        return value
    require(
        isinstance(value, dict)
        and all(
            type(k) is str and k and "." not in k and (v is None or is_right(v))
            for k, v in value.items()
        ),
        f"{name} of a module must be a dict of {what}",
    )
    return dict(value)


PARTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "training": ("True or False", lambda v: type(v) is bool),
    "_parameters": ("parameters", lambda v: isinstance(v, Parameter)),
    "_buffers": ("tensors", lambda v: isinstance(v, Tensor)),
    # what has no state yet is a module around this one, which has no end
    "_modules": ("modules", lambda v: isinstance(v, nn.Module) and "_modules" in vars(v)),
    "_non_persistent_buffers_set": (
        "a set of names",
        lambda v: type(v) is set and all(type(k) is str for k in v),
    ),
}
