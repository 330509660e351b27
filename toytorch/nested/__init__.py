"""Batches of tensors of different sizes, like `torch.nested`.

>>> parts = torch.ones(2, 3), torch.zeros(1, 3)
>>> x = torch.nested.nested_tensor(list(parts), layout=torch.jagged)
>>> x.offsets(), x.sum(1)
(tensor([0, 2, 3]), tensor([[2., 2., 2.],
        [0., 0., 0.]]))

Two layouts, as in PyTorch: `torch.jagged` (`nested.jagged`, one ragged dimension), and
`torch.strided` (`nested.strided`, parts of any sizes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.facts.device import given
from toytorch.facts.hints import Device, DType, Shape
from toytorch.nested.jagged import (
    NestedTensor,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets,
    nested_view_from_values_offsets_lengths,
)
from toytorch.nested.strided import StridedNested, strided_from_list

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip


def _unsupported(layout: object, what: str) -> RuntimeError:
    return RuntimeError(f"Specified layout is unsupported for nested {what}: {layout}")


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: DType | None = None,
    layout: object = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A nested tensor of copies of tensors, or of what `torch.tensor` takes: a leaf.

    Raises RuntimeError for tensors that the layout (`torch.strided` unless one is given) cannot hold.

    >>> nested_tensor([[1.0], [2.0, 3.0]], layout=torch.jagged).unbind()
    (tensor([1.]), tensor([2., 3.]))
    """
    if layout not in (None, torch.strided, torch.jagged):
        raise _unsupported(layout, "tensors")
    if layout is torch.jagged:
        parts = [t if isinstance(t, Tensor) else torch.as_tensor(t) for t in tensor_list]
    else:
        if not isinstance(tensor_list, (list, tuple)):
            raise TypeError(
                "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor"
            )
        parts = [t.detach() if isinstance(t, Tensor) else torch.tensor(t) for t in tensor_list]
    with torch.no_grad():
        if layout is torch.jagged:
            made: Any = jagged_from_list(parts, None, dtype, device)[0].detach()
        else:
            made = strided_from_list(parts, dtype, device).detach()
    if pin_memory:
        made = made.pin_memory()
    return made.requires_grad_(requires_grad) if requires_grad else made


def as_nested_tensor(
    ts: Any, dtype: DType | None = None, device: Device = None, layout: object = None
) -> Any:
    """A nested tensor that remembers where its parts come from; of a dense tensor, its rows.

    Raises TypeError for what is neither a tensor nor a list of tensors.

    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> as_nested_tensor([a, b], layout=torch.jagged).sum().backward()
    >>> a.grad
    tensor([1., 1.])
    """
    several = isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    if not isinstance(ts, Tensor) and not several:
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors "
        )
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, Tensor) and ts.is_nested:
        if layout is not ts.layout:
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported"
            )
        return ts.to(device=given(device, ts.device), dtype=dtype or ts.dtype)
    if layout not in (None, torch.strided, torch.jagged):
        raise _unsupported(layout, "tensors")
    if layout is not torch.jagged:
        return strided_from_list(list(ts), dtype, device)
    if several:
        return jagged_from_list(list(ts), None, dtype, device)[0]
    values = (
        ts.contiguous().flatten(0, 1).to(device=given(device, ts.device), dtype=dtype or ts.dtype)
    )
    length = ts.shape[1]
    offsets = torch.arange(0, values.shape[0] + 1, length, device=values.device)
    return nested_view_from_values_offsets(values, offsets, 1, length, length)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """The nested tensor whose parts lie side by side in `values`, over the same memory.

    `offsets` says where parts begin and the last one ends; `lengths` how long they are. Both: parts
    with room between them. Raises RuntimeError without either, ValueError if `jagged_dim` < 1.

    >>> x = nested_tensor_from_jagged(torch.arange(5.0), lengths=torch.tensor([2, 3]))
    >>> x.unbind()
    (tensor([0., 1.]), tensor([2., 3., 4.]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets, lengths = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    dim = 1 if jagged_dim is None else jagged_dim
    if dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    return nested_view_from_values_offsets_lengths(
        values, offsets, lengths, dim, min_seqlen, max_seqlen
    )


def narrow(
    tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: object = None
) -> Any:
    """Of each row of a dense tensor, `length` elements from `start` on.

    With `layout=torch.jagged` a view, for which `start` and `length` may be tensors of one number a
    row; otherwise a copy. Raises RuntimeError for other arguments.

    >>> x = torch.arange(6.0).view(2, 3)
    >>> narrow(x, 1, torch.tensor([0, 1]), torch.tensor([1, 2]), layout=torch.jagged).unbind()
    (tensor([0.]), tensor([4., 5.]))
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout in (None, torch.strided):
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return strided_from_list(list(tensor.unbind())).narrow(dim, start, length)
    if layout is not torch.jagged:
        raise _unsupported(layout, "narrow")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    begin, count = (
        torch.tensor([n], device=tensor.device) if isinstance(n, int) else n
        for n in (start, length)
    )
    return jagged_from_tensor_and_lengths(tensor, begin, count)[0]


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements where a mask is True, those of each row as a part.

    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> masked_select(x, x != 2).unbind()
    (tensor([1.]), tensor([3., 4.]))
    """
    for what, found in (
        ("tensor", f", given {tensor.layout}"),
        ("mask", f", given: {mask.layout}"),
    ):
        if (tensor if what == "tensor" else mask).layout is not torch.strided:
            raise RuntimeError(f"torch.nested.masked_select requires a strided {what}{found}")
    lengths = mask.expand(tensor.shape).sum(dim=tensor.ndim - 1).view(-1)
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return nested_view_from_values_offsets(tensor.masked_select(mask), offsets)


def to_padded_tensor(input: object, padding: float, output_size: Shape | None = None) -> Tensor:
    """A dense tensor of the parts, filled up with `padding` to the size of the largest.

    Raises RuntimeError if `output_size` (strided layout) is too small.

    >>> to_padded_tensor(nested_tensor([[1.0], [2.0, 3.0]], layout=torch.jagged), 0.0)
    tensor([[1., 0.],
            [2., 3.]])
    """
    if not isinstance(input, (NestedTensor, StridedNested)):
        raise NotImplementedError(
            "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend: the "
            "tensor is not nested"
        )
    return input.to_padded_tensor(padding, output_size)
