"""`autocast`: a mode that sees every call and casts the operands of some.

It is one mode for each thread, in force while any kind of device casts; whether it does, and to
what type, is looked up at each call. So contexts nest, and `enabled=False` inside is a lookup too.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from typing import Any

from toytorch.autograd.function import FunctionCtx
from toytorch.backends import base
from toytorch.core import dispatch
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state, warned
from toytorch.facts.device import device
from toytorch.facts.dtype import bfloat16, dtype, float16, float32, float64, promote_types
from toytorch.facts.hints import Args, DType, Fn

__all__ = [
    "autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_dtype",
    "is_autocast_available", "is_autocast_cache_enabled", "is_autocast_enabled",
    "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled",
]  # fmt: skip

DEFAULTS = {
    "cpu": bfloat16, "cuda": float16, "mps": float16, "xpu": float16, "hpu": bfloat16,
    "mtia": float16, "maia": bfloat16, "xla": bfloat16, "ipu": float16,
}  # fmt: skip
SUPPORTED = {"cpu": (bfloat16, float16), "cuda": (bfloat16, float16)}


class Settings(threading.local):
    """What each thread has set."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtype = dict(DEFAULTS)
        self.keep_casts = True  # whether the cast of a parameter is kept until the context ends
        self.depth = 0
        self.casts: dict[tuple[int, dtype], tuple[Tensor, Tensor]] = {}
        self.mode: Casting | None = None  # the mode in force


class Casting:
    """The mode: casts operands, and hands the call on."""

    def on_call(self, op: Op, args: Args, out: Any) -> Any:
        if out is None:
            args = cast_operands(op, args)
        return dispatch.call(op, args, out)

    def on_operands(self, kind: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of a composed function; what is on a device that does not cast stays."""
        return tuple(
            cast(v, v.device.type, local.dtype[v.device.type] if kind == "half" else float32)
            if isinstance(v, Tensor) and local.enabled.get(v.device.type)
            else v
            for v in values
        )


local = Settings()


def cast_operands(op: Op, args: Args) -> tuple[Any, ...]:
    """The arguments of a call, in the types that the record asks for (`amp=`).

    The records' policies are PyTorch's for the CPU. Functions made of several records say for
    themselves what they want: see `toytorch.facts.composed`.
    """
    kind = op.amp
    if not kind:
        return args
    found = [
        t
        for i in op.tensor_at
        for t in (args[i] if isinstance(args[i], (list, tuple)) else [args[i]])
        if isinstance(t, Tensor)
    ]
    where = next((t.device.type for t in found if local.enabled.get(t.device.type)), None)
    if where is None:
        return args
    if kind == "widest":
        wide = functools.reduce(
            promote_types, [t.dtype for t in found if eligible(t, where)], local.dtype[where]
        )
    else:
        wide = local.dtype[where] if kind == "half" else float32
    new = list(args)
    for i in op.tensor_at:
        if isinstance(args[i], (list, tuple)):
            new[i] = [cast(t, where, wide) for t in args[i]]
        else:
            new[i] = cast(args[i], where, wide)
    return tuple(new)


def eligible(value: object, where: str) -> bool:
    """Whether autocast touches something: a floating tensor of that device, float64 excepted."""
    return (
        isinstance(value, Tensor)
        and value.dtype.is_floating_point
        and value.dtype is not float64
        and value.device.type == where
    )


def cast(value: Any, where: str, to: dtype) -> Any:
    """A tensor in another type, if autocast touches it; the cast of a parameter is kept."""
    if not eligible(value, where) or value.dtype is to:
        return value
    keep = (
        local.keep_casts
        and local.depth
        and value._requires_grad
        and value._grad_edge is None
        and value._base is None
        and state.local.grad
        and to is not float32
    )
    if not keep:
        return value.to(to)
    key = id(value), to
    if key not in local.casts:
        local.casts[key] = value, value.to(to)  # holds the parameter, so its id stays its own
    return local.casts[key][1]


# -- what is set ----------------------------------------------------------------------------------


def kind_of(device_type: int | str) -> str:
    """The kind of device a setting is for."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device(device_type).type not in DEFAULTS:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether a kind of device can cast.

    >>> is_autocast_available("cpu")
    True
    """
    return device_type in DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether calls of this thread are cast, on a kind of device."""
    return local.enabled.get(kind_of(device_type), False)


def set_autocast_enabled(device_type: Any, enabled: Any = None) -> None:
    """Switches casting for this thread; with one argument, on GPUs."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    local.enabled[kind_of(device_type)] = bool(enabled)
    wanted = any(local.enabled.values())
    if wanted and local.mode is None:
        local.mode = Casting()
        state.local.modes = (*state.local.modes, local.mode)
        state.watch(1)
    elif not wanted and local.mode is not None:
        state.local.modes = tuple(m for m in state.local.modes if m is not local.mode)
        local.mode = None
        state.watch(-1)


def get_autocast_dtype(device_type: str) -> dtype:
    """The half type of a kind of device."""
    return local.dtype[kind_of(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Sets the half type of a kind of device, for this thread."""
    local.dtype[kind_of(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the outermost context ends."""
    return local.keep_casts


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switches that, for this thread."""
    local.keep_casts = bool(enabled)


def clear_autocast_cache() -> None:
    """Forgets the casts of parameters."""
    local.casts.clear()


class autocast:
    """A context, or a decorator, in which products run in a half type; Micikevicius et al. 2018.

    Matrix products, convolutions and attention take their operands in `dtype` (bfloat16 on the CPU,
    float16 on GPUs), losses and what needs the range in float32; parameters and their gradients
    keep their type. Backward passes belong outside. A `dtype` that cannot be had is warned about
    and switches casting off. Like `torch.autocast`.

    >>> a = torch.ones(2, 2)
    >>> with torch.autocast("cpu"):
    ...     (a @ a).dtype, (a + a).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = kind_of(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        self._enabled = bool(enabled) and self._possible()
        self._before: list[tuple[bool, Any, bool]] = []

    def _possible(self) -> bool:
        """Whether casting can be done; warns where it cannot."""
        if self.device == "cuda" and not base.of_kind("cuda").is_available():
            warned.at_call("CUDA is not available or torch_xla is imported. Disabling autocast.")
            return False
        if self.fast_dtype not in SUPPORTED[self.device]:
            warned.at_call(
                f"In {self.device.upper()} autocast, but the target dtype is not supported. "
                f"Disabling autocast.\n{self.device.upper()} Autocast only supports dtypes of "
                f"{', '.join(map(str, SUPPORTED[self.device]))} currently."
            )
            return False
        return True

    def __enter__(self) -> autocast:
        self._before.append(
            (
                is_autocast_enabled(self.device),
                get_autocast_dtype(self.device),
                is_autocast_cache_enabled(),
            )
        )
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_cache_enabled(self._cache_enabled)
        local.depth += 1
        return self

    def __exit__(self, *exc: object) -> None:
        enabled, kind, keep = self._before.pop()
        local.depth -= 1
        if local.depth == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, kind)
        set_autocast_cache_enabled(keep)

    def __call__(self, func: Fn) -> Fn:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def run(*args: Tensor, **kwargs: object) -> Any:
            with self:
                return func(*args, **kwargs)

        return run


# -- Functions of one's own -----------------------------------------------------------------------


def _tree_cast(value: Tensor | dict[Any, Any] | tuple[Tensor, ...], where: str, to: dtype) -> Any:
    if isinstance(value, Tensor):
        return cast(value, where, to)
    if isinstance(value, Mapping):
        return {_tree_cast(k, where, to): _tree_cast(v, where, to) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_tree_cast(v, where, to) for v in value)
    return value


def custom_fwd(fwd: Fn | None = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """For `forward` of a Function: with `cast_inputs`, runs in that type and casts nothing else."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: FunctionCtx, *args: Tensor, **kwargs: object) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = cast_inputs is None and is_autocast_enabled(device_type)
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_tree_cast(args, device_type, cast_inputs),
                **_tree_cast(kwargs, device_type, cast_inputs),
            )

    return forward


def custom_bwd(bwd: Fn | None = None, *, device_type: str) -> Any:
    """For `backward` of a Function: casts as its `forward` did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: FunctionCtx, *args: Tensor, **kwargs: object) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
