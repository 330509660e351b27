"""Parameters, buffers and parts of a module by their names: `torch.nn.utils._named_member_accessor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn.modules.module import Module

_MISSING: Any = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts a tensor in the place of one of a module's own; gives what was there."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    held = module._parameters if name in module._parameters else module._buffers
    if name in held:
        old: Any = held[name]
        if tensor is _MISSING:
            del held[name]
        else:
            held[name] = tensor
        return old
    old = getattr(module, name, _MISSING)
    if old is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if old is not _MISSING and not isinstance(old, Tensor) and not allow_missing:
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif old is not _MISSING:
        delattr(module, name)
    return old


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Puts a tensor under a name, whatever was there."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Puts a module in the place of a part; gives the part."""
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if name == "":
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    old: Any = module._modules[name]
    module._modules[name] = submodule
    return old


class NamedMemberAccessor:
    """Reads and replaces what a module and its parts hold, by full names such as "0.weight"."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {"": module}

    def _place(self, name: str) -> tuple[Module, str]:
        prefix, _, last = name.rpartition(".")
        return self.get_submodule(prefix), last

    def get_submodule(self, name: str) -> Module:
        """A part by its full name."""
        if name not in self.memo:
            owner, last = self._place(name)
            found = getattr(owner, last, None)
            if not hasattr(owner, last):
                raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
            if not isinstance(found, Module):
                raise TypeError(
                    f"submodule `{name}`: {found} is not an instance of torch.nn.Module"
                )
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Puts a module in the place of a part."""
        owner, last = self._place(path)
        self.memo.clear()
        self.memo[""] = self.module
        return swap_submodule(owner, last, value)

    def get_tensor(self, name: str) -> Any:
        """A tensor by its full name."""
        owner, last = self._place(name)
        if not hasattr(owner, last):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        found = getattr(owner, last)
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Puts a tensor under a name."""
        set_tensor(*self._place(name), value)

    def del_tensor(self, name: str) -> None:
        """Takes a tensor away."""
        owner, last = self._place(name)
        if not hasattr(owner, last):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        swap_tensor(owner, last, _MISSING)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Puts a tensor in the place of another; gives that."""
        return swap_tensor(*self._place(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """Tensors by their names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Puts tensors under names."""
        for name, value in self._pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """The same of a dict."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Takes tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor], allow_missing: bool = False
    ) -> list[Any]:
        """Puts tensors in the place of others; gives those."""
        pairs = self._pairs(names, values)
        return [self.swap_tensor(name, value, allow_missing) for name, value in pairs]

    def _pairs(self, names: Iterable[str], values: Iterable[Tensor]) -> list[tuple[str, Tensor]]:
        listed, given = list(names), list(values)
        assert len(listed) == len(given), (
            f"names and values must have the same length, got {len(listed)} names and "
            f"{len(given)} values"
        )
        return list(zip(listed, given))

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """The same of a dict, all or nothing; gives the old ones and which names were new."""
        old: dict[str, Any] = {}
        try:
            for name, value in named_tensors.items():
                old[name] = self.swap_tensor(name, value, allow_missing=True)
            missing = [name for name, held in old.items() if held is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, held in old.items():
                self.swap_tensor(name, held, allow_missing=True)
            raise
        return old, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Which tensors are not among these names, and which names are no tensor's."""
        given = set(keys)
        held = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(held - given), sorted(given - held)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their names."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Both."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The module and its parts with their names."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
