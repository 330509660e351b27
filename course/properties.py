"""Properties: statements that hold for every input, tried on random ones from a fixed seed.

    @strides.check("any shape")
    def _(f):
        yield agrees(f, strides.answer.value, lambda draw: (draw.shape(),))
        yield untouched(f, lambda draw: (draw.tensor(draw.shape()),))
        yield second_derivative(f, strides.answer.value, lambda draw: (draw.tensor((2, 3)),))
        yield restores(lambda: f(loss()))

Each is one ordinary :class:`~course.cases.Case`. It stops at the first input for which it fails,
and smaller inputs are tried first, so the panel shows a small one.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import toytorch as torch
from course.cases import Case, call, case, same, show

Inputs = Callable[["Draw"], tuple[Any, ...]]
COUNT = 40  # inputs a property is tried on


class Every(Case):
    """Many cases as one: they are its steps, up to the first that fails, and that one is shown."""

    single = False

    def __init__(self, given: str, cases: Callable[[], Iterable[Case]]) -> None:
        super().__init__(given, lambda: None)
        self.wanted = "the same for each"
        self._cases = cases

    def steps(self) -> Iterator[Case]:
        """The cases."""
        yield from self._cases()


# -- random inputs --------------------------------------------------------------------------------


class Draw(random.Random):
    """Random inputs. It has a state of its own: the framework's generator is left alone."""

    def shape(self, least: int = 0, most: int = 3, sizes: Sequence[int] = (1, 2, 3, 4)) -> Any:
        """A shape of ``least`` to ``most`` dimensions; put 0 among the sizes to get empty ones."""
        return tuple(self.choice(sizes) for _ in range(self.randint(least, most)))

    def number(self, low: float = -2.0, high: float = 2.0) -> float:
        """A float with one digit after the point, so that panels can be read."""
        return round(self.uniform(low, high), 1)

    def dtype(self, *names: str) -> Any:
        """One of these dtypes; without names, any that has numbers."""
        every = names or ("bool", "uint8", "int8", "int16", "int32", "int64", "float16",
                          "bfloat16", "float32", "float64")  # fmt: skip
        return getattr(torch, self.choice(every))

    def tensor(
        self,
        shape: Sequence[int],
        dtype: Any = None,
        *,
        low: float = -2.0,
        high: float = 2.0,
        layout: str = "any",
        requires_grad: bool = False,
    ) -> Any:
        """A tensor of that shape, at random in a new memory, transposed, with gaps or an offset.

        Args:
            shape: its shape.
            dtype: its dtype, float32 by default; integers count from ``low`` to ``high``.
            low: no number is less.
            high: no number is more.
            layout: ``"plain"``, ``"transposed"``, ``"gaps"``, ``"offset"`` or ``"any"`` of them.
            requires_grad: whether it is a leaf that wants a gradient.
        """
        dtype = dtype or torch.float32
        if dtype == torch.bool:
            numbers: list[Any] = [self.random() < 0.5 for _ in range(math.prod(shape))]
        elif dtype.is_floating_point or dtype.is_complex:
            numbers = [self.number(low, high) for _ in range(math.prod(shape))]
        else:
            low = max(low, 0) if dtype == torch.uint8 else low
            numbers = [self.randint(int(low), int(high)) for _ in range(math.prod(shape))]
        made = torch.tensor(numbers, dtype=dtype).reshape(tuple(shape))
        made = laid_out(made, self.choice(LAYOUTS) if layout == "any" else layout)
        return made.requires_grad_() if requires_grad else made

    def graph(self, leaves: int = 2, steps: int = 5) -> Program:
        """A random program on scalars or tensors of one shape, whose every result is used."""
        lines: list[tuple[str, str, tuple[int, ...]]] = []
        loose = list(range(leaves))
        for _ in range(steps):
            name = self.choice(list(_STEPS))
            count = _STEPS[name][0]
            known = leaves + len(lines)
            # one operand that nobody used yet, the other anything: shared results are the point
            chosen = [loose.pop(self.randrange(len(loose)))] if loose else []
            chosen += [self.randrange(known) for _ in range(count - len(chosen))]
            self.shuffle(chosen)
            lines.append((_NAMES[len(lines)], name, tuple(chosen)))
            loose = [*(n for n in loose if n not in chosen), known]
        while len(loose) > 1:
            one, two = loose.pop(0), loose.pop(0)
            loose.append(leaves + len(lines))
            lines.append((_NAMES[len(lines)], "add", (one, two)))
        return Program(leaves, tuple(lines))


LAYOUTS = ("plain", "transposed", "gaps", "offset")


def laid_out(tensor: Any, layout: str) -> Any:
    """The same numbers in another place of another memory; leaves of their own."""
    with torch.no_grad():
        if layout == "transposed" and tensor.ndim > 1:
            order = tuple(reversed(range(tensor.ndim)))
            return tensor.permute(order).contiguous().permute(order)
        if layout == "gaps" and tensor.ndim and tensor.numel():
            wide = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype)
            wide[..., ::2] = tensor
            return wide[..., ::2]
        if layout == "offset" and tensor.ndim and tensor.numel():
            long = torch.zeros((tensor.shape[0] + 1, *tensor.shape[1:]), dtype=tensor.dtype)
            long[1:] = tensor
            return long[1:]
        return tensor.clone()


# name: how many operands, what it computes, how it is written
_STEPS: dict[str, tuple[int, Callable[..., Any], str]] = {
    "add": (2, lambda a, b: a + b, "{} + {}"),
    "sub": (2, lambda a, b: a - b, "{} - {}"),
    "mul": (2, lambda a, b: a * b, "{} * {}"),
    "neg": (1, lambda a: -a, "-{}"),
    "sin": (1, lambda a: a.sin(), "{}.sin()"),
    "tanh": (1, lambda a: a.tanh(), "{}.tanh()"),
}
_NAMES = [*"abcdefghijklmnop", *(f"r{n}" for n in range(100))]


@dataclass(frozen=True)
class Program:
    """A straight line of operations on some leaves: :meth:`run` gives its last result."""

    leaves: int
    lines: tuple[tuple[str, str, tuple[int, ...]], ...]

    def names(self) -> list[str]:
        """What leaves and results are called in the text."""
        leaves = ["x", "y", "z", "w"][: self.leaves]
        return [*leaves, *(name for name, _, _ in self.lines)]

    def all(self, *leaves: Any) -> list[Any]:
        """Leaves and all results, in the order of :meth:`names`."""
        values = list(leaves)
        for _, step, operands in self.lines:
            values.append(_STEPS[step][1](*(values[n] for n in operands)))
        return values

    def run(self, *leaves: Any) -> Any:
        """The last result."""
        return self.all(*leaves)[-1]

    def __repr__(self) -> str:
        names = self.names()
        texts = [
            f"{name} = " + _STEPS[step][2].format(*(names[n] for n in operands))
            for name, step, operands in self.lines
        ]
        return "; ".join(texts)


def drawn(inputs: Inputs, count: int = COUNT, seed: int = 0) -> list[Callable[[], tuple[Any, ...]]]:
    """Ways to make ``count`` random inputs anew, the smallest first, none of them twice."""
    found: dict[str, tuple[int, Callable[[], tuple[Any, ...]]]] = {}
    for number in range(count):

        def make(number: int = number) -> tuple[Any, ...]:
            return inputs(Draw(f"{seed}-{number}"))

        made = make()
        found.setdefault(show(made, 10_000), (size(made), make))
    return [make for _, make in sorted(found.values(), key=lambda pair: pair[0])]


def size(value: Any) -> int:
    """How large an input is to somebody who has to read it."""
    if hasattr(value, "numel"):
        return 1 + int(value.numel()) + 2 * int(value.ndim) + 3 * (not value.is_contiguous())
    if isinstance(value, Program):
        return 3 * len(value.lines)
    if isinstance(value, dict):
        return 1 + sum(size(key) + size(item) for key, item in value.items())
    if isinstance(value, (list, tuple, set)):
        return 1 + sum(size(item) for item in value)
    if isinstance(value, str):
        return len(value)
    return 1


# -- properties -----------------------------------------------------------------------------------


def every(given: str, cases: Callable[[], Iterable[Case]]) -> Case:
    """Many cases as one: ``cases`` yields them, smallest first; the first failure is shown."""
    return Every(given, cases)


def agrees(
    f: Any,
    reference: Any,
    inputs: Inputs,
    *,
    count: int = COUNT,
    seed: int = 0,
    tolerance: float = 1e-5,
    tell: Callable[..., str] | None = None,
) -> Case:
    """The submission gives what the reference gives, or the same kind of error.

    Args:
        f: the submission.
        reference: a function that is right.
        inputs: ``draw -> arguments``, made anew for each of the two.
        count: how many inputs.
        seed: where the draws begin.
        tolerance: within which numbers agree.
        tell: how an input is written in the panel, if not as a call.
    """

    def cases() -> Iterator[Case]:
        for make in drawn(inputs, count, seed):
            args = make()
            one = call(f, *args) if tell is None else case(tell(*args), lambda a=args: f(*a))
            one.args = args
            yield one.as_by(lambda make=make: reference(*make()), tolerance)

    return Every(f"{count} random inputs, against the reference", cases)


def untouched(f: Any, inputs: Inputs, *, count: int = 10, seed: int = 0) -> Case:
    """The arguments are the same after the call as before."""

    def cases() -> Iterator[Case]:
        for make in drawn(inputs, count, seed):
            args = make()

            def run(args: tuple[Any, ...] = args) -> Any:
                f(*args)
                return _data(args)

            one = case(f"the input {show(args, 200)}, after the call", run).gives(_data(make()))
            yield one.means("Your code changes what it was handed. Work on a copy.")

    return Every(f"{count} inputs, after the call", cases)


def _data(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(arg for arg in args if not callable(arg) or hasattr(arg, "dtype"))


def restores(
    run: Callable[[], Any], given: str = "the settings of toytorch, after the call"
) -> Case:
    """The settings of the whole program are after ``run`` what they were before it.

    Whether gradients are recorded, the default dtype, the random numbers that come next, NumPy's
    handling of errors. Whatever ``run`` leaves behind is put back. An error in it is allowed.
    """
    return (
        case(given, lambda: _changed(run))
        .gives({})
        .means("Your code changes a setting of the whole program and leaves it changed.")
    )


def _changed(run: Callable[[], Any]) -> dict[str, str]:
    before, dice = settings(), torch.get_rng_state().clone()
    try:
        with contextlib.suppress(Exception):
            run()
        after = settings()
        if not torch.equal(dice, torch.get_rng_state()):
            after["the next random numbers"] = "others"
        return {
            k: f"{before.get(k, 'the same')} → {v}" for k, v in after.items() if v != before.get(k)
        }
    finally:
        put_back(before)
        torch.set_rng_state(dice)


def put_back(before: dict[str, str]) -> None:
    """Give the whole program the settings again that :func:`settings` found."""
    torch.set_grad_enabled(before["recording"] == "on")
    torch.set_default_dtype(getattr(torch, before["default dtype"].removeprefix("torch.")))


def settings() -> dict[str, str]:
    """The settings of the whole program that an answer might change, in words."""
    return {
        "recording": "on" if torch.is_grad_enabled() else "off",
        "default dtype": str(torch.get_default_dtype()),
        "NumPy's errors": str(sorted(np.geterr().items())),
    }


def keeps_modes(run: Callable[[Any], Any], make: Callable[[], Any]) -> Case:
    """Each part of a network trains (``.training``) after ``run`` as it did before.

    Args:
        run: takes the network.
        make: gives a network anew, some of its parts perhaps in evaluation mode.
    """

    def flags() -> dict[str, bool]:
        network = make()
        run(network)
        return _modes(network)

    said = case("`.training` of each part, after the call", flags).gives(_modes(make()))
    return said.means("Your code leaves the network in another mode than it found it in.")


def _modes(network: Any) -> dict[str, bool]:
    return {name or "(whole)": part.training for name, part in network.named_modules()}


def gradient(
    f: Any,
    reference: Any,
    inputs: Inputs,
    *,
    count: int = 10,
    seed: int = 0,
    tolerance: float = 1e-4,
) -> Case:
    """The gradients of a weighted sum of the results are those of the reference."""
    return _derivatives(f, reference, inputs, 1, count, seed, tolerance)


def second_derivative(
    f: Any,
    reference: Any,
    inputs: Inputs,
    *,
    count: int = 10,
    seed: int = 0,
    tolerance: float = 1e-4,
) -> Case:
    """The gradients of the gradients are right: nothing on the way was cut from the graph."""
    made = _derivatives(f, reference, inputs, 2, count, seed, tolerance)
    return made.means("The second derivative is wrong: something on the way leaves the graph.")


def _derivatives(
    f: Any, reference: Any, inputs: Inputs, order: int, count: int, seed: int, tolerance: float
) -> Case:
    what = "gradient" if order == 1 else "second derivative"

    def cases() -> Iterator[Case]:
        for make in drawn(inputs, count, seed):
            args = make()
            said = f"the {what} for the input {show(args, 200)}"
            one = case(said, lambda a=args: derivatives(f, a, order))
            yield one.as_by(lambda make=make: derivatives(reference, make(), order), tolerance)

    return Every(f"the {what} for {count} random inputs", cases)


def derivatives(f: Any, args: Sequence[Any], order: int = 1) -> list[Any]:
    """The gradients of a weighted sum of what ``f`` gives, or (order 2) those of these again.

    The weights are fixed and all different, so that a sum cannot hide a mistake. A zero stands
    where no path leads back.
    """
    leaves = [x for x in args if getattr(x, "requires_grad", False)]
    leaves = [x.detach().requires_grad_() for x in leaves]
    rest = iter(leaves)
    given = [next(rest) if getattr(x, "requires_grad", False) else x for x in args]
    value = _weighted(f(*given))
    for step in range(order):
        if not value.requires_grad:
            return [torch.zeros_like(x) for x in leaves]
        last = step == order - 1
        found = torch.autograd.grad(value, leaves, create_graph=not last, allow_unused=True)
        made = [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]
        value = made if last else _weighted(made)
    return list(value)


def _weighted(results: Any) -> Any:
    total: Any = torch.zeros((), dtype=torch.float64)
    place = itertools.count(1)
    for result in results if isinstance(results, (list, tuple)) else [results]:
        weights = [math.cos(next(place)) + 1.5 for _ in range(result.numel())]
        total = (
            total + (torch.tensor(weights, dtype=result.dtype).reshape(result.shape) * result).sum()
        )
    return total


def resumes(
    make: Callable[[], Any],
    advance: Callable[[Any], Any],
    *,
    steps: int = 3,
    given: str = "a second object that loads the state_dict of the first",
) -> Case:
    """What an object needs to go on is in its ``state_dict``.

    One object advances twice ``steps`` times. Another one is made anew half-way, loads the first
    one's state and goes on; both have to come out alike.

    Args:
        make: gives an object with ``state_dict`` and ``load_state_dict``.
        advance: one step of it; what it returns is compared.
        steps: how many before the state is taken, and again after.
        given: what the panel says.
    """

    def wanted() -> list[Any]:
        one = make()
        return [advance(one) for _ in range(2 * steps)][steps:]

    def resumed() -> list[Any]:
        one, other = make(), make()
        for _ in range(steps):
            advance(one)
        other.load_state_dict(one.state_dict())
        return [advance(other) for _ in range(steps)]

    def run() -> Any:
        return {"went on": wanted(), "loaded and went on": resumed()}

    def alike(got: Any) -> bool:
        return same(got["loaded and went on"], got["went on"], 1e-5)

    made = case(given, run).holds("goes on as the first one does", alike)
    return made.means("Something that your code needs to go on is not in its `state_dict`.")
