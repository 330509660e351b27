"""Sample and Entry, and the generators that most ops share."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from tests.oracle import DTYPES, ORACLE, Side, attempt, brief, torch

f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
i8, i16, i32, i64, u8, boolean = (
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool,
)  # fmt: skip
c64, c128 = torch.complex64, torch.complex128
OTHERS = [getattr(torch, n) for n in DTYPES if n != "float64"]
NAN, INF = float("nan"), float("inf")
_rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Sample:
    """One call: positional and keyword arguments that hold PyTorch's tensors."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    grad: bool = True  # compare gradients
    second: bool = True  # and second gradients
    note: str = ""

    def __str__(self) -> str:
        parts = [brief(v) for v in self.args] + [f"{k}={brief(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)}){' ' + self.note if self.note else ''}"


@dataclass(frozen=True)
class Entry:
    """An op's samples, and how to find and judge it."""

    name: str
    draw: Callable[[], Iterable[Sample]]
    call: Callable[[Side], Callable[..., Any]] | None = None  # where it is not found by its name
    values: bool = True  # False: only shapes and dtypes (uninitialised or random results)
    exact: bool = False  # True: floating results are equal bit for bit
    slack: float = 1.0  # widens the tolerance
    forms: bool = True  # has the method, in-place and general forms of its record
    shares: bool = True  # PyTorch's memory relation is a promise, not an accident
    covers: tuple[str, ...] = ()  # records that have no public name and are run by these samples

    @cached_property
    def _samples(self) -> list[Sample]:
        global _rng
        _rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        torch.manual_seed(1)
        return list(self.draw())

    def samples(self) -> list[Sample]:
        """The samples, the same in every run."""
        return self._samples

    def function(self, side: Side) -> Callable[..., Any]:
        """The op as this side spells it: by its own rule, or by its name in the usual places."""
        if self.call:
            return self.call(side)
        root = side.root
        if "." in self.name:  # "linalg.det"
            return operator.attrgetter(self.name)(root)  # type: ignore[no-any-return]
        functional = getattr(getattr(root, "nn", None), "functional", None)
        for home in (root, functional, getattr(root, "special", None), side.Tensor):
            found = getattr(home, self.name, None)
            if callable(found):
                return found  # type: ignore[no-any-return]
        if hasattr(side.Tensor, self.name):  # a property: T, mT, H, real, imag
            return lambda x: getattr(x, self.name)
        raise AttributeError(f"{root.__name__} has no function or method named {self.name}")


ENTRIES: dict[str, Entry] = {}


def entry(name: str, draw: Callable[[], Iterable[Sample]], **how: Any) -> None:
    """Register the samples of an op."""
    assert name not in ENTRIES, f"{name} has two entries"
    ENTRIES[name] = Entry(name, draw, **how)


def S(*args: Any, **kwargs: Any) -> Sample:
    """A sample whose gradients are compared too."""
    return Sample(args, kwargs)


def V(*args: Any, **kwargs: Any) -> Sample:
    """A sample of values only."""
    return Sample(args, kwargs, grad=False)


def t(
    shape: tuple[int, ...] | int = (3, 4), dtype: Any = f64, low: float = -2, high: float = 2,
    layout: str = "contiguous",
) -> Any:  # fmt: skip
    """A random tensor of PyTorch in [low, high), laid out in memory as asked."""
    shape = (shape,) if isinstance(shape, int) else shape
    n = len(shape)
    if layout == "transposed" and n > 1:
        return t(tuple(reversed(shape)), dtype, low, high).permute(*reversed(range(n)))
    if layout == "strided" and n:
        wide = t((*shape[:-1], 2 * shape[-1] + 1), dtype, low, high)
        return wide[..., 1 : 1 + 2 * shape[-1] : 2]
    if layout == "offset" and n:
        return t((shape[0] + 2, *shape[1:]), dtype, low, high)[1 : 1 + shape[0]]
    if layout == "expanded" and n:
        return t((1, *shape[1:]), dtype, low, high).expand(shape)
    if dtype is boolean:
        values = _rng.integers(0, 2, shape).astype(bool)
    elif not (dtype.is_floating_point or dtype.is_complex):
        values = _rng.integers(max(0, int(low)) if dtype is u8 else int(low), int(high) + 1, shape)
    elif dtype.is_complex:
        values = _rng.uniform(low, high, shape) + 1j * _rng.uniform(low, high, shape)
    else:
        values = _rng.uniform(low, high, shape)
    return torch.from_numpy(np.array(values)).to(dtype)


def const(values: Any, dtype: Any = f64) -> Any:
    return torch.tensor(values, dtype=dtype)


LAYOUTS: list[tuple[tuple[int, ...], str]] = [
    ((3, 4), "contiguous"), ((3, 4), "transposed"), ((3, 4), "strided"), ((3, 4), "offset"),
    ((3, 4), "expanded"), ((), "contiguous"), ((0, 3), "contiguous"), ((1,), "contiguous"),
    ((2, 1, 3), "contiguous"), ((2, 3, 4), "transposed"),
]  # fmt: skip
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e30, -1e30, 1e-30, 100.0]


def layouts(low: float = -2, high: float = 2, dtype: Any = f64) -> Iterator[Any]:
    """A tensor of each layout: dense, strided, expanded, 0-d, empty."""
    for shape, layout in LAYOUTS:
        yield t(shape, dtype, low, high, layout)


def unary(
    name: str, low: float = -2, high: float = 2, *, args: Iterable[Any] = (), special: bool = True,
    kinks: bool = True, **how: Any,
) -> None:  # fmt: skip
    """Register a pointwise op of one tensor whose domain is [low, high)."""
    rest = tuple(args)

    def draw() -> Iterator[Sample]:
        for x in layouts(low, high):
            yield S(x, *rest)
        for d in OTHERS:
            yield S(t((3, 4), d, low, high), *rest)
            yield Sample((t((), d, low, high), *rest), grad=False)
        if special:
            for d in (f32, f64):
                yield Sample((const(SPECIAL, d), *rest), grad=False, note="special values")
        if kinks and low < 0:
            x = const([-1.0, 0.0, 0.0, 1.0, 0.5])
            yield Sample((x, *rest), second=False, note="at kinks")

    entry(name, draw, **how)


def binary(
    name: str, a: tuple[float, float] = (-2, 2), b: tuple[float, float] = (-2, 2), *,
    scalars: Iterable[Any] = (2, 2.5, True), kwargs: Iterable[dict[str, Any]] = (),
    grad: bool = True, dtypes: Iterable[Any] = (boolean, u8, i32, i64, f16, bf16, f32, f64, c64),
    kinks: bool = True, **how: Any,
) -> None:  # fmt: skip
    """Register a pointwise op of two broadcast tensors, or a tensor and a Python number."""
    kinds, numbers_, options = tuple(dtypes), tuple(scalars), tuple(kwargs)

    def draw() -> Iterator[Sample]:
        shapes = [
            ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((3, 4), ()), ((), (2, 3)),
            ((), ()), ((0, 3), (1, 3)), ((2, 1, 3), (4, 1)), ((1,), (2, 2)),
        ]  # fmt: skip
        for x, y in shapes:
            yield Sample((t(x, f64, *a), t(y, f64, *b)), grad=grad)
        for x, y in (("transposed", "contiguous"), ("strided", "expanded"), ("offset", "offset"),
                     ("expanded", "transposed")):  # fmt: skip
            yield Sample((t((3, 4), f64, *a, x), t((3, 4), f64, *b, y)), grad=grad)
        for d in kinds:
            for e in kinds:
                yield Sample((t((2, 3), d, *a), t((3,), e, *b)), grad=grad, second=False)
                yield Sample((t((2, 3), d, *a), t((), e, *b)), grad=False)
        for number in numbers_:
            for d in (f64, f32, i64, i32, boolean):
                yield Sample((t((2, 3), d, *a), number), grad=grad)
        for more in options:
            yield Sample((t((2, 3), f64, *a), t((3,), f64, *b)), more, grad=grad)
            yield Sample((t((2, 3), i64, *a), t((3,), i64, *b)), more, grad=False)
        values = const(SPECIAL)
        yield Sample((values[:, None], values), grad=False, note="special values")
        if kinks:
            x = const([-1.0, -1.0, 0.0, 1.0, 1.0, 2.0])
            y = const([-1.0, 1.0, 1.0, 1.0, 2.0, 2.0])
            yield Sample((x, y), grad=grad, second=False, note="at ties")

    entry(name, draw, **how)


@cache
def supported(e: Entry) -> list[Sample]:
    """The samples that PyTorch itself accepts, without those that give its complex32."""
    f = e.function(ORACLE)

    def accepts(s: Sample) -> bool:
        out, refused = attempt(f, *ORACLE.carry(s.args), **ORACLE.carry(s.kwargs))
        return not refused and all(o.dtype is not torch.complex32 for o in ORACLE.tensors(out))

    return [s for s in e.samples() if accepts(s)]
