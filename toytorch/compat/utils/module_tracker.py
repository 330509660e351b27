"""Which modules a call is inside of."""

from __future__ import annotations

from typing import Any

from toytorch.nn.modules import module as modules
from toytorch.nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context in which `parents` holds the names of the modules whose `forward` runs.

    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1))
    >>> with ModuleTracker() as tracker:
    ...     _ = net[0].register_forward_pre_hook(lambda *a: print(sorted(tracker.parents)))
    ...     _ = net(torch.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self.is_bw = False  # whether it is the backward pass that runs
        self._names: dict[int, str] = {}

    def _name(self, module: modules.Module) -> str:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._names.setdefault(id(inner), f"{root}.{name}" if name else root)
        return self._names[id(module)]

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(lambda m, _: self.parents.add(self._name(m))),
            register_module_forward_hook(
                lambda m, _, __: self.parents.discard(self._name(m)), always_call=True
            ),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()
