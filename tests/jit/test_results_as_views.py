"""Results of compiled functions that are views, have no elements, or are used only in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt


def forms(f: Any, *examples: Any) -> list[Any]:
    return [tt.compile(f), tt.jit.trace(f, examples, check_trace=False)]


def first_part(x: Any) -> Any:
    return x.chunk(2, -1)[0]


def transposed(x: Any) -> Any:
    return x[1:2].t()


def base_and_views(x: Any) -> Any:
    y = x * 2
    return y, y[0], y[1:].mT


@pytest.mark.parametrize("f", [first_part, transposed, base_and_views])
def test_views_have_a_history(f: Any) -> None:
    def seen(T: Any, g: Any) -> Any:
        x = T.arange(6.0).reshape(2, 3).requires_grad_()
        g(x)
        made = g(x)
        results = made if isinstance(made, tuple) else (made,)
        facts = [(r._is_view(), r.is_leaf, r.requires_grad) for r in results]
        _, failed = attempt(lambda T: results[-1].sub_(1), T)
        sum((r * r).sum() for r in results).backward()
        return facts, type(failed), str(failed), [r.tolist() for r in results], x.grad.tolist()

    want = seen(torch, f)
    for g in forms(f, tt.arange(6.0).reshape(2, 3).requires_grad_()):
        assert seen(tt, g) == want


def test_what_detach_gives_is_no_view() -> None:
    x = tt.ones(2)
    for g in forms(lambda x: x.detach(), x):
        g(x)
        assert g(x)._base is None and g(x).data_ptr() == x.data_ptr()


@pytest.mark.filterwarnings("ignore")
def test_results_without_elements_lie_somewhere() -> None:
    def f(x: Any) -> Any:
        return x.T, x.swapaxes(-1, 0) * 1, x[:, 1:], x + 1

    for shape in ((2, 0), (0, 3), (1, 0, 2)):
        want = [r.stride() for r in f(torch.zeros(shape))]
        for g in forms(f, tt.zeros(shape)):
            g(tt.zeros(shape))
            assert [r.stride() for r in g(tt.zeros(shape))] == want


def test_gradients_that_never_came_are_nothing() -> None:
    def f(x: Any) -> Any:
        y = x.ravel()
        z = (y * 3).log()
        return z, (y * y).sum(), y.sin() * z

    start = [1.0, 0.0, float("inf")]
    for k in range(3):
        x = torch.tensor(start, requires_grad=True)
        f(x)[k].sum().backward()
        for g in forms(f, tt.tensor(start, requires_grad=True)):
            y = tt.tensor(start, requires_grad=True)
            g(y)
            g(y)[k].sum().backward()
            np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-6)


def test_gradients_that_come_together_cannot_be_told_apart() -> None:
    def f(x: Any) -> Any:
        a, b = (x * 2).split(2)
        return a, b.exp()

    for g in forms(f, tt.ones(4, requires_grad=True)):
        x = tt.ones(4, requires_grad=True)
        g(x)
        g(x)[0].sum().backward()
        assert x.grad.tolist() == [2, 2, 0, 0]


@pytest.mark.filterwarnings("ignore")
def test_an_input_given_twice_is_differentiated_once() -> None:
    def f(a: Any, b: Any) -> Any:
        return a * b

    for g in forms(f, tt.ones(2), tt.ones(2)):
        x = tt.tensor([1.0, 2.0], requires_grad=True)
        tt.autograd.backward(g(x, x), tt.ones(2), create_graph=True)
        assert x.grad.tolist() == [2, 4]
        y = tt.tensor([1.0, 2.0], requires_grad=True)
        v = y[...]
        (d,) = tt.autograd.grad(g(y, v).sum(), y, create_graph=True)
        assert d.tolist() == [2, 4]


def test_masks_of_no_dimensions_are_asked_at_each_call() -> None:
    def f(x: Any, y: Any) -> Any:
        y[y > 0] = x
        return y

    for g in forms(f, tt.tensor(-3), tt.tensor(1)):
        for start in (3, -1, 2):
            y = tt.tensor(start)
            g(tt.tensor(-3), y)
            assert y.item() == (-3 if start > 0 else start)


@pytest.mark.filterwarnings("ignore")
def test_out_of_another_size_is_seen_in_its_memory() -> None:
    def f(T: Any, x: Any, y: Any) -> Any:
        return T.less_equal(x[-2, 0], -1.5, out=y.chunk(2, -1)[0])

    def g(T: Any, x: Any, y: Any) -> Any:
        return T.fft.fft(x, out=y[1:]).real

    want = torch.tensor([[1, 1], [0, 5], [4, 2]])
    f(torch, want.clone(), want)
    for h in forms(lambda x, y: f(tt, x, y), tt.zeros(3, 2).long(), tt.zeros(3, 2).long()):
        y = tt.tensor([[1, 1], [0, 5], [4, 2]])
        h(y.clone(), y)
        assert y.tolist() == want.tolist()
    seen = torch.zeros(4, dtype=torch.complex64)
    g(torch, torch.ones(2), seen)
    for h in forms(lambda x, y: g(tt, x, y), tt.ones(2), tt.zeros(4, dtype=tt.complex64)):
        z = tt.zeros(4, dtype=tt.complex64)
        h(tt.ones(2), z)
        assert z.tolist() == seen.tolist()


def test_leaves_are_written_to_by_what_has_no_derivative() -> None:
    def f(x: Any) -> Any:
        return tt.not_equal(x, 0.5, out=x) + 1

    for g in forms(f, tt.ones(2, requires_grad=True)):
        x = tt.tensor([0.5, 2.0], requires_grad=True)
        assert g(x).tolist() == [1, 2] and x.tolist() == [0, 1] and x.is_leaf


def test_each_write_counts() -> None:
    def f(x: Any) -> Any:
        x.sigmoid_()
        x *= x
        return x + 1

    for g in forms(f, tt.ones(2)):
        g(tt.ones(2))
        x = tt.ones(2)
        g(x)
        assert x._version == 2


def test_complex_infinities_spread() -> None:
    z = [[complex(float("nan"), 3)], [2j], [complex(1, float("inf"))]]
    want = (torch.tensor(z) - torch.tensor(z)).numpy()
    for g in forms(lambda x: x - x, tt.tensor(z)):
        g(tt.tensor(z))
        np.testing.assert_array_equal(g(tt.tensor(z)).numpy(), want)


def test_memory_of_numpy_is_made_anew() -> None:
    f = tt.compile(lambda x: tt.from_numpy(np.arange(4.0))[:2])
    made = [f(tt.ones(1)) for _ in range(3)]
    assert made[1].add_(1).tolist() == [1, 2] and made[0].tolist() == made[2].tolist() == [0, 1]


def test_views_beyond_what_an_input_shows() -> None:
    g = tt.compile(lambda x: x.as_strided((2, 3), (0, 1), 1))
    x = tt.arange(6.0)
    for _ in range(3):
        assert g(x[1:3].unsqueeze(0)).tolist() == [[1, 2, 3], [1, 2, 3]]


def test_a_view_of_a_leaf_is_not_relaid() -> None:
    def f(x: Any) -> Any:
        y = x[1:, :-1]
        y.t_()
        return y

    with pytest.raises(RuntimeError, match="a view of a leaf"):
        tt.jit.trace(f, (tt.ones(2, 2, requires_grad=True),), check_trace=False)


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("kind", ["float32", "bool", "bfloat16"])
def test_strides_that_reach_beyond_the_input(kind: str) -> None:
    def run(T: Any) -> Any:
        def f(x: Any) -> Any:
            return x.as_strided((1, 2), (2, 1), 0)

        g = T.jit.trace(f, (T.ones(5, 6),))
        whole = T.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).to(getattr(T, kind))
        parts = [
            whole[2:],
            whole[:0],
            whole[:0].reshape(0, 3),
            whole[::3],
            whole[5],
            whole[4:].clone(),
        ]
        return [g(part).tolist() for part in parts for _ in range(3)]

    assert run(tt) == run(torch)
