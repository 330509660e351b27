"""Matrices built of blocks and powers: Kronecker's product, block diagonals, Vandermonde's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.core.views import of_its_own
from toytorch.core.write import refuse_grad
from toytorch.facts.dtype import int64
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.facts.schema import wrong_argument
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import in_own_type, public
from toytorch.ops.shaping.rearrange import _common, cat
from toytorch.ops.shaping.reshape import need_tensors
from toytorch.ops.shaping.view import unsafe_view, unsafe_viewed


@public("kron", method=True)
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Kronecker's product: every element of input times the whole of other.

    >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    if out is not None:
        refuse_grad("mul", (input, other), out)
    if not isinstance(other, Tensor):
        raise wrong_argument("kron", "other", 2, "Tensor", other)
    a: Any = input
    b: Any = other
    n = max(a.ndim, b.ndim)
    left = (1,) * (n - a.ndim) + tuple(a.shape)
    right = (1,) * (n - b.ndim) + tuple(b.shape)
    a = unsafe_view.function(a, [k for m in left for k in (m, 1)])
    b = unsafe_view.function(b, [k for m in right for k in (1, m)])
    for t in (a, b):  # PyTorch's are no views either: later writes to the operands are not seen
        if not t.is_inference():
            of_its_own(t)._storage = t._memory().counted_anew(0)
    shape = tuple(p * q for p, q in zip(left, right))
    made = put_out(unsafe_viewed(a * b, shape), out)
    if out is not None and not out.is_inference():
        made._memory().version -= 1  # PyTorch writes through a view that is counted by itself
    return made


def _block_diag(xp: ArrayModule, blocks: Sequence[Array]) -> Any:
    if not blocks:
        return xp.zeros((1, 0), "float32")
    for i, b in enumerate(blocks):
        if b.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {b.ndim} dimensions"
            )
    blocks = [b.reshape(_as_block(b.shape)) for b in _common(xp, list(blocks))]
    made = xp.zeros([sum(b.shape[i] for b in blocks) for i in range(2)], blocks[0].dtype)
    row = column = 0
    for b in blocks:
        made[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return made


def _as_block(shape: Any) -> tuple[int, int]:
    return (1,) * (2 - len(shape)) + tuple(shape)


def _block_gradients(g: Tensor, tensors_shape: Sequence[Sizes]) -> list[Any]:
    parts, row, column = [], 0, 0
    for shape in tensors_shape:
        m, n = _as_block(shape)
        parts.append(g[row : row + m, column : column + n].reshape(shape))
        row, column = row + m, column + n
    return parts


block_diag_op = in_own_type(
    "block_diag(Tensor[] tensors) -> Tensor",
    _block_diag,
    forms="out",
    d_tensors=_block_gradients,
    doc="Matrices along the diagonal of a larger one.",
)


@public("block_diag", tensor_first=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    need_tensors(tensors)
    return block_diag_op.function(list(tensors))


@public("linalg.vander")
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Vandermonde's matrix: x⁰, x¹ … x^{N-1} in the columns."""
    v: Any = x
    if (v.dtype.itemsize == 2 and v.dtype.rank == 2) or v.dtype.rank == 0:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{v.dtype.legacy}"
        )
    v = v.unsqueeze(0) if v.ndim == 0 else v
    n = v.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    v = v.to(int64) if v.dtype.rank < 2 else v
    rest = v.unsqueeze(-1).expand((*v.shape, n - 1)).cumprod(-1)
    return cat.function([v.new_ones((*v.shape, 1)), rest], -1)


@public("linalg.diagonal")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of the last two dimensions."""
    return A.diagonal(offset, dim1, dim2)
