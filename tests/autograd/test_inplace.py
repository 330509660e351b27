"""In-place writes and views: histories that are rebased, versions that are checked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, both, torch, tt

BOTH = pytest.mark.parametrize("m", [torch, tt], ids=["torch", "toytorch"])


def run(f: Any) -> Any:
    """A test of f(m, y, x): y = x * 1 is written to; gradients of x follow."""

    def whole(m: Any) -> Any:
        x = m.arange(1.0, 7.0, dtype=m.float64).reshape(2, 3).requires_grad_()
        y = x * 1
        out = f(m, y, x)
        out = y if out is None else out
        c = m.arange(out.numel(), dtype=m.float64).reshape(out.shape) + 1
        (g,) = m.autograd.grad((out * c).sum() + y.sum(), x)
        return y.detach(), out.detach(), g, y.grad_fn.name().split("::")[-1], y._version

    return whole


def row_scaled(m: Any, y: Any, x: Any) -> None:
    y[0].mul_(3)


def row_of_view(m: Any, y: Any, x: Any) -> None:
    y.t()[1].mul_(x.detach()[0, 0] * 2)


def base_written_after_view(m: Any, y: Any, x: Any) -> Any:
    v = y[1]
    y.mul_(2)
    return v * v


def view_written_then_read(m: Any, y: Any, x: Any) -> Any:
    v = y.view(-1)
    v[2:4].mul_(5)
    return v * y.reshape(-1)


def two_views(m: Any, y: Any, x: Any) -> Any:
    a, b = y[0], y[:, 1]
    a.mul_(2)
    b.add_(a[1].clone())
    return a * 1


def view_of_view(m: Any, y: Any, x: Any) -> Any:
    v = y.transpose(0, 1)
    w = v[1:]
    w.mul_(2)
    return v.clone()


def assigned_from_graph(m: Any, y: Any, x: Any) -> None:
    y[0] = x[1] * 2


def assigned_by_mask(m: Any, y: Any, x: Any) -> None:
    y[y > 3] = 0.5


def assigned_by_list(m: Any, y: Any, x: Any) -> None:
    y[[0, 1], [2, 0]] = x[0, :2] * 3


def copied_over(m: Any, y: Any, x: Any) -> None:
    y.copy_(x.flip(0) * 2)


def partly_copied(m: Any, y: Any, x: Any) -> None:
    y[:, :1].copy_(x[:, 1:2])


def zeroed(m: Any, y: Any, x: Any) -> None:
    y[1].zero_()


def filled_with_a_graph(m: Any, y: Any, x: Any) -> None:
    y[0].fill_(x[1, 1])


def augmented(m: Any, y: Any, x: Any) -> None:
    y += x * 2
    y *= 3
    y -= 1
    y /= 2


def chain_of_activations(m: Any, y: Any, x: Any) -> None:
    y.neg_().add_(1).mul_(0.5).tanh_()


def diagonal_written(m: Any, y: Any, x: Any) -> None:
    y.diagonal().mul_(4)


def as_strided_written(m: Any, y: Any, x: Any) -> None:
    y.as_strided((2, 2), (3, 1), 1).mul_(4)


def expanded_read(m: Any, y: Any, x: Any) -> Any:
    y[0].mul_(2)
    return y[:1].expand(3, 3)


def unsqueezed_in_place(m: Any, y: Any, x: Any) -> Any:
    v = y[0]
    v.unsqueeze_(0)
    v.mul_(2)
    return v * 1


def constant_becomes_part_of_the_graph(m: Any, y: Any, x: Any) -> Any:
    z = m.zeros(3, dtype=m.float64)
    v = z[:2]
    z.add_(y[0])
    assert z.requires_grad
    assert v.requires_grad
    return v * 2


def constant_base_of_a_written_view(m: Any, y: Any, x: Any) -> Any:
    z = m.zeros(3, 2, dtype=m.float64)
    z[1] = y[0, :2]
    z[2].add_(y[1, 1:])
    return z


def masked(m: Any, y: Any, x: Any) -> None:
    y.masked_fill_(x.detach() > 2, 7.0)


def index_added(m: Any, y: Any, x: Any) -> None:
    y.index_add_(0, m.tensor([1, 1]), x * 2)


def scattered(m: Any, y: Any, x: Any) -> None:
    y.scatter_add_(1, m.tensor([[0, 0, 1], [2, 2, 2]]), x * x)


def clamped(m: Any, y: Any, x: Any) -> None:
    y.clamp_(2, 5)


def under_no_grad(m: Any, y: Any, x: Any) -> None:
    with m.no_grad():
        y.mul_(10)


def detached_write_is_unseen(m: Any, y: Any, x: Any) -> Any:
    z = y + 0
    y.detach()[0] = 100.0
    return z


def saved_then_rewritten_elsewhere(m: Any, y: Any, x: Any) -> Any:
    z = y.clone()
    w = z * z
    y.mul_(0)
    return w


def add_needs_no_saved_values(m: Any, y: Any, x: Any) -> Any:
    z = y + 2
    y.add_(5)
    return z


def rows_one_by_one(m: Any, y: Any, x: Any) -> None:
    for i in range(2):
        for j in range(3):
            y[i, j] = y[i, j] * (i + j + 1)


CASES = [
    row_scaled, row_of_view, base_written_after_view, view_written_then_read, two_views,
    view_of_view,
    assigned_from_graph, assigned_by_mask, assigned_by_list, copied_over, partly_copied, zeroed,
    filled_with_a_graph,
    augmented, chain_of_activations, diagonal_written, as_strided_written, expanded_read,
    unsqueezed_in_place,
    constant_becomes_part_of_the_graph, constant_base_of_a_written_view, masked, index_added,
    scattered, clamped,
    under_no_grad, detached_write_is_unseen, saved_then_rewritten_elsewhere,
    add_needs_no_saved_values, rows_one_by_one,
]  # fmt: skip


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_inplace(f: Any) -> None:
    assert attempt(run(f), torch)[1] is None
    both(run(f))


def test_second_derivative_through_a_written_view() -> None:
    def f(m: Any) -> Any:
        x = m.tensor([1.0, 2.0, 3.0], dtype=m.float64, requires_grad=True)
        y = x * x
        y[1:].mul_(x[:2])
        (g,) = m.autograd.grad((y * y).sum(), x, create_graph=True)
        return g.detach(), m.autograd.grad(g.sum(), x)

    both(f)


@pytest.mark.parametrize("name", ["tanh_", "sigmoid_", "exp_", "sqrt_"])
def test_second_derivative_of_a_saved_result_of_a_view(name: str) -> None:
    def f(m: Any) -> Any:
        x = m.tensor([[0.3, 0.5], [0.7, 0.9]], dtype=m.float64, requires_grad=True)
        y = x * 1
        getattr(y.transpose(0, -1), name)()
        getattr(y.transpose(0, -1)[0], name)()
        (g,) = m.autograd.grad((y * y).sum(), x, create_graph=True)
        return g.detach(), m.autograd.grad((g * g).sum(), x)

    both(f)


@pytest.mark.parametrize("overwrite", ["copy_", "zero_", "fill_"])
def test_overwritten_values_still_check_their_history(overwrite: str) -> None:
    def f(m: Any, spoiled: bool = True) -> Any:
        x = m.ones(2, requires_grad=True)
        y = x * 1
        if spoiled:
            y.sigmoid_()  # saves its result, which the next line destroys
        arguments = {"copy_": (m.zeros(2),), "zero_": (), "fill_": (3.0,)}[overwrite]
        getattr(y, overwrite)(*arguments)
        y.sum().backward()
        return x.grad

    both(f)
    both(lambda m: f(m, spoiled=False))
    assert isinstance(attempt(f, tt)[1], RuntimeError)


@pytest.mark.parametrize("number", [True, False])
def test_power_saves_its_result_only_for_a_tensor_exponent(number: bool) -> None:
    def f(m: Any) -> Any:
        x = m.ones(2, requires_grad=True) * 2
        x.retain_grad()
        y = x ** (3.0 if number else m.full((2,), 3.0))
        y.detach().mul_(2)
        y.sum().backward()
        return x.grad

    both(f)
    assert (attempt(f, tt)[1] is None) == number


EXPANDED: list[Any] = [
    lambda m, x: x.zero_(),
    lambda m, x: x.fill_(2),
    lambda m, x: x.masked_fill_(m.tensor([True, False, True]), 2),
    lambda m, x: x.index_put_((m.tensor([0]),), m.tensor(5.0)),
    lambda m, x: x.index_fill_(0, m.tensor([0]), 3.0),
    lambda m, x: x.tril_(),
    lambda m, x: x.fill_(m.tensor(2.0)),
    lambda m, x: x.add_(1),
    lambda m, x: x.copy_(m.arange(3.0)),
]


@pytest.mark.filterwarnings("ignore:Use of:UserWarning")
@pytest.mark.parametrize("f", EXPANDED)
def test_writes_to_expanded_tensors(f: Any) -> None:
    both(lambda m: f(m, m.ones(1, 3).expand(2, 3)))


def test_writes_to_empty_expanded_tensors() -> None:
    both(lambda m: m.ones(0, 3).expand(2, 0, 3).mul_(2))


def test_view_history_names() -> None:
    """CopySlices on the base, the view's own node on the view."""

    def f(m: Any) -> Any:
        y = m.ones(2, 3, requires_grad=True) * 1
        v = y[0]
        v.mul_(2)
        w = y.view(-1)
        y.add_(1)
        return [y.grad_fn.name(), v.grad_fn.name(), w.grad_fn.name(), v._base is y, v.is_leaf]

    assert f(tt) == f(torch)


def test_a_rule_in_place_of_copy_slices() -> None:
    """The course's door: the rule sees views of the gradient, and the program's own comes back."""
    import toytorch as tt
    from toytorch.core.inplace import CopySlices

    seen = []

    def rule(grad: Any, part: Any, inner: Any) -> Any:
        seen.append(part(grad).tolist())
        before, *others = inner(part(grad))
        base = grad.clone()
        part(base).copy_(before)
        return base, *others

    def gradients() -> Any:
        x = tt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        w = tt.tensor([10.0, 20.0], requires_grad=True)
        base = x * 1
        base.t()[1].mul_(w)
        base[0].fill_(5.0)
        (base * tt.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        return x.grad.tolist(), w.grad.tolist()

    usual = gradients()
    with CopySlices.using(rule):
        assert gradients() == usual
    with pytest.raises(ZeroDivisionError), CopySlices.using(rule):
        1 / 0  # noqa: B018
    assert seen == [[1.0, 2.0], [0.0, 4.0]]
    assert gradients() == usual
    assert len(seen) == 2
    assert usual == ([[0.0, 0.0], [3.0, 80.0]], [0.0, 16.0])


@BOTH
def test_refusals_come_in_pytorchs_order(m: Any) -> None:
    w = m.ones(3, requires_grad=True)
    with m.no_grad():
        part = w[:2]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        part.mul_(2)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        w[:2].mul_(2)


@BOTH
def test_anomaly_leaves_the_forward_lines_in_the_metadata(m: Any) -> None:
    x = m.ones(1, requires_grad=True)
    with m.autograd.set_detect_anomaly(True, check_nan=False):
        y = x.exp()
    assert "y = x.exp()" in y.grad_fn.metadata["traceback_"][-1]


@pytest.mark.parametrize("write", ["a[0] = 1", "a[1:].add_(1)", "a.t()[0].mul_(2)", "a.zero_()"])
def test_a_leaf_that_is_a_view_is_refused(write: str) -> None:
    """`arange(6.).reshape(2, 3).requires_grad_()` shows other memory, and is a leaf."""
    said = []
    for m in (tt, torch):
        a = m.arange(6.0).reshape(2, 3).requires_grad_()
        with pytest.raises(RuntimeError) as refused:
            exec(write, {"a": a})
        said.append(str(refused.value))
        with m.no_grad():
            exec(write, {"a": a})
        (a * 2).sum().backward()
        assert a.grad.tolist() == [[2.0] * 3] * 2
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "view", [lambda x: x.t(), lambda x: x[:1], lambda x: x.chunk(2)[0], lambda x: x.view(-1)]
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_views_of_a_base_that_begins_to_want_gradients(view: Any, when: str) -> None:
    """A view that was there before a write reads itself out of the base; a later one is a leaf."""

    def seen(m: Any) -> Any:
        x = m.ones(2, 3)
        v = view(x) if when == "before" else None
        x.log10_()
        v = view(x) if v is None else v
        x.requires_grad_()
        try:
            found: Any = v.requires_grad, v.is_leaf, v.grad_fn and type(v.grad_fn).__name__
            if not v.is_leaf:
                v.sum().backward()
                found += (x.grad.tolist(),)
        except RuntimeError as e:
            found = str(e)[:90]
        return found

    assert seen(tt) == seen(torch)


STALE = [
    "y = nn.Linear(3, 2)(x * 1)", "y = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))(x)",
    "y = (x * 2).exp(); y.add_(1)", "y = x * 2; z = y * y; y.add_(1); y = z",
    "y = nn.LayerNorm(3)(x * 1)", "y = nn.Conv1d(1, 1, 2)(x[None] * 1)",
    "y = (x[None] * 1) @ nn.Linear(3, 2).weight.t()",
]  # fmt: skip


@pytest.mark.parametrize("code", STALE)
def test_what_was_saved_and_written_to_is_named_as_by_pytorch(code: str) -> None:
    def told(m: Any) -> str:
        x = m.ones(1, 3, requires_grad=True)
        made: dict[str, Any] = {"x": x, "nn": m.nn}
        exec("\n".join(code.split("; ")), made)
        y = made["y"]
        leaves = find_leaves(y.grad_fn)

        def twice() -> None:
            y.sum().backward(retain_graph=True)
            m.optim.SGD(leaves, 0.1).step()
            y.sum().backward()

        with pytest.raises(RuntimeError) as caught:
            twice()
        return str(caught.value)

    def find_leaves(node: Any) -> list[Any]:
        if hasattr(node, "variable"):
            return [node.variable]
        return [leaf for f, _ in node.next_functions if f for leaf in find_leaves(f)]

    assert told(tt) == told(torch)
