"""Nodes of the graph, gradients and their memory, and what has none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.outside.alike import (
    LAYOUTS,
    alike,
    alike_rounded,
    node,
    numbers,
    same,
    same_or_refused,
    same_words,
    whats,
)


def ones_leaf(m: Any, *shape: int) -> Any:
    return m.ones(*shape, requires_grad=True)


def test_ties_of_extremes_are_shared_with_self() -> None:
    def slopes(m: Any, name: str) -> Any:
        x, s = ones_leaf(m, 2), ones_leaf(m, 1)
        made = getattr(x, name)(0, m.tensor([0]), s, "amax", include_self=False)
        made.sum().backward()
        return x.grad, s.grad

    alike_rounded(lambda m: slopes(m, "index_reduce"))
    alike_rounded(lambda m: slopes(m, "scatter_reduce"))


INDICES = whats(
    lambda x, i: x.gather(0, i),
    lambda x, i: x.scatter(0, i, 1.0),
    lambda x, i: x.scatter(0, i, x),
    lambda x, i: x.scatter_add(0, i, x),
    lambda x, i: x.scatter_reduce(0, i, x, "mean"),
    lambda x, i: x.scatter_(0, i, 1.0),
    lambda x, i: x.scatter_add_(0, i, x * 2),
    lambda x, i: x.scatter_reduce_(0, i, x * 2, "sum"),
)


@pytest.mark.parametrize("what", INDICES)
def test_an_index_of_floats_has_no_history(what: Any) -> None:
    """Where it has no elements, an index may be of floats, and want a gradient."""
    for asked in (False, True):
        alike_rounded(lambda m: what(m.ones(3, requires_grad=asked) * 2, ones_leaf(m, 0)))  # noqa: B023  # called in this turn


UNDERIVED = whats(
    lambda m: m.bincount(m.tensor([1, 2, 0]), ones_leaf(m, 3)),
    lambda m: m.binomial(m.ones(2), ones_leaf(m, 2) / 2),
    lambda m: m.bernoulli(ones_leaf(m, 2), 0.5),
    lambda m: m.histogram(ones_leaf(m, 2), 2).hist,
    lambda m: m.histogram(m.ones(2), m.arange(3.0), weight=ones_leaf(m, 2)).bin_edges,
    lambda m: m.histogramdd(ones_leaf(m, 2, 2), [2, 2]).hist,
    lambda m: m.histogramdd(ones_leaf(m, 2, 2), [2, 2]).bin_edges[0],
    lambda m: m.histogramdd(m.ones(2, 2), [ones_leaf(m, 3)] * 2).hist,
    lambda m: m.linalg.ldl_solve(ones_leaf(m, 1, 1), m.ones(1).int(), m.ones(1, 1)),
    lambda m: m.linalg.ldl_factor(ones_leaf(m, 1, 1)).LD,
)


@pytest.mark.parametrize("what", UNDERIVED)
def test_backward_of_what_has_no_derivative(what: Any) -> None:
    def backward(m: Any) -> Any:
        made = what(m)
        assert made.requires_grad
        assert type(made.grad_fn).__name__ == "NotImplemented"
        made.sum().backward()

    same_words(backward)


def test_gradients_of_one_factor_are_what_came() -> None:
    def twice(m: Any) -> Any:
        x = m.tensor([[1.0], [2.0]], requires_grad=True)
        m.autograd.backward(x.cumprod(1), m.ones(2, 1), create_graph=True)
        return x.grad.requires_grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alike_rounded(twice)


@pytest.mark.parametrize("rule", ["SGD", "Adam", "Adagrad", "RMSprop", "Rprop"])
def test_rules_refuse_parameters_that_overlap(rule: str) -> None:
    def step(m: Any) -> Any:
        x = m.ones(1).expand(3).requires_grad_()
        x.grad = m.ones(3)
        getattr(m.optim, rule)([x], lr=0.1).step()

    alike_rounded(step)


# -- gradients -------------------------------------------------------------------------------------


LINEAR: dict[str, Callable[[Any, Any], Any]] = {
    "reflection": lambda m, x: m.nn.functional.pad(x, (1, 1), "reflect"),
    "replication": lambda m, x: m.nn.functional.pad(x, (1, 1), "replicate"),
    "average": lambda m, x: m.nn.functional.avg_pool1d(x, 2),
    "average of images": lambda m, x: m.nn.functional.avg_pool2d(x, 1),
    "even averages": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 2),
    "even maxima": lambda m, x: m.nn.functional.adaptive_max_pool2d(x, 1),
    "norm of order 0": lambda m, x: m.linalg.vector_norm(x, 0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [1, 2])
def test_gradients_of_convolutions_of_no_channels_have_a_history(n: int) -> None:
    def what(m: Any) -> Any:
        x = m.zeros(1, 0, *[2] * n).requires_grad_()
        w = m.zeros(2, 0, *[2] * n).requires_grad_()
        made = getattr(m.nn.functional, f"conv{n}d")(x, w)
        made.backward(m.ones_like(made), create_graph=True)
        return x.grad.requires_grad, w.grad.requires_grad

    same(what)


@pytest.mark.parametrize("how", LINEAR)
def test_gradients_of_linear_maps_depend_on_their_input(how: str) -> None:
    def what(m: Any) -> Any:
        x = numbers(m, (2, 3, 4), "float64").requires_grad_()
        made = LINEAR[how](m, x)
        made.backward(m.ones_like(made), create_graph=True)
        if x.grad is None:
            return None
        return [x.grad, m.autograd.grad(x.grad.sum(), x)]

    alike(what)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["asinh_", "acosh_", "atanh_", "sinh_", "rsqrt_"])
def test_forms_in_place_without_a_derivative(name: str) -> None:
    def what(m: Any) -> Any:
        x = m.full((2,), 0.5, requires_grad=True)
        y = x.clone()
        getattr(y, name)()
        y.sum().backward()
        return x.grad

    alike(what)


# -- linear algebra: shapes before types, and nothing to do ----------------------------------------


def test_soft_margin_loss_is_computed_where_its_input_is() -> None:
    def loss(m: Any, x: Any, target: Any, reduction: str) -> Any:
        return m.nn.functional.soft_margin_loss(x, target, reduction=reduction).half().tolist()

    for reduction in ("mean", "sum", "none"):
        for what in whats(
            lambda m, r=reduction: loss(m, m.ones(2, 3), m.ones(3), r),
            lambda m, r=reduction: loss(m, m.ones(3), m.ones(2, 3), r),
            lambda m, r=reduction: loss(m, m.full((2,), -4.0).half(), m.tensor([3.0, 1.0]), r),
        ):
            same_or_refused(what)


# -- compositions ----------------------------------------------------------------------------------


def test_cosine_similarity_lets_gradients_through_small_norms() -> None:
    def seen(m: Any) -> Any:
        a = m.tensor([[5, 1, -1], [0, 0, 5]])
        b = m.tensor([[-0.25, 0.5, -0.75], [0.01, 0.02, 0.0]]).requires_grad_()
        y = m.cosine_similarity(a, b, eps=0.5)
        (g,) = m.autograd.grad(y.sum(), b)
        odd = m.cosine_similarity(m.tensor([[float("inf"), 1.0]]), m.ones(1, 2))
        mixed = m.cosine_similarity(m.ones(3, 1).double(), m.zeros(1).half())
        return str(
            [[f"{v:.4f}" for v in t.detach().reshape(-1).tolist()] for t in (y, g, odd, mixed)]
        )

    same(seen)


# -- histories -------------------------------------------------------------------------------------


def test_a_tensor_copied_to_itself_has_a_copys_node() -> None:
    for write in whats(lambda x: x.copy_(x), lambda x: x.__setitem__(slice(None), x)):
        same(lambda m: [x := m.ones(2, requires_grad=True) * 2, write(x), node(x)][2])  # noqa: B023  # called in this turn
    same_or_refused(lambda m: [x := m.ones(2, requires_grad=True), x.copy_(x)][0] is None)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_leaves_with_gaps_lie_in_rows(layout: str) -> None:
    def strides(m: Any) -> Any:
        x = LAYOUTS[layout](m)
        if not x.is_floating_point():
            return None
        x = x.detach().requires_grad_()
        (x * x).abs().sum().backward()
        return [s for s, n in zip(x.grad.stride(), x.shape) if n > 1] if x.numel() else None

    same(strides)


def test_a_leaf_that_wants_no_gradient_any_more_gets_none() -> None:
    def grad(m: Any) -> Any:
        x = m.ones(2, requires_grad=True)
        y = x * 2
        x.requires_grad_(False)
        y.sum().backward()
        return x.grad

    same(grad)


def test_integers_that_are_written_to_have_a_history() -> None:
    for write in whats(
        lambda b, y: b.fill_(y[0]),
        lambda b, y: b.gt_(y),
        lambda b, y: b.copy_(y),
        lambda b, y: b.logical_and_(y),
    ):
        same(
            lambda m: (
                write(  # noqa: B023  # called in this turn
                    m.zeros(2, dtype=m.uint8), m.ones(2, requires_grad=True)
                ).requires_grad
            )
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda m, y, out: m.t_copy(y, out=out),
        lambda m, y, out: m.diag(y, out=out),
        lambda m, y, out: m.heaviside(y, y.detach(), out=out),
        lambda m, y, out: m.floor_divide(y, 2, out=out),
        lambda m, y, out: m.detach_copy(y),
        lambda m, y, out: m.eye(2, out=y * 1),
        lambda m, y, out: m.eye(2, out=y),
        lambda m, y, out: m.arange(4, out=y),
        lambda m, y, out: m.fft.hfft(y, out=out),
        lambda m, y, out: m.gt(y, 1, out=out),
        lambda m, y, out: 2 % y,
    ],
)
def test_what_has_no_derivative_says_so(call: Callable[..., Any]) -> None:
    def made(m: Any) -> Any:
        x = call(m, m.ones(2, 2, requires_grad=True), m.zeros(2, 2))
        return x.requires_grad, node(x)

    same_or_refused(made)


# -- detached in place -----------------------------------------------------------------------------


def leaf(m: Any) -> Any:
    return m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["igamma", "igammac", "special.zeta"])
def test_words_where_there_is_no_derivative(name: str) -> None:
    def call(m: Any) -> None:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        function(leaf(m) + 2, leaf(m)).sum().backward()

    same_words(call)


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
def test_sparse_gradients_of_two_leaves_are_two(kept: bool) -> None:
    def grads(m: Any) -> Any:
        class Both(m.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                return a + b

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                held.append(g) if kept else None
                return g, g

        held: list[Any] = []
        a, b = (m.ones(10, 3, requires_grad=True) for _ in "ab")
        rows = m.nn.functional.embedding(m.tensor([1, 2, 1]), Both.apply(a, b), sparse=True)
        rows.sum().backward()
        a.grad._values().mul_(5)
        return [t.to_dense().sum().item() for t in (a.grad, b.grad, *held)]

    same_words(grads)


SLOPES: dict[str, Callable[[Any, Any], Any]] = {
    "leaky_relu_": lambda m, x: m.nn.functional.leaky_relu_(x, -2),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x, -2, inplace=True),
    "leaky_relu, aside": lambda m, x: m.nn.functional.leaky_relu(x, -2),
    "LeakyReLU": lambda m, x: m.nn.LeakyReLU(-2, inplace=True)(x),
    "rrelu_": lambda m, x: m.nn.functional.rrelu_(x, -5.0, 1.0),
    "RReLU": lambda m, x: m.nn.RReLU(-5.0, 1.0, inplace=True).eval()(x),
    "elu": lambda m, x: m.nn.functional.elu(x, -2, inplace=True),
    "ELU": lambda m, x: m.nn.ELU(-2, inplace=True)(x),
    "celu": lambda m, x: m.nn.functional.celu(x, -2.0, inplace=True),
    "celu, above": lambda m, x: m.nn.functional.celu(x, 2.0, inplace=True),
}


@pytest.mark.parametrize("name", SLOPES)
def test_negative_slopes_in_place_are_refused_on_the_way_back(name: str) -> None:
    def gradient(m: Any) -> Any:
        x = m.tensor([-1.0, 1.0], dtype=m.float64, requires_grad=True)
        SLOPES[name](m, x.clone()).sum().backward()
        return [round(v, 9) for v in x.grad.tolist()]

    same_words(gradient)


@pytest.mark.parametrize("sizes", [(4, 5), (4, 5, 2), (4, 2, 2, 2)])
def test_losses_of_images_have_a_node_of_their_own(sizes: tuple[int, ...]) -> None:
    def loss(m: Any) -> Any:
        x = ones_leaf(m, 3, *sizes)
        made = m.nn.functional.cross_entropy(x, m.ones(3, *sizes[1:], dtype=m.int64))
        return made, type(made.grad_fn).__name__, *m.autograd.grad(made, x)

    same(lambda m: repr(loss(m)))


SECOND: dict[str, Any] = {
    "relu": lambda m, x: m.relu(x),
    "relu_": lambda m, x: (x * 1).relu_(),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x),
    "relu6": lambda m, x: m.nn.functional.relu6(x),
    "threshold": lambda m, x: m.threshold(x, 0.1, 0.2),
    "hardtanh": lambda m, x: m.nn.functional.hardtanh(x),
    "prelu": lambda m, x: m.prelu(x, m.tensor([0.2])),
    "rrelu": lambda m, x: m.rrelu(x),
    "hardshrink": lambda m, x: m.hardshrink(x),
    "softshrink": lambda m, x: m.nn.functional.softshrink(x),
    "clamp": lambda m, x: m.clamp(x, -1, 1),
    "maximum": lambda m, x: m.maximum(x, m.zeros(4)),
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x, m.tensor([0, 1])),
    "nll_loss of images": lambda m, x: m.nn.functional.nll_loss(x[:, :, None, None], m.zeros(2, 1, 1).long()),
    "max_pool1d": lambda m, x: m.max_pool1d(x[None], 2),
    "avg_pool1d": lambda m, x: m.avg_pool1d(x[None], 2),
    "adaptive_max_pool1d": lambda m, x: m.adaptive_max_pool1d(x[None], 2)[0],
    "adaptive_avg_pool1d": lambda m, x: m.adaptive_avg_pool1d(x[None], 3),
    "circular": lambda m, x: m.nn.functional.pad(x[None], (1, 1), mode="circular"),
    "reflect": lambda m, x: m.nn.functional.pad(x[None], (1, 1), mode="reflect"),
    "a network": lambda m, x: m.relu(m.relu(x @ m.ones(4, 3)) @ m.ones(3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("wanted", [False, True])
def test_second_derivatives_of_straight_pieces(name: str, wanted: bool) -> None:
    """They are 0, not missing: a Laplacian of a network of rectified parts is a number."""

    def answer(m: Any) -> Any:
        x = m.tensor([[-2.5, -0.3, 0.4, 1.7], [0.2, 3.0, -0.6, 7.0]], requires_grad=True)
        y = SECOND[name](m, x)
        g = m.full_like(y, 2.0).requires_grad_(wanted)
        (first,) = m.autograd.grad(y, x, g, create_graph=True)
        if not first.requires_grad:
            return "no history"
        again = m.autograd.grad(
            first, [x, *([g] if wanted else [])], first * 0 + 1, allow_unused=True
        )
        return [None if v is None else v.tolist() for v in again]

    alike(answer)


@pytest.mark.parametrize("name", ["asinh_", "acosh_", "atanh_", "sinh_", "logical_not_"])
@pytest.mark.parametrize("graph", [False, True])
def test_gradients_where_a_step_has_no_derivative(name: str, graph: bool) -> None:
    """Of its result there is one; of what comes before there is none."""
    for before in (False, True):

        def what(m: Any, before: bool = before) -> Any:
            x = m.tensor(0.5).requires_grad_()
            y = getattr(x * x, name)()
            y.abs().sum().backward(create_graph=graph, inputs=[x if before else y])
            return (x if before else y).grad

        alike(what, before)


def nodes_and_strides(m: Any, layer: Any, *shape: int) -> Any:
    """The nodes of a layer's results, and how the gradients of its weights lie."""
    made = layer(m.ones(*shape))
    made = made if isinstance(made, tuple) else (made,)
    sum(t.sum() for t in made).backward()
    return [t.grad_fn.name() for t in made], [p.grad.stride() for p in layer.parameters()]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(1, 5), (5, 1), (1, 1), (4, 3)])
@pytest.mark.parametrize("lead", [(6,), (), (2, 3), (1,)])
def test_gradients_of_narrow_weights_lie_as_they_do(
    lead: tuple[int, ...], sizes: tuple[int, int], bias: bool
) -> None:
    def told(m: Any) -> Any:
        return nodes_and_strides(m, m.nn.Linear(*sizes, bias=bias), *lead, sizes[0])

    assert told(tt) == told(torch)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_nodes_of_cells(name: str) -> None:
    def told(m: Any) -> Any:
        return nodes_and_strides(m, getattr(m.nn, name)(1, 3), 2, 1)

    assert told(tt) == told(torch)
    tt.manual_seed(0)
    cell = getattr(tt.nn, name)(2, 3).double()

    def steps(x: Any) -> Any:
        made = cell(x, cell(x))
        return made[1] if isinstance(made, tuple) else made

    assert tt.autograd.gradcheck(steps, (tt.rand(2, 2).double().requires_grad_(),))


def test_gradients_of_sources_of_single_elements() -> None:
    """Their part of the gradient has other sizes, and is summed."""

    def gradient(m: Any, name: str, index: list[int], shape: tuple[int, ...]) -> Any:
        source = m.ones(shape).requires_grad_()
        getattr(m.ones(2), name)(0, m.tensor(index, dtype=m.int64), source).sum().backward()
        return source.grad.tolist()

    for name in ("scatter", "scatter_add"):
        for index, shape in (([], ()), ([0], ()), ([], (1,)), ([0], (1,)), ([], (2,))):
            same_or_refused(lambda m, n=name, i=index, s=shape: gradient(m, n, i, s))


@pytest.mark.parametrize("dim", [(), (0,)], ids=str)
@pytest.mark.parametrize("kinds", ["complex64 float32", "float64 float16", "float32 float64"])
def test_gradients_of_products_in_another_type(kinds: str, dim: tuple[int, ...]) -> None:
    def gradient(m: Any) -> Any:
        own, asked = (getattr(m, kind) for kind in kinds.split())
        x = m.tensor([0.789 + 0.084j, 1.262 + 0.935j, -1.347]).to(own).requires_grad_()
        x.prod(*dim, dtype=asked).backward()
        return x.grad

    alike(gradient)
