"""Products and decompositions of matrices of every type and shape."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import alike, alike_for, numbers, same

# -- what is refused first -------------------------------------------------------------------------


KINDS = ("bool", "int64", "float16", "float32", "complex64")


PRODUCTS = (
    ((2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3, 2)), ((3,), (3,)), ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)), ((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 2)), ((2, 1, 2, 3), (3,)),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products_of_every_two_types(shapes: tuple[tuple[int, ...], ...]) -> None:
    for a, b in itertools.product(KINDS, KINDS):
        if "float16" in (a, b) and a != b and 0 in (*shapes[0], *shapes[1]):
            continue  # of nothing PyTorch makes the second's type, of halves here the first's
        alike_for(lambda m, a, b: numbers(m, shapes[0], a) @ numbers(m, shapes[1], b), a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sizes", [(0, 2, 1, 2), (1, 2, 0, 2), (1, 2, 2, 0), (2, 2, 2, 2)])
def test_sums_with_products_of_several_types(sizes: tuple[int, ...]) -> None:
    n, i, j, k = sizes
    for a, b, c in itertools.product(("int64", "float32", "float64"), repeat=3):
        if n == 2 and a == b != c:
            continue  # refused in other words
        for name, shape in (("baddbmm", (n, i, k)), ("addbmm", (i, k))):
            alike_for(
                lambda m, a, b, c, name, shape: getattr(m, name)(
                    numbers(m, shape, a), numbers(m, (n, i, j), b), numbers(m, (n, j, k), c)
                ),
                a,
                b,
                c,
                name,
                shape,
            )


@pytest.mark.parametrize("name", ["inner", "tensordot", "chain_matmul"])
def test_words_about_factors_of_two_types(name: str) -> None:
    more = (1,) if name == "tensordot" else ()
    same(lambda m: str(attempt(getattr(m, name), m.ones(2, 2), m.ones(2, 2).double(), *more)[1]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products_are_no_views(shapes: tuple[tuple[int, ...], ...]) -> None:
    def what(m: Any) -> Any:
        a = numbers(m, shapes[0], "float32").requires_grad_()
        made = a @ numbers(m, shapes[1], "float32")
        view, kept = made._is_view(), (made * 1).sum()
        kept.backward()
        return [view, made.detach_(), a.grad]

    alike(what)


@pytest.mark.filterwarnings("ignore")
def test_distances_linear_layers_and_ranks_of_other_types() -> None:
    for a, b in itertools.product(("float16", "float32", "float64"), repeat=2):
        for s, t in (((2, 3), (4, 3)), ((0, 3), (4, 3)), ((2, 0), (4, 0))):
            alike_for(lambda m, a, b, s, t: m.cdist(numbers(m, s, a), numbers(m, t, b)), a, b, s, t)
        alike_for(
            lambda m, a, b: m.nn.functional.linear(
                numbers(m, (2, 2, 3), a), numbers(m, (4, 3), a), numbers(m, (8,), b)[::2]
            ),
            a,
            b,
        )
        alike_for(
            lambda m, a, b: m.linalg.matrix_rank(numbers(m, (3, 3), a), numbers(m, (1, 1), b)),
            a,
            b,
        )


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_least_squares_leave_out_columns_by_pivots() -> None:
    a = [
        [3.0, 1.0],
        [0.0, 0.25],
        [4.0, 0.5],
    ]  # the larger column is the first: no pivots are needed
    for rcond in (1.0, 0.5, 0.1, 0.01):
        alike_for(
            lambda m, r: m.linalg.lstsq(m.tensor(a), m.tensor([[1.0], [2.0], [3.0]]), r)[::2],
            rcond,
        )


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


# -- compositions ----------------------------------------------------------------------------------


def test_least_squares_of_little_rank() -> None:
    for driver, rcond in itertools.product(("gels", "gelsy", "gelsd", "gelss"), (2.0, 1.0, None)):

        def seen(m: Any, driver: str = driver, rcond: float | None = rcond) -> Any:
            a = m.tensor([[1.0], [3.0], [5.0]])
            x, _, rank, _ = m.linalg.lstsq(a, a, rcond, driver=driver)
            return [f"{v:.4f}" for v in x.reshape(-1).tolist()], rank.tolist()

        same(seen)


# -- a vector or a matrix beside a stack -----------------------------------------------------------

BESIDE = [
    ((1, 1), (2, 1, 1, 2)), ((2, 3), (4, 3, 2)), ((1, 3), (4, 3, 2)), ((2, 3), (4, 3, 1)),
    ((3,), (4, 3, 2)), ((4, 2, 3), (3,)), ((4, 2, 3), (3, 2)), ((2, 3), (2, 0, 3, 2)),
    ((1, 2, 3), (4, 3, 2)), ((4, 2, 3), (1, 3, 2)), ((5, 1, 2, 3), (4, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("wanted", [(True, False), (False, True), (True, True), (False, False)])
@pytest.mark.parametrize("shapes", BESIDE)
def test_steps_and_layouts_of_products_of_stacks(shapes: Any, wanted: Any) -> None:
    def seen(m: Any) -> Any:
        a, b = (
            m.arange(float(np.prod(s))).reshape(s).requires_grad_(w) for s, w in zip(shapes, wanted)
        )
        made = a @ b
        steps, node = [], made.grad_fn
        while node is not None:
            steps.append(type(node).__name__)
            node = next((n for n, _ in node.next_functions if n is not None), None)
        grads = m.autograd.grad(made.sum(), [x for x in (a, b) if x.requires_grad]) if steps else ()
        return steps, made.stride(), made.tolist(), [g.tolist() for g in grads]

    same(seen)
