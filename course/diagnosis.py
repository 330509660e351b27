"""What kind of mistake it is, where no known misconception matches: one sentence, or none.

Each failing case is looked at on its own: what is asked for and what came, side by side, have
symptoms. A sentence is said only if it is true of *every* failing case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from course.cases import UNKNOWN, Case, same


def symptoms(case: Case, got: Any, printed: bool) -> tuple[str, ...]:
    """What is certainly true of a wrong result, the most telling first."""
    if case.says:
        return (case.says,)
    if case.wants_error:
        return ("Your code gives an answer where an error is asked for.",)
    if got is None and case.expected is not None:
        # a case may look at the answer in its own way, so that None is not the answer itself
        if case.expected is UNKNOWN or not case.args:
            return ()
        return (_PRINTS if printed else _NO_RETURN,)
    if case.expected is UNKNOWN:
        return ()
    return tuple(dict.fromkeys(_compared(got, case.expected)))


_NO_RETURN = "`None` came back: a `return` is missing, or not reached."
_PRINTS = "The answer is printed, not returned: end with `return`."


def symptoms_of_error(case: Case, error: BaseException, where: str) -> tuple[str, ...]:
    """What is certainly true of an error that nobody asked for."""
    text = str(error)
    if isinstance(error, TypeError) and not where and "argument" in text and "()" in text:
        return ("The parameters are not those of the stub: leave its first line as it was.",)
    if isinstance(error, NameError) and where:
        return ("A name is used that is not defined: is it spelled right, is its cell run?",)
    if case.wants_error:
        return ("An error is asked for, of another kind or with another message.",)
    if "does not require grad" in text:
        return ("The result is cut from the graph, so that no gradient finds its way back.",)
    return ()


def common(
    found: list[tuple[tuple[str, ...], tuple[Any, ...]]], fine: list[tuple[Any, ...]]
) -> str:
    """The first symptom that all failing cases share, or what their inputs share.

    Args:
        found: symptoms and inputs of every failing case.
        fine: the inputs of the cases that are right.
    """
    if not found:
        return ""
    first, *others = found
    for sentence in first[0]:
        if all(sentence in theirs for theirs, _ in others):
            return sentence
    inputs = [args for _, args in found]
    if all(inputs) and fine and all(fine):
        for test, sentence in _INPUTS:
            if all(test(args) for args in inputs) and not any(test(args) for args in fine):
                return sentence
    return ""


# -- a result and what was asked for --------------------------------------------------------------


def _compared(got: Any, expected: Any) -> Iterator[str]:
    if _is_tensor(expected) and _is_tensor(got):
        yield from _tensors(got, expected)
    elif _is_tensor(expected) != _is_tensor(got):
        ours = "a tensor" if _is_tensor(expected) else _kind(expected)
        theirs = "a tensor" if _is_tensor(got) else _kind(got)
        yield f"It is {theirs} where {ours} is asked for."
    elif type(got) is not type(expected) and not (_is_number(got) and _is_number(expected)):
        right = isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple))
        same_numbers = right and same(list(got), list(expected))
        what = "What it holds is right, but it" if same_numbers else "It"
        yield f"{what} is {_kind(got)} where {_kind(expected)} is asked for."
    elif isinstance(expected, (list, tuple)):
        yield from _sequences(list(got), list(expected))
        yield from _numbers(got, expected)
    elif isinstance(expected, bool) or isinstance(got, bool):
        if not (isinstance(got, bool) and isinstance(expected, bool)):
            yield f"It is {_kind(got)} where {_kind(expected)} is asked for."
    elif type(got) is not type(expected) and got == expected:
        yield f"The number is right, but it is {_kind(got)} where {_kind(expected)} is asked for."
    else:
        yield from _numbers(got, expected)


def _tensors(got: Any, expected: Any) -> Iterator[str]:
    mine, theirs = got.tolist(), expected.tolist()
    shapes = tuple(got.shape), tuple(expected.shape)
    if shapes[0] == shapes[1] and got.dtype != expected.dtype and _alike(mine, theirs):
        yield "The numbers and the shape are right, the dtype is not."
    if shapes[0] != shapes[1]:
        if shapes[0] == shapes[1][::-1] and same(
            got.permute(*_backwards(got)).tolist(), theirs, 1e-4
        ):
            yield "The result is transposed: rows stand where columns are asked for."
        elif _flat(mine) and _alike(_flat(mine), _flat(theirs)):
            yield "The numbers are right, the shape is not."
        yield "The shape is not the one asked for."
        return
    if got.ndim == 2 and len(set(shapes[0])) == 1 and same(got.t().tolist(), theirs, 1e-4):
        yield "The result is transposed: rows stand where columns are asked for."
    yield from _numbers(mine, theirs)


def _sequences(got: list[Any], expected: list[Any]) -> Iterator[str]:
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
        elif sorted(map(repr, got)) == sorted(map(repr, expected)):
            yield "The parts are right, their order is not."


def _numbers(got: Any, expected: Any) -> Iterator[str]:
    """What is true of all numbers at once. Few numbers prove nothing: two different are needed."""
    mine, theirs = _flat(got), _flat(expected)
    if not theirs or len(mine) != len(theirs) or not all(map(_is_number, [*mine, *theirs])):
        return
    if any(map(math.isnan, mine)) and not any(map(math.isnan, theirs)):
        yield "There is a NaN where a number is asked for."
        return
    if not all(map(math.isfinite, [*mine, *theirs])):
        return
    nonzero = {round(abs(x), 9) for x in theirs} - {0.0}
    if nonzero and _alike([-x for x in mine], theirs):
        yield "The sign is wrong."
    if len(nonzero) > 1:
        if any(x < 0 for x in theirs) and _alike(mine, [abs(x) for x in theirs]):
            yield "The signs are lost: every number came out positive."
        where = max(range(len(theirs)), key=lambda n: abs(theirs[n]))
        factor = mine[where] / theirs[where]
        if abs(factor) > 1e-9 and abs(factor) != 1 and _alike(mine, [factor * x for x in theirs]):
            yield f"Every number is {factor:.4g} times what it should be."
    if not any(mine) and len(theirs) > 1:
        yield "Every number is 0."
    if len(set(theirs)) > 1 or not isinstance(theirs[0], float):
        step = mine[0] - theirs[0]
        if abs(step) == 1 and _alike(mine, [x + step for x in theirs]):
            yield f"It is off by one: {'one too many' if step > 0 else 'one too few'}."


def _alike(got: Any, expected: Any) -> bool:
    mine, theirs = _flat(got), _flat(expected)
    if len(mine) != len(theirs) or not all(isinstance(x, (int, float)) for x in [*mine, *theirs]):
        return False
    return all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6)
        for a, b in zip(map(float, mine), map(float, theirs), strict=True)
        if not (math.isnan(a) and math.isnan(b))
    )


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in _flat(item)]
    return value.tolist() if _is_tensor(value) and value.ndim == 0 else [value]


def _backwards(tensor: Any) -> list[int]:
    return list(reversed(range(tensor.ndim)))


def _is_tensor(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("dtype", "shape", "tolist", "ndim"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "`None`" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# -- what inputs share ----------------------------------------------------------------------------


def _empty(value: Any) -> bool:
    if _is_tensor(value):
        return 0 in tuple(value.shape)
    return isinstance(value, (list, tuple, dict, str)) and len(value) == 0


def _lopsided(value: Any) -> bool:
    """A matrix that is not its own transposed."""
    if not _is_tensor(value) or value.ndim != 2:
        return False
    return tuple(value.shape) != tuple(value.shape)[::-1] or value.t().tolist() != value.tolist()


def _oblong(value: Any) -> bool:
    return _is_tensor(value) and value.ndim == 2 and value.shape[0] != value.shape[1]


_INPUTS = (
    (lambda args: any(map(_empty, args)), "It goes wrong for empty input only."),
    (lambda args: any(map(_oblong, args)), "It is right for square matrices only."),
    (lambda args: any(map(_lopsided, args)), "It is right for symmetric matrices only."),
)
