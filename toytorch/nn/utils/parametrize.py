"""Parameters computed from others by modules: `weight` becomes f(original).

A parametrized tensor is a property of a class made for the module, so that every use of it,
and not only forward, sees the computed one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.nn.modules.container import ModuleDict, ModuleList
from toytorch.nn.parameter import Parameter

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


_cache: dict[tuple[int, str], Any] = {}
_depth = 0


@contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized tensor once inside, however often it is used."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


def _register(module: Module, name: str, value: Tensor | Sequence[Tensor]) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _check_like(
    found: Tensor | Sequence[Tensor], like: Tensor, action: str, mine: str, theirs: str
) -> None:
    """Refuses another type or shape than that of the tensor before."""
    if not isinstance(found, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
    for trait in ("dtype", "shape"):
        if getattr(found, trait) != getattr(like, trait):
            raise ValueError(
                f"Registering a parametrization may not change the {trait} of the "
                f"tensor, unless {action} flag is enabled.\n"
                f"{mine}{trait}: {getattr(like, trait)}\n"
                f"{theirs}{trait}: {getattr(found, trait)}"
            )


class ParametrizationList(ModuleList):
    """The functions that make one tensor, first to last, and the tensors they start from.

    Those are `original`, or `original0`, `original1`, … where the first function takes several.
    """

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        like, new = original.detach(), original
        with no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        continue
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                f"tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            self._check_single(original, new)
            original.data = new.data
            _register(self, "original", original)
        else:
            self._keep_several(original, new)
        if not unsafe:
            with no_grad():
                _check_like(self(), like, "`unsafe`", "unparametrized ", "parametrized ")

    @staticmethod
    def _check_single(original: Tensor | Sequence[Tensor], new: Tensor) -> None:
        for trait in ("dtype", "device"):
            if getattr(original, trait) != getattr(new, trait):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the "
                    f"{trait}.\noriginal.{trait}: {getattr(original, trait)}\n"
                    f"right_inverse(original).{trait}: {getattr(new, trait)}"
                )

    def _keep_several(
        self, original: Tensor | Sequence[Tensor], new: Tensor | Sequence[Tensor]
    ) -> None:
        for i, t in enumerate(new):
            if not isinstance(t, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type {type(t).__name__}."
                )
            t = t.detach()
            if isinstance(original, Parameter):
                t = Parameter(t, original.requires_grad)
            _register(self, f"original{i}", t)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor | Sequence[Tensor]) -> None:
        """Sets the originals so that the tensor becomes `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            if not self.is_tensor and not isinstance(value, Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. Got "
                    f"{type(value).__name__}."
                )
            if len(values) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(values)}."
                )
            for i, (mine, new) in enumerate(zip(self._originals(), values)):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                if mine.dtype is not new.dtype:
                    which = "original" if self.is_tensor else f"original{i}"
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{new.dtype} while `{which}` has dtype {mine.dtype}"
                    )
                mine.data = new.detach()

    def forward(self) -> Any:
        x = self[0](*self._originals())
        for module in list(self)[1:]:
            x = module(x)
        return x


def _deepcopy(self: Tensor, memo: dict[Any, Any]) -> Any:
    """Like an ordinary copy; the class made for the module is shared."""
    made = memo.get(id(self))
    if made is None:
        made = memo[id(self)] = self.__class__.__new__(self.__class__)
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return made


def _no_pickle(self: Tensor) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _inject(module: Module, name: str) -> None:
    """Makes `module.<name>` a property."""

    def get(self: Module) -> Any:
        if not _depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self: Module, value: Tensor | Sequence[Tensor]) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors, or whether one is."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def _check_inverse(module: object, value: Tensor, like: Tensor, name: str) -> None:
    """Refuses a parametrization whose inverse does not lead back to a tensor of the same kind."""
    if not hasattr(module, "right_inverse"):
        return
    try:
        found = module.right_inverse(value)
    except NotImplementedError:
        return
    if not isinstance(found, Tensor):
        kind = type(found).__name__
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {kind}")
    for trait in ("dtype", "shape"):
        if getattr(found, trait) != getattr(like, trait):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {trait} as "
                f"module.{name}, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{trait}: {getattr(like, trait)}\n"
                f"returned {trait}: {getattr(found, trait)}"
            )


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Makes a parameter or buffer what a module computes from it.

    unsafe: the shape and type may change, and nothing is computed to look whether they do.

    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.T), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        entry = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            own = f"module.{tensor_name}"
            _check_like(after, before, "the `unsafe`", f"{own}.", f"parametrization({own}).")
            _check_inverse(parametrization, after, before, tensor_name)
        entry.append(parametrization)
        entry.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized"
            f" element with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        cls = type(module)
        body = {"__getstate__": _no_pickle, "__deepcopy__": _deepcopy}
        module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)
        module.parametrizations = ModuleDict()
    _inject(module, tensor_name)
    module.parametrizations[tensor_name] = made
    return module


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Any:
    """Makes a tensor a parameter or buffer again: with the computed values, or the original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry = module.parametrizations[tensor_name]
    if not entry.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is"
            " parametrized in terms of a sequence of tensors."
        )
    with no_grad():
        computed = getattr(module, tensor_name)
    wanted = any(t.requires_grad for t in entry._originals())
    if entry.is_tensor:
        original = entry.original
        if leave_parametrized:
            original.data = computed.detach()
    else:
        original = Parameter(computed.detach()) if wanted else computed.detach()
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Any:
    """Gives a module another's parametrizations, and the tensors they start from."""
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        entry = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for function in entry:
            register_parametrization(to_module, name, function)
        for original in (*entry._parameters, *entry._buffers):
            setattr(to_module.parametrizations[name], original, getattr(entry, original))
    return to_module


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip
