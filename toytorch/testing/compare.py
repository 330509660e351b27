"""`assert_close`: are two values alike, and if not, in what do they differ?

Nested values are taken apart first; each pair of leaves is compared by its kind, and the first that
differs is reported with its place.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from toytorch import ops
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.facts.device import sparse_bsr, sparse_coo, sparse_csr, strided
from toytorch.ops.creation.from_data import as_tensor

PRECISION = {
    types.float16: (0.001, 1e-5),
    types.bfloat16: (0.016, 1e-5),
    types.float32: (1.3e-6, 1e-5),
    types.float64: (1e-7, 1e-7),
    types.complex64: (1.3e-6, 1e-5),
    types.complex128: (1e-7, 1e-7),
}  # (rtol, atol)
OF_NUMBER: dict[type, types.dtype] = {
    int: types.int64,
    float: types.float64,
    complex: types.complex128,
}
Message = str | Callable[[str], str] | None


class Mismatch(Exception):
    """What is to be raised, and for which item of a nested value."""

    def __init__(self, kind: type[Exception], text: str, place: tuple[Any, ...] = ()) -> None:
        super().__init__(text)
        self.kind, self.text, self.place = kind, text, place

    def error(self, msg: Message) -> Exception:
        text = self.text
        if self.place:
            text += "\n\nThe failure occurred for item " + "".join(f"[{p!r}]" for p in self.place)
        return self.kind(msg(text) if callable(msg) else msg or text)


class Pair:
    """Two values at one place, and how close they have to be."""

    def __init__(
        self, actual: Any, expected: Any, place: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self.actual, self.expected, self.place, self.options = actual, expected, place, options
        self.equal_nan = options["equal_nan"]

    def fail(self, text: str, kind: type[Exception] = AssertionError) -> Mismatch:
        return Mismatch(kind, text, self.place)

    def tolerances(self, *kinds: types.dtype) -> tuple[float, float]:
        """(rtol, atol): what was asked for, else the loosest of the types'."""
        rtol, atol = self.options["rtol"], self.options["atol"]
        if (rtol is None) != (atol is None):
            raise self.fail(
                "Both 'rtol' and 'atol' must be either specified or omitted, but got "
                f"no {'rtol' if rtol is None else 'atol'}.",
                ValueError,
            )
        if rtol is not None:
            return rtol, atol
        found = [PRECISION.get(k, (0.0, 0.0)) for k in kinds]
        return max(r for r, _ in found), max(a for _, a in found)

    def compare(self) -> None:
        """Raises Mismatch where the values differ."""
        raise NotImplementedError  # each kind of pair compares in its own way


class Nothing(Pair):
    """None, and whatever stands opposite."""

    def compare(self) -> None:
        if self.actual is not self.expected:
            raise self.fail(f"None mismatch: {self.actual} is not {self.expected}")


class Truth(Pair):
    """Two bools."""

    def compare(self) -> None:
        if bool(self.actual) is not bool(self.expected):
            raise self.fail(f"Booleans mismatch: {bool(self.actual)} is not {bool(self.expected)}")


class Number(Pair):
    """Two numbers."""

    def compare(self) -> None:
        a, b = (v.item() if isinstance(v, np.number) else v for v in (self.actual, self.expected))
        kinds = [next(k for k in OF_NUMBER if isinstance(v, k)) for v in (a, b)]
        rtol, atol = self.tolerances(*(OF_NUMBER[k] for k in kinds))
        if self.options["check_dtype"] and kinds[0] is not kinds[1]:
            raise self.fail(f"The (d)types do not match: {type(a)} != {type(b)}.")
        if a == b or (self.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
            return
        apart = abs(a - b)
        if not (cmath.isfinite(apart) and apart <= atol + rtol * abs(b)):
            raise self.fail(numbers_differ("Scalars", a, b, rtol, atol))


class Tensors(Pair):
    """Two tensors, or what can be made into tensors."""

    def compare(self) -> None:
        try:
            a, b = (
                v if isinstance(v, Tensor) else as_tensor(v) for v in (self.actual, self.expected)
            )
        except Exception:
            raise unknown(self.actual, self.expected, self.place) from None
        rtol, atol = self.tolerances(a.dtype, b.dtype)
        self.attributes(a, b)
        if a.device != b.device:
            a, b = a.cpu(), b.cpu()
        if a.dtype is not b.dtype:
            common = types.promote_types(a.dtype, b.dtype)
            a, b = a.to(common), b.to(common)
        if a.layout is not b.layout:
            a, b = a.to_dense(), b.to_dense()
        if a.layout is sparse_coo:
            self.sparse(a, b, rtol, atol)
        elif a.layout is not strided:
            self.compressed(a, b, rtol, atol)
        else:
            self.close(a, b, rtol, atol, "Tensor-likes")

    def attributes(self, a: Tensor, b: Tensor) -> None:
        """Shape, and what else is to be the same."""
        pairs: list[tuple[str, Any, Any]] = [("shape", a.shape, b.shape)]
        if self.options["check_layout"]:
            pairs.append(("layout", a.layout, b.layout))
        if self.options["check_stride"] and a.layout is b.layout is strided:
            pairs.append(("stride()", a.stride(), b.stride()))
        if self.options["check_device"]:
            pairs.append(("device", a.device, b.device))
        if self.options["check_dtype"]:
            pairs.append(("dtype", a.dtype, b.dtype))
        for name, x, y in pairs:
            if x != y:
                raise self.fail(f"The values for attribute '{name}' do not match: {x} != {y}.")

    def sparse(self, a: Tensor, b: Tensor, rtol: float, atol: float) -> None:
        """The entries of sparse tensors: as many, at the same places, of close values."""
        for what, x, y in (
            ("sparse dimensions", a.sparse_dim(), b.sparse_dim()),
            ("specified values", a._nnz(), b._nnz()),
        ):
            if x != y:
                raise self.fail(
                    f"The number of {what} in sparse COO tensors does not match: {x} != {y}"
                )
        self.close(a._indices(), b._indices(), 0, 0, "Sparse COO indices")
        self.close(a._values(), b._values(), rtol, atol, "Sparse COO values")

    def compressed(self, a: Tensor, b: Tensor, rtol: float, atol: float) -> None:
        """The entries of tensors of compressed rows or columns."""
        kind = f"Sparse {a.layout.name[-3:].upper()}"
        if a._nnz() != b._nnz():
            raise self.fail(
                f"The number of specified values in sparse {kind[7:]} tensors does not match: "
                f"{a._nnz()} != {b._nnz()}"
            )
        by_rows = a.layout in (sparse_csr, sparse_bsr)
        for name in ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices"):
            self.close(getattr(a, name)(), getattr(b, name)(), 0, 0, f"{kind} {name}")
        self.close(a.values(), b.values(), rtol, atol, f"{kind} values")

    def close(self, a: Tensor, b: Tensor, rtol: float, atol: float, name: str) -> None:
        """|a - b| ≤ atol + rtol·|b| everywhere."""
        a, b = a.detach(), b.detach()
        if a.is_meta:
            return  # there is nothing to compare
        matches = ops.isclose(a, b, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if bool(matches.all()):
            return
        if a.ndim == 0:
            name = "Scalars" if name == "Tensor-likes" else name
            raise self.fail(numbers_differ(name, a.item(), b.item(), rtol, atol))
        raise self.fail(tensors_differ(name, a, b, matches, rtol, atol))


def numbers_differ(name: str, a: Any, b: Any, rtol: float, atol: float) -> str:
    """The report on two numbers."""
    apart = abs(a - b)
    relative = float("inf") if b == 0 else apart / abs(b)
    exact = rtol == 0 and atol == 0
    allowed = ["" if exact else f" (up to {t} allowed)" for t in (atol, rtol)]
    return (
        f"{name} are not {'equal' if exact else 'close'}!\n\nExpected {b} but got {a}.\n"
        f"Absolute difference: {apart}{allowed[0]}\nRelative difference: {relative}"
        f"{allowed[1]}"
    )


def tensors_differ(
    name: str, a: Tensor, b: Tensor, matches: Tensor, rtol: float, atol: float
) -> str:
    """The report on two tensors: how many elements differ, and where they differ most."""
    total = matches.numel()
    wrong = total - int(matches.sum())
    flat_a, flat_b = a.flatten(), b.flatten()
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        flat_a, flat_b = flat_a.to(types.int64), flat_b.to(types.int64)
    apart = (flat_a - flat_b).abs()
    apart[matches.flatten()] = 0
    relative = apart / flat_b.abs()
    relative[matches.flatten()] = 0
    exact = rtol == 0 and atol == 0
    lines = [
        f"{name} are not {'equal' if exact else 'close'}!",
        "",
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
    ]
    for what, values, tolerance in (("absolute", apart, atol), ("relative", relative, rtol)):
        value, place = values.max(0)
        where = tuple(int(i) for i in np.unravel_index(int(place), tuple(a.shape)))
        lines.append(
            f"Greatest {what} difference: {value.item()} at index {where}"
            + ("" if exact else f" (up to {tolerance} allowed)")
        )
    return "\n".join(lines)


def unknown(actual: object, expected: object, place: tuple[Any, ...]) -> Mismatch:
    """The refusal of values that are of no kind known here."""
    return Mismatch(
        TypeError,
        "No comparison pair was able to handle inputs of type "
        f"{type(actual)} and {type(expected)}.",
        place,
    )


def pair(actual: object, expected: object, place: tuple[Any, ...], options: dict[str, Any]) -> Pair:
    """Two leaves, by their kind."""
    if actual is None or expected is None:
        return Nothing(actual, expected, place, options)
    values = (actual, expected)
    if all(isinstance(v, (bool, np.bool_)) for v in values):
        return Truth(actual, expected, place, options)
    if all(isinstance(v, (int, float, complex, np.number)) for v in values):
        if any(isinstance(v, bool) for v in values):  # a truth is no number
            raise unknown(actual, expected, place)
        return Number(actual, expected, place, options)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if (
        not related
        or (not options["allow_subclasses"] and type(actual) is not type(expected))
        or (isinstance(actual, str))
    ):
        raise unknown(actual, expected, place)
    return Tensors(actual, expected, place, options)


def pairs(
    actual: Any, expected: Any, place: tuple[Any, ...], options: dict[str, Any]
) -> list[Pair]:
    """The leaves of two nested values, which must be nested alike."""
    values = (actual, expected)
    if all(isinstance(v, Sequence) and not isinstance(v, str) for v in values):
        if len(actual) != len(expected):
            raise Mismatch(
                AssertionError,
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                place,
            )
        return [
            p
            for i, (a, b) in enumerate(zip(actual, expected))
            for p in pairs(a, b, (*place, i), options)
        ]
    if all(isinstance(v, Mapping) for v in values):
        missing, more = set(expected) - set(actual), set(actual) - set(expected)
        if missing or more:
            raise Mismatch(
                AssertionError,
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(more)}",
                place,
            )
        try:
            keys = sorted(actual)
        except TypeError:
            keys = list(actual)
        return [p for k in keys for p in pairs(actual[k], expected[k], (*place, k), options)]
    return [pair(actual, expected, place, options)]


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raises unless |actual - expected| ≤ atol + rtol·|expected| in every element.

    Takes tensors, numbers, and lists and dictionaries of them; the tolerances depend on the types
    where none are given (float32: rtol 1.3e-6, atol 1e-5). Device, type and layout have to be the
    same too. `msg` replaces the report, or makes one of it. Raises AssertionError; ValueError for
    one tolerance without the other; TypeError for values of no known kind. Like
    `torch.testing.assert_close`.

    >>> torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2.5]))
    Traceback (most recent call last):
        ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    __tracebackhide__ = True
    options = dict(locals())
    try:
        found = pairs(actual, expected, (), options)
        for p in found:
            p.compare()
    except Mismatch as mismatch:
        raise mismatch.error(msg) from None


def assert_allclose(
    actual: object,
    expected: object,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of `assert_close`, which does not look at types and devices."""
    warned.at_call(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed "
        "in a future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    a, b = (v if isinstance(v, Tensor) else as_tensor(v) for v in (actual, expected))
    options: Any = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "msg": msg or None}
    assert_close(a, b, **options, check_device=True, check_dtype=False, check_stride=False)
