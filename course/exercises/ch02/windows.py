"""All windows of an image at once."""

import toytorch as torch
from course.cases import call, case
from course.properties import Draw, agrees, every, gradient
from course.records import Exercise

sliding = Exercise(
    "memory.windows",
    "All windows of an image at once",
    chapter=2,
    minutes=15,
    without=("torch.Tensor.unfold", "torch.nn.functional.unfold"),
    prompt="""
    A convolution looks at an image through a small window, at every place. With strides you can
    have *all* windows at once, as one tensor, without copying a pixel.

    Write `windows(x, k)`: for `x` of shape `(..., H, W)` the result has the shape
    `(..., H-k+1, W-k+1, k, k)`, and `result[..., i, j, :, :]` is the window whose upper left corner
    is at `(i, j)`.

    Use `x.as_strided(shape, stride)`, which starts where `x` starts. How far is it from one window
    to the one below, and how far from one row of a window to the next? `x.stride()` says both. Your
    function must also work for images that are slices or transposed.
    """,
    hints=(
        """
        Each window index has a stride. One window further down begins one *row* further in memory, and so
        does the next row inside a window. So the two strides of the image come twice: once for the place of
        the window, once for the place inside it.
        """,
        """
        A 3 × 3 image with strides `(3, 1)` and k = 2. Its cells are

        ```
        0 1 2
        3 4 5
        6 7 8
        ```

        The window at (1, 0) is `[[3, 4], [6, 7]]`. Its element at (1, 1) is in cell 7:

        | index | value | stride | |
        | --- | --- | --- | --- |
        | window's row | 1 | 3 | 3 |
        | window's column | 0 | 1 | 0 |
        | row inside | 1 | 3 | 3 |
        | column inside | 1 | 1 | 1 |
        | | | | 7 |

        There are 3 - 2 + 1 = 2 places in each direction. Leading dimensions keep size and stride.
        """,
        """
        ```python
        def windows(x, k):
            *lead, height, width = x.shape
            *steps, down, right = x.stride()
            shape = (*lead, ..., ..., k, k)
            return x.as_strided(shape, (*steps, ..., ..., ..., ...))
        ```
        """,
    ),
)


@sliding.reference(stub="your code here: about 4 lines")
def windows(x, k):
    """(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


sliding.changed(
    "one window short",
    """
    There are H - k + 1 places: a window as high as the image fits exactly once, not zero times. The
    last row and the last column of windows are missing.
    """,
    ("height - k + 1, width - k + 1, k, k", "height - k, width - k, k, k"),
)

sliding.changed(
    "takes every image for contiguous",
    """
    The strides were computed from the shape: W to the next row, 1 to the next column. That holds
    for a fresh image only. A slice keeps the strides of the image it was cut from, and a transposed
    one has them exchanged. Ask `x.stride()`.
    """,
    ("*steps, down, right = x.stride()", "steps = [height * width] * len(lead)"),
    ("down, right, down, right", "width, 1, width, 1"),
)


@sliding.mutant(
    "starts at the beginning of the memory",
    why="""
    With `storage_offset=0` the windows begin at cell 0 of the storage. A slice begins further on.
    Leave the offset out, and `as_strided` starts where `x` starts.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right), 0)


sliding.changed(
    "windows lie on their side",
    """
    Within each window, rows and columns are exchanged: the last two strides came in the other
    order. One row further down is the same stride for the place of the window and for the place
    inside it.
    """,
    ("(shape, (*steps, down, right, down, right))", "(shape, (*steps, down, right, right, down))"),
)


@sliding.mutant(
    "copies every window",
    why="""
    The values are right, but each pixel was copied up to k² times. No copy is needed: the windows
    are the same cells, read with other strides. To test it, write into the image and see whether
    the windows change.
    """,
)
def windows(x, k):
    height, width = x.shape[-2:]
    rows = [
        torch.stack([x[..., i : i + k, j : j + k] for j in range(width - k + 1)], -3)
        for i in range(height - k + 1)
    ]
    return torch.stack(rows, -4)


sliding.changed(
    "makes it contiguous first",
    """
    `contiguous()` copies an image that is a slice or transposed, and the windows then look at
    the copy: what is written into the image later is not seen. The strides of x are enough,
    whatever they are.
    """,
    (
        '"""(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""',
        '"""(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""\n    x = x.contiguous()',
    ),
)

sliding.changed(
    "cut from the graph",
    """
    `detach()` (or `.data`) cuts the result from its history. The values are the same, but no
    gradient flows back from the windows to the image. `as_strided` has a derivative: leave x as it
    is.
    """,
    (
        '"""(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""',
        '"""(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""\n    x = x.detach()',
    ),
)


@sliding.mutant(
    "works out the strides of the batch",
    why="""
    The strides of the leading dimensions were worked out from the shape. A batch may be a slice
    or transposed as well: take all strides from `x.stride()`.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    *_, down, right = x.stride()
    steps, step = [], height * width
    for size in reversed(lead):
        steps.insert(0, step)
        step *= size
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@sliding.mutant(
    "side by side, without an overlap",
    why="""
    The windows were placed side by side. A convolution looks at *every* place: the next window
    begins one pixel further, not k.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height // k, width // k, k, k)
    return x.as_strided(shape, (*steps, k * down, k * right, down, right))


# what PyTorch's x.unfold(-2, k, 1).unfold(-2, k, 1) gives
WINDOWS = [
    [[[0.0, 1.0], [3.0, 4.0]], [[1.0, 2.0], [4.0, 5.0]]],
    [[[3.0, 4.0], [6.0, 7.0]], [[4.0, 5.0], [7.0, 8.0]]],
]


def _picture(height, width):
    return torch.arange(float(height * width)).reshape(height, width)


@sliding.check("a 3 × 3 image")
def _(f):
    yield call(f, _picture(3, 3), 2).gives(torch.tensor(WINDOWS))


@sliding.check("higher than wide, and a window as large as the image")
def _(f):
    yield case("windows(x, 3).shape for a 6 × 4 image", lambda: tuple(f(_picture(6, 4), 3).shape)
               ).gives((4, 2, 3, 3))
    yield call(f, _picture(2, 2), 2).gives(_picture(2, 2)[None, None])


@sliding.check("a slice and a transposed image")
def _(f):
    corner = case("windows(x[1:, 1:], 2) for a 4 × 4 image", lambda: f(_picture(4, 4)[1:, 1:], 2))
    wanted = [[[[5.0, 6.0], [9.0, 10.0]], [[6.0, 7.0], [10.0, 11.0]]],
              [[[9.0, 10.0], [13.0, 14.0]], [[10.0, 11.0], [14.0, 15.0]]]]
    yield corner.gives(torch.tensor(wanted))
    turned = case("windows(x.t(), 2) for a 3 × 3 image", lambda: f(_picture(3, 3).t(), 2))
    yield turned.gives(torch.tensor(WINDOWS).permute(1, 0, 3, 2).contiguous())


@sliding.check("many images at once", hidden=True)
def _(f):
    def batch():
        x = torch.arange(54.0).reshape(3, 2, 3, 3)
        got = f(x, 2)
        return tuple(got.shape), got[2, 1, 0, 1].tolist()

    pair = case("the shape for a (3, 2, 3, 3) batch, and window [2, 1, 0, 1]", batch)
    yield pair.gives(((3, 2, 2, 2, 2, 2), [[46.0, 47.0], [49.0, 50.0]]))


@sliding.check("no pixel is copied", hidden=True)
def _(f):
    def written():
        x = _picture(3, 3)
        got = f(x, 2)
        x[1, 1] = 100.0  # in the middle: all four windows see it
        return (got == 100.0).sum().item()

    yield case("how many windows see a write to x[1, 1]", written).gives(4)


def _any_images(draw, requires_grad=False):
    shape = (*draw.shape(0, 2, (1, 2)), draw.randint(2, 4), draw.randint(2, 4))
    x = draw.tensor(shape, low=0.0, high=9.0, requires_grad=requires_grad)
    if not requires_grad and len(shape) == 4 and draw.random() < 0.5:
        x = x.transpose(0, 1)
    return x, draw.randint(1, 2)


@sliding.check("any images, wherever they lie")
def _(f):
    right = sliding.answer.value
    yield agrees(f, right, _any_images)

    def cases():
        for layout in ("plain", "offset", "gaps", "transposed"):

            def seen(layout=layout):
                x = Draw(0).tensor((2, 3, 3), layout=layout)
                got = f(x, 2)
                x[1, 1, 1] = 100.0
                return (got == 100.0).sum().item()

            told = case(f"how many windows see a write to x[1, 1, 1]; x lies in memory: {layout}", seen)
            yield told.gives(4).means("The windows are a copy: nothing written later is seen.")

    yield every("writes to images that lie in four ways", cases)
    yield gradient(f, right, lambda draw: _any_images(draw, True), count=6)
