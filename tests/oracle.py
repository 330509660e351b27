"""The bridge to PyTorch: carries values to either side through NumPy, and compares what comes back.

PyTorch is the authority of this suite and is needed by the tests only; where it is not installed,
every module that imports this one is skipped. With `TOYTORCH_UNDER_TEST=torch` PyTorch stands in
toytorch's place. All must then pass: the tests ask for nothing that PyTorch does not do.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tests.gpu import GPU as GPU  # for those that ask for the oracle as well

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

torch: Any = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is absent")
torch.set_num_threads(1)

UNDER_TEST = os.environ.get("TOYTORCH_UNDER_TEST", "toytorch")
SELFTEST = UNDER_TEST == "torch"
tt: Any = importlib.import_module(UNDER_TEST)


def names(text: str) -> list[str]:
    """The words of a text: a list of names that reads as one."""
    return text.split()


DTYPES = names(
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
)
FLOATS = {"float32", "float64", "complex64", "complex128"}  # those whose gradients are compared
TOLERANCE = {  # (relative, absolute); every other dtype must be equal bit for bit
    "float16": (5e-3, 5e-3), "bfloat16": (4e-2, 4e-2), "float32": (1e-4, 1e-5),
    "float64": (1e-7, 1e-9), "complex64": (1e-4, 1e-5), "complex128": (1e-7, 1e-9),
}  # fmt: skip


def dtype_name(dtype: Any) -> str:
    """`float32` for `torch.float32` and `toytorch.float32` alike."""
    return str(dtype).rsplit(".", 1)[-1]


class Side:
    """One of the two implementations: PyTorch, or the package under test."""

    def __init__(self, root: Any, device: str = "cpu") -> None:
        self.root, self.Tensor, self.device = root, root.Tensor, device

    def dtype(self, name: Any) -> Any:
        return getattr(self.root, dtype_name(name))

    def carry(self, x: Any, memo: dict[int, Any] | None = None, grad: bool = False) -> Any:
        """A copy of x, which holds PyTorch's tensors, for this side.

        Sizes, strides, offsets and the sharing of memory between tensors are kept; with grad,
        floating tensors become leaves that require a gradient.
        """
        memo = {} if memo is None else memo
        if isinstance(x, torch.Tensor):
            if id(x) not in memo:
                leaf = self._tensor(x, memo)
                wants = (grad and dtype_name(x.dtype) in FLOATS) or x.requires_grad
                memo[id(x)] = (leaf.requires_grad_(True) if wants else leaf, x)
            return memo[id(x)][0]
        if isinstance(x, torch.dtype):
            return self.dtype(x)
        if isinstance(x, torch.device):
            return self.root.device(str(x))
        if isinstance(x, (list, tuple)):
            items = [self.carry(v, memo, grad) for v in x]
            return items if isinstance(x, list) else tuple(items)
        if isinstance(x, dict):
            return {k: self.carry(v, memo, grad) for k, v in x.items()}
        if isinstance(x, slice):
            return slice(*(self.carry(v, memo) for v in (x.start, x.stop, x.step)))
        return x

    def _tensor(self, t: Any, memo: dict[int, Any]) -> Any:
        t = t.detach().resolve_conj().resolve_neg()
        size = t.untyped_storage().nbytes() // t.element_size()
        if t.is_contiguous() and size == t.numel():
            made = self.from_array(t)
            if not size and made.stride() != t.stride() and self.device == "cpu":
                kind = self.dtype(t.dtype)  # steps over nothing are steps, too
                made = self.root.empty_strided(tuple(t.shape), t.stride(), dtype=kind)
            return made
        key = t.untyped_storage().data_ptr()
        if key not in memo:
            memo[key] = self.from_array(torch.as_strided(t, (size,), (1,), 0))
        return self.root.as_strided(memo[key], tuple(t.shape), t.stride(), t.storage_offset())

    def from_array(self, t: Any) -> Any:
        """A fresh tensor of this side with the values of PyTorch's contiguous t."""
        narrow = t.dtype is torch.bfloat16  # NumPy has no bfloat16
        out = self.root.from_numpy((t.float() if narrow else t).numpy().copy())
        out = out.to(self.root.bfloat16) if narrow else out
        return out if self.device == "cpu" else out.to(self.device)

    def numpy(self, x: Any) -> np.ndarray[Any, Any]:
        """The values of this side's tensor; bfloat16 comes back as float32."""
        x = x.detach()
        for step in ("cpu", "resolve_conj", "resolve_neg"):
            x = getattr(x, step, lambda x=x: x)()
        x = x.float() if dtype_name(x.dtype) == "bfloat16" else x
        lazy = getattr(x, "_is_zerotensor", bool)()  # PyTorch's gradients of zero
        return np.asarray(x.numpy(force=True) if lazy else x.numpy())

    def tensors(self, x: Any) -> list[Any]:
        """Every tensor in a nested value, in order."""
        return [v for v in leaves(x) if isinstance(v, self.Tensor)]

    def inputs(self, x: Any) -> list[Any]:
        """The distinct tensors of x that require a gradient."""
        return list({id(v): v for v in self.tensors(x) if v.requires_grad}.values())

    def cotangent(self, like: Any, phase: float = 0.5) -> Any:
        """A fixed tensor of like's shape and dtype, the same on both sides."""
        a = np.cos(1.3 * np.arange(like.numel()) + phase).reshape(tuple(like.shape))
        t = torch.from_numpy(np.asarray(a))
        kind = getattr(torch, dtype_name(like.dtype))
        return self.carry((t * (1 + 0.5j) if kind.is_complex else t).to(kind))


ORACLE = Side(torch)
SUBJECT = Side(tt)


def devices() -> list[str]:
    """The devices the suite runs on: the CPU, and the GPU where toytorch finds one."""
    cuda = getattr(tt, "cuda", None)
    return ["cpu"] + (["cuda"] if not SELFTEST and cuda is not None and cuda.is_available() else [])


def subject(device: str) -> Side:
    return SUBJECT if device == "cpu" else Side(tt, device)


def leaves(x: Any) -> list[Any]:
    """Tensors and plain values in nested lists, tuples and dicts, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)) and type(x).__name__ != "Size":
        return [y for v in x for y in leaves(v)]
    return [x]


def attempt(f: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    """(f's result, None) or (None, what it raised), with warnings put aside."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*args, **kwargs), None
    except Exception as e:  # whatever it raises is what we want to compare
        return None, e


def told(e: Exception | None) -> str:
    """An exception in one line."""
    text = str(e).strip().splitlines() or [""]
    return "nothing was raised" if e is None else f"{type(e).__name__}: {text[0][:200]}"


def differences(
    want: Any, got: Any, side: Side = SUBJECT, *, exact: bool = False, strides: bool = False,
    values: bool = True, slack: float = 1.0,
) -> list[str]:  # fmt: skip
    """How the subject's result differs from PyTorch's, in words; empty where they agree.

    None agrees with zeros: it is the gradient of an input that was not used.
    """
    wants, gots, bad = leaves(want), leaves(got), []
    if len(wants) != len(gots):
        return [f"{len(gots)} results, PyTorch gives {len(wants)}"]
    for i, (w, g) in enumerate(zip(wants, gots, strict=True)):
        where = f"result {i}: " if len(wants) > 1 else ""
        if isinstance(w, torch.Tensor) and isinstance(g, side.Tensor):
            bad += [where + m for m in _tensor(w, g, side, exact, strides, values, slack)]
        elif w is None or g is None:
            other = ORACLE.numpy(w) if w is not None else side.numpy(g) if g is not None else 0
            if np.any(other):
                bad.append(f"{where}{brief(g)}, PyTorch gives {brief(w)}")
        elif isinstance(w, torch.Tensor) or isinstance(g, side.Tensor):
            bad.append(f"{where}a {type(g).__name__}, PyTorch gives a {type(w).__name__}")
        elif values and not _same_plain(w, g):
            bad.append(f"{where}{g!r}, PyTorch gives {w!r}")
    return bad


def _same_plain(w: Any, g: Any) -> bool:
    if isinstance(w, (float, complex)) and isinstance(g, (int, float, complex)):
        return type(w) is type(g) and bool(np.isclose(w, g, 1e-5, equal_nan=True))
    if isinstance(w, torch.dtype):
        return dtype_name(w) == dtype_name(g)
    if type(w).__name__ == "Size":
        return tuple(w) == tuple(g)
    return bool(w == g)


def _tensor(
    w: Any, g: Any, side: Side, exact: bool, strides: bool, values: bool, slack: float
) -> Iterable[str]:
    name = dtype_name(w.dtype)
    if name != dtype_name(g.dtype):
        yield f"dtype {dtype_name(g.dtype)}, PyTorch gives {name}"
    if tuple(w.shape) != tuple(g.shape):
        yield f"shape {tuple(g.shape)}, PyTorch gives {tuple(w.shape)}"
        return
    if strides and w.numel() and (steps(w), w.storage_offset()) != (steps(g), g.storage_offset()):
        yield (
            f"strides {tuple(g.stride())} offset {g.storage_offset()}, "
            f"PyTorch gives {w.stride()} offset {w.storage_offset()}"
        )
    if values:
        a, b = ORACLE.numpy(w), side.numpy(g)
        rtol, atol = (0.0, 0.0) if exact else TOLERANCE.get(name, (0.0, 0.0))
        if a.dtype.kind in "fc":
            finite = np.abs(a[np.isfinite(a)])
            atol = slack * atol * min(max(1.0, finite.max(initial=0.0)), 1e3)
        with np.errstate(all="ignore"):
            same = np.isclose(b, a, slack * rtol, atol, equal_nan=True)
        if not same.all():
            yield f"values {brief(b[~same])}, PyTorch gives {brief(a[~same])} at {_places(~same)}"


def steps(x: Any) -> tuple[int, ...]:
    """Strides, without those of dimensions of size 1, along which no step is ever taken."""
    return tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n != 1)


def _places(mask: np.ndarray[Any, Any]) -> str:
    index = np.argwhere(mask)
    more = f" and {len(index) - 3} more" if len(index) > 3 else ""
    return ", ".join(str(tuple(map(int, i))) for i in index[:3]) + more


def brief(x: Any) -> str:
    """A short text for any value: tensors by dtype, shape and layout, arrays by first values."""
    if isinstance(x, np.ndarray):
        return np.array2string(x.ravel()[:4], precision=8, separator=", ")
    if isinstance(x, (torch.Tensor, tt.Tensor)):
        plain = x.is_contiguous() and not x.storage_offset()
        layout = "" if plain else f", stride {tuple(x.stride())}, offset {x.storage_offset()}"
        return f"{dtype_name(x.dtype)}{list(x.shape)}{layout}"
    if isinstance(x, (list, tuple)):
        return "(" + ", ".join(map(brief, x)) + ")"
    if isinstance(x, dict):
        return ", ".join(f"{k}={brief(v)}" for k, v in x.items())
    return repr(x)


def agree(want: Any, got: Any, side: Side = SUBJECT, **how: Any) -> None:
    """Assert that the subject's result is PyTorch's."""
    bad = differences(want, got, side, **how)
    assert not bad, "; ".join(bad)


def both(f: Callable[[Any], Any], **how: Any) -> Any:
    """Run f(module) on both sides and assert that results, or errors' classes, agree."""
    want, refused = attempt(f, torch)
    got, failure = attempt(f, tt)
    if refused or failure:
        bad = error_difference(refused, failure)
        assert not bad, bad
    else:
        agree(want, got, **how)
    return got


def error_difference(want: Exception | None, got: Exception | None, text: bool = True) -> str:
    """'' if both raised one class of error that names the same sizes, else how they differ."""
    if want is None or got is None:
        return "" if want is got else f"{told(got)}, in PyTorch: {told(want)}"
    if not isinstance(got, type(want)) and type(want).__name__ != type(got).__name__:
        return f"{told(got)}, in PyTorch: {told(want)}"
    missing = set(numbers(want)) - set(numbers(got)) if text else set()
    if missing:
        return f"{told(got)} does not name {sorted(missing)}, in PyTorch: {told(want)}"
    return ""


def alike(a: Any, b: Any) -> bool:
    """Whether what expressions gave, as lists of numbers and texts, agrees, numbers to the last digits."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-9 * (1 + abs(b)) or (a != a and b != b)
    return bool(a == b)


def numbers(e: Exception) -> list[str]:
    """The sizes and dimensions an error names; none for TypeError, which lists signatures."""
    return [] if isinstance(e, TypeError) else re.findall(r"(?<![\w.])-?\d+(?![\w.]*\w)", first(e))


def first(e: Exception) -> str:
    """An error's first line: PyTorch appends native stack traces to some."""
    return (str(e).strip().splitlines() or [""])[0]
