"""Functions: what is refused, and what a second derivative through one gives."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import torch, tt

BOTH = pytest.mark.parametrize("m", [torch, tt], ids=["torch", "toytorch"])


def square(m: Any) -> Any:
    class Square(m.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @m.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return Square


@BOTH
def test_once_differentiable_refuses_a_second_time(m: Any) -> None:
    x = m.tensor([3.0], requires_grad=True)
    loss = (square(m).apply(x) ** 2).sum()
    (slope,) = m.autograd.grad(loss, x, create_graph=True)
    assert slope.tolist() == [108.0]
    assert slope.requires_grad
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked"):
        slope.sum().backward()


@BOTH
def test_once_differentiable_is_a_constant_where_its_gradient_is_one(m: Any) -> None:
    x = m.tensor([3.0], requires_grad=True)
    (slope,) = m.autograd.grad(square(m).apply(x).sum(), x, create_graph=True)
    assert slope.tolist() == [6.0]
    assert not slope.requires_grad
    square(m).apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]


@BOTH
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_a_function_is_applied_and_not_called(m: Any) -> None:
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        square(m)()(m.ones(1))


@BOTH
def test_what_forward_computed_and_kept_has_no_history(m: Any) -> None:
    """The second derivative takes it for a constant: a trap in PyTorch, and so here."""

    class Kept(m.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            s = x.sigmoid()
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, s = ctx.saved_tensors
            return grad * (s + x * s * (1 - s))

    x = m.tensor(3.0, requires_grad=True)
    (slope,) = m.autograd.grad(Kept.apply(x), x, create_graph=True)
    (bend,) = m.autograd.grad(slope, x)
    assert bend.item() == pytest.approx(0.0452, abs=1e-4)


def own_function(T: Any, outputs: int, kind: str) -> Any:
    """A Function of one to three results, which gives a view, its input, or writes to it."""

    class Id(T.autograd.Function):  # type: ignore[name-defined]  # the base is either package's
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            made = a if kind in ("same", "dirty") else a * 2 if kind == "other" else a.view_as(a)
            if kind == "dirty":
                a.add_(1)
            if kind in ("dirty", "other"):
                ctx.mark_dirty(made)
            return made if outputs == 1 else (made, a + 1, a.view_as(a))[:outputs]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    return Id


@pytest.mark.parametrize("how", ["clone", "leaf", "view", "plain"])
@pytest.mark.parametrize("kind", ["view", "same", "dirty", "other"])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_writes_to_results_of_functions(outputs: int, kind: str, how: str) -> None:
    """What is a view, whose history it is in, and what is refused, is as in PyTorch."""

    def answer(T: Any) -> list[Any]:
        a = T.ones(2, requires_grad=how != "plain")
        x = a if how in ("leaf", "plain") else a.clone() if how == "clone" else a.clone().view_as(a)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                made = own_function(T, outputs, kind).apply(x)
                o = made if outputs == 1 else made[0]
                node = str(o.grad_fn).split(" ")[0]
                found = [o is x, o.requires_grad, o._version, node, o._base is None]
                o.add_(T.ones(2, requires_grad=True))
                found.append(str(o.grad_fn).split(" ")[0])
                if how != "plain":
                    (o * T.tensor([1.0, 2.0])).sum().backward()
                    found.append(a.grad.tolist())
            except RuntimeError as error:
                found = [str(error)]
        return [*found, *(str(w.message).split(" (Triggered")[0] for w in seen)]

    assert answer(tt) == answer(torch)


def test_a_function_writes_to_a_view_beside_its_first_argument() -> None:
    """The base's history has the step; the view written to need not come first."""

    class Add(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.add_(3 * y)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad, grad

    def program(root: Any, b: Any) -> Any:
        x = root.clone()
        Add.apply(b, x.narrow(1, 2, 2).narrow(0, 1, 2))
        Add.apply(b, x.narrow(1, 0, 2).narrow(0, 1, 2))
        return x

    a, b = (tt.randn(n, n, dtype=tt.float64, requires_grad=True) for n in (4, 2))
    assert tt.autograd.gradcheck(program, (a, b))


def forward_programs(T: Any) -> dict[str, Any]:
    """Functions and their `jvp`, called with a dual number: (tangents, whether views of t)."""
    fwd = T.autograd.forward_ad

    def run(forward: Any, jvp: Any, through: Any = None, more: int = 0) -> Any:
        parts = {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}
        F = type("F", (T.autograd.Function,), parts)
        with fwd.dual_level():
            t = T.tensor([1.0, 1.0, 2.0])
            x = fwd.make_dual(T.tensor([1.0, 2.0, 3.0]), t)
            x = x if through is None else through(x)
            made = F.apply(x, *(T.ones(3) for _ in range(more)))
            found = []
            for o in made if isinstance(made, tuple) else (made,):
                u = fwd.unpack_dual(o).tangent
                found.append(None if u is None else (u.tolist(), u._base is t, o is x))
        return found

    def fixed(ctx: Any, x: Any) -> Any:
        made = x.clone()
        ctx.mark_non_differentiable(made)
        return made

    def dirty(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    def bare(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x + y

    def saving(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        return x * 2

    def saving_for_backward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def part(ctx: Any, x: Any) -> Any:
        return x.narrow(0, 0, 2)

    def same(ctx: Any, x: Any) -> Any:
        return x

    def elsewhere(ctx: Any, t: Any) -> Any:
        made = t.narrow(0, 0, 2).clone()
        return made.view_as(made)

    return {
        "too few": lambda: run(lambda ctx, x: (x * 2, x * 3), lambda ctx, t: t),
        "too many": lambda: run(lambda ctx, x: x * 2, lambda ctx, t: (t, t)),
        "shape": lambda: run(lambda ctx, x: x * 2, lambda ctx, t: t[:2]),
        "no tensor": lambda: run(lambda ctx, x: x * 2, lambda ctx, t: 3),
        "fixed": lambda: run(fixed, lambda ctx, t: t),
        "fixed, None": lambda: run(fixed, lambda ctx, t: None),
        "integers": lambda: run(lambda ctx, x: x.long(), lambda ctx, t: t),
        "dirty": lambda: run(dirty, lambda ctx, t: t.mul_(2)),
        "dirty, another": lambda: run(dirty, lambda ctx, t: t * 2),
        "dirty, None": lambda: run(dirty, lambda ctx, t: None),
        "same": lambda: run(same, lambda ctx, t: t),
        "same, a view": lambda: run(same, lambda ctx, t: t.view_as(t)),
        "view": lambda: run(part, lambda ctx, t: t.narrow(0, 0, 2)),
        "view, a copy": lambda: run(part, lambda ctx, t: t[:2].clone()),
        "view, of another": lambda: run(part, elsewhere),
        "view of a view": lambda: run(part, elsewhere, lambda x: x.view_as(x)),
        "zeros": lambda: run(lambda ctx, x, y: x + y, lambda ctx, t, u: t + u, more=1),
        "no zeros": lambda: run(bare, lambda ctx, t, u: t * 9 if u is None else t, more=1),
        "saved": lambda: run(saving, lambda ctx, t: t * ctx.saved_tensors[0]),
        "not saved": lambda: run(
            saving_for_backward, lambda ctx, t: t * (1 + len(ctx.saved_tensors))
        ),
        "without": lambda: run(lambda ctx, x: x * 2, T.autograd.Function.jvp),
    }


@pytest.mark.parametrize("name", forward_programs(tt))
def test_tangents_through_functions(name: str) -> None:
    found = []
    for T in (torch, tt):
        try:
            found.append(forward_programs(T)[name]())
        except (RuntimeError, NotImplementedError) as error:
            found.append(str(error))
    assert found[1] == found[0]


def test_vjp_is_backward_by_another_name() -> None:
    def answer(T: Any) -> list[Any]:
        class Twice(T.autograd.Function):  # type: ignore[name-defined]  # either package's
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.note = "left"
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def vjp(ctx: Any, g: Any) -> Any:
                return 2 * g

        class Both(Twice):
            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

        x = T.ones(2, requires_grad=True)
        y = Twice.apply(x)
        found = [y.grad_fn.note, [t.tolist() for t in y.grad_fn.saved_tensors]]
        y.sum().backward()
        found += [x.grad.tolist(), Twice.generate_vmap_rule]
        try:
            Both.apply(x).sum().backward()
        except RuntimeError as error:
            found.append(str(error))
        return found

    assert answer(tt) == answer(torch)


def test_a_result_given_twice_has_its_tangent_twice() -> None:
    for T in (torch, tt):
        x, t = T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0])
        moved = T.func.jvp(lambda x: (x, x * 2, x), (x,), (t,))[1]
        assert [m.tolist() for m in moved] == [[3, 4], [6, 8], [3, 4]]


def test_an_input_that_is_returned_is_saved_as_the_input() -> None:
    """`saved_tensors` has what came in, which requires a gradient, not the view that went out."""

    def answer(T: Any) -> list[Any]:
        found: list[Any] = []

        class Pass(T.autograd.Function):  # type: ignore[name-defined]  # either package's
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                ctx.save_for_backward(x, y)
                return x, y * 2

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                found.extend(t.requires_grad for t in ctx.saved_tensors)
                return g, 2 * h

        x, y = T.ones(2, requires_grad=True), T.ones(2)
        Pass.apply(x, y)[0].sum().backward()
        again = T.utils.checkpoint.checkpoint(lambda x: (x, 3), x, use_reentrant=True)
        again[0].sum().backward()
        return [*found, x.grad.tolist()]

    assert answer(tt) == answer(torch)
