"""`torch.distributed.checkpoint.state_dict` in one process: what libraries load models by.

Over several processes its functions gather and spread what each holds; where there is one, they come to
`Module.state_dict` and `Module.load_state_dict`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module

__all__ = ["StateDictOptions", "get_model_state_dict", "set_model_state_dict"]


@dataclasses.dataclass
class StateDictOptions:
    """How states are taken and given."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def refuse_half(options: StateDictOptions) -> None:
    """Refuses to send a part of a state to other processes."""
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


def get_model_state_dict(
    model: Module,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The parameters and buffers of a model, or of some of its modules, by their names."""
    options = options or StateDictOptions()
    refuse_half(options)
    state: dict[str, Any] = model.state_dict()
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                del state[name]
    if submodules:
        places = [f"{name}." for name, module in model.named_modules() if module in submodules]
        state = {
            name if options.keep_submodule_prefixes else name[len(place) :]: value
            for place in places
            for name, value in state.items()
            if name.startswith(place)
        }
    if options.cpu_offload:
        state = {n: v.cpu() for n, v in state.items()}
    return state


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Gives a model the parameters and buffers of these names; says which lack and which it has not.

    What lacks in a state that is said to be whole stays as it is.
    """
    options = options or StateDictOptions()
    own = model.state_dict()
    refuse_half(options)
    on_meta = options.full_state_dict and all(v.is_meta for v in own.values() if v.ndim)
    may_be_empty = options.ignore_frozen_params or (options.cpu_offload and options.full_state_dict)
    lacks = not model_state_dict and options.strict and not may_be_empty
    if options.broadcast_from_rank0 or on_meta or lacks:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    whole = options.full_state_dict or not model_state_dict
    state = {**own, **model_state_dict} if whole else model_state_dict
    return model.load_state_dict(state, strict=options.strict)
