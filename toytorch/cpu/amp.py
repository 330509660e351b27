"""The older names of `torch.amp` for the CPU, with a warning, as in PyTorch."""

from __future__ import annotations

from toytorch import amp
from toytorch.facts import warned
from toytorch.facts.dtype import bfloat16
from toytorch.facts.hints import DType

__path__: list[str] = []  # PyTorch has modules below it: core/public_modules.py says of what


def _old(name: str) -> None:
    warned.at_call(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
    )


class autocast(amp.autocast):
    """`torch.amp.autocast("cpu", …)`."""

    def __init__(
        self, enabled: bool = True, dtype: DType | None = bfloat16, cache_enabled: bool = True
    ) -> None:
        _old("autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cpu", …)`."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _old("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
