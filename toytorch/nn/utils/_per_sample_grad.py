"""Gradients of every example of a batch by one backward pass."""

from __future__ import annotations

import functools
from typing import Any

from toytorch.autograd.vmap import vmap
from toytorch.core.tensor import Tensor
from toytorch.facts import pytree
from toytorch.facts.hints import Fn
from toytorch.nn.modules.module import Module
from toytorch.nn.utils.stateless import functional_call

REDUCTIONS = ["sum", "mean"]


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Fn:
    """The module's forward; backward puts a gradient per example into parameters' `grad_sample`.

    Every parameter stands once for each example (`vmap` runs the module on one after the other).
    With `loss_reduction="mean"`, gradients are times the batch size, which undoes the mean.
    """
    if loss_reduction not in REDUCTIONS:
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for "
                "multiple calls without clearing gradients. Please clear out the grad_sample parameter "
                f"of {weight} or post an issue to pytorch/pytorch to prioritize correct behavior"
            )
    dim = 0 if batch_first else 1

    def repeated(weight: Any, size: int) -> Any:
        """A weight once for each example, of which the gradients go to `grad_sample`."""
        each = weight.detach().expand(size, *weight.shape).requires_grad_()

        def keep(leaf: Any) -> None:
            weight.grad_sample = leaf.grad * size ** REDUCTIONS.index(loss_reduction)

        each.register_post_accumulate_grad_hook(keep)
        return each

    @functools.wraps(module.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        size = batch_size or size_of(leaves, dim)
        weights = {
            name: repeated(p, size) for name, p in module.named_parameters() if p.requires_grad
        }

        def one(weights: dict[str, Tensor], *leaves: Any) -> Any:
            whole = [v.unsqueeze(dim) if isinstance(v, Tensor) else v for v in leaves]
            args, kwargs = pytree.tree_unflatten(whole, spec)
            result = functional_call(module, weights, args, kwargs)
            return pytree.tree_map(lambda v: v.squeeze(dim), result)

        dims = [dim if isinstance(v, Tensor) else None for v in leaves]
        return vmap(one, (0, *dims), dim, randomness="different")(weights, *leaves)

    return forward


def size_of(leaves: list[Any], dim: int) -> int:
    """How many examples the tensors among the arguments hold; raises RuntimeError if they disagree."""
    sizes = [v.shape[dim] for v in leaves if isinstance(v, Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify "
            "it explicitly"
        )
    for size in sizes:
        if size != sizes[0]:
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{sizes[0]} and one with batch size {size}. Please specify it explicitly using the "
                "batch size kwarg in call_for_per_sample_grads"
            )
    return sizes[0]
