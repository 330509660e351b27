"""Copies of a module on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.cuda import comm
from toytorch.nn.modules.module import Module
from toytorch.nn.parallel._functions import broadcast


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A copy of a module on each device. Its parameters are copies too, through which gradients
    flow back to the module's own; unless `detach`."""
    devices = list(devices)
    parameters, buffers = list(network.parameters()), list(network.buffers())
    copies: list[list[Any]] = [[] for _ in devices]
    if parameters:
        if detach:
            copies = comm.broadcast_coalesced(parameters, devices)
        else:
            copies = broadcast(parameters, devices)
    moved = comm.broadcast_coalesced(buffers, devices) if buffers else [[] for _ in devices]
    made = []
    for k in range(len(devices)):
        table = {id(p): c for p, c in zip(parameters, copies[k])}
        table.update({id(b): c for b, c in zip(buffers, moved[k])})
        made.append(_copied(network, table, {}))
    return made


def _copied(module: Module, table: dict[int, Any], seen: dict[int, Module]) -> Module:
    """A module of the same class over other tensors; modules that occur twice are one again."""
    if id(module) in seen:
        return seen[id(module)]
    copy = seen[id(module)] = module._replicate_for_data_parallel()
    # Copies of parameters are results of an op, so no parameters: the copy has them as attributes.
    copy.__dict__["_parameters"] = {
        name: None if p is None else table[id(p)] for name, p in module._parameters.items()
    }
    copy.__dict__["_buffers"] = {
        name: None if b is None else table[id(b)] for name, b in module._buffers.items()
    }
    copy.__dict__["_modules"] = {
        name: None if m is None else _copied(m, table, seen) for name, m in module._modules.items()
    }
    return copy
