"""Hooks on saved tensors, anomaly detection and checkpoints."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import both, differences, torch, tt


def grads(m: Any, hooks: Any, seen: list[Any]) -> Any:
    x = m.from_numpy(np.arange(1.0, 4)).requires_grad_()
    w = m.from_numpy(np.arange(2.0, 5)).requires_grad_()
    with m.autograd.graph.saved_tensors_hooks(*hooks(m, seen)):
        y = (x * w).exp().sum() + x.tanh().prod()
    return m.autograd.grad(y, (x, w), retain_graph=True) + m.autograd.grad(y, (x, w))


def to_list(m: Any, seen: list[Any]) -> Any:
    def pack(t: Any) -> Any:
        seen.append(tuple(t.shape))
        return t.tolist()

    return pack, lambda v: m.tensor(v, dtype=m.float64)


def test_hooks_see_what_is_saved() -> None:
    theirs: list[Any] = []
    ours: list[Any] = []
    assert not differences(grads(torch, to_list, theirs), grads(tt, to_list, ours))
    assert sorted(theirs) == sorted(ours)


def test_hooks_on_functions_and_second_derivatives() -> None:
    def run(m: Any) -> Any:
        class Square(m.autograd.Function):  # type: ignore[misc]  # the module under test is Any
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return 2 * x * g

        x = m.tensor([1.0, 2.0], requires_grad=True)
        packed: list[Any] = []
        with m.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t) or len(packed) - 1, lambda i: packed[i]
        ):
            (g,) = m.autograd.grad((Square.apply(x) * x).sum(), x, create_graph=True)
        return [*m.autograd.grad(g.sum(), x), m.tensor(len(packed) > 0)]

    assert not differences(run(torch), run(tt))


def test_what_hooks_keep_may_be_written_to() -> None:
    x = tt.ones(2, requires_grad=True)
    with tt.autograd.graph.save_on_cpu():
        y = x * 1
        z = y * y
    with tt.no_grad():
        y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_hooks_refused() -> None:
    x = tt.ones(2, requires_grad=True)
    hooks = tt.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: None)
    with tt.autograd.graph.disable_saved_tensors_hooks("not here"), \
            pytest.raises(RuntimeError, match="not here"), hooks:  # fmt: skip
        raise AssertionError
    with hooks:
        y = (x * x).sum()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.backward()


def anomaly(m: Any) -> tuple[str, list[str]]:
    """(the error, the warnings) of a square root of -1."""
    x = m.tensor([-1.0, 4.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with m.autograd.detect_anomaly():
            y = (x.sqrt() * 2).sum()
            with pytest.raises(RuntimeError) as error:
                y.backward()
    return str(error.value), [str(w.message) for w in caught]


def test_anomaly() -> None:
    theirs, ours = anomaly(torch), anomaly(tt)
    assert theirs[0] == ours[0]
    trace = next(w for w in ours[1] if "Error detected in SqrtBackward0" in w)
    assert "y = (x.sqrt() * 2).sum()" in trace
    assert trace.count("File ") <= 4, "short enough to read"
    assert not any("toytorch/" in line for line in trace.splitlines()[1:])


def test_anomaly_ends() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tt.autograd.detect_anomaly(check_nan=False):
            assert tt.autograd.is_anomaly_enabled()
            x = tt.tensor(-1.0, requires_grad=True)
            x.sqrt().backward()
            assert np.isnan(x.grad.item())
    assert not tt.autograd.is_anomaly_enabled()
    with tt.autograd.set_detect_anomaly(True):
        assert tt.autograd.is_anomaly_enabled()
    assert not tt.autograd.is_anomaly_enabled()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant: bool) -> None:
    """Values, gradients and random numbers are those without a checkpoint; less is saved."""
    from toytorch.utils.checkpoint import checkpoint

    runs: list[int] = []
    w = tt.arange(1.0, 4, requires_grad=True)

    def f(x: Any) -> Any:
        runs.append(1)
        return tt.nn.functional.dropout((x * w).tanh(), 0.5).exp()

    results = []
    for call in (f, lambda x: checkpoint(f, x, use_reentrant=reentrant)):
        x = tt.ones(3, requires_grad=True)
        w.grad = None
        tt.manual_seed(0)
        y = call(x)
        after = tt.rand(1)
        (y * y).sum().backward()
        results.append((y.detach(), x.grad, w.grad.clone(), after))
    assert len(runs) == 3
    for a, b in zip(*results, strict=True):
        assert tt.equal(a, b)


def test_checkpoint_saves_memory() -> None:
    from toytorch.utils.checkpoint import checkpoint

    kept: list[Any] = []

    def f(x: Any) -> Any:
        for _ in range(5):
            x = x.exp().log()
        return x

    x = tt.rand(4, requires_grad=True)
    with tt.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = checkpoint(f, x, use_reentrant=False)
    assert [t is x for t in kept] == [True]
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1, rtol=1e-5)


def test_checkpoint_notices_another_result() -> None:
    from toytorch.utils.checkpoint import CheckpointError, checkpoint

    count = iter(range(10))

    def f(x: Any) -> Any:
        return x.exp().sin() if next(count) == 0 else x.exp()[:1].sin()

    y = checkpoint(f, tt.rand(4, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="metadata"):
        y.sum().backward()


def wrong(m: Any) -> Any:
    """A function whose backward is not its derivative."""

    class Wrong(m.autograd.Function):  # type: ignore[misc]  # the module under test is Any
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    return Wrong.apply


def test_gradcheck_shows_both_jacobians() -> None:
    both(lambda m: m.autograd.gradcheck(wrong(m), m.ones(2, dtype=m.float64, requires_grad=True)))


def test_gradcheck_finds_a_wrong_derivative() -> None:
    x = tt.rand(2, dtype=tt.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        tt.autograd.gradcheck(wrong(tt), x)
    assert not tt.autograd.gradcheck(wrong(tt), x, raise_exception=False)
    assert not tt.autograd.gradcheck(wrong(tt), x, raise_exception=False, fast_mode=True)
    assert tt.autograd.gradcheck(lambda t: t.exp(), x, check_batched_grad=True, fast_mode=True)
    with pytest.raises(ValueError, match="requires_grad=True"):
        tt.autograd.gradcheck(lambda t: t, x.detach())
