"""Networks with fewer weights, like `torch.nn.utils.prune`: each function prunes one parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toytorch.core.tensor import Tensor
from toytorch.nn.utils.convert_parameters import parameters_to_vector
from toytorch.nn.utils.prune_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
)
from toytorch.nn.utils.prune_methods import _compute_nparams_toprune as _compute_nparams_toprune
from toytorch.nn.utils.prune_methods import _validate_pruning_amount as _validate_pruning_amount
from toytorch.nn.utils.prune_methods import (
    _validate_pruning_amount_init as _validate_pruning_amount_init,
)
from toytorch.ops.creation.create import ones_like

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


def identity(module: Module, name: str) -> Any:
    """Makes the mask and the original, and prunes nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Any:
    """Prunes elements at random: a number of them, or a share."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Any:
    """Prunes the elements nearest to 0.

    >>> layer = torch.nn.Linear(4, 1)
    >>> _ = l1_unstructured(layer, "weight", amount=0.5)
    >>> int((layer.weight == 0).sum()), list(layer.state_dict())
    (2, ['bias', 'weight_orig', 'weight_mask'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Any:
    """Prunes channels along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: float | str,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Any:
    """Prunes the channels along a dimension with the smallest norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Any:
    """Prunes by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: object, pruning_method: type, importance_scores: object = None, **kwargs: object
) -> None:
    """Prunes elements among all of several parameters, given as (module, name) pairs."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs, scores = list(parameters), {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found'
            f" method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    values = [getattr(m, n) for m, n in pairs]
    all_scores = parameters_to_vector(
        [scores.get(pair, v) for pair, v in zip(pairs, values)]
    ).detach()
    before = parameters_to_vector(
        [
            getattr(m, n + "_mask", None) if hasattr(m, n + "_mask") else ones_like(v)
            for (m, n), v in zip(pairs, values)
        ]
    ).detach()
    mask, at = PruningContainer(method).compute_mask(all_scores, before), 0
    for (module, name), v in zip(pairs, values):
        custom_from_mask(module, name, mask[at : at + v.numel()].reshape(v.shape))
        at += v.numel()


def remove(module: Module, name: str) -> Any:
    """Makes the pruned values the parameter, for good."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in m._forward_pre_hooks.values()
    )


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip
