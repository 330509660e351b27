"""`DataParallel`: a batch is divided among devices. With none, it runs the module itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from toytorch.cuda.devices import device_count, is_available
from toytorch.facts import state
from toytorch.facts.hints import Kwargs
from toytorch.nn.modules.module import Module
from toytorch.nn.parallel._functions import place
from toytorch.nn.parallel.parallel_apply import parallel_apply
from toytorch.nn.parallel.replicate import replicate
from toytorch.nn.parallel.scatter_gather import gather, scatter_kwargs


class DataParallel(Module):
    """Runs copies of `module` on the devices of `device_ids`, each on its part of the batch.

    The batch is divided along `dim`, the module is copied anew in each call, and the results are
    put together on `output_device` (the first device); gradients add up in the module's own
    parameters. Without devices it runs the module where it is. Like `torch.nn.DataParallel`.

    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    >>> [name for name, _ in model.named_parameters()]
    ['module.weight', 'module.bias']
    >>> with torch.cuda.simulate(devices=2):
    ...     model = torch.nn.DataParallel(torch.nn.Linear(2, 1).cuda())
    ...     model(torch.ones(6, 2)).shape
    torch.Size([6, 1])
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
        if not is_available():
            self.device_ids: list[int] = []
            return
        given = range(device_count()) if device_ids is None else device_ids
        if not given:
            raise RuntimeError("no available devices were found")
        self.device_ids = [place(d).index or 0 for d in given]
        first = self.device_ids[0] if output_device is None else output_device
        self.output_device = place(first).index or 0
        self.src_device_obj = place(self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in itertools.chain(self.module.parameters(), self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} "
                    f"(device_ids[0]) but found one of them on device: {t.device}"
                )
        parts, words = self.scatter(inputs, kwargs, self.device_ids)
        if not parts and not words:
            parts, words = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **words[0])
        copies = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(copies, parts, words), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Any]:
        """Copies of the module; see `replicate`."""
        return replicate(module, device_ids, not state.local.grad)

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: Kwargs | None, device_ids: Sequence[Any]
    ) -> Any:
        """The arguments for each device; see `scatter_kwargs`."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(
        self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """The results of each copy; see `parallel_apply`."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results on one device; see `gather`."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: object,
    device_ids: Sequence[Any] | None = None,
    output_device: object = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """A call of `DataParallel(module, …)` without keeping it."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
