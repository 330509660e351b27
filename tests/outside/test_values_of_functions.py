"""Values of single functions at their limits."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import (
    BOTH,
    What,
    alike,
    alike_for,
    alike_in_memory,
    alike_rounded,
    numbers,
    outcome,
    same,
    same_or_refused,
    whats,
)


def test_logit_beyond_its_limits() -> None:
    same(lambda m: m.tensor([0.2, 0.5, 0.9, float("nan")]).logit(0.9).isnan().tolist())
    same(lambda m: str(m.tensor([0.2, 0.9]).logit(1.0)))


def test_losses_with_a_number_for_the_reduction() -> None:
    for name in ("hinge_embedding_loss", "kl_div", "binary_cross_entropy_with_logits"):
        for reduction in ((), (0,), (1,), (2,)):
            more = dict(zip(["reduction"], reduction))
            x = [[0.5, 1.0], [0.25, 1.0]]
            got, want = (getattr(m, name)(m.tensor(x), m.tensor(x), **more) for m in BOTH)
            assert got.flatten().tolist() == pytest.approx(want.flatten().tolist()), name


VALUES: list[What] = [
    lambda m: m.linalg.solve_triangular(2 * m.eye(2).double(), m.ones(2, 2), upper=True),
    lambda m: m.linalg.solve_triangular(2 * m.eye(2), m.ones(2, 2).bfloat16(), upper=True),
    lambda m: m.margin_ranking_loss(m.ones(3, 1), m.zeros(3, 1), m.ones(2), 2.0, 2),
    lambda m: m.binary_cross_entropy_with_logits(m.ones(2), m.ones(2, 2)),
    lambda m: m.addr(m.ones(2, 2).half(), m.ones(2).half(), m.ones(2).bfloat16()),
    lambda m: m.ones(2, 0)[[-4]],
    lambda m: m.ones(1, 0, 3)[:, :, m.tensor([5])],
    lambda m: m.ones(2, 0, 3)[m.tensor([5]), :, m.tensor([7])],
    lambda m: m.ones(2, 3)[m.tensor([], dtype=m.int64).reshape(0, 1), m.tensor([7])],
    lambda m: 0 ** m.tensor([-(2**31)], dtype=m.int32),
    lambda m: (-1) ** m.tensor([-(2**31), -3, -2, 3]),
    lambda m: m.nn.LSTM(2, 2)(m.zeros(1, 0, 2))[0].detach(),
    lambda m: m.nn.GRU(2, 2, batch_first=True)(m.zeros(0, 1, 2))[0].detach(),
    lambda m: m.nn.Linear(0, 2)(m.zeros(10, 5, 0)).shape,
    # By position PyTorch's function loses what it is asked for: what comes is empty for any input.
    lambda m: m.unique_consecutive(m.zeros(2, 0), return_inverse=True)[1],
    lambda m: m.ones(1, 1).long().expand(4, 2).nan_to_num_(2.0),
    lambda m: m.take_along_dim(m.ones(2, 4), m.tensor([1], dtype=m.int32)),
    lambda m: m.smm(m.eye(2).to_sparse(), m.ones(2, 2)),
    lambda m: m.hspmm(m.eye(2).to_sparse(), m.ones(2, 2)),
    lambda m: m.sspaddmm(m.eye(2).to_sparse(), m.eye(2).to_sparse(), m.ones(2, 2), alpha=2),
    lambda m: m.affine_grid_generator(m.ones(1, 2, 3), (1, 1, 2, 2), True),
    lambda m: m.conv_transpose1d(
        m.ones(1, 1, 4), m.ones(1, 1, 4), stride=2, padding=1
    ).storage_offset(),
    lambda m: m.embedding_renorm_(m.ones(3, 1), m.tensor([], dtype=m.int64), 0.1, 2.0)._version,
    lambda m: m.special.chebyshev_polynomial_v(m.tensor([2.0, -2.0]), m.tensor([100.0])),
    lambda m: m.special.hermite_polynomial_h(m.tensor([2.0, -2.0]), m.tensor([60.0])),
]


@pytest.mark.parametrize("what", VALUES)
def test_values_of_single_calls(what: What) -> None:
    alike_rounded(what)


# -- what is refused first -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["batch_norm", "native_batch_norm", "instance_norm"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_statistics_that_do_not_fit(name: str, dtype: str) -> None:
    vectors = (None, (3, dtype), (2, "float32"), (3, "float64"))
    for shape, running, weight, training in itertools.product(
        ((2, 3), (1, 3), (0, 3), (2, 3, 2)), vectors, vectors[:3], (True, False)
    ):
        for variance in (running, None) if name == "batch_norm" else (running,):
            if name != "batch_norm" and (
                (running is None and not training) or (2, "float32") in (running, weight)
            ):
                continue  # PyTorch reads memory that is not theirs
            if name == "instance_norm" and running is not None and running[1] != dtype:
                continue  # of which types it is taken depends on strides

            def what(m: Any, case: Any = (shape, running, variance, weight, training)) -> Any:
                size, mean, var, scale, train = case
                given = [
                    None if v is None else (m.arange(v[0]) + 1).to(getattr(m, v[1]))
                    for v in (scale, None, mean, var)
                ]
                more = (True,) * (name != "native_batch_norm")
                made = getattr(m, name)(numbers(m, size, dtype, 7), *given, train, 0.1, 0.5, *more)
                return [made, given[2:]]

            alike(what, shape, running, variance, weight, training)


KINDS = ("bool", "int64", "float16", "float32", "complex64")


REDUCTIONS = [
    "kthvalue",
    "median",
    "nanmedian",
    "mode",
    "topk",
    "cummax",
    "max",
    "min",
    "amax",
    "amin",
    "aminmax",
    "unique",
    "unique_consecutive",
    "nansum",
    "bincount",
    "searchsorted",
    "sort",
    "argsort",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_few_elements(name: str) -> None:
    for shape, dtype, more in itertools.product(
        ((), (1,), (0,), (3,), (2, 0), (2, 1)), KINDS, ((), (0,), (1,), (-1,), (1, 0), (2,))
    ):

        def what(m: Any, case: Any = (shape, dtype, more)) -> Any:
            return getattr(m, name)(numbers(m, case[0], case[1]), *case[2])

        if outcome(torch, what) != "TypeError":
            alike(what, shape, dtype, more)


@pytest.mark.filterwarnings("ignore")
def test_which_of_equal_elements_is_the_kth() -> None:
    rng = random.Random(0)
    for _ in range(200):
        n = rng.randint(1, 14)
        few: list[float] = rng.choice(([0, 1], [0, 1, 2], [0.0, math.nan, 1.0]))
        rows = [[float(rng.choice(few)) for _ in range(n)] for _ in range(2)]
        k = rng.randint(1, n)
        alike_for(lambda m, rows, k: m.tensor(rows).kthvalue(k), rows, k)


@pytest.mark.filterwarnings("ignore")
def test_which_of_equal_elements_are_the_largest() -> None:
    rng = random.Random(0)
    for _ in range(200):
        n = rng.choice([1, 2, 3, 8, 14, 20, 70, 200])
        few: list[float] = rng.choice(([0, 1], [0, 1, 2], [0.0, math.nan, 1.0], list(range(99))))
        rows = [[float(rng.choice(few)) for _ in range(n)] for _ in range(2)]
        k = rng.randint(0, n) if rng.random() < 0.7 else min(n, 3)
        largest, in_order = rng.random() < 0.5, rng.random() < 0.6
        alike_for(
            lambda m, *given: m.topk(m.tensor(given[0]), *given[1:]), rows, k, 1, largest, in_order
        )


@pytest.mark.filterwarnings("ignore")
def test_equal_elements_of_one_row_beside_nan_in_another() -> None:
    rng = random.Random(0)
    for _ in range(300):
        n = rng.randint(1, 40)
        top = rng.randint(2, 60)
        rows = [[float(rng.randrange(top)) for _ in range(n)] for _ in range(3)]
        rows[0] = [math.nan if rng.random() < 0.2 else x for x in rows[0]]
        k, largest = rng.randint(1, n), rng.random() < 0.5
        alike_for(lambda m, *given: m.topk(m.tensor(given[0]), *given[1:]), rows, k, 1, largest)


@pytest.mark.parametrize("eps", [None, 0.1, 0.0, -0.1])
def test_gradients_of_logit_with_any_limit(eps: float | None) -> None:
    def slopes(m: Any) -> Any:
        x = m.linspace(-0.2, 1.2, 15).requires_grad_()
        m.logit(x, eps).sum().backward()
        return x.grad

    alike(slopes)


@pytest.mark.parametrize("padding", [None, 0, 2, -1])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_by_frequency(mode: str, padding: int | None) -> None:
    for rows in ([3, 1, 2, 1, 3, 3], [2, 2, 2, 0, 0, 1]):

        def slopes(m: Any, rows: list[int] = rows) -> Any:
            w = m.arange(12.0).reshape(4, 3).requires_grad_()
            made = m.nn.functional.embedding_bag(
                m.tensor(rows), w, m.tensor([0, 2, 2]), mode=mode, padding_idx=padding,
                scale_grad_by_freq=True,
            )  # fmt: skip
            made.backward(m.arange(1.0, 10.0).reshape(3, 3))
            return w.grad

        alike(slopes)


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2, 0], [2, 4, 0], [3, 6, 0], [1, 1, 0]],
        [[1.0, 0], [0, 0]],
        [[0.0, 0], [0, 0]],
        [[[1.0, 0], [0, 1]], [[0, 0], [0, 0]]],
        [[[1.0, 0], [0, 1]], [[1, 0], [0, 0]]],
        [[1.0, 2, 3], [0, 0, 0]],
    ],
    ids=str,
)
def test_least_squares_of_less_than_full_rank(rows: Any) -> None:
    def made(m: Any) -> Any:
        a = m.tensor(rows)
        return m.linalg.lstsq(a, m.ones(*a.shape[:-1], 2), driver="gels")[0]

    alike_in_memory(made, words=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("correction", [math.nan, math.inf, 6.0, 7.0])
def test_corrections_that_leave_no_degree_of_freedom(correction: float) -> None:
    for name, more in itertools.product(("var", "std"), ((), (0,), (1,))):
        alike_for(
            lambda m, name, more: getattr(m, name)(
                m.arange(6.0).reshape(2, 3), *more, correction=correction
            ),
            name,
            more,
        )


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@pytest.mark.parametrize("name", ["scatter", "scatter_add", *REDUCTIONS])
def test_gradients_of_sources(name: str) -> None:
    """Of one that is larger than the index there is none."""
    for shape in ((2, 2), (3, 4), (2, 5), (5, 2)):

        def slopes(m: Any, shape: tuple[int, int] = shape) -> Any:
            x = m.arange(12.0).reshape(3, 4).requires_grad_()
            source = m.arange(1.0, 1 + math.prod(shape)).reshape(shape).requires_grad_()
            more: tuple[Any, ...] = (0, m.tensor([[0, 1], [1, 2]]), source)
            how = ("scatter_reduce", (*more, name)) if name in REDUCTIONS else (name, more)
            getattr(m, how[0])(x, *how[1]).backward(m.arange(12.0).reshape(3, 4))
            return x.grad, source.grad

        alike(slopes)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16", "float16", "int64", "uint8"])
def test_numbers_are_sought_in_the_type_of_what_is_sorted(kind: str) -> None:
    values = 2.3, 2, 16777217, ("float32", 2.3), ("bfloat16", [2.3, 1.0])
    for value, right in itertools.product(values, (False, True)):

        def found(m: Any) -> Any:
            row = m.tensor([1.0, 2.0, 2.3, 3.0]).double().to(getattr(m, kind))
            x: Any = value  # noqa: B023  # called in this turn
            x = m.tensor(x[1], dtype=getattr(m, x[0])) if isinstance(x, tuple) else x
            sought = m.searchsorted(row, x, right=right), m.bucketize(x, row, right=right)  # noqa: B023  # see above
            return [made.tolist() for made in sought]

        same(found)


@pytest.mark.filterwarnings("ignore")
def test_small_things() -> None:
    wrong = (2, 3, 1)
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda m: m.nn.functional.cross_entropy(m.ones(4, 1), m.ones(1).double()),
        lambda m: m.nn.functional.cross_entropy(m.ones(4), m.ones(4, 3)),
        lambda m: m.nn.functional.cross_entropy(m.ones(4, 2, 3), m.ones(4, 3).byte()),
        lambda m: m.stack([m.tensor(1.0), m.ones(wrong)], 1),
        lambda m: m.cat([m.ones(2, 3), m.ones(wrong).double()], out=m.ones(2).long()),
        lambda m: m.tensor(-2).lerp(m.tensor(3), m.tensor(1.5).bfloat16()),
        lambda m: m.full((2,), -2).lerp(m.full((2,), 3), m.tensor(2)),
        lambda m: m.embedding_renorm_(
            m.tensor([[math.nan, 1.5]]).half(), m.tensor([0, 0]), 0.0, 0.1
        ),
        lambda m: m.stft(m.ones(10), 7, center=False, return_complex=True).detach_(),
        lambda m: m.nonzero_static(x := m.tensor(4), size=1, out=x),
        lambda m: m.ones(3).as_strided((2, 1), (1, 2), -1),
        lambda m: m.ones(2, dtype=m.complex64).expand(3, 2).sign_(),
        lambda m: m.diff(m.ones(3), 0, 5),
        lambda m: m.tensor(0.5).cov(aweights=m.tensor(2.0).double()),
        lambda m: m.tensor(0.5).cov(fweights=m.tensor(2), aweights=m.tensor(2.0).double()),
        lambda m: m.tensor([0.5, 1.0]).cov(aweights=m.tensor([2.0, 3.0]).double()),
        lambda m: m.searchsorted(m.ones(2), 1.0, sorter=m.ones(2)),
        lambda m: m.from_dlpack(m.ones(4).bfloat16()[1:]).storage_offset(),
        lambda m: m.diff(m.ones(1, 3).expand(2, 3), out=m.ones(1).expand(2, 2)),
        lambda m: m.diff(
            m.tensor([True, False, True]), out=m.zeros(2, requires_grad=True)
        ).tolist(),
        lambda m: (
            m.log_softmax(m.ones(5, requires_grad=True), 0, out=(o := m.zeros(5, 1))[:, 0])
            .detach()
            .tolist()
            + [o.requires_grad]
        ),
        lambda m: type(
            m.nn.functional.elu_(m.ones(2, requires_grad=True) * 1, -1.5).grad_fn
        ).__name__.rstrip("01"),
    )
    for what in calls:
        alike(what)


# -- compositions ----------------------------------------------------------------------------------


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
        same_or_refused(what)


@pytest.mark.parametrize("n", [3, 9000])
@pytest.mark.parametrize(
    "name", ["i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "modified_bessel_i1"]
)
def test_signs_of_bessel_functions_at_zeros(name: str, n: int) -> None:
    def told(m: Any) -> Any:
        x = m.tensor([0.0, -0.0, -1.5]).repeat(n // 3)
        return [m.signbit(getattr(m.special, name)(t)).tolist() for t in (x, x.double())]

    same(told)


def test_sums_over_named_dimensions_by_lists() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for what in whats(
        lambda m: m.einsum(m.from_numpy(a), [0, 1], m.from_numpy(b), [1, 2], [0, 2]).tolist(),
        lambda m: m.einsum(m.from_numpy(a), [0, 1], m.from_numpy(b), [1, 2]).tolist(),
        lambda m: m.einsum(m.from_numpy(a), [..., 30], [30, ...]).tolist(),
        lambda m: m.einsum([m.ones(2, 3), m.ones(1, 3)], "ij,ij"),
    ):
        same_or_refused(what)


# -- types that meet, and what is looked at first --------------------------------------------------


MEETING = ("float32", "float64", "float16", "bfloat16", "int32", "int64")


@pytest.mark.parametrize("a", MEETING)
@pytest.mark.parametrize("b", MEETING)
def test_types_that_meet_in_outer_and_isin(a: str, b: str) -> None:
    def made(m: Any) -> Any:
        x, y = ((m.arange(1, 61).double() / n).to(getattr(m, k)) for n, k in ((3.0, a), (7.0, b)))
        product = m.outer(x, y)
        members = m.isin(x, y), m.isin(2, x), m.isin(1.5, x), m.isin(x, 1.6666)
        return str(product.dtype)[-8:], product.tolist(), [v.tolist() for v in members]

    assert made(tt) == made(torch)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "a number before an index": lambda m: m.zeros(2).long().__setitem__((0, 0), math.inf),
    "its class before an index": lambda m: m.zeros(2).__setitem__(5, "a"),
    "rows of nothing": lambda m: m.zeros(2, 0).__setitem__(m.zeros(2, 0) > 0, m.zeros(2, 0)),
    "a mask of nothing": lambda m: m.zeros(2, 0).__setitem__(
        (..., 0, m.tensor([], dtype=m.bool)), m.zeros(2, 0)
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_subscripts_refuse_first(name: str) -> None:
    theirs, ours = (attempt(REFUSED[name], m)[1] for m in (torch, tt))
    assert (type(ours), str(ours)) == (type(theirs), str(theirs).replace("torch.", "torch."))


def test_whole_sums_leave_nan_out() -> None:
    for values in ([math.nan, 2.0], [[math.nan, 2.0], [3.0, math.nan]]):
        for dim in (None, 0):
            made = (m.nansum(m.tensor(values), dim, dtype=m.int64).tolist() for m in (torch, tt))
            assert next(made) == next(made)


def test_a_pass_for_a_result_retains_its_gradient() -> None:
    def seen(m: Any) -> Any:
        x = m.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        y.sum().backward(inputs=[y], retain_graph=True)
        m.autograd.grad(y, x, m.ones(2))
        return y.retains_grad, y.grad.tolist(), x.grad

    assert seen(tt) == seen(torch)


@pytest.mark.parametrize("dim", [None, (), [], 0, -1, (-1,), [0]])
@pytest.mark.parametrize("order", [-2, 0, 0.5, 1, 2, 3, float("inf")])
def test_norms_of_a_number_are_of_its_power_where_a_dimension_is_named(
    dim: Any, order: Any
) -> None:
    def run(m: Any) -> Any:
        kinds = (m.float32, m.float64, m.bfloat16)
        numbers = [m.tensor(v, dtype=k) for v in (1e30, 1e20, 1e-30, 3.0, 0.0) for k in kinds]
        return [str(m.linalg.vector_norm(x, order, dim)) for x in numbers]

    assert run(tt) == run(torch)


POWERS = (0.5, -0.5, 2, 3, -1, -2, 0, 1, 1.5, 0.25)
BASES = (-math.inf, math.inf, math.nan, -0.0, 0.0, -1.0, 4.0, -4.0, 1e-30, 0.25)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("how", ["pow", "rpow", "pow_", "float_power"])
def test_powers_of_odd_numbers(how: str, kind: str) -> None:
    ways = {
        "pow": lambda x, e: x**e,
        "rpow": lambda x, e: e**x,
        "pow_": lambda x, e: x.pow_(e),
        "float_power": lambda x, e: x.float_power(e),
    }
    for e, n in itertools.product(POWERS, (1, 10, 400)):

        def what(m: Any, e: float = e, n: int = n) -> Any:
            x = m.tensor((BASES * 40)[:n], dtype=getattr(m, kind))
            return ways[how](x, e)

        alike(what, e, n)
