"""A parameter that is computed anew, from others, before every call of its module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


class Recomputed:
    """A hook before forward: sets `module.<name>` to what `compute_weight(module)` gives."""

    name: str

    def compute_weight(self, module: Module) -> Any:
        """The tensor to use in this call."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def find(module: Module, kind: type, name: str) -> tuple[int, Any] | None:
    """The hook of one kind for one parameter, and its number; None if there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and getattr(hook, "name", None) == name:
            return key, hook
    return None


def refuse_second(module: Module, kind: type, name: str, what: str) -> None:
    """Refuses a second hook of one kind for one parameter."""
    if find(module, kind, name) is not None:
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")


def take_away(module: Module, kind: type, name: str, what: str) -> Any:
    """Removes the hook of one kind for one parameter, and gives it."""
    found = find(module, kind, name)
    if found is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    del module._forward_pre_hooks[found[0]]
    return found[1]
