"""Modules as functions of their parameters, as functorch made them; `functional_call` does the same."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.func import functional_call
from toytorch.nn import Module

Tensors = tuple[Tensor, ...]


class Stateless(Module):
    """A module without state, and the names of what it is to be called with."""

    def __init__(self, stateless_model: Module) -> None:
        super().__init__()
        self.param_names = tuple(n for n, _ in stateless_model.named_parameters())
        self.buffer_names = tuple(n for n, _ in stateless_model.named_buffers())
        self.stateless_model = stateless_model.to("meta")


class FunctionalModule(Stateless):
    """A module that is called with its parameters in front of its arguments."""

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(
            self.stateless_model, dict(zip(self.param_names, params)), args, kwargs
        )


class FunctionalModuleWithBuffers(Stateless):
    """A module that is called with its parameters and its buffers in front of its arguments."""

    def forward(
        self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers)))
        return functional_call(self.stateless_model, state, args, kwargs)


def taken(model: Module, kind: type[Stateless], untracked: bool) -> tuple[Any, Tensors, Tensors]:
    """The module without its state, and copies of what it held."""
    own = copy.deepcopy(model)
    params, buffers = tuple(own.parameters()), tuple(own.buffers())
    kept = [p.detach().requires_grad_(p.requires_grad and not untracked) for p in params]
    return kind(own), tuple(kept), tuple(b.detach() for b in buffers)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Tensors]:
    """A function `func(params, *args)`, and copies of the module's parameters.

    Raises RuntimeError for a module with buffers.
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return taken(model, FunctionalModule, disable_autograd_tracking)[:2]


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """A function `func(params, buffers, *args)`, and copies of the module's parameters and buffers."""
    return taken(model, FunctionalModuleWithBuffers, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """A function of one model, and the state of all of them, stacked: for `vmap`.

    Raises RuntimeError unless the models are of one class and all train, or none does.
    """
    about = "combine_state_for_ensemble: Expected"
    if len(models) == 0:
        raise RuntimeError(f"{about} at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(f"{about} all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(f"{about} all models to be of the same class.")
    made = [make_functional_with_buffers(m) for m in models]
    params, buffers = (
        tuple(torch.stack(each).detach() for each in zip(*(m[k] for m in made))) for k in (1, 2)
    )
    return made[0][0], params, buffers
