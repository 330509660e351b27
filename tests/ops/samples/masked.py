"""Samples of the reductions that leave masked elements out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.ops.samples.base import S, Sample, V, boolean, const, entry, f32, f64, i64, t
from tests.oracle import names

ROWS = const([[True, False, True, True], [True, True, False, False], [False, True, True, True]],
             boolean)  # fmt: skip
NONE = const([[True, True, False, True], [False] * 4, [True] * 4], boolean)


def _reduction(
    *first: Any, integers: bool = True, wide: Any = f64
) -> Callable[[], Iterator[Sample]]:
    def draw() -> Iterator[Sample]:
        for mask in (None, ROWS, ROWS[0], ROWS[:, :1]):
            yield S(t(), *first, mask=mask)
            yield S(t(), *first, dim=1, mask=mask)
            yield S(t(), *first, dim=(0, 1), keepdim=True, mask=mask)
        yield S(t((3, 4), layout="transposed"), *first, dim=0, mask=ROWS)
        yield Sample((t((3, 4), f32), *first), {"dim": -1, "mask": NONE}, grad=False)
        yield V(t((3, 4), f32), *first, dim=0, mask=ROWS, dtype=wide)
        if integers:
            yield V(t((3, 4), i64, 1, 4), *first, dim=1, mask=ROWS)

    return draw


for _name in ("sum", "prod", "amax", "amin"):
    entry(f"masked.{_name}", _reduction())
# Both compute in the type of the elements and convert the result, whose last bits are float32's.
entry("masked.logsumexp", _reduction(integers=False, wide=f32))
for _name in ("mean", "var", "std"):
    entry(f"masked.{_name}", _reduction(integers=_name != "mean"))
entry("masked.norm", _reduction(2.0, integers=False))


def _one_dim(*first: Any, grad: bool = True) -> Callable[[], Iterator[Sample]]:
    def draw() -> Iterator[Sample]:
        for mask in (None, ROWS, ROWS[0]):
            for dim in (0, -1):
                yield Sample((t(), *first), {"dim": dim, "mask": mask}, grad=grad)
        yield V(t((3, 4), f32), *first, dim=1, mask=ROWS)

    return draw


for _name in names("cumsum cumprod softmax log_softmax softmin median"):
    entry(f"masked.{_name}", _one_dim())
for _name in ("argmax", "argmin"):
    entry(f"masked.{_name}", _one_dim(grad=False))
entry("masked.normalize", _one_dim(2.0))


def _logaddexp() -> Iterator[Sample]:
    yield S(t(), t())
    yield Sample((t(), t()), {"input_mask": ROWS}, second=False)  # NaN in PyTorch
    yield V(t(), t(), input_mask=ROWS, other_mask=ROWS)


entry("masked.logaddexp", _logaddexp)
