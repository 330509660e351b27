"""Calls of which one tensor has another type, or no elements."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.outside.alike import alike, whats

KINDS = (
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
)

TWO = whats(
    lambda m, k, x, y: m.vdot(x[0], k(y[0])),
    lambda m, k, x, y: m.vdot(k(x[0]), y[0]),
    lambda m, k, x, y: m.linalg.cross(x, k(y)),
    lambda m, k, x, y: m.addbmm(k(x), x[None], y[None]),
    lambda m, k, x, y: m.addbmm(x, k(x[None]), y[None]),
    lambda m, k, x, y: m.baddbmm(x[None], x[None], k(y[None])),
    lambda m, k, x, y: m.index_reduce(k(x), 0, m.tensor([0, 1, 2]), y, "mean"),
    lambda m, k, x, y: m.scatter_reduce(x, 0, m.zeros(3, 3).long(), k(y), "sum"),
    lambda m, k, x, y: m.cholesky_solve(k(x), y),
    lambda m, k, x, y: m.cov(x[0], fweights=k(m.tensor([1, 2, 1]))),
    lambda m, k, x, y: m.cov(x[0], aweights=k(m.tensor([1.0, 2, 1]))),
    lambda m, k, x, y: m.cov(k(x[0]), fweights=m.tensor([1, 2, 1])),
    lambda m, k, x, y: m.nn.functional.multi_margin_loss(k(x), m.tensor([0, 1, 2])),
    lambda m, k, x, y: m.nn.functional.multi_margin_loss(x, m.tensor([0, 1, 2]), weight=k(y[0])),
    lambda m, k, x, y: m.nn.functional.multilabel_margin_loss(k(x), m.zeros(3, 3).long()),
    lambda m, k, x, y: m.nn.functional.avg_pool1d(k(x), 2),
    lambda m, k, x, y: m.nn.functional.avg_pool2d(k(x)[None], 2),
    lambda m, k, x, y: m.nn.functional.max_unpool1d(k(x)[None], m.zeros(1, 3, 3).long(), 2),
    lambda m, k, x, y: m.nn.functional.max_unpool2d(k(x)[None], m.zeros(1, 3, 3).long(), 2),
    lambda m, k, x, y: m.repeat_interleave(x, k(m.tensor([1, 2, 1])), 0),
    lambda m, k, x, y: m.index_fill(x, 0, m.tensor([0]), k(m.tensor(2.0))),
    lambda m, k, x, y: m.stft(k(m.ones(20)), 4, return_complex=True),
)


@pytest.mark.parametrize("number", range(len(TWO)))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", ["float32", "bfloat16"])
def test_another_type(number: int, kind: str, base: str) -> None:
    def what(m: Any) -> Any:
        x = (m.arange(9.0).reshape(3, 3) / 4 + m.eye(3)).to(getattr(m, base))
        return TWO[number](m, lambda t: t.to(getattr(m, kind)), x, x + 1)

    alike(what, number, kind)


NOTHING = whats(
    lambda m: m.linalg.vector_norm(m.zeros(0, 5), -2),
    lambda m: m.linalg.vector_norm(m.zeros(0, 5), float("inf"), 0),
    lambda m: m.linalg.vector_norm(m.zeros(0, 5), float("inf"), 1),
    lambda m: m.norm(m.zeros(5, 0), -0.5, 1),
    lambda m: m.norm(m.tensor(1.5), float("nan")),
    lambda m: m.norm(m.tensor(1.5), float("nan"), [0]),
    lambda m: m.flip(m.tensor(1.0), [0, 1]),
    lambda m: m.flip(m.tensor(1.0), [0, -1]),
    lambda m: m.index_add(m.ones(5, 0), -1, m.tensor([0, 2]), m.ones(5, 2)),
    lambda m: m.index_add(m.ones(0, 3), 0, m.tensor([0]), m.ones(1, 3)),
    lambda m: m.index_add(m.ones(0), 0, m.tensor([0]), m.ones(1)),
    lambda m: m.cov(m.zeros(0), fweights=m.zeros(0).long()),
    lambda m: m.cov(m.zeros(2), fweights=m.zeros(2).long()),
    lambda m: m.addmv(m.ones(3), m.ones(2, 10), m.ones(10)),
    lambda m: m.addmv(m.tensor(1.0), m.ones(2, 10), m.ones(9)),
    lambda m: m.cholesky_solve(m.ones(0, 2, 2), m.eye(2).expand(2, 2, 2)),
    lambda m: m.nn.functional.max_unpool2d(m.ones(1, 0, 3), m.zeros(1, 0, 3).long(), 2),
    lambda m: m.nn.functional.max_unpool2d(m.ones(1, 0, 3, 1), m.zeros(1, 0, 3, 1).long(), 2),
    lambda m: m.nn.functional.adaptive_avg_pool3d(m.ones(0, 8, 8, 8, 8).cfloat(), 2),
    lambda m: m.nn.functional.multi_margin_loss(m.ones(0, 3).int(), m.ones(0).long()).shape,
    lambda m: m.nn.functional.multilabel_margin_loss(m.ones(0, 3), m.ones(0, 3)).shape,
    lambda m: m.nn.functional.hardtanh(m.ones(3).to(m.uint8), -0.5, 0.5),
)


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
def test_slopes_of_soft_margins_beyond_what_powers_hold(kind: str) -> None:
    def slopes(m: Any) -> Any:
        x = m.tensor([1e4, -1e4, 3.0, -88.5], dtype=getattr(m, kind)).requires_grad_()
        y = m.tensor([-1.793, 1.0, 0.5, 1.0]).to(x.dtype)
        loss = m.nn.functional.soft_margin_loss(x, y, reduction="sum")
        return m.autograd.grad(loss, x)[0]

    alike(slopes, kind)


OVER = whats(
    lambda m, x, out: m.mvlgamma(x, 2, out=out),
    lambda m, x, out: m.nn.functional.logsigmoid(x, out=out),
    lambda m, x, out: m.exp(x, out=out),
)
PLACES = whats(
    lambda m, x: x,
    lambda m, x: x[1:],
    lambda m, x: x.t(),
    lambda m, x: x[:, None],
    lambda m, x: m.zeros(1).expand(3),
    lambda m, x: m.zeros(1).expand(3, 3),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(OVER)))
@pytest.mark.parametrize("place", range(len(PLACES)))
def test_out_that_gets_a_copy_may_lie_anywhere(number: int, place: int) -> None:
    if (number, place) == (1, 1) and pytest.importorskip(
        "torch"
    ).backends.cpu.get_cpu_capability() != "AVX512":
        pytest.skip("with narrow registers PyTorch reads a number that it has written over")

    def what(m: Any) -> Any:
        x = m.arange(2.0, 11.0).reshape(3, 3)
        out = PLACES[place](m, x)
        return OVER[number](m, x, out), out

    alike(what, number, place)


@pytest.mark.parametrize("wanted", ["both", "one"])
@pytest.mark.parametrize("layer", ["mul", "view", "unbind"])
def test_hooks_of_what_is_asked_for_between(wanted: str, layer: str) -> None:
    def asked(m: Any) -> Any:
        x = m.tensor([1.0, 2.0]).requires_grad_()
        y = x - 1 if layer != "unbind" else (x - 1).unbind()[0]
        y.register_hook(lambda g: g * 2)
        made = y.view(-1, 1) if layer == "view" else y * 3
        return m.autograd.grad(made.sum(), [y, x] if wanted == "both" else [y])

    alike(asked, wanted)


@pytest.mark.parametrize("name", ["std", "var", "std_mean", "var_mean"])
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_slopes_of_deviations_over_no_dimensions(name: str, correction: float) -> None:
    def slopes(m: Any) -> Any:
        x = m.tensor([1.0, 2.0, 4.0]).requires_grad_()
        made = getattr(m, name)(x, (), correction=correction)
        return m.autograd.grad(made[0] if isinstance(made, tuple) else made, x)

    alike(slopes, name)


ORDERS = whats(
    *(
        lambda m, n=n, b=b: getattr(m.nn.functional, f"conv{n}d")(
            m.ones(1, 3, *[4] * n).bool(), m.ones(3, 3, *[3] * n).to(getattr(m, b)), m.ones(3, 1)
        )
        for n in (1, 2, 3)
        for b in ("bool", "float32")
    ),
    *(
        lambda m, n=n, k=k: getattr(m.nn.functional, f"conv_transpose{n}d")(
            m.ones(1, 3, *[4] * n).to(getattr(m, k)), m.ones(3, 3, *[3] * n)
        )
        for n in (1, 2, 3)
        for k in ("bool", "int32", "int64", "uint8", "float64")
    ),
    lambda m: m.zeros(0, 3).index_put((m.tensor([0]),), m.ones(3).double()),
    lambda m: m.zeros(2, 3).index_put((m.tensor([5]),), m.ones(3).double()),
    lambda m: m.nn.functional.avg_pool3d(m.ones(5, 1, 1, 5, 1), 2, ceil_mode=True),
    lambda m: m.addr(m.tensor(1.0).double(), m.ones(2), m.ones(2)),
    lambda m: m.addr(m.tensor(float("nan")), m.ones(2).cfloat(), m.ones(2).cfloat()),
)


def loss_of_two(m: Any, kind: str, who: str, reduction: str) -> Any:
    x, t, w = (
        m.tensor(v).to(getattr(m, kind) if name in who else m.float32)
        for name, v in (("x", [0.2, 0.4, 0.6]), ("t", [0.3, 0.4, 1.0]), ("w", [1.0, 2.0, 3.0]))
    )
    return m.nn.functional.binary_cross_entropy(x, t, w, reduction=reduction)


def image(m: Any, n: int, kind: str) -> Any:
    return m.arange(2.0 * 3 * 4**n).reshape(2, 3, *[4] * n).to(getattr(m, kind))


OF_TYPES = whats(
    *(
        lambda m, n=n, k=k: m.nn.functional.interpolate(
            image(m, n, k), 3, mode=("linear", "bilinear", "trilinear")[n - 1]
        )
        for n in (1, 2, 3)
        for k in KINDS[2:]
    ),
    *(
        lambda m, n=n, k=k: getattr(m.nn.functional, f"avg_pool{n}d")(image(m, n, k), 2)
        for n in (1, 2, 3)
        for k in KINDS
    ),
    *(
        lambda m, n=n, k=k: m.nn.functional.unfold(m.ones(n, 1, 5, 5).to(getattr(m, k)), 2)
        for n in (0, 1)
        for k in KINDS
    ),
    *(
        lambda m, n=n, k=k: m.nn.functional.fold(m.ones(n, 4, 16).to(getattr(m, k)), (5, 5), 2)
        for n in (0, 1)
        for k in KINDS
    ),
    *(
        lambda m, k=k, who=who, r=r: loss_of_two(m, k, who, r)
        for k in KINDS
        for who in ("w", "x", "t", "tw")
        for r in ("mean", "sum", "none")
    ),
    *(
        lambda m, k=k, name=name: getattr(m.nn.functional, name)(
            m.ones(2, 3), *((1,) if name == "group_norm" else ((3,),)), m.ones(3), m.ones(3).to(getattr(m, k))
        )
        for k in KINDS
        for name in ("layer_norm", "group_norm")
    ),
)  # fmt: skip


NAN, INF = math.nan, math.inf
ODD = whats(
    *(
        lambda m, p=p: (
            m.cdist(m.tensor([[1.0, NAN], [INF, 0.5]]), m.tensor([[1.0, 2.0], [NAN, 3], [INF, 0]]), p=p),
            m.pdist(m.tensor([[1.0, NAN], [1.0, 2.0], [INF, 4.0], [1.0, 2.5]]), p=p),
        )
        for p in (0, 0.5, 1, 2, 3)
    ),
    *(
        lambda m, v=v, full=full: m.nn.functional.gaussian_nll_loss(
            m.tensor([0.5, 1.0]), m.tensor([1.0, 3.0]), m.tensor([v, 0.5]), full, reduction="none"
        )
        for v in (INF, NAN, 0.0, 2.0)
        for full in (True, False)
    ),
    *(
        lambda m, v=v: m.slogdet(m.full((3, 3), v) + m.zeros(2, 1, 1))
        for v in (NAN, INF, -INF, 0.0)
    ),
    *(
        lambda m, v=v: m.cov(m.ones(2, 3), aweights=m.tensor([1.0, v, 2.0])) for v in (NAN, -1.0, 3.0)
    ),
    *(lambda m, v=v: m.histc(m.tensor(v)) for v in (1e30, -1e30, 1.5)),
    *(
        lambda m, f=f, b=b: getattr(m.linalg, f)(m.full((*b, 3, 3), NAN), hermitian=True)
        for f in ("matrix_rank", "pinv")
        for b in ((), (2,))
    ),
)  # fmt: skip


def test_slopes_of_variances_that_are_held() -> None:
    def slopes(m: Any) -> Any:
        x = m.tensor([0.5, 1.0, 2.0])
        v = m.tensor([0.0, 0.5, 3.0], requires_grad=True)
        return m.autograd.grad(m.nn.functional.gaussian_nll_loss(x, x * 2, v), v)

    alike(slopes)


MASKS: list[tuple[str, list[Any], tuple[int, ...]]] = [
    (kind, mask, shape)
    for kind in ("uint8", "bool", "int64")
    for mask in ([1], [1, 0, 1, 1, 1], [[1] * 5] * 5, [[1]])
    for shape in ((), (1,), (5,), (1, 5), (1, 1, 5), (4, 5))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("number", range(len(MASKS)))
def test_index_put_of_masks_and_of_values_with_more_dimensions(
    number: int, accumulate: bool
) -> None:
    kind, mask, shape = MASKS[number]

    def put(m: Any) -> Any:
        index = (m.tensor(mask, dtype=getattr(m, kind)),)
        return m.zeros(5, 5).index_put(index, m.ones(shape) * 2, accumulate)

    def put_in_place(m: Any) -> Any:
        index = (m.tensor(mask, dtype=getattr(m, kind)),)
        return m.zeros(5, 5).index_put_(index, m.ones(shape) * 2, accumulate)

    alike(put, MASKS[number])
    alike(put_in_place, MASKS[number])


EMPTY = [
    (n, zero, k, b, kind)
    for n in (1, 2, 3)
    for zero in range(2, n + 2)
    for k in (1, 3)
    for b in (1, 2)
    for kind in ("float32", "int64", "complex64")
]


@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
@pytest.mark.parametrize("number", range(len(EMPTY)))
def test_convolutions_of_images_without_extent(number: int, name: str) -> None:
    n, zero, k, b, kind = EMPTY[number]

    def convolved(m: Any) -> Any:
        shape = [b, 3, *[4] * n]
        shape[zero] = 0
        x, w, bias = (m.ones(*s, dtype=getattr(m, kind)) for s in (shape, (3, 3, *[k] * n), (3,)))
        return getattr(m.nn.functional, f"{name}{n}d")(x, w, bias, stride=2, padding=2)

    alike(convolved, EMPTY[number])


RANKS = whats(
    *(
        lambda m, k=k, s=s, kw=kw: m.linalg.matrix_rank(m.zeros(s, dtype=getattr(m, k)), **kw)
        for k in ("int8", "bool", "float16", "float32", "complex64")
        for s in ((0, 1), (2, 0), (0, 2, 2))
        for kw in ({}, {"rtol": 1.0}, {"atol": 1.0}, {"rtol": 1.0, "atol": 1.0}, {"hermitian": True})
    ),
)  # fmt: skip


TABLES = {
    "no elements": NOTHING,
    "what is asked first": ORDERS,
    "types of images, losses and parameters": OF_TYPES,
    "numbers that are none or without end": ODD,
    "ranks of matrices without elements": RANKS,
}


@pytest.mark.parametrize(
    ("table", "number"), [(t, n) for t in TABLES for n in range(len(TABLES[t]))]
)
def test_tables(table: str, number: int) -> None:
    alike(TABLES[table][number], table, number)
