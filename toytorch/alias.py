"""toytorch under PyTorch's name: programs that say `import torch` run unchanged.

    python -m toytorch train.py --epochs 3

The name is given to this process only, and only if PyTorch itself has not been imported. From then
on modules and classes are called torch, so that what programs print, pickle and ask is PyTorch's.
Functions keep the name of their module, by which the compiler's archives find them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import toytorch
from toytorch import LACKING, torch_version, version
from toytorch.compat._absent import ABSENT, MADE, module_of
from toytorch.compat._imported import imported
from toytorch.compat._pickled import write_so
from toytorch.core.public_modules import PLACES, module_of_moved, pytorch_module
from toytorch.facts.package import NAMES, is_ours
from toytorch.torch_version import TorchVersion
from toytorch.version import compatible

OWN, TAKEN = "toytorch", "torch"
SHOWN = {p for p in PLACES if not p.startswith("torch.optim.")}  # PyTorch deletes these attributes
IMPORTING = tuple(f"torch.{p}." for p in ("distributions", "nn", "optim", "utils.data"))
STAND_IN = Path(__file__).parent / "stand_in"  # on the path of processes that are started


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch.nn` where `toytorch.nn` is: one module under two names.

    A module is entered in `sys.modules` under both as soon as it has run. So the import system
    takes `import torch.autograd.gradcheck` for the import of something that is there, as it is in
    PyTorch, and leaves alone what the package made of the name afterwards.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package == OWN:
            return self._native(fullname, path, target)
        if package != TAKEN:
            return None
        parent = fullname.rpartition(".")[0]
        if (fullname in ABSENT or fullname in PLACES) and not is_there(fullname):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if rest and sys.modules.get(parent) not in (
            sys.modules.get(own_name(parent)),
            MADE.get(parent),
        ):
            return None  # below a module that somebody else put there
        # Of some names imports are told more than that there is no such module.
        told = rest.partition(".")[0] in LACKING or parent in MADE
        if not told and importlib.util.find_spec(own_name(fullname)) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def _native(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        """What finds any module, with a loader that takes the module in when it has run."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_take_in(module: ModuleType) -> None:
                run(module)
                rename(classes_in(module, module.__name__))
                take_in(module)

            spec.loader.exec_module = run_and_take_in  # type: ignore[method-assign]  # takes in what the loader made
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name in ABSENT and not is_there(spec.name):
            return module_of(spec.name)
        if spec.name in PLACES and not is_there(spec.name):
            moved = with_imported(module_of_moved(spec.name))
            vars(moved).update(further_names(spec.name))
            return moved
        own = own_name(spec.name)
        try:
            return importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{own}.".startswith(f"{error.name}."):
                raise
            raise ModuleNotFoundError(lacking(spec.name), name=spec.name) from None

    def exec_module(self, module: ModuleType) -> None:
        """Runs nothing: the module was run under its own name.

        With the package, everything that has been imported so far gets its other name. Python would
        else import it again, and put the module `gradcheck` over the function of that name.
        """
        if not hasattr(module, "__file__"):
            return  # made of names that stand elsewhere, or nowhere
        if module is toytorch:
            take_names()
        module.__spec__ = spec_of(module)

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        """For programs that ask which version of PyTorch is installed."""
        return [Distribution()] if context is not None and context.name == TAKEN else []


class Distribution(importlib.metadata.Distribution):
    """PyTorch as an installed package: its name and version."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {TAKEN}\nVersion: {compatible}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


def own_name(name: str) -> str:
    """`toytorch.nn` for `torch.nn`."""
    return OWN + name.removeprefix(TAKEN)


def taken_name(name: str) -> str:
    """`torch.nn` for `toytorch.nn`."""
    return TAKEN + name.removeprefix(OWN)


def lacking(name: str) -> str:
    """What to say of a part that toytorch does not have."""
    parent = name.rpartition(".")[0]
    why = ABSENT[parent][0] if parent in MADE else LACKING.get(name.split(".")[1])
    return f"No module named '{name}' (toytorch has no {why or 'part of this name'})"


def spec_of(module: ModuleType) -> Any:
    """What the import system says of a module under the name that it has now."""
    return importlib.util.spec_from_file_location(
        module.__name__,
        module.__file__,
        submodule_search_locations=getattr(module, "__path__", None),
    )


def take_in(module: ModuleType) -> None:
    """Calls a module torch, and lets it be found under that name."""
    sys.modules[taken_name(module.__name__)] = module
    module.__name__ = taken_name(module.__name__)
    for name, value in further_names(module.__name__).items():
        vars(module).setdefault(name, value)
    module.__package__ = taken_name(module.__package__ or "")
    module.__spec__ = spec_of(module)
    if any(place.rpartition(".")[0] == module.__name__ for place in SHOWN):
        find = vars(module).get("__getattr__")
        vars(module)["__getattr__"] = functools.partial(below, module.__name__, find)
    elif module.__name__.startswith(IMPORTING) and not hasattr(module, "__path__"):
        with_imported(module)


def with_imported(module: ModuleType) -> ModuleType:
    """A module that knows names, too, which PyTorch's file of that name imports."""
    find, name = vars(module).get("__getattr__"), module.__name__

    def found(attribute: str) -> Any:
        with contextlib.suppress(AttributeError):
            if find is not None:
                return find(attribute)
        return imported(name, attribute)

    vars(module)["__getattr__"] = found
    return module


def below(package: str, find: Callable[[str], Any] | None, name: str) -> Any:
    """What a package has not itself: a module that PyTorch keeps there, or what else is found."""
    place = f"{package}.{name}"
    if place in SHOWN:
        return importlib.import_module(place)
    if find is None:
        raise AttributeError(f"module '{package}' has no attribute '{name}'")
    return find(name)


def rename(kinds: Iterable[type]) -> None:
    """Calls classes torch, as far as they are of this package."""
    for cls in kinds:
        if is_ours(cls.__module__):
            cls.__module__ = home(cls)


def home(cls: type) -> str:
    """The module that PyTorch keeps a class in."""
    return pytorch_module(cls.__module__, cls.__qualname__)


def is_there(name: str) -> bool:
    """Whether toytorch has a file for a module of PyTorch's; it may be imported later."""
    place = Path(__file__).parent.joinpath(*name.split(".")[1:])
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def all_classes() -> Iterator[type]:
    """Every class there is; many of them are made from records and stand in no module."""
    pending, seen = [object], {object}
    while pending:
        for cls in type.__subclasses__(pending.pop()):
            if cls not in seen:
                seen.add(cls)
                pending.append(cls)
                yield cls


def classes_in(owner: Any, module: str) -> Iterator[type]:
    """The classes of a module that has just run, and those within them."""
    for value in list(vars(owner).values()):
        if isinstance(value, type) and value.__module__ == module:
            yield value
            yield from classes_in(value, module)


FURTHER = "toytorch.compat._further"


def further_names(module: str) -> dict[str, Any]:
    """What PyTorch's module of that name has beside the names of ours."""
    found: dict[str, Any] = sys.modules[FURTHER].__dict__["names_of"](module)
    return found


ALIAS = Alias()


def take_names() -> None:
    """Calls the package, its modules and its classes torch, as far as they are there by now."""
    write_so()
    importlib.import_module(FURTHER)  # before modules are taken in, itself one of them
    NAMES.add(TAKEN)
    version.__version__ = version.compatible
    for module in (torch_version, toytorch):
        vars(module)["__version__"] = TorchVersion(version.compatible)
    rename(all_classes())
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == OWN:
            take_in(module)


def install() -> Any:
    """Gives toytorch the name `torch` in this process; returns the package.

    Raises RuntimeError if PyTorch has been imported already: two packages cannot have one name.
    """
    found = sys.modules.get(TAKEN)
    if found is not None and getattr(found, "__file__", "") == str(STAND_IN / "torch.py"):
        found = None
    if found is not None and found is not toytorch:
        raise RuntimeError("toytorch cannot take the name torch: PyTorch has been imported already")
    if found is None:
        importlib.import_module(FURTHER)  # before imports take modules in
        sys.meta_path.insert(0, ALIAS)
        take_names()
        if str(STAND_IN) not in sys.path:
            sys.path.insert(1, str(STAND_IN))
    return toytorch
