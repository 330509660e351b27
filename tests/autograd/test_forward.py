"""Forward mode against PyTorch's, alone, over reverse, under it, and through writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, differences, torch, tt


def fixed(m: Any, *shape: int, seed: int = 0) -> Any:
    return m.from_numpy(np.random.default_rng(seed + sum(shape)).standard_normal(shape))


def program(m: Any, x: Any, w: Any) -> Any:
    """Ops of every kind, and writes through views."""
    z = (x @ w).tanh().softmax(1).cumsum(0)[1:]
    a, _ = z.max(1)
    z = z.clone()
    z[0] = z[1] * 2
    z[:, 0].mul_(x[0, 0])
    y = m.zeros(2, 4, dtype=m.float64)
    y.t()[1].copy_(a * w[0, 0])
    return m.cat([z + y, a[:, None].expand(2, 4)], 1).sum(0).exp() * x.std()


def dual(m: Any, x: Any, t: Any) -> Any:
    return m.autograd.forward_ad.make_dual(x, t)


def tangent(m: Any, x: Any) -> Any:
    return m.autograd.forward_ad.unpack_dual(x).tangent


def forward(m: Any) -> Any:
    with m.autograd.forward_ad.dual_level():
        x = dual(m, fixed(m, 3, 3), fixed(m, 3, 3, seed=1))
        w = dual(m, fixed(m, 3, 4), fixed(m, 3, 4, seed=2))
        out = program(m, x, w)
        primal, moved = m.autograd.forward_ad.unpack_dual(out)
        return primal, moved


def forward_over_reverse(m: Any) -> Any:
    x = fixed(m, 3, 3).requires_grad_()
    with m.autograd.forward_ad.dual_level():
        d = dual(m, x, fixed(m, 3, 3, seed=1))
        (g,) = m.autograd.grad(program(m, d, fixed(m, 3, 4)).sum(), d, create_graph=True)
        return g, tangent(m, g)


def reverse_over_forward(m: Any) -> Any:
    x, t = fixed(m, 3, 3).requires_grad_(), fixed(m, 3, 3, seed=1).requires_grad_()
    with m.autograd.forward_ad.dual_level():
        d = dual(m, x, t)
        moved = tangent(m, d.sin().tanh().cumsum(0))  # more of it trips over PyTorch's own writes
        return m.autograd.grad(moved.sum(), (x, t))


def views(m: Any) -> Any:
    """A write through a view changes the tangents of the base and of other views."""
    with m.autograd.forward_ad.dual_level():
        base = fixed(m, 3, 3)
        part, other = base[1], base.t()
        part.copy_(dual(m, fixed(m, 3), fixed(m, 3, seed=4)))
        return [tangent(m, v) for v in (base, part)] + [tangent(m, other.t() * 1)]


def no_grad(m: Any) -> Any:
    with m.autograd.forward_ad.dual_level(), m.no_grad():
        return tangent(m, dual(m, fixed(m, 3), fixed(m, 3)) ** 2)


def detached(m: Any) -> Any:
    with m.autograd.forward_ad.dual_level():
        x = dual(m, fixed(m, 3), fixed(m, 3))
        return [tangent(m, v) for v in (x.detach(), x > 0, x.floor() * 0 + x, x.argmax())]


def complex_(m: Any) -> Any:
    with m.autograd.forward_ad.dual_level():
        z = m.complex(fixed(m, 3), fixed(m, 3, seed=1))
        d = dual(m, z, z.flip(0))
        return [tangent(m, v) for v in (d.abs(), d.exp() * d.conj(), d.angle(), d.real, d / d[0])]


@pytest.mark.parametrize("run", [forward, forward_over_reverse, reverse_over_forward,
                                 no_grad, detached, complex_])  # fmt: skip
def test_agrees(run: Any) -> None:
    assert not differences(run(torch), run(tt))


def test_views() -> None:
    """PyTorch keeps no tangent for views made before; ours follow the base's memory."""
    base, part = views(tt)[:2]
    want = views(torch)
    assert not differences(want[:2], [base, part])


def custom(m: Any) -> Any:
    class Cube(m.autograd.Function):  # type: ignore[misc]  # the module under test is Any
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = x
            return x**3

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return 3 * ctx.x**2 * t

    with m.autograd.forward_ad.dual_level():
        return tangent(m, Cube.apply(dual(m, fixed(m, 3), fixed(m, 3, seed=1))))


def test_function_with_jvp() -> None:
    assert not differences(custom(torch), custom(tt))


@pytest.mark.parametrize("wrong", [
    lambda m: dual(m, m.ones(2), m.ones(2)),
    lambda m: m.autograd.forward_ad.exit_dual_level(),
])  # fmt: skip
def test_refusals_outside(wrong: Any) -> None:
    with pytest.raises(RuntimeError):
        wrong(torch)
    with pytest.raises(RuntimeError):
        wrong(tt)


def test_refusals_inside() -> None:
    with tt.autograd.forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested"), tt.autograd.forward_ad.dual_level():
            raise AssertionError
        with pytest.raises(ValueError, match="floating point"):
            dual(tt, tt.ones(2, dtype=tt.int64), tt.ones(2))
        with pytest.raises(RuntimeError, match="size"):
            dual(tt, tt.ones(2), tt.ones(3))
        assert "tangent=" in repr(dual(tt, tt.ones(2), tt.ones(2)))
    assert ORACLE is not SUBJECT
