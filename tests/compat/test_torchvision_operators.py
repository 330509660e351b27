"""The operators of torchvision against what their papers say, cell by cell and pixel by pixel."""

import math

import numpy as np
import pytest

import toytorch as tt
from toytorch.compat.libraries.torchvision import _C as ops

MAP = np.random.RandomState(0).randn(2, 8, 11, 14)
ROIS = np.array(
    [[0, 1.2, 2.1, 9.7, 8.4], [1, 0, 0, 20, 20], [1, 5.5, 5.5, 5.5, 5.5], [0, -4, -3, 3.3, 2.2]]
    + [[0, 30, 30, 40, 40]]
)


def pixel(image, y, x):
    """An interpolated value, where places up to a pixel outside count as the edge."""
    _, height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    fy, fx = y - y0, x - x0
    upper = image[:, y0, x0] * (1 - fx) + image[:, y0, x1] * fx
    lower = image[:, y1, x0] * (1 - fx) + image[:, y1, x1] * fx
    return upper * (1 - fy) + lower * fy


def aligned_cells(scale, high, wide, ratio, shift, least):
    found = np.zeros((len(ROIS), 8, high, wide))
    for k, (image, *box) in enumerate(ROIS):
        x1, y1, x2, y2 = (b * scale - shift for b in box)
        width, height = max(x2 - x1, least), max(y2 - y1, least)
        down = ratio if ratio > 0 else math.ceil(height / high)
        across = ratio if ratio > 0 else math.ceil(width / wide)
        for i in range(high):
            for j in range(wide):
                points = [
                    pixel(
                        MAP[int(image)],
                        y1 + height / high * (i + (a + 0.5) / down),
                        x1 + width / wide * (j + (b + 0.5) / across),
                    )
                    for a in range(down)
                    for b in range(across)
                ]
                found[k, :, i, j] = np.mean(points, 0) if points else 0
    return found


def own(cells):
    """Of (K, C, h, w) the channels that belong to each cell."""
    regions, _, high, wide = cells.shape
    split = cells.reshape(regions, -1, high, wide, high, wide)
    return np.einsum("kcijij->kcij", split)


def pooled_cells(scale, high, wide, more, take):
    found = np.zeros((len(ROIS), 8, high, wide))
    _, _, rows, columns = MAP.shape
    for k, (image, *box) in enumerate(ROIS):
        x1, y1, x2, y2 = (math.floor(abs(b * scale) + 0.5) * (1 if b >= 0 else -1) for b in box)
        height, width = max(y2 - y1 + more, 1), max(x2 - x1 + more, 1)
        for i in range(high):
            for j in range(wide):
                top = min(max(math.floor(i * height / high) + y1, 0), rows)
                end = min(max(math.ceil((i + 1) * height / high) + y1, 0), rows)
                left = min(max(math.floor(j * width / wide) + x1, 0), columns)
                right = min(max(math.ceil((j + 1) * width / wide) + x1, 0), columns)
                cell = MAP[int(image), :, top:end, left:right]
                found[k, :, i, j] = take(cell, (1, 2)) if cell.size else 0
    return found


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [True, False])
def test_regions_aligned(ratio, aligned):
    made = ops.roi_align(tt.tensor(MAP), tt.tensor(ROIS), 0.6, 3, 4, ratio, aligned)
    shift, least = (0.5, -np.inf) if aligned else (0, 1)
    np.testing.assert_allclose(
        made.numpy(), aligned_cells(0.6, 3, 4, ratio, shift, least), 1e-9, 1e-12
    )
    made, which = ops.ps_roi_align(tt.tensor(MAP), tt.tensor(ROIS), 0.6, 2, 2, ratio)
    np.testing.assert_allclose(
        made.numpy(), own(aligned_cells(0.6, 2, 2, ratio, 0.5, -np.inf)), 1e-9, 1e-12
    )
    assert which[0].flatten().tolist() == list(range(8))


def test_regions_pooled():
    made, at = ops.roi_pool(tt.tensor(MAP), tt.tensor(ROIS), 0.6, 3, 4)
    np.testing.assert_array_equal(made.numpy(), pooled_cells(0.6, 3, 4, 1, np.max))
    chosen = MAP.reshape(2, 8, -1)[ROIS[:, 0].astype(int)]
    chosen = np.take_along_axis(chosen, at.clamp(min=0).flatten(2).numpy(), 2)
    np.testing.assert_array_equal(made.numpy(), chosen.reshape(made.shape) * (at >= 0).numpy())
    made, _ = ops.ps_roi_pool(tt.tensor(MAP), tt.tensor(ROIS), 0.6, 2, 2)
    np.testing.assert_allclose(made.numpy(), own(pooled_cells(0.6, 2, 2, 0, np.mean)), 1e-9, 1e-12)


CALLS = {
    "roi_align": ((3, 4), (2, False), None),
    "ps_roi_align": ((2, 2), (2,), "which"),
    "roi_pool": ((3, 4), (), "at"),
    "ps_roi_pool": ((2, 2), (), "which"),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_regions_and_their_operators(name):
    """The gradient is that of finite differences, and torchvision's operator for it gives the same."""
    cells, more, _ = CALLS[name]
    forward = getattr(tt.ops.torchvision, name)
    map = tt.tensor(MAP[:, :, :5, :6]).requires_grad_()
    rois = tt.tensor(ROIS[:3])
    assert tt.autograd.gradcheck(lambda m: forward(m, rois, 0.4, *cells, *more), (map,))
    made = forward(map, rois, 0.4, *cells, *more)
    output, kept = made if isinstance(made, tuple) else (made, None)
    grad = tt.randn_like(output)
    expected = tt.autograd.grad(output, map, grad)[0]
    backward = getattr(tt.ops.torchvision, f"_{name}_backward")
    rest = (*map.shape, *more) if name == "roi_align" else (*more, *map.shape)
    kept = () if kept is None else (kept,)
    tt.testing.assert_close(backward(grad, rois, *kept, 0.4, *cells, *rest), expected)
    empty = forward(map, rois[:0], 0.4, *cells, *more)
    assert (empty if name == "roi_align" else empty[0]).shape == (0, *output.shape[1:])


@pytest.mark.parametrize(("groups", "offset_groups", "use_mask"), [(1, 1, False), (2, 2, True)])
def test_convolution_at_places_that_are_moved(groups, offset_groups, use_mask):
    r = np.random.RandomState(1)
    input, weight, bias = r.randn(2, 4, 6, 5), r.randn(6, 4 // groups, 3, 2), r.randn(6)
    stride, pad, dilation = (2, 1), (1, 2), (1, 2)
    down, across = 3, 7
    offset = r.randn(2, offset_groups * 12, down, across)
    mask = r.rand(2, offset_groups * 6, down, across)
    expected = np.tile(bias[:, None, None], (2, 1, down, across))
    padded = np.pad(input, ((0, 0), (0, 0), (9, 9), (9, 9)))
    for n, f, i, j in np.ndindex(expected.shape):
        for c in range(4 // groups):
            channel = f // (6 // groups) * (4 // groups) + c
            for t, (a, b) in enumerate(np.ndindex(3, 2)):
                tap = channel // (4 // offset_groups) * 6 + t
                y = i * stride[0] - pad[0] + a * dilation[0] + offset[n, 2 * tap, i, j]
                x = j * stride[1] - pad[1] + b * dilation[1] + offset[n, 2 * tap + 1, i, j]
                read = pixel(padded[n, channel : channel + 1], y + 9, x + 9)[0]
                factor = mask[n, tap, i, j] if use_mask else 1
                expected[n, f, i, j] += weight[f, c, a, b] * read * factor
    tensors = [tt.tensor(a).requires_grad_() for a in (input, weight, offset, mask, bias)]
    numbers = (*stride, *pad, *dilation, groups, offset_groups, use_mask)
    made = tt.ops.torchvision.deform_conv2d(*tensors, *numbers)
    np.testing.assert_allclose(made.detach().numpy(), expected, 1e-9, 1e-9)
    made.sum().backward()
    found = tt.ops.torchvision._deform_conv2d_backward(tt.ones_like(made), *tensors, *numbers)
    for t, g in zip(tensors, found):
        tt.testing.assert_close(g, tt.zeros_like(t) if t.grad is None else t.grad)


def test_suppression():
    boxes = tt.tensor(
        [[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9], [5, 5, 5, 5]]
    )
    scores = tt.tensor([0.5, 0.9, 0.3, 0.6, 0.1])
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 2, 4]
    assert ops.nms(boxes, scores, 0.7).tolist() == [1, 3, 2, 4]
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    r = np.random.RandomState(0)
    boxes = tt.tensor(np.sort(r.rand(200, 2, 2), 1).reshape(200, 4))
    scores = tt.tensor(r.rand(200).round(1))
    kept = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        x1, y1, x2, y2 = boxes[i].tolist()
        for j in kept:
            a1, b1, a2, b2 = boxes[j].tolist()
            both = max(min(x2, a2) - max(x1, a1), 0) * max(min(y2, b2) - max(y1, b1), 0)
            if both / ((x2 - x1) * (y2 - y1) + (a2 - a1) * (b2 - b1) - both) > 0.3:
                break
        else:
            kept.append(i)
    assert ops.nms(boxes, scores, 0.3).tolist() == kept
    for wrong in ((boxes[0], scores), (boxes[:, :3], scores), (boxes, scores[:5]), (boxes, boxes)):
        with pytest.raises(RuntimeError, match=r"should (be|have)"):
            ops.nms(*wrong, 0.5)


def test_the_library_is_loaded_by_its_file(tmp_path):
    tt.ops.load_library(tmp_path / "torchvision" / "_C.so")
    assert tt.ops.torchvision._cuda_version() == -1
    with pytest.raises(OSError, match="Could not load this library"):
        tt.ops.load_library(tmp_path / "torchvision" / "image.so")
