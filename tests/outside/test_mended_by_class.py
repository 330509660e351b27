"""Rules that one walk over a whole class of calls showed to be other here: counts of writes and views of what
PyTorch composes, types of out=, layouts of gradients, what derivatives save."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt
from tests.outside import forms, grads, signatures
from tests.outside import statements as st
from tests.outside.test_mended_densely import alike, alike_for, numbers

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


# -- out= of other types ---------------------------------------------------------------------------

SEVERAL = (
    "geqrf linalg.qr linalg.eigh linalg.svd linalg.lu linalg.lu_factor linalg.lu_factor_ex"
    " linalg.ldl_factor linalg.ldl_factor_ex linalg.slogdet linalg.inv_ex linalg.cholesky_ex sort topk"
    " kthvalue mode cummax aminmax svd linalg.inv linalg.cholesky cholesky linalg.matrix_power"
    " logcumsumexp nanmean"
)


@pytest.mark.parametrize("name", SEVERAL.split())
def test_types_of_places_to_write_to(name: str) -> None:
    more = {"topk": (1,), "kthvalue": (1,), "cummax": (0,), "linalg.matrix_power": (2,)}
    args = more.get(name, (0,) if name == "logcumsumexp" else ())
    kinds = ("bool", "int64", "float16", "float32", "complex64")
    for dtype, other, count in itertools.product((*kinds, "bfloat16"), kinds, (1, 2, 3)):
        if dtype == "int64" and "lu_" in name:
            continue  # 64 bits are too many for the numbers of rows, which we ask after the kernel

        def what(m: Any, dtype: str, other: str, count: int) -> Any:
            f = m
            for part in name.split("."):
                f = getattr(f, part)
            x = m.eye(2).add(m.tensor([[1.0, 0.5], [0.5, 0.0]])).to(getattr(m, dtype))
            out = tuple(m.zeros(0, dtype=getattr(m, other)) for _ in range(count))
            f(x, *args, out=out if count > 1 else out[0])
            return [tuple(o.shape) for o in out]

        alike_for(what, dtype, other, count)


def test_out_of_factors_is_written_to() -> None:
    for name in ("lu_factor", "ldl_factor"):

        def what(m: Any, name: str) -> Any:
            out = m.zeros(0), m.zeros(0, dtype=m.int32)
            getattr(m.linalg, name)(m.tensor([[2.0, 1.0], [1.0, 3.0]]), out=out)
            return out

        alike_for(what, name)


# -- gradients: how they lie, and what they need ---------------------------------------------------

LIE = "addmm norm std std_mean var nansum nanmean mean take linalg.multi_dot nn.functional.pairwise_distance"
LIE += " nn.functional.adaptive_avg_pool1d linalg.vector_norm dist"


def entries(name: str) -> list[tuple[int, Any]]:
    return [(i, info) for i, info in enumerate(signatures.database()) if info.name == name]


@pytest.mark.parametrize("name", LIE.split())
def test_gradients_lie_as_pytorch_has_them(name: str) -> None:
    for i, info in entries(name):
        some = [s for s in st.samples(i) if any(t.dim() > 1 for t in st.inside(s))][:4]
        for s, layouts, way in itertools.product(
            some, itertools.product(grads.LAYOUTS, repeat=2), ("ones", "sum")
        ):
            given = s, signatures.where(info), dict(enumerate(layouts)), way
            a = grads.attempt(ORACLE, *given)
            if a is not None and not isinstance(a, str):
                found = grads.differ(a, grads.attempt(SUBJECT, *given))
                assert found in ("", "node"), (s, layouts, way)


SAVED = (
    "take put index_add index_copy masked_select complex fft.fft fft.rfft linalg.householder_product ormqr"
    " linalg.lstsq cholesky_solve special.log_ndtr linalg.qr linalg.svdvals nn.functional.layer_norm erfinv"
)


@pytest.mark.parametrize("name", SAVED.split())
def test_what_derivatives_save(name: str) -> None:
    for i, info in entries(name):
        for s in [s for s in st.samples(i) if s.input is not None][:5]:
            for kind, place in (("result", 0), ("operand", 0), ("operand", 1), ("operand", 2)):
                given = s, signatures.where(info), kind, place
                assert written(SUBJECT, *given) == written(ORACLE, *given), (s, kind, place)


def written(side: Side, s: Any, name: str, kind: str, place: int) -> str | None:
    """What a backward pass says after a result, or an operand, was written to."""
    m, leaves, products = side.root, list[Any](), list[Any]()

    def times(x: Any) -> Any:
        if isinstance(x, m.Tensor) and x.requires_grad:
            products.append(x * 1)
            return products[-1]
        return type(x)(times(v) for v in x) if type(x) in (list, tuple) else x

    args = [times(grads.laid(m, a, {}, leaves)) for a in side.carry([s.input, *s.args], {})]
    kwargs = side.carry(s.kwargs, {})

    def run() -> None:
        made = grads.tensors(m, forms.found(m, name)(*args, **kwargs))
        targets = made if kind == "result" else products
        results = [r for r in made if r.requires_grad]
        if not results or place >= len(targets):
            return
        with m.no_grad():
            targets[place].zero_()
        m.autograd.grad(results, leaves, [m.ones_like(r) for r in results], allow_unused=True)

    _, refused = attempt(run)
    return type(refused).__name__ if refused is not None else None


LOSSES = "mse_loss huber_loss nll_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div"


@pytest.mark.parametrize("name", LOSSES.split())
def test_losses_of_two_types(name: str) -> None:
    kinds = ("float32", "bfloat16", "int64", "bool", "float64")
    for dtype, other, shape, wanted in itertools.product(
        kinds, kinds, ((2, 3), (3,), ()), (0, 1, 2)
    ):

        def what(m: Any, dtype: str, other: str, shape: Any, wanted: int) -> Any:
            x = m.ones(shape, dtype=getattr(m, dtype))
            y = m.ones(shape, dtype=getattr(m, other))
            leaves = [t.requires_grad_() for t, on in ((x, wanted == 1), (y, wanted == 2)) if on]
            made = getattr(m.nn.functional, name)(x, y)
            return [made, *(m.autograd.grad(made, leaves) if leaves else ())]

        alike_for(what, dtype, other, shape, wanted)


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
