"""Images read at points of a grid, as a spatial transformer does; Jaderberg et al. 2015.

The coordinates of a grid run from -1 to 1 across the image, the last one (width) first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core import dispatch
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, wrap_result
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Args, Array, ArrayModule, DType, Fn, Shape, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.at_once import taken
from toytorch.ops.batching import spread
from toytorch.ops.creation.ranges import equally_spaced
from toytorch.ops.define import general, internal
from toytorch.ops.linalg.matmul import stacked
from toytorch.ops.nn.windows import sizes_text

MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDING = {"zeros": 0, "border": 1, "reflection": 2}

# -- records --------------------------------------------------------------------------------------


def _check(name: str, shape: Sizes, grid: tuple[int, ...], n: int | None, mode: int) -> None:
    n = n or (3 if len(shape) == 5 else 2)
    for dims in (shape, grid):
        wrap_dim(0, len(dims), wrap_scalar=False)
    if shape[0] != grid[0]:
        raise RuntimeError(
            f"{name}(): expected grid and input to have same batch size, but got input with sizes "
            f"{sizes_text(shape)} and grid with sizes {sizes_text(grid)}"
        )
    if grid[-1] != len(shape) - 2:
        raise RuntimeError(
            f"{name}(): expected grid to have size {len(shape) - 2} in last dimension, but got "
            f"grid with sizes {sizes_text(grid)}"
        )
    if 0 in shape[2:]:
        raise RuntimeError(
            f"{name}(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{sizes_text(shape)} with dimension {shape.index(0, 2)} being empty"
        )
    if len(shape) != n + 2 or len(grid) != n + 2:
        raise RuntimeError(
            f"{name}(): expected {n + 2}D input and grid with same number of dimensions, but got "
            f"input with sizes {sizes_text(shape)} and grid with sizes {sizes_text(grid)}"
        )
    if mode == 2 and n == 3:
        raise RuntimeError(f"{name}(): bicubic interpolation only supports 4D input")


def _points() -> Any:
    """The formulas in ops, which stand for the compiled kernels and are their derivatives."""
    from toytorch.ops.nn import grid_points  # seldom asked for

    return grid_points


def _check_all(
    n: int | None, shapes: Sequence[tuple[int, ...]], kinds: Sequence[DType], mode: int
) -> None:
    """Refuses images and a grid by their shapes, and by their types then."""
    shape, grid = shapes
    _check("grid_sampler", shape, grid, n, mode)
    kind, other = kinds
    flat = len(shape) == 4
    if flat and 0 in (*shape, *grid):  # there is nothing to look up a kernel for
        return
    if kind.rank != 2:
        kernel = "grid_sampler_2d_cpu_kernel_impl" if flat else "grid_sampler3d_cpu"
        # PyTorch's class of error, and its words, for types that its kernel has no form for.
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.legacy}'")
    if kind is not other:
        raise RuntimeError(f"expected scalar type {kind.legacy} but found {other.legacy}")


def _forward(n: int | None) -> Fn:
    def forward(
        xp: ArrayModule, a: Array, grid: Array, mode: int, padding: int, corners: bool
    ) -> Any:
        made = attempt(xp, "sampled", a, grid, mode, padding, corners, n)
        if made is not None:
            return made
        kinds = from_numpy_dtype(a.dtype), from_numpy_dtype(grid.dtype)
        _check_all(n, (a.shape, grid.shape), kinds, mode)
        if not a.size or not grid.size:
            return xp.empty((*a.shape[:2], *grid.shape[1:-1]), a.dtype)
        made = _points().sampled(wrap_result(a), wrap_result(grid), (mode, padding, corners))._array
        return xp.ascontiguousarray(made)

    return forward


def _backward(
    xp: ArrayModule,
    g: Array,
    a: Array,
    grid: Array,
    mode: int,
    padding: int,
    corners: bool,
    output_mask: Sequence[bool],
) -> Any:
    wanted = bool(output_mask[0]), bool(output_mask[1])
    made = attempt(xp, "sampled_backward", g, a, grid, mode, padding, corners, wanted)
    if made is not None:
        return made
    if not g.size or not a.size or not any(wanted):
        return xp.zeros(a.shape, a.dtype), xp.zeros(grid.shape, grid.dtype)
    held = wrap_result(g), wrap_result(a), wrap_result(grid)
    made = _points().gradients(*held, (mode, padding, corners))
    return tuple(xp.ascontiguousarray(t._array) for t in made)


def _folded(op: Op, args: Args, full: Fn, size: int) -> Any:
    """A batch of batches is one batch."""
    flat = [spread(a, full, size).flatten(0, 1) if isinstance(a, Tensor) else a for a in args]
    made = dispatch.call(op, tuple(flat))
    if op.many:
        return [t.unflatten(0, (size, -1)) for t in made]
    return made.unflatten(0, (size, -1))


def _shares_again(k: int) -> Any:
    """One of the gradients of the gradients, which are made together."""

    def share(
        gs: Sequence[Any],
        grad_output: Tensor,
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        work: dict[Any, Any],
    ) -> Any:
        if interpolation_mode == 1 and k == 1:  # the gradient of a nearest element asks for none
            return None
        if "made" not in work:
            u, v = (
                like.new_zeros(like.shape) if g is None else g for g, like in zip(gs, (input, grid))
            )
            how = interpolation_mode, padding_mode, align_corners
            work["made"] = list(_points().second(u, v, grad_output, input, grid, how))
        return taken(work["made"], k)

    return share


BACKWARD = {
    n: internal(
        f"grid_sampler_{n}d_backward(Tensor grad_output, Tensor input, Tensor grid, "
        "int interpolation_mode, int padding_mode, bool align_corners, bool[] output_mask) "
        "-> (Tensor, Tensor)",
        _backward,
        batch=_folded,
        d_grad_output=_shares_again(0),
        d_input=_shares_again(1),
        d_grid=_shares_again(2),
        doc=f"The gradients of grid_sampler_{n}d; zeros for one that output_mask does not want.",
    )
    for n in (2, 3)
}


def _share(k: int) -> Any:
    """One of the gradients of images and grid, which are made together."""

    def share(
        g: Tensor,
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        work: dict[Any, Any],
    ) -> Any:
        if "made" not in work:
            wanted = [input.requires_grad, grid.requires_grad]
            how = interpolation_mode, padding_mode, align_corners
            backward = BACKWARD[input.ndim - 2].function
            work["made"] = list(backward(g, input, grid, *how, wanted))
        return taken(work["made"], k)

    return share


def _sampler(name: str, n: int | None, doc: str, **fields: Any) -> Op:
    def checks(common: Any, args: tuple[Any, ...]) -> None:  # of whose types the kernel sees one
        pair = args[:2]
        _check_all(n, [t._array.shape for t in pair], [t.dtype for t in pair], args[2])

    return general(
        f"{name}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
        "bool align_corners) -> Tensor",
        _forward(n),
        forms="function",
        checks=checks,
        memory="rows",
        amp="float32",
        batch=_folded,
        node=f"GridSampler{n or 2}DBackward0",
        d_input=_share(0),
        d_grid=_share(1),
        doc=doc,
        **fields,
    )


grid_sampler_2d = _sampler(
    "grid_sampler_2d", 2, "Images (N, C, H, W) read at the points of a grid (N, h, w, 2)."
)
grid_sampler_3d = _sampler(
    "grid_sampler_3d", 3, "Volumes (N, C, D, H, W) read at the points of a grid (N, d, h, w, 3)."
)
grid_sampler = _sampler(
    "grid_sampler",
    None,
    "grid_sampler_2d or grid_sampler_3d, by the input's dimensions.",
    variant=lambda input, *rest: f"GridSampler{3 if input.ndim == 5 else 2}DBackward0",
)


# -- grids ----------------------------------------------------------------------------------------


def base_line(count: int, align_corners: bool, kind: str) -> Any:
    """The coordinates along one side, rounded as in PyTorch: a sampler that moves nothing reads
    beside the points, where rounding decides which side its gradient sees."""
    if count < 2:
        return np.zeros(count, kind)
    of = np.dtype("f" if kind not in "fd" else kind)
    line = equally_spaced(np, -1, 1, count, of)
    return line if align_corners else line * of.type(count - 1) / of.type(count)


@functools.lru_cache(16)
def base_grid(sizes: Sizes, align_corners: bool, kind: str) -> Any:
    """The points (1, all, n + 1) of a grid that nothing moves, with a 1 after their coordinates."""
    lines = [base_line(s, align_corners, kind) for s in sizes]
    points = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(sizes)], -1)
    return points.reshape(1, -1, len(sizes) + 1).astype(kind)


def _base(xp: ArrayModule, like: Array, size: Shape, align_corners: bool) -> Any:
    points = xp.asarray(base_grid(tuple(size[2:]), align_corners, like.dtype.char))
    return xp.broadcast_to(points, (like.shape[0], *points.shape[1:]))


def _affine_grid(xp: ArrayModule, theta: Array, size: Shape, align_corners: bool) -> Any:
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    n = len(size) - 2
    if theta.ndim == 3 and theta.shape[2] != n + 1:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{size[0]}, {n + 1}] but got: [{theta.shape[0]}, {theta.shape[2]}]."
        )
    base = _base(xp, theta, size, align_corners)
    made = stacked(xp, base, theta.swapaxes(1, 2))
    return made.reshape(theta.shape[0], *size[2:], n)


def _affine_grid_backward(xp: ArrayModule, g: Array, size: Shape, align_corners: bool) -> Any:
    flat = g.reshape(g.shape[0], -1, len(size) - 2)
    base = _base(xp, g, size, align_corners)
    return stacked(xp, base.swapaxes(1, 2), flat).swapaxes(1, 2)


affine_grid_backward = internal(
    "affine_grid_generator_backward(Tensor grad, int[] size, bool align_corners) -> Tensor",
    _affine_grid_backward,
    d_grad=lambda g, size, align_corners: affine_grid_generator.function(g, size, align_corners),
    doc="The gradient of affine_grid_generator.",
)
affine_grid_generator: Op = general(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
    _affine_grid,
    forms="function",
    amp="half",
    d_theta=lambda g, size, align_corners: affine_grid_backward.function(g, size, align_corners),
    doc="""The grid that turns, shifts and scales images by matrices (N, n, n + 1).

    >>> torch.affine_grid_generator(torch.eye(2, 3)[None], (1, 1, 2, 2), True)
    tensor([[[[-1., -1.],
              [ 1., -1.]],
    <BLANKLINE>
             [[-1.,  1.],
              [ 1.,  1.]]]])
    """,
)
