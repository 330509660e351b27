"""Products of tensors: calls that choose between records of `matmul`, or are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toytorch.core import write
from toytorch.core.tensor import Tensor
from toytorch.core.views import counted, of_its_own
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.composed import cast_to, composed, operands
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import broadcast_pair, wrap_dims
from toytorch.ops.creation import convert, create
from toytorch.ops.define import public, takes_words
from toytorch.ops.elementwise import arithmetic
from toytorch.ops.linalg import matmul
from toytorch.ops.linalg.einsum import evaluate
from toytorch.ops.shaping import slices, view
from toytorch.ops.shaping.in_place import renamed


@public("matmul", "linalg.matmul", method="matmul", tensor_first=False)
def matmul_(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product of vectors, matrices or batches of matrices.

    >>> torch.matmul(torch.eye(2), torch.tensor([3., 4.]))
    tensor([3., 4.])
    """
    try:
        m, n = input._array.ndim, other._array.ndim
    except AttributeError:
        place, (name, value) = next(
            (i, p)
            for i, p in enumerate((("input", input), ("other", other)), 1)
            if not isinstance(p[1], Tensor)
        )
        raise wrong_argument("matmul", name, place, "Tensor", value) from None
    if m == 2 and n == 2 and out is None:
        return matmul.mm.function(input, other)
    if out is not None:
        write.refuse_grad("matmul", (input, other), out)
        if out.dtype is not input.dtype:
            raise RuntimeError(write.refusal("same", "matmul", input.dtype, out.dtype))
    if m == 2 and n == 2:
        return matmul.mm.function(input, other, out=out)
    if m == 0 or n == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D"
        )
    if n == 1 and m < 3:
        input, other = operands("half", input, other)
    if m == 1 and n == 1:
        return matmul.dot.function(input, other, out=out)
    if m == 2 and n == 1:
        return matmul.mv.function(input, other, out=out)
    if m == 1 and n == 2:
        product = matmul.mm.function(input.unsqueeze(0), other)
        row = of_its_own(renamed(product.squeeze(0)))  # PyTorch squeezes in place
        return counted(row, 1) if out is None else create.put_out(row, out)
    made = matmul.unrecorded(input, other) if out is None and m > 2 and n > 1 else None
    if made is None:
        made = folded(input, other, out is not None) if min(m, n) < 3 else None
    if made is None:
        made = of_stacks(input, other)
    return made if out is None else create.put_out(made, out)


def folded(a: Tensor, b: Tensor, into: bool) -> Tensor | None:
    """A stack times a vector or a matrix, or the other way round, as one product in which the stack's
    matrices lie below each other; None where PyTorch repeats what is no stack."""
    m, n = len(a._array.shape), len(b._array.shape)
    turned = n > m  # the product is made as (bᵀ·aᵀ)ᵀ
    stack, factor = (b.transpose(-2, -1), a.t() if m == 2 else a) if turned else (a, b)
    fast = m > n == 2 and not a.requires_grad and a.dtype is b.dtype
    if not (fast or folds(stack, factor, into, turned)):
        return None
    *lead, width = stack._array.shape
    rows = convert.reshape(stack, (math.prod(lead), width))
    if m == 1 or n == 1:
        return view.unsafe_viewed(matmul.mv.function(rows, factor), tuple(lead))
    product = matmul.mm.function(rows, factor)
    made = view.unsafe_viewed(product, (*lead, product._array.shape[1]))
    return convert.contiguous(made.transpose(-2, -1)) if turned else made


def of_stacks(a: Tensor, b: Tensor) -> Tensor:
    """The product of stacks of matrices, in which vectors and single matrices are repeated."""
    m, n, x, y = a.ndim, b.ndim, a._array.shape, b._array.shape
    if m == n == 3 and x[0] != y[0]:  # of what is repeated, the gradient would be a stack first
        if x[0] == 1 and a.requires_grad:
            return matmul_(a.squeeze(0), b)
        if y[0] == 1 and b.requires_grad:
            return matmul_(a, b.squeeze(0))
    batch = broadcast_pair(x[:-2], y[:-2])
    count, rows = math.prod(batch), x[-2:] if m > 1 else (1, *x)
    left = convert.reshape(a.expand((*batch, *rows)), (count, *rows))
    right = convert.reshape(b.expand((*batch, *y[-2:])), (count, *y[-2:]))
    product = matmul.bmm.function(left, right.unsqueeze(2) if n == 1 else right)
    if n == 1:
        product = product.squeeze(-1)
    return view.unsafe_viewed(product, (*batch, *x[-2:-1], *(y[-1:] if n > 1 else ())))


def folds(stack: Tensor, matrix: Tensor, into: bool, turned: bool) -> bool:
    """Whether PyTorch multiplies a stack as one matrix, of which it asks other types than of a stack."""
    if matrix.requires_grad and not into:
        return True
    if turned and matrix.ndim == 2:
        return False
    shape, strides = stack.shape, stack.stride()
    return not stack.numel() or all(
        strides[i] == strides[i + 1] * shape[i + 1] for i in range(stack.ndim - 2)
    )


@takes_words()
@composed(layer=True)
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """x·Wᵀ + b."""
    if out is not None:
        return create.put_out(linear(input, weight, bias), out, same=True)
    if not isinstance(input, Tensor):
        raise wrong_argument("linear", "input", 1, "Tensor", input)
    if not input.ndim:
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are "
            f"{input.ndim}D and {weight.ndim}D"
        )
    if bias is None:
        return matmul_(input, weight.t())
    x, w, b = input._array, weight._array, bias._array
    if x.ndim == 2 == w.ndim and b.shape == w.shape[:1]:
        return matmul.linear.function(bias, input, weight)
    if x.ndim != 2 and not convert.is_contiguous(bias):
        return matmul_(input, weight.t()).add_(bias)  # whose type may be another
    in_rows = x.ndim in (0, 2) or convert.is_contiguous(input)
    if in_rows and b.ndim and x.ndim not in (0, 2) and w.ndim == 2:
        *rest, width = x.shape
        product = matmul.unrecorded(input, weight, bias, True)
        if product is None:
            transposed = weight.t()
            flat = view.viewed(input, (math.prod(rest), width))
            product = matmul.addmm.function(bias, flat, transposed)
        return view.viewed(product, (*rest, w.shape[0]))
    if x.ndim == 2 or (b.ndim and (x.ndim < 2 or in_rows)):
        matmul.same_three(bias, input, weight)  # one product with a sum in PyTorch
    if x.ndim == 2 and w.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {w.ndim}-D tensor")
    if x.ndim == 2:
        return matmul.addmm.function(bias, input, weight.t())
    product = matmul_(input, weight.t())
    if x.ndim < 3 and b.shape not in (w.shape[:1], (1,), ()):
        width = w.shape[0]
        view.expand.function(bias, (product.numel() // width if width else 0, width))
    if bias.dtype is not product.dtype:
        return product.add_(bias)  # in place, as PyTorch: its type stays
    return counted(product + bias, 1 + (x.ndim == 1 and w.ndim == 2))  # it is added in place


def sizes_of(x: Tensor) -> Any:
    """A shape, whose sizes are no plain numbers where a function is traced."""
    return x.shape if state.fast_path is state.SLOW else x._array.shape


@public("tensordot", tensor_first=False)
def tensordot(
    a: Tensor, b: Any, dims: int | Sequence[list[int]] = 2, out: Tensor | None = None
) -> Tensor:
    """Products summed over pairs of dimensions."""
    if isinstance(dims, Tensor):
        dims = int(dims) if dims.numel() == 1 else dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-dims, 0)), list(range(dims))
    else:
        left, right = dims
        for place, (name, over) in enumerate((("dims_self", left), ("dims_other", right)), 3):
            if not isinstance(over, (list, tuple)):
                raise wrong_argument("tensordot", name, place, "tuple of ints", over)
    given = list(zip(left, right))
    of_a, of_b = sizes_of(a), sizes_of(b)
    left, right = list(wrap_dims(tuple(left), len(of_a))), list(wrap_dims(tuple(right), len(of_b)))
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for i, j, said in zip(left, right, given):
        if of_a[i] != of_b[j] and 1 in (of_a[i], of_b[j]):  # one place for all
            a, b = (
                x.sum(d, True, dtype=x.dtype) if x.shape[d] != 1 else x for x, d in ((a, i), (b, j))
            )
            of_a, of_b = sizes_of(a), sizes_of(b)
        if of_a[i] != of_b[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {of_a[i]} in dim "
                f"{said[0]} and second has size {of_b[j]} in dim {said[1]}"
            )
    rest_a = [d for d in range(len(of_a)) if d not in left]
    rest_b = [d for d in range(len(of_b)) if d not in right]
    n = math.prod([of_a[d] for d in left])
    left_of, right_of = [of_a[d] for d in rest_a], [of_b[d] for d in rest_b]
    x = view.permute.function(a, tuple(rest_a + left))
    y = view.permute.function(b, tuple(right + rest_b))
    x, y = convert.reshape(x, (math.prod(left_of), n)), convert.reshape(y, (n, math.prod(right_of)))
    made = convert.reshape(x.mm(y), tuple(left_of + right_of))
    return create.put_out(made, out, same=True)


@public("einsum", tensor_first=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Einstein's summation over named dimensions.

    >>> einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    if isinstance(equation, Tensor):  # operands, each with a list of its dimensions' numbers
        equation, operands = _from_lists((equation, *operands))
    elif not isinstance(equation, str):
        raise wrong_argument("einsum", "equation", 1, "str", equation)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return evaluate(equation, list(operands))


def _letters(numbers: Sequence[Any]) -> str:
    """The letters of a list of dimensions' numbers; ... stands for the rest."""
    said = []
    for n in numbers:
        if n is Ellipsis:
            said.append("...")
            continue
        n = n.__index__()
        if not 0 <= n < 52:
            raise ValueError(f"einsum(): operands subscript must be in range [0, 52) but found {n}")
        said.append(chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26))
    return "".join(said)


def _from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Tensor, ...]]:
    """The equation and the operands of einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    operands, lists = given[0 : len(given) // 2 * 2 : 2], given[1::2]
    equation = ",".join(_letters(one) for one in lists)
    if len(given) % 2:
        equation += "->" + _letters(given[-1])
    return equation, operands


@public("inner", method=True)
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Σ over the last dimension of both."""
    of_input, of_other = input._array.shape, other._array.shape
    if not (of_input and of_other):
        return arithmetic.mul.function(input, other, out=out)
    if of_input[-1] != of_other[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]), out=out)


@public("trace", method=True)
@cast_to("float32")
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if input.dtype is types.bool:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return slices.diagonal.function(input).sum()


public("ger", method="ger")(matmul.outer.function)
