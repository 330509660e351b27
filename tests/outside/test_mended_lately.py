"""What the second generator found last, one short test a cause or a class of causes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.test_mended import same
from tests.outside.test_mended_later import said

What = Callable[[Any], Any]


def whats(*functions: What) -> tuple[What, ...]:
    """Functions, of a type that is known."""
    return functions


# -- complex numbers that are 0, infinite or NaN ---------------------------------------------------

PARTS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.5, float("inf"), -float("inf"), float("nan"))
NUMBERS = [complex(a, b) for a in PARTS for b in PARTS]
PAIRS = np.array(list(itertools.product(NUMBERS, NUMBERS)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    "what",
    [
        lambda m, a, b: a**b,
        lambda m, a, b: a.pow_(b),
        lambda m, a, b: a**b.real,
        lambda m, a, b: a.real**b,
        *[lambda m, a, b, e=e: b**e for e in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 1j)],
        *[lambda m, a, b, e=e: e**b for e in (0, 2, -1, 1j)],
        *[lambda m, a, b, e=e: e + b for e in (0, 2.5, 1j, float("inf"))],
        *[lambda m, a, b, e=e: e - b for e in (0, 2.5, 1j)],
        *[lambda m, a, b, e=e: e * b for e in (0, 2.5, 1j)],
        *[lambda m, a, b, e=e: b + e for e in (0, 2.5, 1j)],
        lambda m, a, b: b.reciprocal(),
        lambda m, a, b: b.rsqrt(),
        lambda m, a, b: b.square(),
        lambda m, a, b: b.sgn(),
        lambda m, a, b: m.addcmul(a, a, b),
        lambda m, a, b: m.addcdiv(a, a, b),
    ],
)
def test_odd_complex_numbers(what: Callable[..., Any], dtype: Any) -> None:
    a, b = PAIRS.astype(dtype).T
    theirs, ours = (
        what(m, m.from_numpy(a.copy()), m.from_numpy(b.copy())).numpy() for m in (torch, tt)
    )
    assert theirs.dtype == ours.dtype
    np.testing.assert_allclose(ours.real, theirs.real, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ours.imag, theirs.imag, rtol=1e-5, atol=1e-9)


def test_complex_options_of_real_ops_are_refused() -> None:
    for what in whats(
        lambda m: m.ones(2).addcdiv(m.ones(2), m.ones(2), value=1j),
        lambda m: m.ones(2).addcmul(m.ones(2).long(), m.ones(2), value=1j),
        lambda m: m.ones(2).add(m.ones(2), alpha=1j),
        lambda m: m.rsub(m.ones(2), m.ones(2), alpha=1j),
        lambda m: m.celu(m.ones(2), 1j),
        lambda m: m.nn.functional.leaky_relu(m.ones(2), 1j),
        lambda m: m.ones(2).lerp(m.ones(2), 1j),
    ):
        said(what)


# -- which refusal comes first ---------------------------------------------------------------------


def test_shapes_are_asked_before_kernels() -> None:
    for what in whats(
        lambda m: m.ones(4) // m.ones(3, dtype=m.complex64),
        lambda m: m.ones(5).long() >> m.ones(3),
        lambda m: m.ones(2) | m.ones(3),
        lambda m: m.ones(2).bool() << m.ones(3),
        lambda m: m.igamma(m.ones(2).bool(), m.ones(3).bool()),
        lambda m: m.special.chebyshev_polynomial_u(
            m.ones(3).half(), m.tensor(2), out=m.ones(1).half().expand(3)
        ),
        lambda m: m.special.chebyshev_polynomial_w(
            -1.5, m.ones(2).bfloat16(), out=m.ones(2).char()
        ),
        lambda m: m.ones(2).long().lerp(m.ones(3).long(), 0.5),
        lambda m: m.ones(2).long().lerp_(m.ones(3).long(), 0.5),
        lambda m: m.ones(2).long().lerp_(m.ones(2).long(), 0.5),
        lambda m: m.ones(2, requires_grad=True).lerp_(True, 0.5),
        lambda m: m.ones(2, requires_grad=True).lerp_(2, 0.5),
    ):
        said(what)


# -- memory and histories --------------------------------------------------------------------------


def test_data_over_the_same_memory_goes_on_counting_with_it() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(3)
        view = x.view_as(x)
        view.data = x.detach()
        x.mul_(2)
        other = m.ones(3)
        part = other[1:]
        part.data = m.zeros(2)
        other.mul_(2)
        return view._version, part._version, part.tolist()

    same(seen)


# -- linear algebra: shapes before types, and nothing to do ----------------------------------------

ONE = (
    "linalg.det",
    "linalg.slogdet",
    "linalg.inv",
    "linalg.inv_ex",
    "linalg.cholesky",
    "linalg.cholesky_ex",
    "linalg.eig",
    "linalg.eigh",
    "linalg.eigvals",
    "linalg.eigvalsh",
    "linalg.svd",
    "linalg.svdvals",
    "linalg.qr",
    "linalg.lu",
    "linalg.lu_factor",
    "linalg.lu_factor_ex",
    "linalg.cond",
    "linalg.ldl_factor",
    "linalg.ldl_factor_ex",
    "det",
    "logdet",
    "cholesky",
    "cholesky_inverse",
    "geqrf",
    "trace",
)
TWO = ("linalg.solve", "linalg.solve_ex", "cholesky_solve", "mm", "mv", "dot", "linalg.vecdot")


def found(m: Any, name: str) -> Any:
    for part in name.split("."):
        m = getattr(m, part)
    return m


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "bool", "float32", "complex64"])
def test_matrices_of_every_type_and_shape(dtype: str) -> None:
    def told(m: Any, name: str, *shapes: tuple[int, ...]) -> Any:
        kind = getattr(m, dtype)
        made, refused = attempt(
            found(m, name), *[m.arange(int(np.prod(s))).reshape(s).to(kind) for s in shapes]
        )
        if refused is not None:
            return type(refused).__name__
        return [str(t.dtype)[-5:] for t in (made if isinstance(made, tuple) else (made,))]

    shapes = ((), (2,), (2, 3), (2, 2), (0, 3), (0, 0), (3, 0))
    for shape in shapes:
        for name in ONE:
            assert told(tt, name, shape) == told(torch, name, shape), (name, shape)
        for name, other in itertools.product(TWO, ((2,), (3, 2), (2, 2))):
            want, got = (told(m, name, shape, other) for m in (torch, tt))
            assert got == want, (name, shape, other)


def test_options_that_are_refused() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for what in whats(
        lambda m: m.nanmedian(m.from_numpy(x), out=m.zeros(())),
        lambda m: m.max(m.zeros(0), out=m.zeros(())).item(),
        lambda m: m.min(m.zeros(0, dtype=m.int8), out=m.zeros((), dtype=m.int8)).item(),
        lambda m: m.max(m.zeros(0)),
        lambda m: m.linalg.vector_norm(m.from_numpy(x), dtype=m.bfloat16),
        lambda m: m.linalg.vector_norm(m.from_numpy(x), dtype=m.float32),
        lambda m: m.linalg.vector_norm(m.from_numpy(x), dtype=m.complex128),
        lambda m: m.linalg.vector_norm(m.ones(2).long(), dtype=m.float64).item(),
        lambda m: m.nonzero_static(m.tensor([1, 0]), size=1, out=m.zeros(1, 1).char()),
        lambda m: m.linalg.eigh(m.eye(2).cfloat(), out=(m.zeros(2).cfloat(), m.eye(2).cfloat())),
        lambda m: m.special.softmax(m.from_numpy(x), 1, m.float32).dtype.is_floating_point,
    ):
        said(what)


def test_soft_margin_loss_is_computed_where_its_input_is() -> None:
    def loss(m: Any, x: Any, target: Any, reduction: str) -> Any:
        return m.nn.functional.soft_margin_loss(x, target, reduction=reduction).half().tolist()

    for reduction in ("mean", "sum", "none"):
        for what in whats(
            lambda m, r=reduction: loss(m, m.ones(2, 3), m.ones(3), r),
            lambda m, r=reduction: loss(m, m.ones(3), m.ones(2, 3), r),
            lambda m, r=reduction: loss(m, m.full((2,), -4.0).half(), m.tensor([3.0, 1.0]), r),
        ):
            said(what)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(2, 1), (2, 0)])
def test_histories_of_views_after_writes(dtype: str, shape: tuple[int, ...]) -> None:
    def seen(m: Any, how: Callable[[Any, Any], Any]) -> Any:
        x = m.ones(shape, dtype=getattr(m, dtype)).requires_grad_()
        part, other = x.unbind(0)[0], x.detach()
        how(m, x)
        leaf, refused = attempt(lambda: part.is_leaf)
        return x._version, other._version, leaf, str(refused)

    def stepped(m: Any, x: Any) -> None:
        (x * x).abs().sum().backward()
        m.optim.SGD([x], 0.1).step()

    def let_go(m: Any, x: Any) -> None:
        x.requires_grad_(False)
        x += x

    for how in (stepped, let_go, lambda m, x: x.data.mul_(2), lambda m, x: x.detach().mul_(2)):
        assert seen(tt, how) == seen(torch, how)


# -- compositions ----------------------------------------------------------------------------------


def test_copies_of_another_shape_are_no_views() -> None:
    def seen(m: Any) -> Any:
        x = m.arange(12.0).reshape(2, 3, 2).permute(2, 1, 0)
        made = (
            x.flatten(0), x.reshape(12), x.flatten(0, 1),
            m.grid_sampler_2d(m.ones(1, 1, 1, 1), m.zeros(1, 1, 1, 2), 0, 0, True),
        )  # fmt: skip
        return [(t._is_view(), t.detach_() is t) for t in made]

    same(seen)


def test_remainders_of_zero_have_the_sign_of_the_dividend() -> None:
    numbers = [1e30, -3.0, 0.0, -0.0, 2.0] * 40
    for what in whats(
        lambda m: str((m.tensor(numbers) % -1).tolist()),
        lambda m: str((m.tensor(numbers) % 1).tolist()),
        lambda m: str((m.tensor(numbers).half() % m.tensor([1.0, -1.0] * 100).half()).tolist()),
        lambda m: str((m.tensor(numbers).double() % m.tensor([1.0, -1.0] * 100)).tolist()),
        lambda m: str(m.remainder(2.0, m.tensor([1.0, -1.0, -0.5])).tolist()),
        lambda m: m.digamma(m.tensor(1e30) % -1).item(),
    ):
        said(what)


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


def test_least_squares_of_little_rank() -> None:
    for driver, rcond in itertools.product(("gels", "gelsy", "gelsd", "gelss"), (2.0, 1.0, None)):

        def seen(m: Any, driver: str = driver, rcond: float | None = rcond) -> Any:
            a = m.tensor([[1.0], [3.0], [5.0]])
            x, _, rank, _ = m.linalg.lstsq(a, a, rcond, driver=driver)
            return [f"{v:.4f}" for v in x.reshape(-1).tolist()], rank.tolist()

        same(seen)


def test_sums_over_named_dimensions_by_lists() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for what in whats(
        lambda m: m.einsum(m.from_numpy(a), [0, 1], m.from_numpy(b), [1, 2], [0, 2]).tolist(),
        lambda m: m.einsum(m.from_numpy(a), [0, 1], m.from_numpy(b), [1, 2]).tolist(),
        lambda m: m.einsum(m.from_numpy(a), [..., 30], [30, ...]).tolist(),
        lambda m: m.einsum([m.ones(2, 3), m.ones(1, 3)], "ij,ij"),
    ):
        said(what)


def test_small_refusals() -> None:
    for what in whats(
        lambda m: m.searchsorted(m.tensor(1), 1),
        lambda m: m.trapezoid(m.ones(2), dx=True),
        lambda m: m.cumulative_trapezoid(m.ones(2), dx=1j),
        lambda m: m.ones(2).is_contiguous(m.preserve_format),
        lambda m: m.tensor(1).tile(),
        lambda m: m.ones(1).as_strided((-1,), (2,)),
        lambda m: m.margin_ranking_loss(m.ones(1), m.ones(1), m.ones(1), 2.0, "sum"),
        lambda m: m.kl_div(m.ones(3), m.ones(3).long(), reduction="mean"),
        lambda m: m.ones(2).bool()[:0].cumsum_(0).tolist(),
        lambda m: m.cumsum(m.ones(2), 0, out=m.ones(2).bool()),
        lambda m: m.permute_copy(m.ones(2, 3), 0),
        lambda m: m.expand_copy(m.ones(2, 3), 2, 3),
        lambda m: m.split_copy(m.ones(2, 3), 1, out=m.ones(2)),
        lambda m: m.ones(4).tensor_split(m.tensor(2.0)),
        lambda m: m.nn.functional.avg_pool3d(m.ones(1, 1, 2, 2, 2).bool(), (1, 1, 2), (2, 1)),
        lambda m: m.full((1, 1, 2), 2.0, out=m.zeros(2).long()).tolist(),
        lambda m: list(m.frobenius_norm(m.ones(3, 2), [0], out=m.ones(3)).shape),
        lambda m: list(m.nonzero(m.zeros(3, 3)).stride()),
        lambda m: list(m.nn.functional.conv1d(m.zeros(2, 0, 4), m.zeros(3, 0, 2)).shape),
        lambda m: list(m.nn.functional.conv2d(m.zeros(0, 2, 4, 4), m.zeros(3, 2, 2, 2)).shape),
    ):
        said(what)


def test_layouts_of_images_and_of_gradients() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(2, 3, 4, 4).contiguous(memory_format=m.channels_last).requires_grad_()
        z = m.ones(2, 3, 2).permute(2, 0, 1).requires_grad_()
        (none,) = m.autograd.grad(
            m.ones(1, requires_grad=True), [z], m.ones(1), materialize_grads=True
        )
        part = z[:, [0, 1]]
        part.retain_grad()
        part.abs().sum().backward()
        return m.nn.RMSNorm(4)(x).stride(), none.stride(), part.grad.stride()

    same(seen)


def test_a_function_that_leaves_values_it_cannot_be_planned_for() -> None:
    def seen(m: Any) -> Any:
        def f(x: Any) -> Any:
            y = x.squeeze()
            x %= x
            return y - x

        run = f if m is torch else m.compile(f)
        x = m.tensor([[5], [-3], [-1]])
        return run(x).tolist(), x.tolist(), run(m.tensor([[5], [2]])).tolist()

    same(seen)


def test_graphs_that_saved_no_tensor_may_be_run_twice() -> None:
    def seen(m: Any) -> Any:
        a = m.ones(2, 2, requires_grad=True)
        for y in (m.cat([a, a]), m.column_stack([a, a])):
            y.sum().backward(retain_graph=True)
            y.backward(m.ones_like(y))
            y.backward(m.ones_like(y))
        return a.grad.tolist()

    same(seen)
