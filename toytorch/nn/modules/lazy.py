"""Modules that learn the sizes of their parameters from their first input."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.facts.parts import Stated
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import is_lazy


class LazyModuleMixin(Stated, Module):
    """Stands before a module class that gets its shapes in `initialize_parameters(input)`.

    The first call shapes the parameters and turns the module into `cls_to_become`.

    >>> layer = torch.nn.LazyLinear(2)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(torch.ones(1, 3)).shape, layer
    (torch.Size([1, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become: type | None = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives parameters their shapes, from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def _lazy_load_hook(self, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
        """Shapes what is about to be loaded like what was saved."""
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if (
                value is not None
                and isinstance(given, Tensor)
                and is_lazy(value)
                and (not is_lazy(given))
            ):
                with no_grad():
                    value.materialize(given.shape)

    def _infer_parameters(
        self, module: Module, args: Sequence[Tensor], kwargs: dict[Any, Any] | None = None
    ) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
