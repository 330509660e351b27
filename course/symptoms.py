"""A wrong value beside the one asked for: what is certainly true of the two.

Each symptom is a sentence about whatever is wrong. Where a result has several parts, only the wrong
ones are looked at, and a symptom has to hold for each of them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from course.cases import same

Array = np.ndarray[Any, Any]
CLOSE = 1e-4


class Weak(str):
    """A sentence that a single case does not prove: it has to hold for two cases at least."""


def symptoms(got: Any, expected: Any) -> tuple[str, ...]:
    """What is true of every part of ``got`` that is wrong, the most telling first."""
    if same(got, expected, CLOSE):
        # no other comparison can be trusted where the mistake is smaller than what counts as equal
        return () if same(got, expected, 1e-12) else (_ROUNDED,)
    pairs = [*_wrong_parts(got, expected)]
    found = [dict.fromkeys(_of_part(*pair)) for pair in pairs]
    if not found:
        return ()
    about = [*_exchanged(pairs), *_which(got, expected)]
    strong = [{str(one) for one in part if not isinstance(one, Weak)} for part in found]
    told: list[str] = []
    for one in found[0]:
        if all(one in part for part in found):
            # what a single number does not prove, two of them in one result do
            proven = len(found) > 1 or any(one in part for part in strong)
            told.append(str(one) if proven else one)
    return tuple(dict.fromkeys([*told, *about]))


_ROUNDED = "It is nearly right: digits are lost on the way."


def _wrong_parts(got: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """The smallest parts in which two values differ, as pairs; a table of numbers is one part."""
    alike = type(got) is type(expected)
    if alike and isinstance(expected, dict) and got.keys() == expected.keys():
        for key in expected:
            yield from _inside(got[key], expected[key])
    elif (
        alike
        and isinstance(expected, (list, tuple))
        and len(got) == len(expected)
        and (_table(expected) is None or _table(got) is None)
    ):
        for mine, theirs in zip(got, expected):
            yield from _inside(mine, theirs)
    else:
        yield got, expected


def _exchanged(pairs: list[tuple[Any, Any]]) -> Iterator[str]:
    mine, theirs = (Counter(repr(pair[n]) for pair in pairs) for n in (0, 1))
    plain = all(isinstance(one, bool) for pair in pairs for one in pair)
    if len(pairs) > 1 and mine == theirs and not plain:
        yield "The parts are right, but some have changed places."


def _which(got: Any, expected: Any) -> Iterator[str]:
    """Which part is wrong, where several are asked for; and whether a series begins right."""
    if type(got) is not type(expected) or not isinstance(expected, (list, tuple, dict)):
        return
    if len(got) != len(expected) or _table(expected) is not None:
        return
    if isinstance(expected, dict):
        wrong = [key for key in expected if key in got and not same(got[key], expected[key], CLOSE)]
        if len(wrong) == 1 < len(expected) and got.keys() == expected.keys():
            yield f"Of the entries asked for, only {wrong[0]!r} is wrong."
        return
    right = [same(mine, theirs, CLOSE) for mine, theirs in zip(got, expected)]
    if isinstance(expected, list) and len({type(one) for one in expected}) == 1:
        yield from _series(right)
    if right.count(False) == 1 < len(right) < 9:
        yield f"Of the {len(right)} parts asked for, only number {right.index(False) + 1} is wrong."


def _series(right: list[bool]) -> Iterator[str]:
    first = right.index(False) if False in right else 0
    if first and len(right) - first > 1 and not any(right[first:]):
        yield "It begins right, and from one place on all of it is wrong."


def _inside(got: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    if not same(got, expected, CLOSE):
        yield from _wrong_parts(got, expected)


def _of_part(got: Any, expected: Any) -> Iterator[str]:
    if expected is None or got is None:
        what = "something where `None` is" if expected is None else "`None` where something else is"
        yield f"There is {what} asked for."
    elif isinstance(got, np.generic) and isinstance(expected, (int, float)):
        yield "It is a number of NumPy's where one of Python's is asked for."
    elif is_tensor(expected) != is_tensor(got):
        ours, theirs = ("a tensor" if is_tensor(x) else kind(x) for x in (got, expected))
        yield f"It is {ours} where {theirs} is asked for."
    elif is_tensor(expected):
        yield from _tensors(got, expected)
    elif _dtype(expected) and _dtype(got):
        yield from _dtypes(_dtype(got), _dtype(expected))
    elif isinstance(expected, bool) and isinstance(got, bool):
        yield Weak(f"It says {'yes where no' if got else 'no where yes'} is right.")
    elif type(got) is not type(expected) and not (is_number(got) and is_number(expected)):
        right = isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple))
        what = "What it holds is right, but it" if right and same([*got], [*expected]) else "It"
        yield f"{what} is {kind(got)} where {kind(expected)} is asked for."
    elif type(got) is not type(expected) and got == expected:
        yield f"The number is right, but it is {kind(got)} where {kind(expected)} is asked for."
    elif is_number(expected):
        if not isinstance(expected, float) and abs(got - expected) == 1:
            yield f"It is off by one: {'one too many' if got > expected else 'one too few'}."
        yield from _numbers(np.array([got], float), np.array([expected], float))
    elif isinstance(expected, str):
        yield from _texts(got, expected)
    elif isinstance(expected, dict):
        yield from _entries(set(got), set(expected))
    elif isinstance(expected, (set, frozenset)):
        yield from _entries(got, expected)
    elif isinstance(expected, (list, tuple)):
        yield from _sequences([*got], [*expected])


# -- numbers --------------------------------------------------------------------------------------


def _tensors(got: Any, expected: Any) -> Iterator[str]:
    mine, theirs = _table(got), _table(expected)
    if mine is None or theirs is None:
        return
    if got.dtype != expected.dtype and mine.shape == theirs.shape:
        if _close(mine, theirs):
            yield "The numbers and the shape are right, the dtype is not."
        yield "The dtype is not the one asked for."
    yield from _tables(mine, theirs)
    if mine.shape != theirs.shape:
        yield "The shape is not the one asked for."


def _tables(got: Array, expected: Array) -> Iterator[str]:
    """What is true of two arrays of numbers."""
    if got.ndim == expected.ndim > 1 and sorted(got.shape) == sorted(expected.shape):
        yield from _turned(got, expected)
    if got.shape == expected.shape:
        yield from _numbers(got, expected)
        if expected.ndim and expected.size > 1:
            yield from _places(got, expected)
        return
    if got.size and got.size == expected.size and _close(got.ravel(), expected.ravel()):
        yield "The numbers are right, the shape is not."
    if got.ndim == expected.ndim + 1 and got.size:
        for n in range(got.ndim):
            if got.shape[n] < 2:
                continue
            if _fits(got.sum(n), expected):
                yield "A sum along one dimension is missing."
            elif _fits(got.mean(n), expected):
                yield "A mean along one dimension is missing."
    if got.ndim < expected.ndim or got.size < expected.size:
        dims = [(), *((n,) for n in range(expected.ndim) if expected.shape[n] > 1)]
        if expected.size > 1 and any(
            got.size == s.size and _close(got.ravel(), s.ravel())
            for s in (expected.sum(d or None) for d in dims)
        ):
            yield "It is summed along one dimension too many."
    if got.ndim != expected.ndim:
        yield f"There is a dimension too {'many' if got.ndim > expected.ndim else 'few'}."


def _turned(got: Array, expected: Array) -> Iterator[str]:
    if got.shape == expected.shape and _close(got, expected):
        return
    if got.ndim == 2 and _fits(got.T, expected):
        yield "The result is transposed: rows stand where columns are asked for."
    elif 2 < got.ndim < 6:
        for order in itertools.permutations(range(got.ndim)):
            if _fits(got.transpose(order), expected):
                yield "The dimensions stand in another order."
                return


def _numbers(got: Array, expected: Array) -> Iterator[str]:
    """What is true of all numbers at once. One number proves little: then the sentence is weak."""
    mine, theirs = got.ravel(), expected.ravel()
    if not theirs.size:
        return
    if np.isnan(mine).any() and not np.isnan(theirs).any():
        yield "There is a NaN where a number is asked for."
        return
    if np.isinf(mine).any() and not np.isinf(theirs).any():
        yield "There is an infinity where a finite number is asked for."
        return
    if not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        return
    sizes = {round(abs(x), 9) for x in theirs.tolist()} - {0.0}
    sure = len(sizes) > 1
    tell: Any = str if sure else Weak
    if sizes and _close(-mine, theirs):
        yield "The sign is wrong."
    if (theirs < 0).any() and _close(mine, abs(theirs)):
        yield tell("The signs are lost: every number came out positive.")
    if sizes:
        yield from _factor(mine, theirs, tell)
        yield from _functions(mine, theirs, tell)
    if not mine.any() and (theirs.size > 1 or sizes):
        yield "Every number is 0." if theirs.size > 1 else Weak("It is 0.")
    elif theirs.size > 2 and len(set(theirs.tolist())) > 1 and np.ptp(mine) < 1e-9:
        yield "It is the same number everywhere."
    if len({round(x, 6) for x in theirs.tolist()}) > 3:
        yield from _line(mine, theirs)
    step = mine - theirs
    if abs(step[0]) > CLOSE and _close(step, np.full_like(step, step[0])):
        several = len(set(theirs.tolist())) > 1
        if abs(abs(step[0]) - 1) < 1e-6 and several:
            yield f"It is off by one: {'one too many' if step[0] > 0 else 'one too few'}."
        elif several or theirs.size == 1:
            way = "large" if step[0] > 0 else "small"
            yield (str if several else Weak)(f"It is {abs(step[0]):.4g} too {way}.")


def _factor(mine: Array, theirs: Array, tell: Any) -> Iterator[str]:
    where = int(np.argmax(abs(theirs)))
    factor = float(mine[where] / theirs[where])
    if abs(factor) > 1e-9 and not math.isclose(abs(factor), 1) and _close(mine, factor * theirs):
        yield tell(f"What is wrong is {factor:.4g} times what it should be.")


def _line(mine: Array, theirs: Array) -> Iterator[str]:
    """Whether all numbers lie on one line over those asked for: scaled, and shifted as well."""
    slope, height = np.polyfit(theirs, mine, 1)
    if min(abs(slope), abs(slope - 1), abs(height)) > 1e-3 and _close(
        mine, slope * theirs + height
    ):
        yield "It is scaled and shifted: a multiple of what it should be, plus a constant."


def _functions(mine: Array, theirs: Array, tell: Any) -> Iterator[str]:
    """One of a few functions between what came and what is asked for."""
    with np.errstate(all="ignore"):
        for name, made in (
            ("It is the square of what is asked for.", theirs**2),
            ("It is the root of what is asked for.", np.sqrt(theirs)),
            ("It is one over what is asked for.", 1 / theirs),
            ("It is 1 minus what is asked for.", 1 - theirs),
            ("It is the exponential of what is asked for.", np.exp(theirs)),
            ("It is the logarithm of what is asked for.", np.log(theirs)),
        ):
            if np.isfinite(made).all() and _close(mine, made):
                yield tell(name)
    whole = mine.any() and np.equal(mine, np.rint(mine)).all()
    if whole and not np.equal(theirs, np.rint(theirs)).all():
        for made in (np.trunc(theirs), np.floor(theirs), np.rint(theirs)):
            if _close(mine, made):
                yield tell("The part after the point is lost.")
                return


def _places(got: Array, expected: Array) -> Iterator[str]:
    """Where the wrong numbers are, and whether the right ones stand elsewhere."""
    if not (np.isfinite(got).all() and np.isfinite(expected).all()):
        return
    wrong = ~np.isclose(got, expected, rtol=CLOSE, atol=1e-6)
    if not wrong.any():
        return
    different = len({round(x, 6) for x in expected.ravel().tolist()}) > 1
    for n in range(expected.ndim):
        if different and expected.shape[n] > 1 and _close(np.flip(got, n), expected):
            yield "The order is reversed." if got.ndim == 1 else "A dimension is reversed."
        elif (
            different
            and expected.shape[n] > 2
            and any(_close(np.roll(got, by, n), expected) for by in (1, -1))
        ):
            yield "Everything stands one place too far."
    if different and _close(np.sort(got.ravel()), np.sort(expected.ravel())):
        yield "The numbers are right, their places are not."
    if not wrong.all() or expected.size > 2:
        if not got[wrong].any() and not wrong.all():
            yield "There is a 0 where another number is asked for; the other numbers are right."
        if not expected[wrong].any():
            yield "There is a number where 0 is asked for; the other numbers are right."
    yield from _cut_off(got, expected, wrong)
    yield from _along(got, expected)
    if wrong.all() or expected.size < 3:
        return
    if expected.ndim == 1:
        yield from _series((~wrong).tolist())
    line = wrong.reshape(len(wrong), -1).any(1)
    name = "number" if expected.ndim == 1 else "row"
    if len(line) > 2 and line.sum() == 1 and (line[0] or line[-1]):
        yield f"Only the {'first' if line[0] else 'last'} {name} is wrong."
    elif len(line) > 2 and line.sum() == len(line) - 1 and not (line[0] and line[-1]):
        yield f"Only the {'last' if line[0] else 'first'} {name} is right."
    if expected.ndim > 1 and expected.shape[-1] == expected.shape[-2] > 1:
        size = expected.shape[-1]
        above, below = np.triu(np.ones((size, size), bool), 1), np.tri(size, k=-1, dtype=bool)
        for where, place in (("on", ~(above | below)), ("above", above), ("below", below)):
            if not wrong[..., ~place].any():
                yield f"Only what stands {where} the diagonal is wrong."


def _cut_off(got: Array, expected: Array, wrong: Array) -> Iterator[str]:
    limits = got[wrong]
    if np.ptp(limits) > 1e-9 or np.ptp(expected[wrong]) < 1e-6 or wrong.all():
        return
    if (expected[wrong] > limits).all() and (expected[~wrong] <= limits[0] + 1e-6).all():
        yield "Large numbers are cut off."
    if (expected[wrong] < limits).all() and (expected[~wrong] >= limits[0] - 1e-6).all():
        yield "Small numbers are cut off."


def _along(got: Array, expected: Array) -> Iterator[str]:
    """A factor, or a number too much, that is the same along one dimension and not along another."""
    if expected.ndim < 2:
        return
    with np.errstate(all="ignore"):
        ratio = np.where(expected == 0, np.nan, got / expected)
    for n in range(expected.ndim):
        if expected.shape[n] < 2 or expected.size == expected.shape[n]:
            continue
        name = ("column", "row")[n] if expected.ndim == 2 else "line"
        step = got - expected
        if _steady(ratio, n) and _close(got, expected * np.nanmean(ratio, n, keepdims=True)):
            if not _close(np.nan_to_num(ratio), np.nan_to_num(ratio).flat[0]):
                yield f"Each {name} is wrong by a factor of its own."
        elif _steady(step, n) and not _close(step, step.flat[0]):
            yield f"Each {name} is wrong by a number of its own, which was added."


def _steady(values: Array, n: int) -> bool:
    """Whether the values along a dimension are one number, and known everywhere."""
    if np.isnan(values).any():
        return False
    return bool((np.ptp(values, axis=n) <= 1e-4 * (1 + abs(values).max())).all())


# -- other values ---------------------------------------------------------------------------------


def _dtypes(got: Any, expected: Any) -> Iterator[str]:
    ours, theirs = _family(got), _family(expected)
    if ours == theirs:
        way = "many" if got.itemsize > expected.itemsize else "few"
        if got.itemsize != expected.itemsize:
            yield f"It is the right kind of dtype, with too {way} bits."
    else:
        yield f"It is {ours} dtype where {theirs} one is asked for."


def _family(dtype: Any) -> str:
    if dtype.is_complex:
        return "a complex"
    if dtype.is_floating_point:
        return "a floating-point"
    return "the boolean" if str(dtype).endswith("bool") else "an integer"


def _dtype(value: Any) -> Any:
    """A dtype of the framework, given as itself or by its name; None for anything else."""
    import toytorch as torch

    if isinstance(value, str):
        value = getattr(torch, value.removeprefix("torch."), None)
    return value if isinstance(value, torch.dtype) else None


def _texts(got: str, expected: str) -> Iterator[str]:
    if "".join(got.split()) == "".join(expected.split()):
        yield "The text is right but for its spaces."
    elif got.lower() == expected.lower():
        yield "The text is right but for small and capital letters."
    elif got and expected.startswith(got):
        yield "The text ends too early."
    elif expected and got.startswith(expected):
        yield "The text goes on too long."


def _entries(got: Iterable[Any], expected: Iterable[Any]) -> Iterator[str]:
    mine, theirs = set(got), set(expected)
    if mine < theirs:
        yield "There is something missing; what is there is asked for."
    elif mine > theirs:
        yield "There is more than is asked for; nothing is missing."


def _sequences(got: list[Any], expected: list[Any]) -> Iterator[str]:
    mine, theirs = _table(got), _table(expected)
    if len(got) == len(expected) + 1:
        if same(got[:-1], expected, 1e-5):
            yield "There is one too many, at the end."
        elif same(got[1:], expected, 1e-5):
            yield "There is one too many, at the beginning."
    elif len(got) + 1 == len(expected):
        if same(got, expected[:-1], 1e-5):
            yield "The last one is missing."
        elif same(got, expected[1:], 1e-5):
            yield "The first one is missing."
    elif len(got) == len(expected) > 1:
        if same(got[::-1], expected, 1e-5):
            yield "The order is reversed."
        elif Counter(map(repr, got)) == Counter(map(repr, expected)):
            yield "The parts are right, their order is not."
    if got and len(got) < len(expected) and same(got, expected[: len(got)], 1e-5):
        yield "It ends too early; what is there is right."
    elif len(got) > len(expected) > 0 and same(got[: len(expected)], expected, 1e-5):
        yield "It goes on too long; it begins right."
    if len(got) != len(expected):
        counts, wanted = Counter(map(repr, got)), Counter(map(repr, expected))
        if set(counts) == set(wanted) and all(counts[x] >= wanted[x] for x in wanted):
            yield "Some of it comes more than once."
        elif counts < wanted:
            yield "There is something missing; what is there is asked for."
        elif counts > wanted:
            yield "There is more than is asked for; nothing is missing."
        yield f"There are too {'many' if len(got) > len(expected) else 'few'} elements."
    if mine is not None and theirs is not None:
        yield from _tables(mine, theirs)


# -- helpers --------------------------------------------------------------------------------------


def _table(value: Any) -> Array | None:
    """A tensor, or regular lists of numbers, as an array of floats; None for anything else."""
    given = value
    if is_tensor(value):
        value = value.tolist()
    flat = [*_leaves(value)]
    if not (is_tensor(given) or all(map(is_number, flat))):
        return None
    try:
        made = np.array(value, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return made if made.size == len(flat) else None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _fits(got: Array, expected: Array) -> bool:
    return got.shape == expected.shape and _close(got, expected)


def _close(got: Any, expected: Any) -> bool:
    return bool(np.allclose(got, expected, rtol=CLOSE, atol=1e-6, equal_nan=True))


def is_tensor(value: Any) -> bool:
    """A tensor of the framework, or a NumPy array."""
    return all(hasattr(value, name) for name in ("dtype", "shape", "tolist", "ndim"))


def is_number(value: Any) -> bool:
    """An integer or a float; a bool is neither."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def kind(value: Any) -> str:
    """What sort of value it is, with its article."""
    name = type(value).__name__
    return "`None`" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
