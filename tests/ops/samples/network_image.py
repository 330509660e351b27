"""Samples of convolution, pooling, padding, resizing and sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import S, Sample, V, c128, const, entry, f16, f32, i64, t, u8
from tests.oracle import torch

SIZES = (5, 4, 3)


def _conv(n: int, transposed: bool) -> Iterator[Sample]:
    size = SIZES[:n]
    for kwargs in ({}, {"stride": 2}, {"padding": 1}, {"dilation": 2, "padding": 2},
                   {"groups": 2, "padding": 1},
                   {"stride": 2, "padding": 1, "groups": 4}):  # fmt: skip
        groups = kwargs.get("groups", 1)
        for k in (1, 3) if n < 3 else (3,):
            w = (4, 4 // groups, *(k,) * n)
            if k == 3 and not kwargs.get("padding") and n == 3:
                w = (4, 4, 2, 2, 2)
            yield Sample((t((2, 4, *size)), t(w), t((4,))), dict(kwargs))
    yield S(t((4, *size)), t((4, 3 if transposed else 4, *(2,) * n)))
    yield S(t((0, 4, *size)), t((4, 4, *(2,) * n)))
    yield S(t((1, 4, *size), c128), t((4, 4, *(2,) * n), c128))
    yield S(t((2, 4, *size), layout="transposed"), t((4, 4, *(2,) * n), layout="transposed"))
    yield V(t((1, 4, *size), f16), t((4, 4, *(2,) * n), f16))
    yield V(t((1, 4, *size), i64), t((4, 4, *(2,) * n), i64))
    if transposed:
        yield S(t((1, 4, *size)), t((4, 2, *(2,) * n)), stride=2, output_padding=1)
        yield S(t((1, 4, *size)), t((4, 2, *(2,) * n)), dilation=2, output_padding=1)
    elif n < 3:
        yield S(t((1, 4, *size)), t((4, 4, *(2,) * n)), padding="same")
        yield S(t((1, 4, *size)), t((4, 4, *(3,) * n)), padding="same", dilation=2)
        yield S(t((1, 4, *size)), t((4, 4, *(2,) * n)), padding="valid")


for _n in (1, 2, 3):
    entry(f"conv{_n}d", lambda n=_n: _conv(n, False), slack=10)
    entry(f"conv_transpose{_n}d", lambda n=_n: _conv(n, True), slack=10)


def _convolution() -> Iterator[Sample]:
    yield S(t((2, 4, 5)), t((6, 4, 3)), t((6,)), [2], [1], [1], False, [0], 1)
    yield S(t((2, 4, 5)), t((4, 3, 3)), None, [2], [1], [1], True, [1], 1)


entry("convolution", _convolution, slack=10)


def _unfold() -> Iterator[Sample]:
    yield S(t((2, 3, 5, 4)), 2)
    yield S(t((3, 5, 4)), (2, 3), dilation=(2, 1), padding=1, stride=(1, 2))


def _fold() -> Iterator[Sample]:
    yield S(t((2, 12, 12)), (5, 4), 2)
    yield S(t((12, 12)), (4, 5), (2, 2), padding=1, stride=2)


entry("nn.functional.unfold", _unfold, covers=("im2col",))
entry("fold", _fold, covers=("col2im",))

# -- pools ----------------------------------------------------------------------------------------

POOLS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 1},
)  # fmt: skip


def _images(n: int) -> Iterator[Any]:
    yield t((2, 3, *SIZES[:n]))
    yield t((3, *SIZES[:n]), layout="transposed")


def _max_pool(n: int) -> Iterator[Sample]:
    for x in _images(n):
        for kwargs in POOLS:
            yield Sample((x,), dict(kwargs))
    yield S(t((1, 2, *SIZES[:n])), 2, stride=1, dilation=2)
    yield V(t((2, 3, *SIZES[:n]), f16), 2)
    yield V(t((2, 3, *SIZES[:n])), 2, return_indices=True)
    if n > 1:
        yield V(t((2, 3, *SIZES[:n]), u8, 0, 3), 3, 2, 1, return_indices=True)
        x = const([[[[float("nan"), 1.0, -float("inf")], [2.0, float("nan"), -float("inf")]]]])
        yield V(x if n == 2 else x[None], 3, 1, 1, return_indices=True)


def _avg_pool(n: int) -> Iterator[Sample]:
    for x in _images(n):
        for kwargs in POOLS:
            yield Sample((x,), dict(kwargs))
            yield Sample((x,), {**kwargs, "count_include_pad": False})
    if n > 1:
        yield S(t((2, 3, *SIZES[:n])), 2, divisor_override=3)
    yield V(t((2, 3, *SIZES[:n]), f16), 2)
    yield V(t((2, 3, *SIZES[:n]), i64, -9, 9), 2)


def _adaptive(n: int) -> Iterator[Sample]:
    for x in _images(n):
        for size in (1, 2, (3, 2, 1)[:n], (7, 5, 4)[:n]):
            yield S(x, size if n > 1 or isinstance(size, int) else size[0])


for _n in (1, 2, 3):
    covers = (f"max_pool{_n}d_with_indices", f"max_pool{_n}d_with_indices_backward")
    home = lambda name: lambda side: getattr(side.root.nn.functional, name)  # noqa: E731
    entry(f"max_pool{_n}d", lambda n=_n: _max_pool(n), call=home(f"max_pool{_n}d"),
          covers=covers if _n > 1 else ())  # fmt: skip
    entry(f"avg_pool{_n}d", lambda n=_n: _avg_pool(n), slack=3)
    entry(f"adaptive_max_pool{_n}d", lambda n=_n: _adaptive(n),
          call=home(f"adaptive_max_pool{_n}d"),
          covers=(f"_put_flat{_n}d",) if _n > 1 else ())  # fmt: skip
    covers = (f"_adaptive_avg_pool{_n}d", f"_adaptive_avg_pool{_n}d_backward")
    entry(f"adaptive_avg_pool{_n}d", lambda n=_n: _adaptive(n), slack=3,
          covers=covers if _n > 1 else ())  # fmt: skip


def _lp_pool(n: int) -> Iterator[Sample]:
    yield S(t((2, 3, *SIZES[:n]), low=0.1), 2, 2)
    yield S(t((2, 3, *SIZES[:n]), low=0.1), 3, 2, stride=1)


def _fractional(n: int) -> Iterator[Sample]:
    u = t((2, 3, n), low=0, high=1)
    yield S(t((2, 3, *SIZES[:n])), 2, (3, 2, 2)[:n], _random_samples=u)
    yield S(t((2, 3, *SIZES[:n])), 2, output_ratio=(0.6,) * n, _random_samples=u)
    yield S(t((2, 3, *SIZES[:n])), (2, 1, 1)[:n], (4, 1, 3)[:n], _random_samples=u)


def _unpool(n: int) -> Iterator[Sample]:
    x = t((2, 3, *(4, 4, 4)[:n]))
    values, places = getattr(torch.nn.functional, f"max_pool{n}d")(x, 2, return_indices=True)
    yield S(values, places, 2)
    yield S(values[0], places[0], 2, output_size=(5,) * n)


for _n in (1, 2, 3):
    entry(f"lp_pool{_n}d", lambda n=_n: _lp_pool(n), slack=3)
    entry(f"max_unpool{_n}d", lambda n=_n: _unpool(n))
    if _n > 1:
        entry(f"fractional_max_pool{_n}d", lambda n=_n: _fractional(n))

# -- borders and sizes ----------------------------------------------------------------------------


def _pad() -> Iterator[Sample]:
    for n in (1, 2, 3):
        p = [1, 2, 0, 1, 2, 1][: 2 * n]
        for x in _images(n):
            for mode in ("constant", "reflect", "replicate", "circular"):
                yield S(x, p, mode)
                yield S(x, [-1, *p[1:]], mode)
    yield V(t((3, 4), u8, 0, 9), (1, 2), value=3)
    yield V(t((2, 3, 4), f16), (1, 2), "reflect")
    yield S(t((3, 4)), (1, -1, 0, 2), value=1.5)


entry(
    "nn.functional.pad", _pad,
    covers=("constant_pad_nd", "_pad_circular", "_pad_circular_backward",
            *(f"{kind}_pad{n}d{end}" for kind in ("reflection", "replication") for n in (1, 2, 3)
              for end in ("", "_backward"))),
)  # fmt: skip
UPSAMPLED = [
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    *(f"upsample_nearest{n}d" for n in (1, 2, 3)),
    *(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)),
]  # fmt: skip


def _interpolate() -> Iterator[Sample]:
    for n, linear in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
        x = t((2, 2, *SIZES[:n]))
        for how in ({"size": (7, 3, 2)[:n]}, {"scale_factor": 1.7}, {"scale_factor": 0.6},
                    {"scale_factor": 1.3, "recompute_scale_factor": True}):  # fmt: skip
            for mode in ("nearest", "nearest-exact", "area", linear, *["bicubic"] * (n == 2)):
                yield Sample((x,), {**how, "mode": mode})
                if mode in (linear, "bicubic"):
                    yield Sample((x,), {**how, "mode": mode, "align_corners": True})
                if mode in ("bilinear", "bicubic"):
                    yield Sample((x,), {**how, "mode": mode, "antialias": True})
    wide = t((1, 1, 70, 3))
    yield S(wide, size=(50, 2), mode="bilinear")
    yield S(wide, size=(30, 5), mode="bicubic")
    yield V(t((1, 2, 5, 4), u8, 0, 250), size=(7, 3), mode="bilinear")
    yield V(t((1, 2, 5, 4), f16), size=(7, 3), mode="bilinear")


entry(
    "interpolate", _interpolate, slack=10, shares=False,
    covers=(*UPSAMPLED, *(f"{name}_backward" for name in UPSAMPLED)),
)  # fmt: skip


def _shuffle(channels: int, factor: int, size: tuple[int, ...]) -> Iterator[Sample]:
    yield S(t((2, channels, *size)), factor)
    yield S(t((channels, *size) if len(size) == 2 else (1, channels, *size)), factor)
    yield V(t((2, channels, *size), u8, 0, 9), factor)


entry("pixel_shuffle", lambda: _shuffle(8, 2, (3, 2)))
entry("pixel_unshuffle", lambda: _shuffle(2, 2, (4, 6)))
entry("channel_shuffle", lambda: iter([S(t((2, 6, 3)), 2), S(t((1, 6, 2, 2)), 3)]))


def _grid(n: int, *points: int, **how: Any) -> Any:
    return t((2, *points, n), low=-1.4, high=1.4, **how)


def _grid_sample() -> Iterator[Sample]:
    for n in (2, 3):
        x, grid = t((2, 2, *SIZES[:n])), _grid(n, *(2, 3, 2)[:n])
        for mode in ("bilinear", "nearest", *["bicubic"] * (n == 2)):
            for padding in ("zeros", "border", "reflection"):
                for corners in (False, True):
                    # Of a nearest element there is no second gradient.
                    yield Sample((x, grid, mode, padding, corners), second=mode != "nearest")


def _grid_sampler(n: int) -> Iterator[Sample]:
    x, points = t((2, 3, *SIZES[:n])), (7, 3, 1)[:n]
    for corners in (False, True):
        yield S(x, _grid(n, *points), 0, 2, corners)
    yield V(x.float(), _grid(n, *points, dtype=f32), 0, 0, False)
    last = torch.channels_last if n == 2 else torch.channels_last_3d
    yield V(x.contiguous(memory_format=last), _grid(n, *points).transpose(1, 2), 0, 1, False)
    yield V(x[:1].expand(2, *x.shape[1:]), _grid(n, *points), 1, 1, True)
    far = _grid(n, *points)
    far[0, 0, 0, 0], far[0, 1, 0], far[1, 2, 0] = math.nan, math.inf, -math.inf
    for mode in (0, 1, *[2] * (n == 2)):
        for padding in range(3):
            yield V(x, far, mode, padding, True)


entry(
    "grid_sample", _grid_sample, slack=10,
    covers=("grid_sampler", "grid_sampler_2d_backward", "grid_sampler_3d_backward"),
)  # fmt: skip
entry("grid_sampler_2d", lambda: _grid_sampler(2))
entry("grid_sampler_3d", lambda: _grid_sampler(3))


def _affine_grid() -> Iterator[Sample]:
    for corners in (False, True):
        yield S(t((2, 2, 3)), [2, 3, 4, 5], corners)
        yield S(t((2, 3, 4)), [2, 3, 1, 4, 2], corners)
    yield V(t((2, 2, 3), f32), [2, 3, 4, 5], False)


entry(
    "affine_grid", _affine_grid, covers=("affine_grid_generator", "affine_grid_generator_backward")
)
