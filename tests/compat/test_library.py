"""Operators of one's own are what they are in PyTorch: results, graphs, gradients, errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, differences, told

count = itertools.count()


def fresh() -> str:
    """A namespace that nobody has used."""
    return f"own{next(count)}"


def _plain(t: Any) -> Any:
    def twice(x: Any, k: float = 2.0) -> Any:
        return x.detach() * k

    twice.__annotations__ = {"x": t.Tensor, "k": float, "return": t.Tensor}
    return t.library.custom_op(f"{fresh()}::twice", twice, mutates_args=())


def _derived(t: Any) -> Any:
    op = _plain(t)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, g: Any) -> Any:
        assert ctx.needs_input_grad == (True, False)
        return g * ctx.k + 0 * ctx.saved_tensors[0], None

    op.register_autograd(backward, setup_context=setup)
    return op


def _called(t: Any) -> Any:
    op = _plain(t)
    return op(t.ones(2)), op(t.ones(2), 3.0), op(x=t.ones(2), k=1.0), op._qualname.split("::")[1]


def _gradient(t: Any) -> Any:
    op, x = _derived(t), t.ones(2, requires_grad=True)
    y = op(x, 5.0)
    y.sum().backward()
    return y.requires_grad, "GeneratedBackwardFor" in y.grad_fn.name(), x.grad


def _no_backward(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    y = _plain(t)(x)
    kind, error = type(attempt(y.sum().backward)[1]).__name__, attempt(y.sum().backward)[1]
    return y.requires_grad, kind, "no autograd formula was registered" in str(error)


def _lists(t: Any) -> Any:
    def summed(xs: Any, scale: int) -> Any:
        return sum(x.detach() for x in xs) * scale

    summed.__annotations__ = {"xs": list[t.Tensor], "scale": int, "return": t.Tensor}
    op = t.library.custom_op(f"{fresh()}::summed", summed, mutates_args=())
    op.register_autograd(
        lambda ctx, g: ([g * ctx.scale] * ctx.count, None),
        setup_context=lambda ctx, inputs, output: ctx.__dict__.update(
            count=len(inputs[0]), scale=inputs[1]
        ),
    )
    a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    op([a, b], 3).sum().backward()
    return a.grad, b.grad


def _two_results(t: Any) -> Any:
    def both(x: Any) -> Any:
        return x.detach() + 1, x.detach() * 2

    both.__annotations__ = {"x": t.Tensor, "return": tuple[t.Tensor, t.Tensor]}
    op = t.library.custom_op(f"{fresh()}::both", both, mutates_args=())
    op.register_autograd(lambda ctx, g, h: g + 2 * h)
    x = t.ones(3, requires_grad=True)
    a, b = op(x)
    (a * 3 + b).sum().backward()
    return a.detach(), b.detach(), x.grad


def _writes(t: Any) -> Any:
    def add_one(x: Any) -> None:
        x.add_(1)

    add_one.__annotations__ = {"x": t.Tensor, "return": None}
    op = t.library.custom_op(f"{fresh()}::add_one", add_one, mutates_args={"x"})
    x = t.zeros(2)
    return op(x), x


def _alias(t: Any) -> Any:
    def same(x: Any) -> Any:
        return x

    same.__annotations__ = {"x": t.Tensor, "return": t.Tensor}
    op = t.library.custom_op(f"{fresh()}::same", same, mutates_args=())
    error = attempt(op, t.ones(2))[1]
    return type(error).__name__, "must not also be an input" in str(error)


def _older(t: Any) -> Any:
    name = fresh()
    library = t.library.Library(name, "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    t.library.define(f"{name}::plus", "(Tensor x, int n=3) -> Tensor")

    @t.library.impl(f"{name}::plus", "cpu")
    def plus(x: Any, n: int = 3) -> Any:
        return x + n

    ops = getattr(t.ops, name)
    return ops.twice(t.ones(2)), ops.plus(t.ones(2)), ops.plus.default(t.ones(2), n=1), library


def _refused(t: Any) -> Any:
    op, found = _plain(t), []
    for call in (lambda: op("a"), lambda: op(t.ones(1), 1.0, 2), op, lambda: op(t.ones(1), z=1)):
        error = attempt(call)[1]
        found.append((type(error).__name__, str(error).split("\n")[0].split(" ", 1)[1][:30]))
    return found


def _no_annotation(t: Any) -> Any:
    error = attempt(t.library.custom_op, f"{fresh()}::f", lambda x: x, mutates_args=())[1]
    return type(error).__name__, str(error)[:40]


def _no_namespace(t: Any) -> Any:
    error = attempt(t.library.custom_op, "f", lambda x: x, mutates_args=())[1]
    return type(error).__name__, str(error)[:60]


def _schemas(t: Any) -> Any:
    def f(x: Any, n: Any, k: Any = 2.0, *, flag: Any = True, s: Any = "a") -> Any: ...

    found = []
    for n, returned in (
        (int, t.Tensor), (list[int], tuple[t.Tensor, int]), (int | None, None), (t.dtype, float),
        (t.Tensor | None, list[t.Tensor]), (t.device, bool), (int | float | bool, t.Tensor),
    ):  # fmt: skip
        f.__annotations__ = {
            "x": t.Tensor, "n": n, "k": float, "flag": bool, "s": str, "return": returned
        }  # fmt: skip
        found.append(t.library.infer_schema(f, mutates_args={"x"}))
    return found


def _without_data(t: Any) -> Any:
    """On tensors without data the function that was registered for them is called, or nothing."""
    op, x = _plain(t), t.ones(2, device="meta")
    refused = attempt(op, x)[1]
    op.register_fake(lambda x, k=2.0: x.new_empty(7))
    lib = t.library.Library(fresh(), "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    own = getattr(t.ops, lib.ns).f
    again = attempt(own, x)[1]
    lib.impl("f", lambda x: x.new_empty(5), "Meta")
    return type(refused).__name__, tuple(op(x).shape), type(again).__name__, tuple(own(x).shape)


def _triton(t: Any) -> Any:
    def twice(x: Any, n: int) -> Any:
        return x * n

    twice.__annotations__ = {"x": t.Tensor, "n": int, "return": t.Tensor}
    op = t.library.triton_op(f"{fresh()}::twice", mutates_args=())(twice)
    return op(t.ones(2), 3), tuple(op(t.ones(2, device="meta"), 3).shape)


CASES: dict[str, Any] = {
    "without data": _without_data, "triton": _triton,
    "called": _called, "gradient": _gradient, "no backward": _no_backward, "lists": _lists,
    "two results": _two_results, "writes": _writes, "alias": _alias, "older form": _older,
    "refused": _refused, "no annotation": _no_annotation, "no namespace": _no_namespace,
    "schemas": _schemas,
}  # fmt: skip


@pytest.mark.parametrize("label", CASES)
def test_operators_of_ones_own(label: str) -> None:
    def run(side: Side) -> Any:
        got, error = attempt(CASES[label], side.root)
        assert error is None, told(error)
        return got[:-1] if label == "older form" else got  # PyTorch's library ends its operators

    want, got = run(ORACLE), run(SUBJECT)
    assert differences(want, got) == []
