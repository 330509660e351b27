"""Fourier transforms of short windows along a signal, and the way back."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.core.views import counted, of_its_own
from toytorch.facts import warned
from toytorch.facts.dtype import bool as bool_type
from toytorch.ops.define import public
from toytorch.ops.elementwise.complex_numbers import view_as_real
from toytorch.ops.nn.pad import REFLECT, REPLICATE, UNPADDED, circular
from toytorch.ops.shaping.rearrange import cat
from toytorch.ops.shaping.slices import unfold_backward
from toytorch.ops.signal.fft import fft_c2c, fft_c2r, fft_r2c, resized

NARROW = 1e-11  # an envelope below this cannot be divided out


def padded(x: Tensor, before: int, after: int, mode: str = "constant") -> Any:
    """The signal continued at both ends, by zeros or by its own samples."""
    if mode == "constant":
        zeros = [x.new_zeros((*x.shape[:-1], k)) for k in (before, after)]
        return cat.function([zeros[0], x, zeros[1]], -1)
    kinds = {"reflect": REFLECT, "replicate": REPLICATE}
    if mode not in (*kinds, "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if x.ndim > 3:
        # PyTorch's class and words, as its `pad` refuses this.
        raise NotImplementedError(UNPADDED.format(2, x.ndim))
    record = circular if mode == "circular" else kinds[mode][0]
    wide = x.reshape([1] * (3 - x.ndim) + list(x.shape))
    made = record.function(wide, (before, after))
    return made.view(made.shape[-x.ndim :])


def _centred(window: Tensor, n_fft: int) -> Any:
    """The window in the middle of n_fft places."""
    if window.shape[0] == n_fft:
        return window
    left = (n_fft - window.shape[0]) // 2
    return padded(window, left, n_fft - window.shape[0] - left)


def _type_name(x: Tensor) -> str:
    """The name by which PyTorch's C++ calls the type of a tensor."""
    # Of which there are classes by that name.
    old = not (x.dtype.is_complex or x.dtype is bool_type)
    return f"torch.{x.dtype.legacy}Tensor" if old else f"CPU{x.dtype.legacy}Type"


def _described(
    name: str,
    x: Tensor,
    n_fft: int,
    hop: int | None,
    width: int | None,
    window: Tensor | None,
    more: Any,
) -> tuple[int, int, str]:
    """The step and the width of the window, and the start of error messages; `more` are options as
    C++ prints them."""
    hop = n_fft // 4 if hop is None else hop
    width = n_fft if width is None else width
    taper = None if window is None else f"{_type_name(window)}{{{list(window.shape)}}}"
    sizes = {"n_fft": n_fft, "hop_length": hop, "win_length": width, "window": taper}
    words = {k: v if v is None else int(v) for k, v in more.items()}
    parts = ", ".join(f"{k}={v}" for k, v in {**sizes, **words}.items())
    return hop, width, f"{name}({_type_name(x)}{list(x.shape)}, {parts}) : "


def _need_real(onesided: bool | None, is_complex: bool, window: Tensor | None) -> bool:
    """Refuses half a spectrum where the signal or the window is complex; whether both are real."""
    real = not (is_complex or (window is not None and window.dtype.is_complex))
    if onesided and not real:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return real


def _check_windows(
    text: str, n: int, n_fft: int, hop: int, width: int, window: Tensor | None
) -> None:
    """Refuses windows that do not fit a signal of n samples; `text` begins the message."""
    if not 0 < n_fft <= n:
        raise RuntimeError(text + f"expected 0 < n_fft < {n}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(text + f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(text + f"expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        raise RuntimeError(
            text + f"expected a 1D window tensor of size equal to win_length={width}"
            f", but got window with size {list(window.shape)}"
        )


@public("stft", method=True, tensor_first=False)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: object = True,
    pad_mode: Any = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: object = None,
) -> Tensor:
    """X[f, t] = Σₖ window[k]·x[t·hop + k]·e^{-2πi·fk/n}: frequencies over time.

    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    x: Any = input
    if window is None:
        warned.once(
            "A window was not provided. A rectangular window will be applied,which is known to "
            "cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window "
            "are recommended to reduce spectral leakage.To suppress this warning and use a "
            "rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
        )
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        x = padded(x if x.ndim else x.view([1, 1, 1]), n_fft // 2, n_fft // 2, pad_mode)
    options = {"normalized": normalized, "onesided": onesided, "return_complex": return_complex,
               "align_to_window": align_to_window}  # fmt: skip
    hop, width, text = _described("stft", x, n_fft, hop_length, win_length, window, options)
    if return_complex is None:
        if _need_real(None, x.dtype.is_complex, window):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if x.dtype.rank < 2:
        raise RuntimeError(text + "expected a tensor of floating point or complex values")
    if x.ndim not in (1, 2):
        raise RuntimeError(text + "expected a 1D or 2D tensor")
    if not center and align_to_window:
        before = (n_fft - width) // 2
        x = padded(x, before, before)
    _check_windows(text, x.shape[-1], n_fft, hop, width, window)
    real = _need_real(onesided, x.dtype.is_complex, window)
    half = real if onesided is None else onesided
    frames = x.unfold(-1, n_fft, hop)  # (..., T, n_fft)
    if window is not None or width < n_fft:
        taper = x.new_ones(width, dtype=x.dtype.to_real()) if window is None else window
        frames = frames * _centred(taper, n_fft)
    if frames.dtype.itemsize == 2:
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {frames.dtype.legacy}")
    way, last = int(normalized), (frames.ndim - 1,)
    if frames.dtype.is_complex:
        made = fft_c2c.function(frames, last, way, True)
    else:
        made = fft_r2c.function(frames, last, way, half)
    made = counted(of_its_own(made.transpose(-1, -2)), 1 + (input.ndim == 1))
    if return_complex:
        return made
    warned.once(
        "stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
        "complex tensors for all inputs, and return_complex=False will raise an error.\nNote: you "
        "can still call torch.view_as_real on the complex output to recover the old return format."
    )
    return view_as_real.function(made)


def _check_spectrum(text: str, x: Tensor) -> None:
    """Refuses what is no spectrum of a signal or of a batch of them."""
    if not x.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from "
            "stft with return_complex=True."
        )
    if not x.numel():
        raise RuntimeError(text + "input tensor cannot be empty.")
    if x.ndim not in (2, 3):
        if x.ndim < 2:
            raise IndexError(
                "Dimension out of range (expected to be in range of [-2, 1], but got -3)"
            )
        raise RuntimeError(text + f"expected a tensor with 2 or 3 dimensions, but got {x.ndim}")


def _added_up(frames: Any, taper: Any, hop: int) -> tuple[Any, Any]:
    """Frames (B, T, N) as signals (B, L), each where it was, and the sum of the squared windows."""
    batch, count, n_fft = frames.shape[0], frames.shape[1], taper.shape[0]
    total = n_fft + hop * (count - 1)
    added = unfold_backward.function(frames * taper, (batch, total), 1, n_fft, hop)
    squares = (taper * taper).expand((1, count, n_fft))
    return added, unfold_backward.function(squares, (1, total), 1, n_fft, hop)


@public("istft", method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of a `stft`: its frames added up, divided by the sum of the squared windows."""
    x: Any = input
    options = {"center": center, "normalized": normalized, "onesided": onesided, "length": length,
               "return_complex": return_complex}  # fmt: skip
    hop, width, text = _described("istft", x, n_fft, hop_length, win_length, window, options)
    _check_spectrum(text, x)
    if not return_complex and window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    _need_real(onesided, return_complex, window)
    half = x.shape[-2] != n_fft if onesided is None else onesided
    if x.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        wanted = "n_fft / 2 + 1 when onesided=True" if half else "n_fft when onesided=False"
        raise RuntimeError(
            text
            + "expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{wanted}, but got {x.shape[-2]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(text + "expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(text + "expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        raise RuntimeError(
            text + "Invalid window shape. window has to be 1D and length of `win_length`"
        )
    real = x.dtype.to_real()
    taper: Any = _centred(x.new_ones(width, dtype=real) if window is None else window, n_fft)
    batch = x if x.ndim == 3 else x.unsqueeze(0)
    frames, way = batch.transpose(1, 2), 1 if normalized else 2  # (B, T, N)
    if return_complex:
        frames = fft_c2c.function(frames, (2,), way, False)
    else:
        frames = frames if half else frames[..., : n_fft // 2 + 1]
        frames = fft_c2r.function(frames, (2,), way, n_fft)
    added, envelope = _added_up(frames, taper, hop)
    total = added.shape[1]
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    keep = slice(start, min(end, total))
    added, envelope = added[:, keep], envelope[:, keep]
    if not bool((envelope.abs() > NARROW).all()):
        raise RuntimeError(text + "window overlap add min: 1\n[ CPUBoolType{} ]")
    made = added / envelope
    if end > total:
        warned.at_call(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings."
        )
        made = resized(made, (1,), (end - start,))
    return made if x.ndim == 3 else made.squeeze(0)
