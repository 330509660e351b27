"""Convolution, forward and backward, for the learner's own package."""

from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from mytorch.function import Function
from mytorch.layout import Layout
from mytorch.tensor import Tensor

own_conv = Exercise(
    "training.conv",
    "A convolution of your own",
    chapter=10,
    minutes=40,
    prompt="""
    The last layer that a reader of digits needs. `Conv2d` is a `Function`: images (n, c, h, w) and
    filters (o, c, k, k) give (n, o, h', w'), where h' = (h + 2·padding − k) // step + 1.

    1. **Forward.** Pad the images with zeros. The windows come from chapter 2: `Layout(shape)`,
       with `windows` along dimensions 2 and 3, and `.of(memory)` shows them as an array (n, c, h',
       w', k, k) without a copy. `memory` is the padded images, flattened.

       Each result is a sum over c and the two places inside a window: `np.tensordot(windows,
       filters, axes)` sums over the listed dimensions of both, and puts what is left of both side
       by side.
    2. **The filters' gradient.** Filter o met every window of every image, with g of that place:

       $$\\frac{\\partial L}{\\partial F_{ocuv}} = \\sum_{n,i,j} g_{noij}\\, W_{ncijuv}.$$

    3. **The images' gradient.** A pixel lies in several windows, and each adds its part: $\\sum_o
       g_{noij} F_{ocuv}$ belongs to pixel (i·step + u, j·step + v).

       Go over the k · k places (u, v) and add all windows' parts at once, into `[:, :, u : … :
       step, v : … : step]`. Remove the padding at the end. Keep what `backward` needs in `self`. A
       second `backward` has to give the same result.

    In one dimension, with x = [1, 2, 3], filter [10, 1], step 1 and g = [1, 2]:

    | quantity | value |
    | --- | --- |
    | windows | [1, 2] and [2, 3] |
    | result | [1·10 + 2·1, 2·10 + 3·1] = [12, 23] |
    | filter's gradient | 1·[1, 2] + 2·[2, 3] = [5, 8] |
    | image's gradient | 1·[10, 1, 0] + 2·[0, 10, 1] = [10, 21, 2] |
    """,
    without=(
        "torch.nn.functional.conv2d",
        "torch.nn.functional.conv_transpose2d",
        "torch.nn.functional.unfold",
        "torch.nn.functional.fold",
        "torch.nn.Conv2d",
    ),
    hints=(
        """
        Write down the shapes first. Windows are (n, c, h', w', k, k) and filters (o, c, k, k): what
        both have, c and the two places inside a window, is summed.

        For the filters' gradient, g (n, o, h', w') and the windows share n, h' and w'. For the
        images' gradient, g and the filters share o, and the result has an element for every cell of
        every window.

        `tensordot` puts what is left of the first array before what is left of the second.
        """,
        """
        Two images of 3 channels, 5 × 4, two filters of 3 × 3, step 1, no padding: h' = 3, w' = 2.

        | what | shape | summed over |
        | --- | --- | --- |
        | windows | (2, 3, 3, 2, 3, 3) | |
        | windows · filters | (2, 3, 2, 2): n, h', w', o | c, u, v |
        | result, with o moved to dimension 1 | (2, 2, 3, 2) | |
        | filters' gradient, g · windows | (2, 3, 3, 3): o, c, u, v | n, h', w' |
        | parts, g · filters | (2, 3, 2, 3, 3, 3): n, h', w', c, u, v | o |

        `parts[..., 0, 1]` is what every window hands to its cell in row 0, column 1. For the window
        at (i, j) that is pixel (i + 0, j + 1).

        So all of them together are added to rows 0, 1, 2 and columns 1, 2 of the image: the slice
        `[:, :, 0:3, 1:3]`, and with step 2 it would be `[:, :, 0:6:2, 1:5:2]`. With `padding` 1
        everything happens in the larger image, and rows 1 to h are the answer.
        """,
        """
        ```python
        class Conv2d(Function):
            def forward(self, images, filters, step=1, padding=0):
                edge = (padding, padding)
                padded = np.pad(images, ((0, 0), (0, 0), edge, edge))
                size = filters.shape[-1]
                layout = ...  # windows along dimensions 2 and 3
                self.windows = layout.of(padded.ravel())  # (n, c, h', w', k, k)
                self.filters, self.shape = filters, padded.shape
                self.step, self.padding = step, padding
                axes = ...  # of the windows, of the filters
                result = np.tensordot(self.windows, filters, axes)
                return ...

            def backward(self, g):
                g_filters = ...
                # (n, h', w', c, k, k): what each window hands to its cells
                parts = ...
                g_padded = np.zeros(self.shape)
                rows, columns = g.shape[2], g.shape[3]
                for i in range(self.filters.shape[2]):
                    for j in range(self.filters.shape[3]):
                        down = slice(...)
                        right = slice(...)
                        part = parts[..., i, j].transpose(...)  # (n, c, h', w')
                        ...
                inside = ...  # without the padding
                return inside, g_filters
        ```
        """,
    ),
)


@own_conv.reference(stub={
    "forward": "stage 1, your code here: about 11 lines",
    "backward": "stages 2 and 3, your code here: about 14 lines",
})
class Conv2d(Function):
    """Each window of the images times each filter, summed.

    Images (n, c, h, w) and filters (o, c, k, k) give (n, o, h', w').
    """

    def forward(self, images, filters, step=1, padding=0):
        edge = (padding, padding)
        padded = np.pad(images, ((0, 0), (0, 0), edge, edge))
        size = filters.shape[-1]
        layout = Layout(padded.shape)
        layout = layout.windows(2, size, step).windows(3, size, step)
        self.windows = layout.of(padded.ravel())  # (n, c, h', w', k, k)
        self.filters, self.shape = filters, padded.shape
        self.step, self.padding = step, padding
        axes = (1, 4, 5), (1, 2, 3)
        result = np.tensordot(self.windows, filters, axes)
        return result.transpose(0, 3, 1, 2)

    def backward(self, g):
        g_filters = np.tensordot(g, self.windows, ((0, 2, 3), (0, 2, 3)))
        # (n, h', w', c, k, k): what each window hands to its cells
        parts = np.tensordot(g, self.filters, ((1,), (0,)))
        g_padded = np.zeros(self.shape)
        rows, columns = g.shape[2], g.shape[3]
        for i in range(self.filters.shape[2]):
            for j in range(self.filters.shape[3]):
                down = slice(i, i + rows * self.step, self.step)
                right = slice(j, j + columns * self.step, self.step)
                part = parts[..., i, j].transpose(0, 3, 1, 2)
                g_padded[:, :, down, right] += part
        edge, (high, wide) = self.padding, self.shape[2:]
        inside = g_padded[:, :, edge : high - edge, edge : wide - edge]
        return inside, g_filters


own_conv.changed(
    "the step is not used",
    """
    Windows were taken at every place. With step 2 every second one counts, in both dimensions.
    """,
    (
        "layout.windows(2, size, step).windows(3, size, step)",
        "layout.windows(2, size).windows(3, size)",
    ),
)

own_conv.changed(
    "the filter is turned round",
    """
    In mathematics a convolution flips the filter. Networks learn their filters, so deep learning
    leaves the flip out (strictly, this is a cross-correlation).
    """,
    (
        "result = np.tensordot(self.windows, filters, axes)",
        (
            "flipped = filters[:, :, ::-1, ::-1]\n"
            "        result = np.tensordot(self.windows, flipped, axes)"
        ),
    ),
)

own_conv.changed(
    "the dimensions are left in the product's order",
    """
    `tensordot` puts the windows' places first and the filters last: (n, h', w', o). Images have
    their channels in dimension 1.
    """,
    ("return result.transpose(0, 3, 1, 2)", "return result"),
)

own_conv.changed(
    "rows and columns of the window are exchanged",
    """
    The axes of windows and filters were paired crosswise: u with v. It goes unnoticed for symmetric
    filters.
    """,
    ("axes = (1, 4, 5), (1, 2, 3)", "axes = (1, 5, 4), (1, 2, 3)"),
)

own_conv.changed(
    "channels are not summed",
    """
    Every filter looks at all channels at once. Here the first channel alone was used.
    """,
    (
        "result = np.tensordot(self.windows, filters, axes)",
        (
            "first = slice(0, 1)\n"
            "        result = np.tensordot(self.windows[:, first], filters[:, first], axes)"
        ),
    ),
)

own_conv.changed(
    "the filters' gradient is a mean over the images",
    """
    Each image adds its part to the filters' gradient. The mean is taken by the loss, if it takes
    one.
    """,
    (
        "g_filters = np.tensordot(g, self.windows, ((0, 2, 3), (0, 2, 3)))",
        "g_filters = np.tensordot(g, self.windows, ((0, 2, 3), (0, 2, 3))) / len(g)",
    ),
)

own_conv.changed(
    "overlapping windows overwrite each other",
    """
    A pixel lies in several windows, and each of them adds to its gradient: `+=`, not `=`.
    """,
    ("g_padded[:, :, down, right] += part", "g_padded[:, :, down, right] = part"),
)

own_conv.changed(
    "the windows' parts are put side by side",
    """
    The slices have to advance by the step, as the windows did: `slice(i, i + rows * step, step)`.
    """,
    ("down = slice(i, i + rows * self.step, self.step)", "down = slice(i, i + rows)"),
    ("right = slice(j, j + columns * self.step, self.step)", "right = slice(j, j + columns)"),
)

own_conv.changed(
    "the filter is flipped in backward",
    """
    Place (u, v) of the filter met pixel (i + u, j + v), so its part goes there, with the filter as
    it is.
    """,
    (
        "part = parts[..., i, j].transpose(0, 3, 1, 2)",
        "part = parts[..., -1 - i, -1 - j].transpose(0, 3, 1, 2)",
    ),
)

own_conv.changed(
    "the padding stays on",
    """
    The gradient has the padded images' shape. The gradient of the zeros in the padding is dropped,
    because they are constants.
    """,
    ("inside = g_padded[:, :, edge : high - edge, edge : wide - edge]", "inside = g_padded"),
)

own_conv.changed(
    "cuts everything off where there is no padding",
    """
    `[edge:-edge]` with edge 0 is `[0:0]`, since −0 is 0: an empty slice. Count the end from the front,
    `height - edge`.
    """,
    (
        "inside = g_padded[:, :, edge : high - edge, edge : wide - edge]",
        "inside = g_padded[:, :, edge:-edge, edge:-edge]",
    ),
)

own_conv.changed(
    "two convolutions share what they saved",
    """
    The windows were kept by the class, so a network's second convolution overwrote those of the first.
    Each call of `apply` makes an object of its own: keep them in `self`.
    """,
    ("self.windows = layout.of(padded.ravel())", "Conv2d.windows = layout.of(padded.ravel())"),
)

own_conv.changed(
    "the second backward adds to the first",
    """
    The array of sums was made in `forward`, so a second `backward` through the same result goes on adding
    to what the first one left. Begin with zeros in `backward`.
    """,
    (
        "self.step, self.padding = step, padding",
        "self.step, self.padding = step, padding\n        self.total = np.zeros(self.shape)",
    ),
    ("g_padded = np.zeros(self.shape)\n", "g_padded = self.total\n"),
)

own_conv.changed(
    "height and width are exchanged",
    """
    The channels were moved to dimension 1, and the two places changed their order in between. For
    square results the shape hides it. From (n, h', w', o) it is `transpose(0, 3, 1, 2)`.
    """,
    ("return result.transpose(0, 3, 1, 2)", "return result.transpose(0, 3, 2, 1)"),
)

own_conv.changed(
    "the filters' gradient begins with the channels",
    """
    `tensordot` puts what is left of its first array first. For filters (o, c, k, k) that has to be g, of
    which o is left.
    """,
    (
        "np.tensordot(g, self.windows, ((0, 2, 3), (0, 2, 3)))",
        "np.tensordot(self.windows, g, ((0, 2, 3), (0, 2, 3)))",
    ),
)

own_conv.changed(
    "pads on one side",
    """
    `padding` zeros belong on every side: above and below, left and right. So a dimension grows by twice
    the padding.
    """,
    ("edge = (padding, padding)", "edge = (padding, 0)"),
)


def _leaf(value):
    return Tensor(np.asarray(value, dtype=float), requires_grad=True)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


SHAPES = (  # n, c, h, w, o, k, step, padding
    (1, 1, 3, 3, 1, 2, 1, 0),
    (2, 3, 5, 4, 2, 3, 1, 0),
    (2, 2, 5, 6, 3, 3, 1, 1),
    (1, 2, 6, 5, 2, 2, 2, 0),
    (2, 1, 7, 7, 2, 3, 2, 1),
    (1, 3, 4, 4, 2, 1, 1, 0),
    (1, 1, 4, 4, 1, 4, 1, 0),
    (2, 2, 5, 5, 2, 2, 3, 1),
)


def _inputs(shape):
    n, c, h, w, o, k, step, padding = shape
    told = f"images {(n, c, h, w)}, filters {(o, c, k, k)}, step={step}, padding={padding}"
    return told, _draw(n + h, n, c, h, w), _draw(o + w, o, c, k, k), step, padding


def _real(images, filters, step, padding):
    x = torch.tensor(images, requires_grad=True)
    f = torch.tensor(filters, requires_grad=True)
    y = torch.nn.functional.conv2d(x, f, stride=step, padding=padding)
    y.backward(torch.tensor(_draw(3, *y.shape)))
    return y.tolist(), f.grad.tolist(), x.grad.tolist()


def _mine(Conv2d, part, images, filters, step, padding):
    x, f = _leaf(images), _leaf(filters)
    y = Conv2d.apply(x, f, step=step, padding=padding)
    if part == 0:
        return y.data.tolist()
    y.backward(_draw(3, *y.data.shape))
    return (f if part == 1 else x).grad.tolist()


def _cases(Conv2d, part):
    for shape in SHAPES:
        told, *inputs = _inputs(shape)
        yield case(told, partial(_mine, Conv2d, part, *inputs)).gives(_real(*inputs)[part])


@own_conv.check("1 · forward")
def _(Conv2d):
    yield from _cases(Conv2d, 0)

    def view():
        images = np.ascontiguousarray(_draw(1, 4, 4, 2, 3).transpose(3, 2, 0, 1))
        strided = _draw(1, 4, 4, 2, 3).transpose(3, 2, 0, 1)
        filters = _draw(2, 2, 2, 3, 3)
        one, two = (Conv2d.apply(Tensor(x), Tensor(filters)).data for x in (images, strided))
        return bool(np.allclose(one, two))

    yield case("images that are not contiguous: the same result?", view).gives(True)


@own_conv.check("2 · the filters' gradient")
def _(Conv2d):
    yield from _cases(Conv2d, 1)


@own_conv.check("3 · the images' gradient")
def _(Conv2d):
    yield from _cases(Conv2d, 2)

    def untouched():
        x, f = _leaf(_draw(1, 1, 1, 4, 4)), _leaf(_draw(2, 1, 1, 3, 3))
        before = x.data.copy(), f.data.copy()
        y = Conv2d.apply(x, f, padding=1)
        g = np.ones(y.data.shape)
        y.backward(g)
        kept = bool((x.data == before[0]).all() and (f.data == before[1]).all() and (g == 1).all())
        return kept, x.grad.shape

    yield case("are images, filters and g as they were, and the gradient's shape", untouched).gives(
        (True, (1, 1, 4, 4))
    )

    def network(real):
        images, first, second = _draw(1, 2, 1, 5, 6), _draw(2, 3, 1, 2, 2), _draw(3, 2, 3, 3, 3)
        if real:
            x, f, s = (torch.tensor(a, requires_grad=True) for a in (images, first, second))
            conv2d = torch.nn.functional.conv2d
            conv2d(conv2d(x, f, padding=1), s, stride=2).sum().backward()
        else:
            x, f, s = _leaf(images), _leaf(first), _leaf(second)
            Conv2d.apply(Conv2d.apply(x, f, padding=1), s, step=2).sum().backward()
        return [leaf.grad.tolist() for leaf in (x, f, s)]

    yield case("two convolutions, one after the other", lambda: network(False)).gives(
        network(True)
    )

    def twice():
        x, f = _leaf(_draw(1, 1, 1, 4, 4)), _leaf(_draw(2, 1, 1, 3, 3))
        y = Conv2d.apply(x, f)
        found = []
        for _ in range(2):
            x.grad = f.grad = None
            y.backward(np.ones(y.data.shape))
            found.append((x.grad.copy(), f.grad.copy()))
        return all(bool(np.allclose(a, b)) for a, b in zip(*found))

    yield case("a second backward through the same result: the same gradients?", twice).gives(True)


def _any(draw):
    k, step, padding = draw.randint(1, 3), draw.randint(1, 3), draw.randint(0, 1)
    n, c, o = draw.randint(1, 2), draw.randint(1, 2), draw.randint(1, 3)
    return n, c, k + draw.randint(0, 3), k + draw.randint(0, 3), o, k, step, padding


@own_conv.check("4 · any shape", hidden=True)
def _(Conv2d):
    def mine(*shape):
        inputs = _inputs(shape)[1:]
        return [_mine(Conv2d, part, *inputs) for part in range(3)]

    yield agrees(
        mine,
        lambda *shape: list(_real(*_inputs(shape)[1:])),
        _any,
        count=25,
        tell=lambda *shape: _inputs(shape)[0],
    )
