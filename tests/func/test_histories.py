"""Which results of transforms have a history: what is around a transform decides, and batches too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.outside.alike import alike_rounded

F: dict[str, Any] = {
    "grad": lambda m, w, t: m.func.grad(lambda p: p.pow(3).sum())(w),
    "grad of grad": lambda m, w, t: m.func.grad(
        lambda p: m.func.grad(lambda q: q.pow(3).sum())(p).sum()
    )(w),
    "grad of jvp": lambda m, w, t: m.func.grad(
        lambda p: m.func.jvp(lambda q: q.pow(3).sum(), (p,), (t,))[1]
    )(w),
    "grad around no_grad": lambda m, w, t: m.func.grad(
        lambda p: (
            m.no_grad()(lambda: m.func.grad(lambda q: q.pow(3).sum())(p))().sum() + p.pow(2).sum()
        )
    )(w),
    "hessian": lambda m, w, t: m.func.hessian(lambda p: p.pow(3).sum())(w),
    "jacrev": lambda m, w, t: m.func.jacrev(lambda p: p.pow(3))(w),
    "jvp of grad": lambda m, w, t: m.func.jvp(
        m.func.grad(lambda p: p.pow(3).sum()), (w.detach(),), (t,)
    ),
    "vjp": lambda m, w, t: (lambda o, pull: (o, *pull(t)))(*m.func.vjp(lambda p: p.pow(3), w)),
    "vmap of grad": lambda m, w, t: m.vmap(m.func.grad(lambda p: p.pow(3)))(w),
    "vmap of grad of another": lambda m, w, t: m.vmap(
        lambda p: m.func.grad(lambda x: x * x * p)(m.tensor(2.0).to(w))
    )(w),
    "vmap of hessian": lambda m, w, t: m.vmap(m.func.hessian(lambda p: p.pow(4)))(w),
    "vmap of vjp": lambda m, w, t: m.vmap(lambda p, u: m.func.vjp(lambda q: q.pow(3), p)[1](u)[0])(
        w, t
    ),
    "vmap of vmap": lambda m, w, t: m.vmap(m.vmap(m.func.grad(lambda p: p.pow(3))))(w.view(1, 2)),
}


def network(m: Any, w: Any, t: Any) -> Any:
    """Hessian times vector of two layers, for every vector of a batch."""
    given = (w.view(2, 1), m.ones(2).to(w).requires_grad_(), t.view(1, 2))

    def loss(a: Any, b: Any, c: Any) -> Any:
        return (c @ (m.ones(3, 1).to(c) @ a.t() + b).tanh().t()).square().sum()

    def product(*v: Any) -> Any:
        return m.func.jvp(m.func.grad(loss, (0, 1, 2)), given, v)[1]

    return m.vmap(product)(*(m.stack([p.detach(), p.detach() * 2]) for p in given))


F["hessian of a network"] = network


def leaves(m: Any) -> tuple[Any, Any]:
    return tuple(m.tensor(v, requires_grad=True, dtype=m.float64) for v in ([1.0, 2.0], [3.0, 4.0]))


@pytest.mark.parametrize("name", F)
def test_histories(name: str) -> None:
    def wants(m: Any, mode: str) -> Any:
        with getattr(m, mode)():
            made = F[name](m, *leaves(m))
        return [x.requires_grad for x in (made if isinstance(made, tuple) else (made,))]

    for mode in ("enable_grad", "no_grad"):
        alike_rounded(lambda m, mode=mode: wants(m, mode))


@pytest.mark.parametrize("name", F)
def test_gradients_through_them(name: str) -> None:
    def gradients(m: Any) -> Any:
        w, t = leaves(m)
        made = F[name](m, w, t)
        sum(x.sum() for x in (made if isinstance(made, tuple) else (made,))).backward()
        return w.grad, t.grad

    alike_rounded(gradients)


def test_pulled_back_without_gradients() -> None:
    def pulled(m: Any) -> Any:
        w, t = leaves(m)
        _, pull = m.func.vjp(lambda p: p.pow(3), w)
        with m.no_grad():
            quiet = pull(t)[0].requires_grad
            value, later = m.func.vjp(lambda p: p.pow(3), w)
        return quiet, value.requires_grad, later(t)[0].requires_grad

    alike_rounded(pulled)
