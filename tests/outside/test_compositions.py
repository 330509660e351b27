"""What functions that are composed of others return: versions, views, values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.outside.alike import alike, alike_for, numbers

pytest.importorskip("expecttest", reason="samples come from PyTorch's database")
pytestmark = pytest.mark.filterwarnings("ignore")

FLOATS = ("float32", "complex64", "bfloat16", "int64")


# -- counts of writes and views --------------------------------------------------------------------


BORN: dict[str, Callable[[Any, Any], Any]] = {
    "isclose": lambda m, x: [m.isclose(x, x * 2, equal_nan=e, atol=a) for e in (False, True) for a in (0, 1)],
    "isfinite": lambda m, x: m.isfinite(x),
    "diff": lambda m, x: [m.diff(x, n, 0) for n in (0, 1, 2)],
    "quantile": lambda m, x: [
        f(x, q, d, k, interpolation=i)
        for f in (m.quantile, m.nanquantile)
        for q in (0.5, m.tensor([0.1, 0.5]))
        for d in (None, 0)
        for k in (False, True)
        for i in ("linear", "nearest", "midpoint")
    ],
    "one_hot": lambda m, x: [m.nn.functional.one_hot(x.abs(), n) for n in (-1, 6)],
    "pad": lambda m, x: [
        m.nn.functional.pad(x[None], p, "circular") for p in ((1, 1), (1, 0), (0, 0), (0, -1))
    ],
    "matrix_rank": lambda m, x: m.linalg.matrix_rank(x),
    "cond": lambda m, x: [m.linalg.cond(x, p) for p in (None, 2, -2, "fro", 1, "nuc")],
    "svd": lambda m, x: m.svd(x, compute_uv=False)[::2],
    "kron": lambda m, x: [m.kron(x, x), m.kron(x[0], x), m.kron(x.t(), x)],
    "multi_dot": lambda m, x: [m.linalg.multi_dot([x, x]), m.linalg.multi_dot([x[0], x, x[0]])],
    "matmul": lambda m, x: [x[0] @ x, x[0] @ x[0], x @ x[0], x[None] @ x, x @ x[None]],
    "linear": lambda m, x: [
        m.nn.functional.linear(y, x, b) for y in (x[0], x, x[None], x[None, None]) for b in (x[0], None)
    ],
    "ifft": lambda m, x: [m.fft.ifft(x), m.fft.ihfft(x) if not x.is_complex() else x],
    "max_pool1d": lambda m, x: [m.nn.functional.max_pool1d(y, 1) for y in (x, x[None])],
    "adaptive_avg_pool1d": lambda m, x: [m.nn.functional.adaptive_avg_pool1d(x, n) for n in (1, 2)],
    "nonzero_static": lambda m, x: m.nonzero_static(x, size=2),
    "stft": lambda m, x: m.stft(x.reshape(-1), 2, return_complex=True),
    "trapezoid": lambda m, x: m.trapezoid(x[:, :0]),
    "margin_ranking_loss": lambda m, x: [
        m.nn.functional.margin_ranking_loss(x, x, x, reduction=r) for r in ("none", "mean")
    ],
    "gaussian_nll_loss": lambda m, x: [
        m.nn.functional.gaussian_nll_loss(x, x, x.abs(), full=f, reduction="none") for f in (0, 1)
    ],
    "rot90": lambda m, x: [m.rot90(x, k) for k in range(4)],
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x[0], m.tensor(0), reduction="none"),
    "triangular_solve": lambda m, x: m.triangular_solve(x, x + 2)[1],
    "empty conjugates": lambda m, x: [x[:0].conj(), x[:, :0].mH],
    "rnn": lambda m, x: [
        getattr(m.nn, name)(2, 2, batch_first=b)(x[None].float())[0]._is_view()
        for name in ("RNN", "GRU", "LSTM")
        for b in (False, True)
    ],
}  # fmt: skip


def born(m: Any, made: Any) -> Any:
    if isinstance(made, (list, tuple)):
        return [born(m, v) for v in made]
    if not isinstance(made, m.Tensor):
        return made
    steps = [s for s, n in zip(made.stride(), made.shape) if n > 1] if made.numel() else []
    return made._is_view(), made._version, tuple(made.shape), steps


@pytest.mark.parametrize("name", BORN)
def test_what_compositions_return(name: str) -> None:
    for dtype, wanted in itertools.product(FLOATS, (False, True)):
        if wanted and dtype == "int64":
            continue

        def what(m: Any, dtype: str, wanted: bool) -> Any:
            x = numbers(m, (2, 2), dtype, 7)
            return born(m, BORN[name](m, x.requires_grad_() if wanted else x))

        alike_for(what, dtype, wanted)


# -- numbers ---------------------------------------------------------------------------------------


def test_searches_in_rows_that_are_not_sorted() -> None:
    values = (0.0, 1.0, 2.0, -1.0, math.nan, math.inf, 0.5)
    for k in range(60):
        row = [values[(k * 5 + i * i * 3 + i) % 7] for i in range(k % 11)]
        for dtype, right in itertools.product(("float32", "float16", "bfloat16"), (False, True)):

            def what(m: Any, row: Any, dtype: str, right: bool) -> Any:
                kind = getattr(m, dtype)
                return m.searchsorted(
                    m.tensor(row, dtype=kind), m.tensor(values, dtype=kind), right=right
                )

            alike_for(what, row, dtype, right)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_norms_of_what_overflows(dtype: str) -> None:
    for row in ([1e30, 0.0], [math.inf, 1.0], [1e200, 1.0], [1.0, 2.0], [0.0, 1e30, 3.0]):

        def what(m: Any, row: Any) -> Any:
            x = m.tensor([row, [1.0] * len(row)], dtype=getattr(m, dtype))
            f = m.nn.functional
            return [
                f.layer_norm(x, (len(row),)).isnan(), f.group_norm(x, 1).isnan(),
                f.group_norm(x[:, :, None], 1).isnan(),
            ]  # fmt: skip

        alike_for(what, row)


def test_calls_that_walks_found() -> None:
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda m: m.linalg.cond(m.tensor([[1.0, math.nan], [0.0, 1.0]]), "fro"),
        lambda m: m.inner(m.ones(3), m.ones(1, 3, 2)),
        lambda m: m.nn.functional.linear(m.ones(0, 3), m.ones(0, 3), m.ones(2)),
        lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(3), m.ones(())),
        lambda m: m.nn.functional.max_pool1d(m.ones(1, 1, 3, dtype=m.int64), 1),
        lambda m: m.nn.functional.pad(m.ones(1, 3, dtype=m.bool), (1, 1), "reflect"),
        lambda m: m.nn.functional.pad(m.ones(3), (1, 1), "circular"),
        lambda m: m.fft.fft2(m.ones(3).bfloat16()),
        lambda m: m.linalg.matrix_rank(m.ones(2, 3), hermitian=True),
        lambda m: m.max_pool2d(m.ones(1, 3, dtype=m.bool), 1),
        lambda m: m.nn.functional.binary_cross_entropy(m.ones(2) / 2, m.tensor([2.0, 0.0])),
        lambda m: m.ones(1, 1).index_put((m.ones(1, 1).bool(),), m.ones(1, 1)),
        lambda m: m.take_along_dim(m.ones(2, 2), m.tensor([-1])),
        lambda m: (x := m.ones(2, 2)).index_put_((x,), x),
        lambda m: m.embedding_renorm_(m.ones(2, 2), m.ones(2), 1.0, 2.0),
        lambda m: m.bincount(m.ones(0, dtype=m.int64), m.ones(0)),
        lambda m: m.view_as_complex(m.zeros(0, 2, 1).permute(2, 0, 1)),
        lambda m: m.special.hermite_polynomial_h(m.tensor([2.0, 0.5]), m.tensor([129.0, 3.0])),
        lambda m: m.special.hermite_polynomial_he(m.tensor(0.5), 2e6),
        lambda m: m.special.hermite_polynomial_h(m.tensor(0.5).double(), m.tensor(512.0)).isnan(),
        lambda m: m.sum(m.ones(2), None, out=m.zeros(())),
        lambda m: (
            m.nn.GRU(2, 2, batch_first=True)(m.ones(3, 2, requires_grad=True))[-1].sum().backward()
        ),
    )
    for what in calls:
        alike(what)
