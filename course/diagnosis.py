"""What kind of mistake it is, where no known misconception matches: one sentence, or none.

Each failing case is looked at on its own: what is asked for and what came, side by side, have
symptoms (:mod:`course.symptoms`), and so has an error. What is said is true of every failing case,
or says of how many it is true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from course.cases import UNKNOWN, Case
from course.symptoms import Weak, is_number, is_tensor
from course.symptoms import symptoms as of_values


class Told(str):
    """A sentence that the case's author wrote: what a failure of this very case shows."""


@dataclass(frozen=True)
class Failure:
    """A failing case: its symptoms, its input, and the input as a text."""

    symptoms: tuple[str, ...]
    args: tuple[Any, ...]
    given: str


def symptoms(case: Case, got: Any, printed: bool) -> tuple[str, ...]:
    """What is certainly true of a wrong result, the most telling first."""
    if case.says:
        return (Told(case.says), *_found(case, got, printed))
    return _found(case, got, printed)


def _found(case: Case, got: Any, printed: bool) -> tuple[str, ...]:
    if case.wants_error:
        return ("Your code gives an answer where an error is asked for.",)
    if got is None and case.expected is not None:
        # a case may look at the answer in its own way, so that None is not the answer itself
        if case.expected is UNKNOWN or not case.args:
            return ()
        return (_PRINTS if printed else _NO_RETURN,)
    if case.expected is UNKNOWN:
        return ()
    return (*of_values(got, case.expected), *_itself(case, got))


_NO_RETURN = "`None` came back: a `return` is missing, or not reached."
_PRINTS = "The answer is printed, not returned: end with `return`."


def _itself(case: Case, got: Any) -> Iterator[str]:
    if any(got is arg for arg in case.args) and not isinstance(got, (int, float, str, bool)):
        yield "What comes back is the argument itself."


# -- errors ---------------------------------------------------------------------------------------


def symptoms_of_error(case: Case, error: BaseException, where: str) -> tuple[str, ...]:
    """What is certainly true of an error that nobody asked for."""
    told = (Told(case.says),) if case.says else ()
    if case.wants_error:
        return (*told, *(_OTHER,) * _raised_by(where), *_of_kind(error, where), _OTHER)
    return (*told, *_of_kind(error, where), *(() if where else (_ELSEWHERE,)))


_ELSEWHERE = (
    "The error comes up outside of this definition: in what it calls, or where its result is used."
)
_OTHER = "An error is asked for, of another kind or with another message."

# What the message of an error says of the mistake. The first that fits is meant.
_MESSAGES: tuple[tuple[type[BaseException], str, str], ...] = (
    (RuntimeError, "does not require grad",
     "The result is cut from the graph, so that no gradient finds its way back."),
    (RuntimeError, "modified by an inplace operation",
     "Something that the backward pass needs was changed in place."),
    (UnboundLocalError, "", "A variable is used on a way through the code that never sets it."),
    (NameError, "", "A name is used that is not defined: is it spelled right, is its cell run?"),
    (Exception, "values to unpack",
     "Something is taken apart into another number of names than it has parts."),
    (Exception, r"broadcast|size of tensor|core dimension|shape-mismatch|shapes?\b.*(aligned|multiplied|match)",
     "The shapes of two operands do not fit together."),
    (Exception, r"cannot reshape|invalid for input of size",
     "The new shape has another number of elements."),
    (Exception, r"only 0-dim|only length-1|one element|only one number|truth value of an array|more than one value",
     "There are several numbers where a single one is needed."),
    (Exception, "NoneType", "Something is `None` where the code needs a value."),
    (RecursionError, "", "The calls go too deep: a function calls itself without end, or once for each link."),
    (ZeroDivisionError, "", "Something is divided by 0."),
    (KeyError, "", "A key is looked up that is not there."),
    (IndexError, "out of (range|bounds)", "An index lies outside of what it is used on."),
)  # fmt: skip


def _of_kind(error: BaseException, where: str) -> Iterator[str]:
    text = str(error)
    if isinstance(error, TypeError) and not where and "argument" in text and "()" in text:
        yield "The parameters are not those of the stub: leave its first line as it was."
    elif _raised_by(where):
        yield "Your code refuses an input with an error of its own."
    else:
        for kind, pattern, sentence in _MESSAGES:
            if isinstance(error, kind) and re.search(pattern, text):
                yield sentence
                return
        if isinstance(error, (AttributeError, TypeError)) and where:
            yield "Your code uses something as if it were of another kind than it is."
        elif isinstance(error, (ValueError, RuntimeError)) and where:
            yield "Something that your code calls refuses what it is given."


def _raised_by(where: str) -> bool:
    """Whether a line is a ``raise`` of the submission's own."""
    # A stub raises it: that is no refusal of the learner's.
    return bool(re.match(r"line \d+: raise\b", where)) and "NotImplementedError" not in where


# -- all cases together ---------------------------------------------------------------------------


def common(found: list[Failure], fine: list[tuple[Any, ...]]) -> str:
    """The most telling sentence that is true of all failing cases, or of most, or of their inputs.

    Args:
        found: the failing cases, the one that is shown first.
        fine: the inputs of the cases that are right, as far as they are known.
    """
    if not found:
        return ""
    counts = {one: _cases(one, found) for failure in found for one in failure.symptoms}
    for sentence in found[0].symptoms:
        if counts[sentence] == len(found) and _proven(sentence, found):
            return str(sentence)
    said = _of_inputs([failure.args for failure in found], fine)
    if said:
        return said
    most = max(counts, key=lambda one: counts[one], default="")
    if 2 * counts.get(most, 0) > len(found) and _proven(most, found):
        return f"In {counts[most]} of the {len(found)} cases that fail: {most}"
    return next((str(one) for one in found[0].symptoms if isinstance(one, Told)), "")


def _cases(sentence: str, found: list[Failure]) -> int:
    return sum(sentence in failure.symptoms for failure in found)


def _proven(sentence: str, found: list[Failure]) -> bool:
    """Whether enough cases show it: for what a single one does not prove, two different ones."""
    own = [(f.given, one) for f in found for one in f.symptoms if one == sentence]
    if any(not isinstance(one, Weak) for _, one in own):
        return True
    return len({given for given, _ in own}) > 1


def _of_inputs(inputs: list[tuple[Any, ...]], fine: list[tuple[Any, ...]]) -> str:
    """What all inputs that fail have, and none of those that are known to be right."""
    known = [args for args in fine if args]
    if not all(inputs) or not known:
        return ""
    for test, sentence in _INPUTS:
        if all(map(_safely(test), inputs)) and not any(map(_safely(test), known)):
            return sentence
    if len(known) < 5:  # the others are no news where little else was tried
        return ""
    for test, name in _FEATURES:
        if all(map(_safely(test), inputs)) and not any(map(_safely(test), known)):
            return f"Of all inputs tried, only those with {name} go wrong."
    return ""


Test = Callable[[tuple[Any, ...]], bool]


def _safely(test: Test) -> Test:
    def tested(args: tuple[Any, ...]) -> bool:
        try:
            return bool(test(args))
        except Exception:  # an input that cannot be looked at has no features
            return False

    return tested


# -- what inputs share ----------------------------------------------------------------------------


def _empty(value: Any) -> bool:
    if is_tensor(value):
        return 0 in tuple(value.shape)
    return isinstance(value, (list, tuple, dict, str)) and len(value) == 0


def _lopsided(value: Any) -> bool:
    """A matrix that is not its own transposed."""
    if not is_tensor(value) or value.ndim != 2:
        return False
    return tuple(value.shape) != tuple(value.shape)[::-1] or value.t().tolist() != value.tolist()


def _oblong(value: Any) -> bool:
    return is_tensor(value) and value.ndim == 2 and value.shape[0] != value.shape[1]


_INPUTS: tuple[tuple[Test, str], ...] = (
    (lambda args: any(map(_empty, args)), "It goes wrong for empty input only."),
    (lambda args: any(map(_oblong, args)), "It is right for square matrices only."),
    (lambda args: any(map(_lopsided, args)), "It is right for symmetric matrices only."),
)


def _inside(value: Any) -> Iterator[Any]:
    """A value and all parts of it; a tensor is one part."""
    yield value
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _inside(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _inside(item)


def _tensors(args: tuple[Any, ...]) -> list[Any]:
    return [part for part in _inside(args) if is_tensor(part)]


def _numbers(args: tuple[Any, ...]) -> Iterator[float]:
    for part in _inside(args):
        if is_number(part):
            yield part
        elif is_tensor(part):
            yield from (x for x in _inside(part.tolist()) if is_number(x))


def _plain_numbers(args: tuple[Any, ...]) -> list[float]:
    return [part for part in _inside(args) if is_number(part)]


def _sized(args: tuple[Any, ...], size: int) -> bool:
    return any(size in tuple(tensor.shape) for tensor in _tensors(args))


def _depth(value: Any) -> int:
    inside = [_depth(item) for item in value] if isinstance(value, (list, tuple)) else None
    return 0 if inside is None else 1 + max(inside, default=0)


_FEATURES: tuple[tuple[Test, str], ...] = (
    (lambda args: any(x < 0 for x in _numbers(args)), "a negative number"),
    (lambda args: 0 in _plain_numbers(args), "a 0"),
    (lambda args: any(x == 0 for x in _numbers(args)), "a 0 among the numbers"),
    (lambda args: 1 in _plain_numbers(args), "a 1"),
    (lambda args: any(math.isnan(x) for x in _numbers(args)), "a NaN"),
    (lambda args: any(math.isinf(x) for x in _numbers(args)), "an infinity"),
    (lambda args: any(abs(x) > 50 for x in _numbers(args)), "a large number"),
    (lambda args: any(0 < abs(x) < 0.01 for x in _numbers(args)), "a number close to 0"),
    (lambda args: any(x != int(x) for x in _plain_numbers(args)), "a fraction"),
    (lambda args: None in [p for p in _inside(args) if not is_tensor(p)], "a `None`"),
    (lambda args: any(isinstance(p, bool) for p in _inside(args)), "a bool"),
    (lambda args: any(isinstance(p, str) for p in _inside(args)), "a text"),
    (lambda args: any(isinstance(p, tuple) for p in _inside(list(args))), "a tuple"),
    (lambda args: any(isinstance(p, list) for p in _inside(args)), "a list"),
    (lambda args: any(isinstance(p, dict) for p in _inside(args)), "a dictionary"),
    (lambda args: any(isinstance(p, complex) for p in _inside(args)), "a complex number"),
    (lambda args: any(t.ndim == 0 for t in _tensors(args)), "a tensor of no dimension"),
    (lambda args: _sized(args, 1), "a size of 1"),
    (lambda args: any(t.ndim > 2 for t in _tensors(args)), "three dimensions or more"),
    (lambda args: any(t.ndim == 1 for t in _tensors(args)), "one dimension"),
    (lambda args: any(not t.is_contiguous() for t in _tensors(args)), "a tensor with strides"),
    (lambda args: any(t.requires_grad for t in _tensors(args)), "a tensor that wants a gradient"),
    (lambda args: any("int" in str(t.dtype) for t in _tensors(args)), "a tensor of integers"),
    (lambda args: any("float64" in str(t.dtype) for t in _tensors(args)), "a float64 tensor"),
    (lambda args: any("float16" in str(t.dtype) for t in _tensors(args)), "a float of 16 bits"),
    (lambda args: len(args) > 1, "more than one argument"),
    (lambda args: len(args) > 2, "more than two arguments"),
    (lambda args: len(args) == 1, "one argument alone"),
    (lambda args: max(map(_depth, args)) > 1, "lists or tuples inside of others"),
    (lambda args: any(isinstance(p, (list, tuple)) and len(p) > 3 for p in args), "more than three entries"),
    (lambda args: any(isinstance(p, (list, tuple)) and len(p) == 1 for p in args), "a single entry"),
)  # fmt: skip
