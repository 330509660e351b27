"""Properties, borrowed answers and diagnoses: what they catch, and what they must not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import toytorch as torch
from course import borrowed, properties, registry
from course.cases import Case, call, case
from course.judge import judge
from course.marking import supervisor
from course.marking.supervisor import Limits
from course.panel import html, text
from course.properties import Draw
from course.records import Check, Exercise


def exercise(checks: Callable[[Any], Iterator[Case]], *, without: tuple[str, ...] = ()) -> Exercise:
    found = Exercise("test.it", "It", 1, 5, "Do it.", without=without)
    found.checks.append(Check("it", checks))
    return found


def state(f: Any, *cases: Callable[[Any], Case]) -> str:
    return judge(exercise(lambda f: (make(f) for make in cases)), f).state


def square(x: Any) -> Any:
    return x * x


def vectors(draw: Draw) -> tuple[Any, ...]:
    return (draw.tensor((draw.randint(1, 4),), requires_grad=True),)


# -- properties -----------------------------------------------------------------------------------


def test_the_smallest_failing_input_is_shown() -> None:
    def wrong(shape: Any) -> Any:
        return len(shape) if sum(shape) < 9 else 0

    found = exercise(
        lambda f: iter([properties.agrees(f, len, lambda draw: (draw.shape(0, 4),), count=200)])
    )
    verdict = judge(found, wrong)
    assert verdict.failure is not None
    assert "(1, 4, 4)" not in verdict.failure.given
    numbers = [int(c) for c in verdict.failure.given if c.isdigit()]
    assert 9 <= sum(numbers) <= 16 and len(numbers) <= 4
    assert text(judge(found, wrong)) == text(judge(found, wrong))
    assert judge(found, len).state == "green"


def test_agrees_covers_values_dtypes_and_errors() -> None:
    def inputs(draw: Draw) -> tuple[Any, ...]:
        return (draw.tensor(draw.shape(), draw.dtype("float32", "int64", "bool")),)

    def reference(x: Any) -> Any:
        if x.dtype == torch.bool:
            raise TypeError("no masks")
        return x * 2

    def check(f: Any) -> Case:
        return properties.agrees(f, reference, inputs)

    assert state(reference, check) == "green"
    assert state(lambda x: x * 2, check) == "red"
    assert state(lambda x: reference(x).double(), check) == "red"


def test_untouched_notices_a_write() -> None:
    def check(f: Any) -> Case:
        return properties.untouched(f, lambda draw: (draw.tensor((3,)),))

    assert state(square, check) == "green"
    assert state(lambda x: x.mul_(x), check) == "red"


def test_second_derivative_notices_what_was_cut() -> None:
    def first(f: Any) -> Case:
        return properties.gradient(f, square, vectors)

    def second(f: Any) -> Case:
        return properties.second_derivative(f, square, vectors)

    def cut(x: Any) -> Any:
        return 2 * x * x.detach()

    assert state(square, first, second) == "green"
    assert state(lambda x: x * x.detach() * 2 - (x * 0), second) == "red"
    assert judge(exercise(lambda f: iter([first(f)])), cut).state == "green"
    assert judge(exercise(lambda f: iter([second(f)])), cut).state == "red"


def test_restores_notices_settings_and_puts_them_back() -> None:
    for change in (
        lambda: torch.set_grad_enabled(False),
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.rand(1),
    ):
        assert state(lambda: None, lambda f: properties.restores(f)) == "green"
        assert state(change, lambda f: properties.restores(f)) == "red"
        assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32


def test_keeps_modes_and_resumes() -> None:
    def network() -> Any:
        made = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        made[1].eval()
        return made

    assert state(lambda n: None, lambda f: properties.keeps_modes(f, network)) == "green"
    assert state(lambda n: n.train(), lambda f: properties.keeps_modes(f, network)) == "red"

    class Counter(torch.nn.Module):
        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept
            self.register_buffer("count", torch.zeros(()), persistent=kept)

        def step(self) -> float:
            self.count += 1
            return float(self.count)

    def check(f: Any) -> Case:
        return properties.resumes(f, lambda counter: counter.step())

    assert state(lambda: Counter(True), check) == "green"
    assert state(lambda: Counter(False), check) == "red"


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_use_every_result_and_can_be_read(seed: int) -> None:
    program = Draw(seed).graph(leaves=2, steps=6)
    used = {n for _, _, operands in program.lines for n in operands}
    assert used == set(range(2 + len(program.lines) - 1))
    space: dict[str, Any] = {"x": torch.tensor(0.5), "y": torch.tensor(-1.5)}
    exec("\n".join(repr(program).split("; ")), space)
    last = program.names()[-1]
    assert torch.equal(space[last], program.run(space["x"], space["y"]))


def test_layouts_hold_the_same_numbers_in_other_places() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for layout in properties.LAYOUTS:
        made = properties.laid_out(x, layout)
        assert torch.equal(made, x)
        assert (made.is_contiguous() and made.storage_offset() == 0) == (layout == "plain")


def test_a_property_is_quick_and_leaves_the_generator_alone() -> None:
    before, begun = torch.get_rng_state().clone(), time.process_time()
    found = exercise(lambda f: iter([properties.agrees(f, square, vectors, count=200)]))
    assert judge(found, square).state == "green"
    assert time.process_time() - begun < 1.5
    assert torch.equal(before, torch.get_rng_state())


# -- answers from the framework -------------------------------------------------------------------


def clipped(f: Any) -> Iterator[Case]:
    def run() -> Any:
        x = torch.tensor([3.0, 4.0], requires_grad=True)
        (x * 10).sum().backward()
        torch.nn.utils.clip_grad_norm_([x], 1.0)  # a check may
        return f([x], 1.0) is not None

    yield case("clip", run).gives(True)


_CLIP = ("torch.nn.utils.clip_grad_norm_",)


def _by_module(parameters: Any, limit: float) -> Any:
    return torch.nn.utils.clip_grad_norm_(parameters, limit)


def _by_import(parameters: Any, limit: float) -> Any:
    from toytorch.nn.utils.clip_grad import clip_grad_norm_

    return clip_grad_norm_(parameters, limit)


def _by_helper(parameters: Any, limit: float) -> Any:
    return _by_module(parameters, limit)


_kept = torch.nn.utils.clip_grad_norm_


def _by_name(parameters: Any, limit: float) -> Any:
    return _kept(parameters, limit)


@pytest.mark.parametrize("f", [_kept, _by_module, _by_import, _by_helper, _by_name])
def test_the_frameworks_own_answer_is_refused(f: Any) -> None:
    found = exercise(clipped, without=_CLIP)
    verdict = judge(found, f)
    assert verdict.state == "red"
    assert "torch.nn.utils.clip_grad_norm_" in text(verdict)
    assert "your own code" in html(verdict)
    assert torch.nn.utils.clip_grad_norm_ is _kept  # and nothing is left behind


def test_what_the_framework_calls_for_an_answer_is_no_borrowing() -> None:
    def own(parameters: Any, limit: float) -> Any:
        return torch.nn.utils.get_total_norm([p.grad for p in parameters])

    assert judge(exercise(clipped, without=_CLIP), own).state == "green"

    def layer(f: Any) -> Iterator[Case]:
        yield case("a layer", lambda: tuple(f(torch.ones(2, 3)).shape)).gives((2, 4))

    found = exercise(layer, without=("torch.nn.functional.linear",))
    assert judge(found, torch.nn.Linear(3, 4)).state == "green"
    assert judge(found, lambda x: torch.nn.functional.linear(x, torch.ones(4, 3))).state == "red"


def test_classes_derived_from_it_or_wrapped_around_it() -> None:
    def steps(kind: Any) -> Iterator[Case]:
        def run() -> Any:
            x = torch.tensor([1.0], requires_grad=True)
            optimizer = kind([x], lr=0.1)
            x.sum().backward()
            optimizer.step()
            torch.optim.SGD([x], lr=0.1).step()
            return x.detach()

        yield case("a step", run).holds("a tensor", lambda got: got.shape == (1,))

    class Derived(torch.optim.SGD):
        pass

    class Wrapped:
        def __init__(self, parameters: Any, lr: float) -> None:
            self.inner = torch.optim.SGD(parameters, lr=lr)

        def step(self) -> None:
            self.inner.step()

    class Own(torch.optim.Optimizer):
        def __init__(self, parameters: Any, lr: float) -> None:
            super().__init__(parameters, {"lr": lr})

        def step(self) -> None:  # type: ignore[override]
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p -= group["lr"] * p.grad

    found = exercise(steps, without=("torch.optim.SGD",))
    before = vars(torch.optim.SGD).copy()
    assert judge(found, torch.optim.SGD).state == "red"
    assert judge(found, Derived).state == "red"
    assert judge(found, Wrapped).state == "red"
    assert judge(found, Own).state == "green"
    assert vars(torch.optim.SGD).copy() == before


def test_every_name_that_an_exercise_forbids_exists() -> None:
    for found in registry.all_exercises().values():
        for name in found.without:
            assert callable(borrowed.resolve(name)), (found.name, name)


# -- diagnoses ------------------------------------------------------------------------------------


def said(wrong: Any, right: Any, *inputs: Any) -> str:
    def cases(f: Any) -> Iterator[Case]:
        for x in inputs:
            yield call(f, x).gives(right(x))

    verdict = judge(exercise(cases), wrong)
    assert verdict.state == "red"
    assert verdict.diagnosis in text(verdict)
    return verdict.diagnosis


def _forgets(x: Any) -> None:
    x * 2


def _prints(x: Any) -> None:
    print(x * 2)


T = torch.tensor
M = T([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("wrong", "right", "inputs", "words"),
    [
        (_forgets, lambda x: 2 * x, (3, 4), "`return` is missing"),
        (_prints, lambda x: 2 * x, (3, 4), "printed, not returned"),
        (lambda x: -2 * x, lambda x: 2 * x, (3, 4), "sign"),
        (lambda x: 6 * x, lambda x: 2 * x, (T([1.0, 2.0]),), "3 times"),
        (lambda x: x.t(), lambda x: x, (M,), "transposed"),
        (lambda x: x.t(), lambda x: x, (torch.arange(6.0).reshape(2, 3),), "transposed"),
        (lambda x: x.double(), lambda x: x, (M,), "the dtype is not"),
        (lambda x: x.reshape(4), lambda x: x, (M,), "the shape is not"),
        (lambda x: list(x), lambda x: x, ((1, 2), (3,)), "a list where a tuple"),
        (lambda x: x + 1, lambda x: x, (3, 9), "off by one"),
        (lambda x: x[:-1], lambda x: x, ([1, 2], [3, 4, 5]), "last one is missing"),
        (lambda x: x[::-1], lambda x: x, ([1, 2], [3, 4, 5]), "reversed"),
        (lambda x: x / 0 * 0, lambda x: x, (T([1.0, 2.0]),), "NaN"),
        (lambda x: abs(x), lambda x: x, (T([-1.0, 2.0]),), "signs are lost"),
        (lambda x: x.undefined, lambda x: x, (1, 2), "of another kind"),
        (lambda: 0, lambda x: x, (1, 2), "parameters"),
        (lambda x: [sum(x) / len(x)], lambda x: [sum(x) / max(len(x), 1)], ([1.0], []), "by 0"),
        (lambda x: [sum(x) if x else 9.0], lambda x: [sum(x)], ([1.0], []), "empty"),
        (lambda x: x @ x, lambda x: x @ x.t(), (M + M.t(), M), "symmetric"),
        (lambda x: 7, lambda x: x, (3, 1), ""),
    ],
)
def test_a_diagnosis_is_said_where_it_is_certain(
    wrong: Any, right: Any, inputs: tuple[Any, ...], words: str
) -> None:
    found = said(wrong, right, *inputs)
    assert words in found if words else found == ""


def test_a_diagnosis_has_to_hold_for_every_failure() -> None:
    def wrong(x: int) -> int:
        return -x if x < 5 else x + 7

    assert said(wrong, lambda x: x, 3, 9) == ""


def test_a_borrowed_answer_is_noticed_behind_the_barriers_of_marking() -> None:
    """Where no answer may look at frames, the checks still see who called what."""
    found = registry.exercise("ops.promote")
    source = (
        "import toytorch as torch\n"
        "def common_dtype(*operands):\n"
        "    if len(operands) == 1:\n"
        "        return torch.as_tensor(operands[0]).dtype\n"
        "    return torch.result_type(*operands[:2])\n"
    )
    result = supervisor.work(found, [["cell 1", source, [0, 1]]], Limits(20.0, 2048))
    assert result.wrong == ""
    assert [row[1] for row in result.outcomes] == ["borrowed"]
