"""The older names of `torch.amp` for GPUs, with a warning, as in PyTorch."""

from __future__ import annotations

import functools
from typing import Any

from toytorch import amp
from toytorch.backends import base
from toytorch.facts import warned
from toytorch.facts.dtype import float16
from toytorch.facts.hints import DType

__path__: list[str] = []  # PyTorch has modules below it: core/public_modules.py says of what


def _old(name: str, new: str) -> None:
    warned.at_call(
        f"`torch.cuda.amp.{name}` is deprecated. Please use `torch.amp.{new}` instead.",
        FutureWarning,
    )


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU whose gradients could be scaled."""
    return not base.of_kind("cuda").is_available()


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", …)`."""

    def __init__(
        self, enabled: bool = True, dtype: DType | None = float16, cache_enabled: bool = True
    ) -> None:
        _old("autocast(args...)", "autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", …)`."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _old("GradScaler(args...)", "GradScaler('cuda', args...)")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`torch.amp.custom_fwd(…, device_type="cuda")`."""
    _old("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return functools.partial(amp.custom_fwd, device_type="cuda")(fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`torch.amp.custom_bwd(…, device_type="cuda")`."""
    _old("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return functools.partial(amp.custom_bwd, device_type="cuda")(bwd)
