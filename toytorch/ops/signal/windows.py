"""Windows that taper a signal: the functions of `torch.signal.windows` and their older forms.

Positions run over [-1, 1] (or [0, 2π]), both ends included where `sym`; a periodic window is one
place longer and leaves the last one out. Everything is computed in double precision and then
rounded to the type asked for.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, Device, DType, Fn, Layout
from toytorch.facts.size import WHOLE
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.define import public


def _finish(values: Array, dtype: DType, device: Device, requires_grad: bool) -> Tensor:
    return tensor(
        np.asarray(values, np.float64), dtype=dtype, device=device, requires_grad=requires_grad
    )


def _checked(name: str, M: int, dtype: DType | None, layout: Layout | None) -> Any:
    """The type of the window, once its length, layout and type are known to be good."""
    dtype = types.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and getattr(layout, "name", str(layout)).rpartition(".")[2] != "strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (types.float32, types.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def places(M: int, sym: bool) -> Any:
    """M positions from 0 to 1 (to 1 - 1/M where periodic); one place alone is the end."""
    if M == 1:
        return np.ones(1)
    return np.arange(M) / (M - 1 if sym else max(M, 1))


def cosines(x: Array, a: Sequence[float]) -> Any:
    """Σ (-1)ⁱ·aᵢ·cos(2πi·x)."""
    return sum((-1) ** i * w * np.cos(2 * math.pi * i * x) for i, w in enumerate(a))


def bessel(x: Array, beta: float) -> Any:
    """I₀(β·√(1 - (2x-1)²)) / I₀(β)."""
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta)


def _window(checked: str = "") -> Callable[[Callable[..., Array]], Any]:
    """A public function from one of M, sym and options of its own that gives the values; `checked` is
    the name in what it refuses, where that is another's."""

    def make(values: Callable[..., Array]) -> Any:
        name = values.__name__

        def window(
            M: int,
            *,
            sym: bool = True,
            dtype: DType | None = None,
            layout: Layout | None = None,
            device: Device = None,
            requires_grad: bool = False,
            **options: Any,
        ) -> Tensor:
            dtype = _checked(checked or name, M, dtype, layout)
            return _finish(values(M, sym, **options), dtype, device, requires_grad)

        shared = list(inspect.signature(window).parameters.values())[:-1]
        own = list(inspect.signature(values).parameters.values())[2:]
        made: Any = window
        made.__signature__ = inspect.Signature([shared[0], *own, *shared[1:]])
        return public(f"signal.windows.{name}", tensor_first=False, doc=values.__doc__)(made)

    return make


def _sum_of_cosines(M: int, sym: bool, a: Any) -> Any:
    if M < 2:
        return np.ones(M)
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    if not len(a):
        raise ValueError("Coefficients cannot be empty")
    return cosines(places(M, sym), a)


@_window()
def general_cosine(M: int, sym: bool, *, a: Sequence[float]) -> Any:
    """Σ (-1)ⁱ·aᵢ·cos(2πi·x) over M places.

    >>> general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    return _sum_of_cosines(M, sym, a)


@_window("general_cosine")
def hann(M: int, sym: bool) -> Any:
    """(1 - cos 2πx)/2."""
    return _sum_of_cosines(M, sym, (0.5, 0.5))


@_window("general_cosine")
def hamming(M: int, sym: bool) -> Any:
    """0.54 - 0.46·cos 2πx."""
    return _sum_of_cosines(M, sym, (0.54, 0.46))


@_window("general_cosine")
def blackman(M: int, sym: bool) -> Any:
    """0.42 - 0.5·cos 2πx + 0.08·cos 4πx."""
    return _sum_of_cosines(M, sym, (0.42, 0.5, 0.08))


@_window("general_cosine")
def nuttall(M: int, sym: bool) -> Any:
    """Nuttall's window of four cosines with the smallest side lobes."""
    return _sum_of_cosines(M, sym, (0.3635819, 0.4891775, 0.1365995, 0.0106411))


@_window("general_cosine")
def general_hamming(M: int, sym: bool, *, alpha: float = 0.54) -> Any:
    """α - (1 - α)·cos 2πx."""
    return _sum_of_cosines(M, sym, (alpha, 1 - alpha))


@_window()
def bartlett(M: int, sym: bool) -> Any:
    """A triangle, 1 - |2x - 1|."""
    return np.ones(M) if M < 2 else 1 - abs(2 * places(M, sym) - 1)


@_window()
def cosine(M: int, sym: bool) -> Any:
    """Half a wave, sin π(j + ½)/M."""
    return np.sin(math.pi * (np.arange(M) + 0.5) / (M if sym or M < 2 else M + 1))


def _middle(M: int, sym: bool) -> float:
    return (M if not sym and M > 1 else M - 1) / 2


@_window()
def exponential(M: int, sym: bool, *, center: float | None = None, tau: float = 1.0) -> Any:
    """e^{-|j - center|/τ}."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = _middle(M, sym) if center is None else center
    return np.exp(-abs(np.arange(M) - middle) / tau)


@_window()
def gaussian(M: int, sym: bool, *, std: float = 1.0) -> Any:
    """e^{-(j - middle)²/2σ²}."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return np.exp(-0.5 * ((np.arange(M) - _middle(M, sym)) / std) ** 2)


@_window()
def kaiser(M: int, sym: bool, *, beta: float = 12.0) -> Any:
    """I₀(β·√(1 - (2x-1)²)) / I₀(β), Kaiser's window."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return np.ones(M) if M < 2 else bessel(places(M, sym), beta)


# -- the older functions, torch.hann_window and its like ------------------------------------------


def _older(
    name: str,
    values: Fn,
    dtype: DType | None,
    device: Device,
    requires_grad: bool,
    window_length: int,
    periodic: bool,
) -> Tensor:
    if not isinstance(window_length, WHOLE):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got "
            f"({type(window_length).__name__}, bool)"
        )
    if window_length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={window_length}"
        )
    dtype = types.get_default_dtype() if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    n = window_length
    if dtype.is_complex and n > 1:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.legacy}'")
    if n < 2:
        return _finish(np.ones(n), dtype, device, requires_grad)
    made = _finish(values(places(n + periodic, True)), dtype, device, requires_grad)
    if periodic:  # the memory has the last place of the period, too
        made = made.detach()[:n].detach().requires_grad_(requires_grad)
    return made


def _older_window(name: str, values: Any, doc: str) -> Any:
    def window(
        window_length: int,
        periodic: bool = True,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: str | None = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        return _older(name, values, dtype, device, requires_grad, window_length, periodic)

    return public(name, tensor_first=False, doc=doc)(window)


hann_window = _older_window("hann_window", lambda x: cosines(x, (0.5, 0.5)), "(1 - cos 2πx)/2.")
blackman_window = _older_window(
    "blackman_window", lambda x: cosines(x, (0.42, 0.5, 0.08)), "0.42 - 0.5·cos 2πx + 0.08·cos 4πx."
)
bartlett_window = _older_window(
    "bartlett_window", lambda x: 1 - abs(2 * x - 1), "A triangle, 1 - |2x - 1|."
)


@public("hamming_window", tensor_first=False)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """α - β·cos 2πx.

    >>> hamming_window(3, False)
    tensor([0.0800, 1.0000, 0.0800])
    """
    values = partial(cosines, a=(alpha, beta))
    return _older("hamming_window", values, dtype, device, requires_grad, window_length, periodic)


@public("kaiser_window", tensor_first=False)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """I₀(β·√(1 - (2x-1)²)) / I₀(β), Kaiser's window."""
    values = partial(bessel, beta=beta)
    return _older("kaiser_window", values, dtype, device, requires_grad, window_length, periodic)
