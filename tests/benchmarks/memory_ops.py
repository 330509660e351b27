"""Ops that move memory: by index, by mask, in another order, joined, sorted, converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.benchmarks.case import Case, Work, through, values

ROWS = 1000  # of the square matrix of a million numbers that most rows work on


def places(m: Any, count: int, below: int) -> Any:
    """Indices without an order, some of them several times."""
    return (m.arange(count) * 7919) % below


class Given:
    """What the rows work on."""

    def __init__(self, m: Any) -> None:
        self.m = m
        self.x, self.y = values(m, ROWS, ROWS), values(m, ROWS, ROWS) + 1
        self.index = places(m, ROWS * ROWS, ROWS).reshape(ROWS, ROWS)
        self.rows = places(m, ROWS, ROWS)
        self.mask = self.x > 0
        self.parts = [values(m, 100, 1000) + k for k in range(10)]
        self.whole = places(m, ROWS * ROWS, 1_000_003).reshape(ROWS, ROWS)
        self.distinct = self.whole.float()
        self.kinds = places(m, 10_000, 10)
        self.flat = self.x.reshape(-1)


def on(work: Callable[[Any, Given], object]) -> Callable[[Any], Work]:
    """A row's work on what is given."""

    def build(m: Any) -> Work:
        given = Given(m)
        return lambda: work(m, given)

    return build


def put_back(m: Any, t: Given) -> Any:
    return t.x.index_put((t.rows, t.rows.flip(0)), t.flat[:ROWS])


def pairs(call: Callable[[Any, Any], Any]) -> Callable[[Any], Work]:
    """Distances between 512 points in 64 dimensions, and their gradient."""
    return through(lambda m: (values(m, 512, 64, grad=True), lambda x: call(m, x), []))


def between(m: Any) -> Any:
    other = values(m, 256, 64).cos().requires_grad_()
    return values(m, 512, 64, grad=True), lambda x: m.cdist(x, other), [other]


def sampled(n: int, mode: str, trained: bool) -> Callable[[Any], Work]:
    """Images 8 x 16 x 64², or volumes 2 x 8 x 16³, read at as many points, some of them outside."""

    def make(m: Any) -> tuple[Any, Callable[[Any], Any], list[Any]]:
        shape = (8, 16, 64, 64) if n == 2 else (2, 8, 16, 16, 16)
        grid = (values(m, shape[0], *shape[2:], n) * 1.1).requires_grad_(trained)

        def run(x: Any) -> Any:
            return m.nn.functional.grid_sample(x, grid, mode, align_corners=False)

        return values(m, *shape, grad=trained), run, [grid]

    def build(m: Any) -> Work:
        x, run, _ = make(m)
        return lambda: run(x)

    return through(make) if trained else build


def loader(m: Any) -> Work:
    """An epoch of 4,096 examples in batches of 64, without workers."""
    data = m.utils.data
    rows = data.TensorDataset(values(m, 4096, 32), places(m, 4096, 10))
    batches = data.DataLoader(rows, batch_size=64, shuffle=True)

    def run() -> None:
        for _ in batches:
            pass

    return run


MILLION: tuple[tuple[str, Callable[[Any, Given], object]], ...] = (
    ("gather, dim 1", lambda m, t: t.x.gather(1, t.index)),
    ("gather, dim 0", lambda m, t: t.x.gather(0, t.index)),
    ("scatter_add, dim 1", lambda m, t: t.x.scatter_add(1, t.index, t.y)),
    ("scatter_add, dim 0", lambda m, t: t.x.scatter_add(0, t.index, t.y)),
    ("scatter, dim 1", lambda m, t: t.x.scatter(1, t.index, t.y)),
    ("index_select, dim 0", lambda m, t: t.x.index_select(0, t.rows)),
    ("index_select, dim 1", lambda m, t: t.x.index_select(1, t.rows)),
    ("x[rows]", lambda m, t: t.x[t.rows]),
    ("take by place", lambda m, t: t.flat[t.whole.reshape(-1) % 1_000_000]),
    ("index_put of 1000", put_back),
    ("index_add, dim 0", lambda m, t: t.x.index_add(0, t.rows, t.y)),
    ("x[mask]", lambda m, t: t.x[t.mask]),
    ("masked_select", lambda m, t: t.x.masked_select(t.mask)),
    ("masked_fill", lambda m, t: t.x.masked_fill(t.mask, 0.0)),
    ("where", lambda m, t: m.where(t.mask, t.x, t.y)),
    ("cat of 10, dim 0", lambda m, t: m.cat(t.parts)),
    ("cat of 10, dim 1", lambda m, t: m.cat(t.parts, 1)),
    ("stack of 10, dim 0", lambda m, t: m.stack(t.parts)),
    ("stack of 10, dim 1", lambda m, t: m.stack(t.parts, 1)),
    ("stack of 10, last dim", lambda m, t: m.stack(t.parts, -1)),
    ("repeat 1 x 4", lambda m, t: t.parts[0].repeat(5, 2)),
    ("repeat_interleave", lambda m, t: t.parts[0].repeat_interleave(10, 0)),
    ("flip, dim 0", lambda m, t: t.x.flip(0)),
    ("flip, dim 1", lambda m, t: t.x.flip(1)),
    ("roll, dim 1", lambda m, t: t.x.roll(100, 1)),
    ("sort, rows", lambda m, t: t.x.sort(1)[0]),
    ("sort of whole numbers", lambda m, t: t.whole.sort(1)[0]),
    ("argsort, rows", lambda m, t: t.distinct.argsort(1)),
    ("topk, 10 of 1000", lambda m, t: t.distinct.topk(10, 1)[0]),
    ("topk, 10 of a million", lambda m, t: t.flat.topk(10)[0]),
    ("unique of 1000 kinds", lambda m, t: t.index.unique()),
    ("cumsum, dim 1", lambda m, t: t.x.cumsum(1)),
    ("cumsum, dim 0", lambda m, t: t.x.cumsum(0)),
    ("histc, 100 bins", lambda m, t: t.x.histc(100)),
    ("bincount", lambda m, t: t.index.reshape(-1).bincount()),
    ("one_hot, 10,000 of 10", lambda m, t: m.nn.functional.one_hot(t.kinds, 10)),
    ("nonzero", lambda m, t: t.mask.nonzero()),
    ("max over dim 1", lambda m, t: t.x.max(1)[1]),
    ("argmax", lambda m, t: t.x.argmax(1)),
    ("transpose, copied", lambda m, t: t.x.t().contiguous()),
    ("float32 to float64", lambda m, t: t.distinct.double()),
    ("float32 to int64", lambda m, t: t.x.long()),
    ("int64 to float32", lambda m, t: t.index.float()),
    ("float32 to float16", lambda m, t: t.x.half()),
    ("float32 to bfloat16", lambda m, t: t.x.bfloat16()),
    ("bool to float32", lambda m, t: t.mask.float()),
    ("clone", lambda m, t: t.x.clone()),
    ("tril", lambda m, t: t.x.tril()),
)

CASES = [
    *(Case(f"{name}, 1 million", on(work), 1.0, 1, 30) for name, work in MILLION),
    Case("pdist 512x64, trained", pairs(lambda m, x: m.pdist(x)), 0.9, 1, 20),
    Case("cdist 512x64 by itself, trained", pairs(lambda m, x: m.cdist(x, x)), 0.9, 1, 20),
    Case("cdist 512x64 by 256, trained", through(between), 0.9, 1, 20),
    *(
        Case(
            f"grid_sample {n}d, {mode}{', trained' * trained}",
            sampled(n, mode, trained),
            1.0,
            1,
            20,
        )
        for n, mode in ((2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"))
        for trained in (False, True)
    ),
    Case(
        "einsum bik,bkj->bij",
        lambda m: _einsum(m, "bik,bkj->bij", (16, 64, 64), (16, 64, 64)),
        1.0,
        10,
        30,
    ),
    Case(
        "einsum bhid,bhjd->bhij",
        lambda m: _einsum(m, "bhid,bhjd->bhij", (4, 8, 64, 32), (4, 8, 64, 32)),
        1.0,
        10,
        30,
    ),
    Case("randn, 1 million", on(lambda m, t: m.randn(ROWS, ROWS)), 1.0, 1, 20, random=True),
    Case("rand, 1 million", on(lambda m, t: m.rand(ROWS, ROWS)), 1.0, 1, 20, random=True),
    Case("randperm, 1 million", on(lambda m, t: m.randperm(10**6)), 1.0, 1, 20, random=True),
    Case("loader without workers, 4096 in batches of 64", loader, 0.6, 1, 20),
]


def _einsum(m: Any, text: str, *shapes: tuple[int, ...]) -> Work:
    a, b = (values(m, *s) for s in shapes)
    return lambda: m.einsum(text, a, b)
