"""Cases: one input each, what should come out, and what did.

yield call(f, [[1, 2], [3, 4]]).gives((2, 2))
yield call(f, [[1], [2, 3]]).raises(ValueError, "ragged")
yield case("the order of a * b + a", lambda: names(f(root))).gives(["Add", "Mul"])
yield case("a second run", lambda: f(x)).holds("the same object", lambda got: got is x)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LONGEST = 400
UNKNOWN: Any = object()


class Case:
    """An input with a way to run it, and what is expected of the result.

    Running a case and judging its result are apart: in marking they happen in two processes.
    """

    single = True  # whether it is its own only step

    def __init__(self, given: str, run: Callable[[], Any]) -> None:
        self.given = given
        self.run = run
        self.wanted = "no error"
        self._test: Callable[[Any], bool] = lambda got: True
        self._error: type[BaseException] | None = None
        self._mentions = ""
        self.args: tuple[Any, ...] = ()  # what was handed in, where a call is known
        self.expected: Any = UNKNOWN  # the value asked for, where one is known
        self.says = ""  # what a failure of this case means, in a sentence
        self._asks: Callable[[], None] | None = None

    def steps(self) -> Iterator[Case]:
        """What is run and judged one after the other, up to the first that fails."""
        yield self

    def gives(self, expected: Any, tolerance: float = 1e-6) -> Case:
        """Expect a value: numbers within ``tolerance``, tensors by shape, dtype and values."""
        self.wanted, self.expected = show(expected), expected
        self._test = lambda got: same(got, expected, tolerance)
        return self

    def as_by(self, reference: Callable[[], Any], tolerance: float = 1e-6) -> Case:
        """Expect what ``reference()`` gives, or the kind of error that it raises.

        It is asked when the case is judged, not before: where an answer runs, nobody knows it.
        """

        def ask() -> None:
            try:
                wanted = reference()
            except Exception as error:
                self.raises(type(error))
            else:
                self.gives(wanted, tolerance)

        self._asks = ask
        return self

    def settle(self) -> None:
        """Find out what is expected, where that is left to a reference."""
        if self._asks is not None:
            ask, self._asks = self._asks, None
            ask()

    def holds(self, wanted: str, test: Callable[[Any], bool]) -> Case:
        """Expect a property, said in words."""
        self.wanted = wanted
        self._test = test
        return self

    def raises(self, error: type[BaseException], mentions: str = "") -> Case:
        """Expect an error, whose message holds ``mentions``."""
        self.wanted = f"{error.__name__}" + (f" that mentions {mentions!r}" if mentions else "")
        self._error, self._mentions = error, mentions
        return self

    def means(self, sentence: str) -> Case:
        """Say what a failure of this case shows, for the panel."""
        self.says = sentence
        return self

    def accepts(self, got: Any) -> bool:
        """Whether a returned value is right."""
        return self._error is None and bool(self._test(got))

    def accepts_error(self, error: BaseException) -> bool:
        """Whether a raised error is the expected one.

        A stub's bare NotImplementedError is none, though it is a RuntimeError to Python.
        """
        if type(error) is NotImplementedError and not error.args:
            return self._error is NotImplementedError
        return (
            self._error is not None
            and isinstance(error, self._error)
            and self._mentions.lower() in str(error).lower()
        )

    @property
    def wants_error(self) -> bool:
        """Whether an error is asked for."""
        return self._error is not None

    def describe(self, got: Any) -> str:
        """``got`` in a line, with its type where the text alone would look right."""
        text = show(got)
        if text == self.wanted and not self.accepts(got):
            kind = getattr(got, "dtype", type(got).__name__)
            return f"{text}  ({kind})"
        return text


def call(function: Any, *args: Any, **kwargs: Any) -> Case:
    """A case that calls the submission; its input is shown as the call would be written."""
    given = [show(arg, 160) for arg in args]
    given += [f"{key}={show(value, 160)}" for key, value in kwargs.items()]
    name = getattr(function, "__name__", "f")
    one_line = re.sub(r"\s*\n\s*", " ", f"{name}({', '.join(given)})")
    made = Case(one_line, lambda: function(*args, **kwargs))
    made.args = args
    return made


def case(given: str, run: Callable[[], Any]) -> Case:
    """A case whose input is told in words and which runs any code."""
    return Case(given, run)


def show(value: Any, longest: int = _LONGEST) -> str:
    """A stable, bounded text for a value: no memory addresses, long things cut in the middle."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    text = _ADDRESS.sub("", repr(value))
    if len(text) > longest:
        half = (longest - 5) // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return text


def same(got: Any, expected: Any, tolerance: float = 1e-6) -> bool:
    """Whether two values agree in type, structure and (within a tolerance) numbers.

    >>> same((2, 3), [2, 3]), same(1, True), same([0.1 + 0.2], [0.3])
    (False, False, True)
    """
    if isinstance(expected, bool) or isinstance(got, bool):
        return isinstance(expected, bool) and isinstance(got, bool) and got == expected
    if expected is None or got is None:
        return expected is got
    if hasattr(expected, "dtype") and hasattr(expected, "tolist"):
        return _same_tensor(got, expected, tolerance)
    if isinstance(expected, float) and isinstance(got, (int, float)):
        return _close(got, expected, tolerance)
    if isinstance(expected, (list, tuple)):
        kind = list if isinstance(expected, list) else tuple
        return (
            isinstance(got, kind)
            and len(got) == len(expected)
            and all(same(g, e, tolerance) for g, e in zip(got, expected, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(same(got[key], expected[key], tolerance) for key in expected)
        )
    return type(got) is type(expected) and bool(got == expected)


def _close(got: float, expected: float, tolerance: float) -> bool:
    if math.isnan(expected):
        return math.isnan(got)
    return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance)


def _same_tensor(got: Any, expected: Any, tolerance: float) -> bool:
    if not (hasattr(got, "dtype") and hasattr(got, "tolist") and hasattr(got, "shape")):
        return False
    if tuple(got.shape) != tuple(expected.shape) or got.dtype != expected.dtype:
        return False
    return same(got.tolist(), expected.tolist(), tolerance)
