"""`DataParallel`: a batch is divided among GPUs. With none, or one, it runs the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.backends import base
from toytorch.core.tensor import Tensor
from toytorch.facts.device import device
from toytorch.facts.pytree import tree_map
from toytorch.nn.modules.module import Module


class DataParallel(Module):
    """Runs `module` on the GPUs of `device_ids`, or where it is if there are none.

    Several GPUs are refused: one works, and so does the CPU. Like `torch.nn.DataParallel`.

    >>> import toytorch as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    >>> [name for name, _ in model.named_parameters()]
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        cuda = base.of_kind("cuda")
        if not cuda.is_available():
            self.device_ids: list[int] = []
            return
        given = range(cuda.device_count()) if device_ids is None else device_ids
        self.device_ids = [d if isinstance(d, int) else device(d).index or 0 for d in given]
        if len(self.device_ids) > 1:
            raise RuntimeError(
                "toytorch's DataParallel runs on one GPU; choose it with "
                f"device_ids=[0] instead of {self.device_ids}"
            )
        self.output_device = self.device_ids[0] if output_device is None else output_device
        self.module.to(device("cuda", self.device_ids[0]))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids:
            where = device("cuda", self.device_ids[0])
            inputs, kwargs = tree_map(
                lambda v: v.to(where) if isinstance(v, Tensor) else v, (inputs, kwargs)
            )
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """A call of `DataParallel(module, …)` without keeping it."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
