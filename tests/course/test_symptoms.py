"""What is said of a wrong value is true of it, and is not said of other mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from course.cases import Case, call
from course.judge import judge
from course.symptoms import Weak, symptoms
from tests.course.test_properties import exercise

T = torch.tensor
TABLE = [[1.0, 2.0, 4.0], [-3.0, 0.5, 7.0]]

# A value, what is asked for, and everything that is said of the two.
PAIRS: list[tuple[Any, Any, tuple[str, ...]]] = [
    # of one part
    (None, 3, ("There is `None` where something else is asked for.",)),
    (3, None, ("There is something where `None` is asked for.",)),
    (T(2.0), 2.0, ("It is a tensor where a float is asked for.",)),
    (np.float64(2.5), 2.0, ("It is a number of NumPy's where one of Python's is asked for.",)),
    ([1, 2], (1, 2), ("What it holds is right, but it is a list where a tuple is asked for.",)),
    ([1, 2], (1, 3), ("It is a list where a tuple is asked for.",)),
    ("a b", "ab", ("The text is right but for its spaces.",)),
    ("Ab", "ab", ("The text is right but for small and capital letters.",)),
    ("ab", "abc", ("The text ends too early.",)),
    ("abcd", "abc", ("The text goes on too long.",)),
    ({1}, {1, 2}, ("There is something missing; what is there is asked for.",)),
    ({1, 2, 3}, {1, 2}, ("There is more than is asked for; nothing is missing.",)),
    (True, False, ("It says yes where no is right.",)),
    (torch.int64, torch.float32, ("It is an integer dtype where a floating-point one is asked for.",)),
    ("float64", "float32", ("It is the right kind of dtype, with too many bits.",)),
    # of several parts
    (("a", 2), ("a", 3), ("It is off by one: one too few.",
                          "What is wrong is 0.6667 times what it should be.", "It is 1 too small.",
                          "Of the 2 parts asked for, only number 2 is wrong.")),
    (("b", "a"), ("a", "b"), ("The parts are right, but some have changed places.",)),
    ({"x": "p", "y": "q"}, {"x": "p", "y": "r"}, ("Of the entries asked for, only 'y' is wrong.",)),
    (["a", "y", "z"], ["a", "b", "c"],
     ("It begins right, and from one place on all of it is wrong.",)),
    ([0.5, "x"], [-0.5, "x"], ("The sign is wrong.",
                               "The signs are lost: every number came out positive.",
                               "It is 1 too large.",
                               "Of the 2 parts asked for, only number 1 is wrong.")),
    # numbers
    ([1.0, float("nan")], [1.0, 2.0], ("There is a NaN where a number is asked for.",)),
    ([1.0, float("inf")], [1.0, 2.0], ("There is an infinity where a finite number is asked for.",)),
    ([2.0000001, 3.00001], [2.0, 3.0], ("It is nearly right: digits are lost on the way.",)),
    ([0.0, 0.0, 0.0], [3.0, 2.0, 5.0], ("Every number is 0.",)),
    ([1.5, 3.0, 7.5], [1.0, 2.0, 5.0], ("What is wrong is 1.5 times what it should be.",)),
    ([2.0, 5.0, 7.0, -3.0], [1.2, 2.9, 4.3, -1.8], ()),
    ([3.0, 5.0, 9.0, -3.0], [1.0, 2.0, 4.0, -2.0],
     ("It is scaled and shifted: a multiple of what it should be, plus a constant.",)),
    ([4.0, 9.0, 2.25], [2.0, 3.0, 1.5], ("It is the square of what is asked for.",)),
    ([0.25, 0.5, 0.1], [4.0, 2.0, 10.0], ("It is one over what is asked for.",)),
    ([0.8, 0.3], [0.2, 0.7], ("It is 1 minus what is asked for.",)),
    ([1.0, 3.0], [1.25, 3.5], ("The part after the point is lost.",)),
    ([5.0, 2.0, 8.0], [2.0, 8.0, 5.0],
     ("The parts are right, their order is not.", "Everything stands one place too far.",
      "The numbers are right, their places are not.")),
    ([1.0, 2.0, 4.0, 4.0], [1.0, 2.0, 6.0, 9.0],
     ("Large numbers are cut off.", "It begins right, and from one place on all of it is wrong.")),
    ([1.0, 2.0, 3.0, 9.0], [1.0, 2.0, 3.0, 4.0], ("Only the last number is wrong.",)),
    ([1.0, 0.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0],
     ("There is a 0 where another number is asked for; the other numbers are right.",)),
    # shapes
    (T(TABLE).t(), T(TABLE),
     ("The result is transposed: rows stand where columns are asked for.",
      "The shape is not the one asked for.")),
    (T([2.5, 3.0]), T([[2.5, 3.0]]),
     ("The numbers are right, the shape is not.", "There is a dimension too few.",
      "The shape is not the one asked for.")),
    (T([7.0, 4.5]), T(TABLE),
     ("It is summed along one dimension too many.", "There is a dimension too few.",
      "The shape is not the one asked for.")),
    (T(TABLE), T([-2.0, 2.5, 11.0]),
     ("A sum along one dimension is missing.", "There is a dimension too many.",
      "The shape is not the one asked for.")),
    (T([1, 2]), T([1.0, 2.0]),
     ("The numbers and the shape are right, the dtype is not.", "The dtype is not the one asked for.")),
    ([1, 2, 3], [1, 2], ("There is one too many, at the end.",
                         "It goes on too long; it begins right.",
                         "There is more than is asked for; nothing is missing.",
                         "There are too many elements.")),
]  # fmt: skip


@pytest.mark.parametrize(("got", "expected", "said"), PAIRS, ids=lambda value: str(value)[:40])
def test_this_is_said_and_nothing_else(got: Any, expected: Any, said: tuple[str, ...]) -> None:
    assert symptoms(got, expected) == said


@pytest.mark.parametrize("expected", [pair[1] for pair in PAIRS], ids=lambda value: str(value)[:40])
def test_nothing_is_said_of_what_is_right(expected: Any) -> None:
    assert symptoms(expected, expected) == ()


# A mistake in an array of numbers, and the sentence that is meant for it.
MISTAKES: dict[str, Callable[[Any], Any]] = {
    "The sign is wrong.": lambda x: -x,
    "The signs are lost: every number came out positive.": abs,
    "What is wrong is 3 times what it should be.": lambda x: 3 * x,
    "It is 2.5 too large.": lambda x: x + 2.5,
    "It is off by one: one too few.": lambda x: x - 1,
    "It is scaled and shifted: a multiple of what it should be, plus a constant.": lambda x: (
        2 * x + 3
    ),
    "It is the exponential of what is asked for.": np.exp,
    "It is the square of what is asked for.": lambda x: x * x,
    "It is the same number everywhere.": lambda x: np.full_like(x, x.mean()),
    "Every number is 0.": np.zeros_like,
    "The part after the point is lost.": np.trunc,
    "A dimension is reversed.": lambda x: x[::-1],
    "Everything stands one place too far.": lambda x: np.roll(x, 1, 1),
    "Each row is wrong by a factor of its own.": lambda x: (
        x * np.array([[2.0], [3.0], [5.0], [7.0]])
    ),
    "Each column is wrong by a factor of its own.": lambda x: x * np.array([2.0, 3.0, 5.0, 7.0]),
    "Each row is wrong by a number of its own, which was added.": lambda x: x + x[:, :1] ** 2,
    "Each column is wrong by a number of its own, which was added.": lambda x: x + x[:1] ** 2,
    "The result is transposed: rows stand where columns are asked for.": lambda x: x.T,
    "Only what stands above the diagonal is wrong.": lambda x: x + np.triu(x * x, 1),
    "Only what stands on the diagonal is wrong.": lambda x: x + np.diag(np.diag(x) ** 2),
    "Only the last row is wrong.": lambda x: np.vstack([x[:-1], x[-1:] ** 2]),
    "Large numbers are cut off.": lambda x: np.minimum(x, np.sort(x.ravel())[9]),
    "Small numbers are cut off.": lambda x: np.maximum(x, np.sort(x.ravel())[6]),
}
# What is true of some of these tables as well.
TOO = {
    "Only the first row is right.",
    "Only the last row is right.",
    "The numbers are right, their places are not.",
    "There is a 0 where another number is asked for; the other numbers are right.",
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_a_sentence_is_for_its_own_mistake(sentence: str) -> None:
    """On random tables, each of these mistakes is called by its name, and by no other's."""
    draw = np.random.default_rng(3)
    for _ in range(20):
        right = draw.uniform(-4, 4, size=(4, 4))
        wrong = MISTAKES[sentence](right)
        found = symptoms(T(wrong.tolist()), T(right.tolist()))
        assert sentence in found
        assert set(found) - TOO <= {sentence}
        assert not any(isinstance(one, Weak) for one in found)


def test_nothing_is_said_of_numbers_that_have_nothing_to_do_with_each_other() -> None:
    draw = np.random.default_rng(4)
    for _ in range(300):
        shape = tuple(draw.integers(2, 5, size=draw.integers(1, 4)))
        one, two = draw.normal(size=(2, *shape))
        assert symptoms(T(one.tolist()), T(two.tolist())) == ()


def test_it_takes_two_to_prove_what_one_number_does_not() -> None:
    factor = "What is wrong is 2 times what it should be."
    (found,) = [one for one in symptoms(6.0, 3.0) if one == factor]
    assert isinstance(found, Weak)
    assert diagnosis(lambda x: 2.0 * x, lambda x: x, 3.0) == ""
    assert diagnosis(lambda x: 2.0 * x, lambda x: x, 3.0, 7.0) == factor


# -- all cases of an answer -----------------------------------------------------------------------


def diagnosis(wrong: Any, right: Any, *inputs: Any) -> str:
    def cases(f: Any) -> Iterator[Case]:
        for x in inputs:
            yield call(f, x).gives(right(x))

    verdict = judge(exercise(cases), wrong)
    assert verdict.state == "red"
    assert judge(exercise(cases), right).diagnosis == ""
    return verdict.diagnosis


def _own_error(x: Any) -> Any:
    if x > 2:
        raise ValueError("too large")
    return x


def _unset(x: Any) -> Any:
    if x > 100:
        found = x
    return found


def _same(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("wrong", "inputs", "words"),
    [
        (_own_error, (3, 4), "refuses an input with an error of its own"),
        (_unset, (3, 4), "that never sets it"),
        (lambda x: [1][x], (3, 4), "lies outside"),
        (lambda x: {}[x], (3, 4), "not there"),
        (lambda x: x / 0, (3, 4), "divided by 0"),
        (lambda x: None + x, (3, 4), "is `None` where"),
        (lambda x: x.shape, (3, 4), "of another kind than it is"),
        (lambda x: torch.ones(2) + torch.ones(3), (3, 4), "do not fit together"),
        (lambda x: torch.ones(4).reshape(3), (3, 4), "another number of elements"),
        (lambda x: int("x"), (3, 4), "refuses what it is given"),
        (lambda x: (lambda a, b: a)(*range(x)), (3, 4), "of another kind"),
        (lambda x: next(a for a, b in [(x, x, x)]), (3, 4), "taken apart"),
        (lambda x: bool(np.ones(2)), (3, 4), "a single one is needed"),
    ],
)
def test_an_error_is_said_in_words(wrong: Any, inputs: tuple[Any, ...], words: str) -> None:
    assert words in diagnosis(wrong, _same, *inputs)


def test_what_is_true_of_most_cases_is_said_with_their_number() -> None:
    def wrong(x: Any) -> Any:
        return -x if x != 9 else "nine"

    assert diagnosis(wrong, _same, 3, 5, 9) == "In 2 of the 3 cases that fail: The sign is wrong."
    assert diagnosis(wrong, _same, 3, 9) == ""


def test_what_the_inputs_have_in_common_is_said_where_all_others_are_right() -> None:
    def right(x: Any) -> Any:
        return [x, 0.3 * x]

    def wrong(x: Any) -> Any:
        return right(x) if x >= 0 else [0.37, 5.1]

    fine = [float(n) for n in range(6)]
    said = "Of all inputs tried, only those with a negative number go wrong."
    assert diagnosis(wrong, right, *fine, -2.0, -3.0) == said
    assert diagnosis(wrong, right, *fine[:3], -2.0, -3.0) == ""  # too little was tried
    assert diagnosis(lambda x: [0.37, 5.1], right, *fine[1:], -2.0, -3.0) == ""


def test_a_case_that_nobody_can_say_more_of_has_its_authors_sentence() -> None:
    def cases(f: Any) -> Iterator[Case]:
        yield call(f, 3.0).gives(3.0).means("The first one shows it.")
        yield call(f, 5.0).gives(5.0).means("The second one shows it.")

    assert judge(exercise(cases), lambda x: x * x + 0.7).diagnosis == "The first one shows it."
    assert judge(exercise(cases), lambda x: 2 * x).diagnosis.startswith("What is wrong is 2 times")


def test_what_never_ends_is_said() -> None:
    def cases(f: Any) -> Iterator[Case]:
        yield call(f).gives(3)

    def endless() -> None:
        while True:
            pass

    found = exercise(cases)
    found.limit = 0.2
    assert "does not come to its end" in judge(found, endless).diagnosis
