"""The operators of torchvision: suppression of boxes, pools of regions, deformable convolution.

A region of interest is a row (k, x1, y1, x2, y2): image k of the batch, and a box in coordinates of
the original picture, which `spatial_scale` turns into those of the feature map. A pool makes
pooled_height x pooled_width cells of it. Gradients go to the feature map and not to the boxes.

Averages are sums of few places of the feature map with weights, which is what an embedding bag
computes: the map's pixels are its rows, a cell is a bag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import toytorch as tt
from toytorch import Tensor
from toytorch.library import Library

Bins = tuple[Tensor, Tensor]  # places along an axis, (K, cells, places each), and their weights


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Places of the boxes that are kept, best first: none overlaps a better one by more than IoU.

    dets           (N, 4) boxes x1, y1, x2, y2
    scores         (N,)
    Source: torchvision.ops.nms
    """
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if dets.size(0) != scores.size(0):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.size(0)} and {scores.size(0)}"
        )
    order = scores.detach().argsort(descending=True, stable=True).numpy()
    x1, y1, x2, y2 = dets.detach().to(tt.promote_types(dets.dtype, tt.float32)).numpy()[order].T
    areas = (x2 - x1) * (y2 - y1)
    kept = []
    while len(order):
        kept.append(order[0])
        width = np.maximum(np.minimum(x2[1:], x2[0]) - np.maximum(x1[1:], x1[0]), 0)
        height = np.maximum(np.minimum(y2[1:], y2[0]) - np.maximum(y1[1:], y1[0]), 0)
        both = width * height
        with np.errstate(invalid="ignore"):  # two boxes without area: 0 / 0, which overlaps nothing
            stays = 1 + np.flatnonzero(~(both / (areas[0] + areas[1:] - both) > iou_threshold))
        order, areas, x1, y1, x2, y2 = (t[stays] for t in (order, areas, x1, y1, x2, y2))
    return tt.tensor(kept, dtype=tt.int64)


def check_rois(input: Tensor, rois: Tensor) -> None:
    """Raises RuntimeError where regions are no (K, 5) of the map's type."""
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; "
            f"but type {input.dtype} does not equal {rois.dtype}"
        )


def averages(input: Tensor, rois: Tensor, rows: Bins, columns: Bins) -> Tensor:
    """Sums over each cell of weight times pixel: (K, cells down, cells across, channels)."""
    count, channels, height, width = input.shape
    (y, down), (x, across) = rows, columns
    regions, cells_down, cells_across = len(rois), y.size(1), x.size(1)
    image = rois[:, 0].long().view(-1, 1, 1, 1, 1)
    places = (image * height + y[:, :, None, :, None]) * width + x[:, None, :, None, :]
    weights = down[:, :, None, :, None] * across[:, None, :, None, :]
    bags = tt.nn.functional.embedding_bag(
        places.flatten(3).flatten(0, 2),
        input.permute(0, 2, 3, 1).reshape(count * height * width, channels),
        per_sample_weights=weights.flatten(3).flatten(0, 2),
        mode="sum",
    )
    return bags.view(regions, cells_down, cells_across, channels)


def samples(start: Tensor, size: Tensor, cells: int, ratio: int, length: int) -> Bins:
    """The pixels that linear interpolation reads along an axis, and their weights in a cell's mean.

    start, size    (K,) of the regions
    ratio          points of a cell; 0 for as many as the cell is long, rounded up
    """
    step = size / cells
    count = step.new_full(step.shape, ratio) if ratio > 0 else step.ceil()
    most = max(int(count.max()), 1) if len(count) else 1
    n = tt.arange(most, dtype=start.dtype).view(1, 1, -1)
    cell = tt.arange(cells, dtype=start.dtype).view(1, -1, 1)
    start, step, count = (t.view(-1, 1, 1) for t in (start, step, count))
    at = start + step * (cell + (n + 0.5) / count.clamp(min=1))
    inside = (at >= -1) & (at <= length) & (n < count)
    at = at.clamp(0, length - 1)
    low = at.floor()
    share = inside / count.clamp(min=1)
    high = (low + 1).clamp(max=length - 1)
    places = tt.cat([low, high], 2).long()
    return places, tt.cat([(1 - (at - low)) * share, (at - low) * share], 2)


def sampled(
    input: Tensor,
    rois: Tensor,
    scale: float,
    cells: tuple[int, int],
    ratio: int,
    shift: float,
    least: float | None,
) -> Tensor:
    """The means of interpolated points: (K, cells down, cells across, channels)."""
    check_rois(input, rois)
    x1, y1, x2, y2 = (rois.detach()[:, 1:] * scale - shift).unbind(1)
    sizes = [y2 - y1, x2 - x1]
    high, wide = sizes if least is None else [s.clamp(min=least) for s in sizes]
    rows = samples(y1, high, cells[0], ratio, input.size(2))
    return averages(input, rois, rows, samples(x1, wide, cells[1], ratio, input.size(3)))


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """The mean of points of each cell, interpolated bilinearly. Source: Mask R-CNN (He et al. 2017)."""
    shift, least = (0.5, None) if aligned else (0.0, 1.0)
    cells = (pooled_height, pooled_width)
    found = sampled(input, rois, spatial_scale, cells, sampling_ratio, shift, least)
    return found.permute(0, 3, 1, 2).contiguous()


def own_channels(means: Tensor) -> tuple[Tensor, Tensor]:
    """Each cell's own channels, (K, C / cells, cells down, cells across), and which those are."""
    regions, high, wide, channels = means.shape
    if channels % (high * wide):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    split = means.view(regions, high, wide, channels // (high * wide), high, wide)
    chosen = split.diagonal(0, 1, 4).diagonal(0, 1, 3)  # (K, C / cells, high, wide)
    which = tt.arange(channels, dtype=tt.int32).view(1, -1, high, wide)
    return chosen.contiguous(), which.expand(chosen.shape).contiguous()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """As roi_align, where each cell has channels of its own. Source: Light-Head R-CNN (Li et al. 2017)."""
    cells = (pooled_height, pooled_width)
    return own_channels(sampled(input, rois, spatial_scale, cells, sampling_ratio, 0.5, None))


def whole_pixels(start: Tensor, size: Tensor, cells: int, length: int) -> Bins:
    """The pixels of each cell along an axis; a weight of 0 marks what only fills the last places."""
    step = (size / cells).view(-1, 1)
    cell = tt.arange(cells, dtype=step.dtype)
    first = ((cell * step).floor() + start.view(-1, 1)).clamp(0, length)
    end = (((cell + 1) * step).ceil() + start.view(-1, 1)).clamp(0, length)
    most = max(int((end - first).max()), 1) if len(step) else 1
    places = first[..., None] + tt.arange(most, dtype=step.dtype)
    inside = places < end[..., None]
    return places.clamp(0, length - 1).long(), inside.to(step.dtype)


def rounded(x: Tensor) -> Tensor:
    """To the nearest whole number, halves away from zero as C's `round` has it."""
    return x.sign() * (x.abs() + 0.5).floor()


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest pixel of each cell, and its place in the map. Source: Fast R-CNN (Girshick 2015)."""
    check_rois(input, rois)
    _, channels, height, width = input.shape
    x1, y1, x2, y2 = rounded(rois.detach()[:, 1:] * spatial_scale).unbind(1)
    y, down = whole_pixels(y1, (y2 - y1 + 1).clamp(min=1), pooled_height, height)
    x, across = whole_pixels(x1, (x2 - x1 + 1).clamp(min=1), pooled_width, width)
    places = y[:, :, None, :, None] * width + x[:, None, :, None, :]
    inside = (down[:, :, None, :, None] * across[:, None, :, None, :]) > 0
    places = places.flatten(1).unsqueeze(1)
    inside = inside.flatten(3).unsqueeze(1)
    found, most = [], []
    maps = input.flatten(2)
    for k, image in enumerate(rois[:, 0].long().tolist()):
        values = maps[image][:, places[k, 0]].view(channels, *inside.shape[2:])
        best, at = values.masked_fill(~inside[k], float("-inf")).max(-1)
        place = places[k].view(inside.shape[1:]).expand(channels, -1, -1, -1)
        some = inside[k].any(-1)
        found.append(best.where(some, 0))
        most.append(place.gather(-1, at[..., None])[..., 0].where(some, -1))
    if not found:
        empty = input.new_zeros(0, channels, pooled_height, pooled_width)
        return empty, empty.to(tt.int32)
    return tt.stack(found), tt.stack(most).to(tt.int32)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The mean pixel of each cell, of channels of its own. Source: R-FCN (Dai et al. 2016)."""
    check_rois(input, rois)
    x1, y1, x2, y2 = rounded(rois.detach()[:, 1:] * spatial_scale).unbind(1)
    bins = (
        whole_pixels(y1, (y2 - y1).clamp(min=1), pooled_height, input.size(2)),
        whole_pixels(x1, (x2 - x1).clamp(min=1), pooled_width, input.size(3)),
    )
    rows, columns = ((at, w / w.sum(-1, keepdim=True).clamp(min=1)) for at, w in bins)
    return own_channels(averages(input, rois, rows, columns))


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose weights read the input at places that are moved by `offset`.

    input          (N, C, H, W)
    weight         (F, C / groups, kh, kw)
    offset         (N, 2 · offset_groups · kh · kw, H', W'), down and across in turn
    mask           (N, offset_groups · kh · kw, H', W'), factors of what is read
    Source: Deformable ConvNets v2 (Zhu et al. 2018), torchvision.ops.deform_conv2d
    """
    count, _, height, width = input.shape
    features, _, high, wide = weight.shape
    down, across = offset.shape[2:]
    moved = offset.view(count, offset_groups, high, wide, 2, down, across)
    line = tt.arange(down, dtype=offset.dtype).view(-1, 1) * stride_h - pad_h
    column = tt.arange(across, dtype=offset.dtype) * stride_w - pad_w
    tap_y = tt.arange(high, dtype=offset.dtype).view(-1, 1, 1, 1) * dilation_h
    tap_x = tt.arange(wide, dtype=offset.dtype).view(-1, 1, 1) * dilation_w
    y, x = moved[:, :, :, :, 0] + (line + tap_y), moved[:, :, :, :, 1] + (column + tap_x)
    # grid_sample counts from -1 to 1, from edge to edge of the map, and reads zeros outside.
    grid = tt.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    read = tt.nn.functional.grid_sample(
        input.reshape(count * offset_groups, -1, height, width),
        grid.view(count * offset_groups, high * wide, down * across, 2),
        padding_mode="zeros",
        align_corners=False,
    )
    if use_mask:
        read = read * mask.reshape(count * offset_groups, 1, high * wide, down * across)
    columns = read.reshape(count, groups, -1, down * across)
    output = weight.reshape(groups, features // groups, -1) @ columns
    return output.view(count, features, down, across) + bias.view(1, -1, 1, 1)


# -- gradients, which torchvision names as operators of their own ---------------------------------


def of_map(grad: Tensor, shape: Sequence[int], forward: Callable[[Tensor], Any]) -> Tensor:
    """The gradient for a feature map of which `forward` is a linear function."""
    with tt.enable_grad():
        map = grad.new_zeros(shape).requires_grad_()
        made = forward(map)
        return tt.autograd.grad(made[0] if isinstance(made, tuple) else made, map, grad)[0]


def _roi_align_backward(
    grad: Tensor, rois: Tensor, scale: float, high: int, wide: int, *rest: int
) -> Tensor:
    *shape, ratio, aligned = rest
    return of_map(
        grad, shape, lambda m: roi_align(m, rois, scale, high, wide, ratio, bool(aligned))
    )


def _ps_roi_align_backward(grad: Tensor, rois: Tensor, which: Tensor, *rest: int) -> Tensor:
    return of_map(grad, rest[4:], lambda m: ps_roi_align(m, rois, *rest[:4]))


def _ps_roi_pool_backward(grad: Tensor, rois: Tensor, which: Tensor, *rest: int) -> Tensor:
    return of_map(grad, rest[3:], lambda m: ps_roi_pool(m, rois, *rest[:3]))


def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, high: int, wide: int, *shape: int
) -> Tensor:
    """Each cell's gradient goes to the pixel that was the largest."""
    count, channels, height, width = shape
    image = rois[:, 0].long().view(-1, 1, 1, 1)
    channel = tt.arange(channels).view(1, -1, 1, 1)
    places = (image * channels + channel) * (height * width) + argmax.clamp(min=0)
    total = grad.new_zeros(count * channels * height * width)
    total.index_add_(0, places.flatten(), grad.where(argmax >= 0, 0).flatten())
    return total.view(shape)


def _deform_conv2d_backward(grad: Tensor, *args: Any) -> tuple[Tensor, ...]:
    """The gradients of input, weight, offset, mask and bias."""
    with tt.enable_grad():
        leaves = [t.detach().requires_grad_() for t in args[:5]]
        made = deform_conv2d(*leaves, *args[5:])
        return tt.autograd.grad(made, leaves, grad, allow_unused=True, materialize_grads=True)


# -- the library -----------------------------------------------------------------------------------

REGION = "float spatial_scale, int pooled_height, int pooled_width"
OF = "int batch_size, int channels, int height, int width"
CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, "
    "int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask"
)
OPERATORS: dict[Callable[..., Any], str] = {
    nms: "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    roi_align: f"(Tensor input, Tensor rois, {REGION}, int sampling_ratio, bool aligned) -> Tensor",
    roi_pool: f"(Tensor input, Tensor rois, {REGION}) -> (Tensor, Tensor)",
    ps_roi_align: f"(Tensor input, Tensor rois, {REGION}, int sampling_ratio) -> (Tensor, Tensor)",
    ps_roi_pool: f"(Tensor input, Tensor rois, {REGION}) -> (Tensor, Tensor)",
    deform_conv2d: f"({CONVOLUTION}) -> Tensor",
    _roi_align_backward: f"(Tensor grad, Tensor rois, {REGION}, {OF}, int sampling_ratio, bool aligned) -> Tensor",
    _roi_pool_backward: f"(Tensor grad, Tensor rois, Tensor argmax, {REGION}, {OF}) -> Tensor",
    _ps_roi_align_backward: f"(Tensor grad, Tensor rois, Tensor channel_mapping, "
    f"{REGION}, int sampling_ratio, {OF}) -> Tensor",
    _ps_roi_pool_backward: f"(Tensor grad, Tensor rois, Tensor channel_mapping, {REGION}, {OF}) -> Tensor",
    _deform_conv2d_backward: f"(Tensor grad, {CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
}
LIBRARY = Library("torchvision", "DEF")
for function, schema in OPERATORS.items():
    LIBRARY.impl(LIBRARY.define(function.__name__ + schema), function, "CompositeImplicitAutograd")
# Of quantized tensors, which toytorch has not: torchvision asks for the names when it is imported.
for name in ("qnms", "qroi_align"):
    LIBRARY.define(f"{name}(Tensor input, Tensor other) -> Tensor")
LIBRARY.define("_cuda_version() -> int")
LIBRARY.impl("_cuda_version", lambda: -1, "CompositeImplicitAutograd")  # -1: made without CUDA
