"""Switches for the whole program: determinism, precision, threads.

Every op here gives the same bits in every run, and float32 products are made of float32 numbers, so
most switches are kept for the programs that set and read them, and change nothing.
"""

from __future__ import annotations

from typing import Any

from toytorch.backends import base
from toytorch.facts import state, warned
from toytorch.facts.device import device
from toytorch.facts.dtype import ALL, dtype, set_default_dtype
from toytorch.loops.runtime import blas
from toytorch.loops.runtime import threads as parallel

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_flush_denormal", "set_num_interop_threads", "set_num_threads", "set_warn_always",
    "use_deterministic_algorithms",
]  # fmt: skip

OF_LEGACY: dict[str, dtype] = {f"{k.legacy}Tensor": k for k in ALL}
PRECISIONS = ("highest", "high", "medium")
DEBUG_MODES = ("default", "warn", "error")

_values: dict[str, Any] = {
    "deterministic": False,
    "warn_only": False,
    "precision": "highest",
    "interop": None,
    "fill_uninitialized": True,
}


def use_deterministic_algorithms(mode: Any, *, warn_only: bool = False) -> None:
    """Asks for algorithms that give the same bits in every run; here, all do.

    What PyTorch then refuses on the CPU is refused here, too (`alert_not_deterministic`).
    """
    for place, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {place} must be bool, not {kind}"
            )
    _values.update(deterministic=mode, warn_only=warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for."""
    return bool(_values["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether an op without a deterministic algorithm should only warn."""
    return bool(_values["warn_only"])


def alert_not_deterministic(name: str) -> None:
    """Refuses, or warns of, what PyTorch has no deterministic algorithm for, where one is wanted."""
    if not _values["deterministic"]:
        return
    text = f"{name} does not have a deterministic implementation, but you set "
    more = (
        "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
        "deterministic support for this operation."
    )
    if _values["warn_only"]:
        warned.at_call(
            f"{text}'torch.use_deterministic_algorithms(True, warn_only=True)'. You can {more}"
        )
        return
    raise RuntimeError(
        f"{text}'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for "
        "this operation, or you can use the 'warn_only=True' option, if that's acceptable for your "
        f"application. You can also {more}"
    )


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """The same as a number or word: 0 "default", 1 "warn", 2 "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, "
                f"`error`, but got {debug_mode}"
            )
        debug_mode = DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as `set_deterministic_debug_mode` takes them."""
    if not _values["deterministic"]:
        return 0
    return 1 if _values["warn_only"] else 2


def set_default_tensor_type(t: Any, /) -> None:
    """The older form of `set_default_dtype`: a type such as `torch.DoubleTensor`, or its name."""
    warned.once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    path = (
        t if isinstance(t, str) else f"{getattr(t, '__module__', '')}.{getattr(t, '__name__', '')}"
    )
    module, _, name = path.rpartition(".")
    on_card = module == "torch.cuda"
    if isinstance(t, str):
        if not on_card and module != "torch":
            raise ModuleNotFoundError(f"No module named '{module or name}'")
        if name not in OF_LEGACY:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
    elif not isinstance(getattr(t, "dtype", None), dtype):
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type"
        )
    if on_card and not base.of_kind("cuda").is_available():
        raise TypeError(f"type {path} not available. Torch not compiled with CUDA enabled.")
    set_default_dtype(OF_LEGACY[name] if isinstance(t, str) else t.dtype)
    before = state.local.default_device
    if on_card or (before is not None and before.type == "cuda"):
        state.local.default_device = device("cuda") if on_card else None


def set_float32_matmul_precision(precision: str) -> None:
    """How exact float32 products have to be: "highest", "high" or "medium"; here, all are exact."""
    if precision not in PRECISIONS:
        warned.at_call(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect."
        )
        return
    _values["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return str(_values["precision"])


def _positive(name: str, count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    if count >= 2**31:
        raise ValueError("Overflow when unpacking long" + " long" * (count >= 2**63))
    return count


def _truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")


def get_num_threads() -> int:
    """How many threads matrix products and compiled kernels use."""
    return parallel.thread_count()


def set_num_threads(count: int) -> None:
    """Sets how many threads matrix products and compiled kernels use."""
    blas.set_threads(_positive("set_num_threads", count))


def get_num_interop_threads() -> int:
    """How many threads run independent parts of a graph; here, one after the other in any case."""
    return int(_values["interop"] or blas.threads())


def set_num_interop_threads(count: int) -> None:
    """Keeps the number; it can be set once, as in PyTorch."""
    _positive("set_num_interop_threads", count)
    if _values["interop"] is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has "
            "started or set_num_interop_threads called"
        )
    _values["interop"] = count


def set_flush_denormal(mode: bool) -> bool:
    """Says False: NumPy has no switch for numbers below the normal ones."""
    _truth("flush_denormal", mode)
    return False


def fill_uninitialized_memory(mode: bool) -> None:
    """Says whether new memory is filled while algorithms are to be deterministic."""
    _truth("fill_uninitialized_memory", mode)
    _values["fill_uninitialized"] = mode


def fills_uninitialized_memory() -> bool:
    """What `fill_uninitialized_memory` was told; True at first."""
    return bool(_values["fill_uninitialized"])


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are given once a process are given each time."""
    _truth("setWarnOnlyOnce", b)
    from toytorch.facts import warned  # seldom needed

    warned.always = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was told."""
    from toytorch.facts import warned  # seldom needed

    return warned.always
