"""Modules run side by side, each on its device."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.cuda.devices import device as device_context
from toytorch.cuda.simulation import is_simulated
from toytorch.facts import state
from toytorch.facts.pytree import tree_leaves
from toytorch.nn.modules.module import Module
from toytorch.nn.parallel._functions import place


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The results of each module on its arguments, a thread for each.

    On simulated devices they are called one after the other: the order of the host's calls, and
    with it every time, is then the same in each run. What they launch runs side by side all the
    same. An error is raised as it was, once all are done.
    """
    words = kwargs_tup or [{} for _ in modules]
    if not len(modules) == len(inputs) == len(words):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    places = [None] * len(modules) if devices is None else [place(d) for d in devices]
    grad = state.local.grad

    def run(k: int) -> Any:
        state.set_grad(grad)
        given = inputs[k] if isinstance(inputs[k], (list, tuple)) else (inputs[k],)
        where = places[k]
        if where is None:
            found = next((t for t in tree_leaves(given) if isinstance(t, Tensor)), None)
            where = None if found is None else found.device
        index = -1 if where is None or where.type != "cuda" else where.index
        with device_context(-1 if index is None else index):
            return modules[k](*given, **words[k])

    if len(modules) == 1 or is_simulated():
        return [run(k) for k in range(len(modules))]
    with ThreadPoolExecutor(len(modules)) as pool:
        return [job.result() for job in [pool.submit(run, k) for k in range(len(modules))]]
