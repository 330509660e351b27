"""Calling a module with other parameters than its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Kwargs
from toytorch.nn.modules.module import Module


def table_of(module: Module, name: str) -> tuple[dict[str, Any], str] | None:
    """The table that holds a parameter or buffer, and its name there; None if there is none."""
    path, _, last = name.rpartition(".")
    owner = module
    for part in path.split(".") if path else ():
        child = owner._modules.get(part)
        if child is None:
            return None
        owner = child
    for table in (owner._parameters, owner._buffers):
        if last in table:
            return table, last
    return None


@contextmanager
def swapped(module: Module, values: dict[str, Tensor], tie_weights: bool) -> Iterator[None]:
    """Puts other tensors in the places of parameters and buffers, and the old ones back."""
    if tie_weights:
        names: dict[int, list[str]] = {}
        for pairs in (
            module.named_parameters(remove_duplicate=False),
            module.named_buffers(remove_duplicate=False),
        ):
            for name, tensor in pairs:
                names.setdefault(id(tensor), []).append(name)
        for group in names.values():
            given = [n for n in group if n in values]
            if given and len({id(values[n]) for n in given}) > 1:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(given)}, which are "
                    "tied. Consider using tie_weights=False"
                )
            values = {**values, **{n: values[given[0]] for n in group if given}}
    places = []
    for name, value in values.items():
        found = table_of(module, name)
        if found is None:
            continue  # PyTorch passes over them too
        places.append((*found, value))
    old = [table[last] for table, last, _ in places]
    try:
        for table, last, value in places:
            table[last] = value
        yield
    finally:
        for (table, last, _), value in zip(places, old):
            table[last] = value


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor],
    args: Sequence[Tensor] | None = None,
    kwargs: Kwargs | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the given tensors in place of its parameters and buffers.

    Like `torch.func.functional_call`; the module itself is as before afterwards.

    >>> layer = torch.nn.Linear(1, 1)
    >>> functional_call(layer, {"weight": torch.ones(1, 1), "bias": torch.ones(1)}, torch.ones(1))
    tensor([2.])
    """
    dicts = parameter_and_buffer_dicts
    values: dict[str, Tensor] = {}
    for one in [dicts] if isinstance(dicts, dict) else dicts:
        repeated = values.keys() & one.keys()
        if repeated:
            raise ValueError(
                f"{sorted(repeated)} appear in multiple dictionaries; behavior of "
                "functional call is ambiguous"
            )
        values.update(one)
    if strict:
        own = {n for n, _ in module.named_parameters()} | {n for n, _ in module.named_buffers()}
        missing, more = sorted(own - values.keys()), sorted(values.keys() - own)
        if missing or more:
            raise RuntimeError(f"Missing key(s): {missing}. Unexpected key(s): {more}.")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with swapped(module, values, tie_weights):
        return module(*args, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several like modules, stacked for `vmap`."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    stack = registry["stack"].function

    def stacked(dicts: list[dict[str, Tensor]]) -> dict[str, Any]:
        made = {}
        for name in dicts[0]:
            like = [d[name] for d in dicts]
            made[name] = stack([t.detach() for t in like], 0).requires_grad_(like[0].requires_grad)
        return made

    return (
        stacked([dict(m.named_parameters()) for m in models]),
        stacked([dict(m.named_buffers()) for m in models]),
    )
