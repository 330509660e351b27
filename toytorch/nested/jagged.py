"""Nested tensors of the layout `torch.jagged`: parts of different lengths side by side in one tensor.

A batch of B parts, of shapes (sᵢ, D), is kept as `values`, of shape (Σ sᵢ, D), and as `offsets`,
B + 1 places where parts begin and end. The shape is (B, j, D) with a `RaggedSize` j, which equals
that of another nested tensor where both have the same offsets object. `ragged` is the dimension of j
(1 unless it was moved), so that the values are ragged in dimension `ragged - 1`. With `lengths`, a
part may be shorter than the room that offsets leave for it.

A nested tensor is a wrapper: `__torch_function__` computes on the values and wraps the result, and
the history is the values'. Rules for functions stand in `jagged_rules`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import toytorch as torch
from toytorch import overrides
from toytorch.core.tensor import Tensor, new
from toytorch.facts.hints import Args, Device, DType, Fn, Kwargs, Shape
from toytorch.facts.parts import of_part
from toytorch.facts.size import Size, wrap_dim
from toytorch.symbolic import RaggedSize

_sizes: dict[int, tuple[Any, RaggedSize]] = {}  # by id, the size that belongs to some offsets
_counted = 1  # PyTorch numbers from 1, too


def ragged_size(of: Tensor) -> RaggedSize:
    """The size that stands for the lengths which this object, offsets or lengths, describes."""
    global _counted
    found = _sizes.get(id(of))
    if found is None or found[0]() is not of:
        share_size(of, RaggedSize(_counted))
        _counted += 1
    return _sizes[id(of)][1]


def share_size(of: Tensor, size: RaggedSize) -> None:
    """Lets this object have a size that another one has."""
    key = id(of)
    _sizes[key] = weakref.ref(of, lambda _: _sizes.pop(key, None)), size


class NestedTensor(Tensor):
    """A batch of tensors that differ in one size. Like PyTorch's class of this name.

    Made by `torch.nested.nested_tensor(…, layout=torch.jagged)` and its kin.

    >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 3]))
    >>> [part.shape for part in (2 * x).unbind()]
    [torch.Size([1, 2]), torch.Size([2, 2])]
    """

    is_nested = True
    _values: Tensor
    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int
    _metadata_cache: dict[str, int]

    def __new__(
        cls,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        requires_grad: bool = False,
        _ragged_idx: int = 1,
        _metadata_cache: dict[str, int] | None = None,
    ) -> NestedTensor:
        assert offsets is not None, "offsets must not be None"
        assert offsets.ndim == 1, f"offsets must be 1D, but got {offsets.ndim}D"
        assert not isinstance(values, NestedTensor), "values must not be a NestedTensor"
        assert values.device == offsets.device, (
            f"values and offsets must be on the same device, but got values.device={values.device} "
            f"and offsets.device={offsets.device}"
        )
        assert lengths is None or lengths.shape[0] == offsets.shape[0] - 1, (
            f"offsets and lengths batch sizes must match: offsets.shape[0] - 1 = "
            f"{offsets.shape[0] - 1}, lengths.shape[0] = {lengths.shape[0]}"
        )
        overrides.arm()
        made: NestedTensor = new(cls)
        made._array, made._dtype, made._storage = values._array, values._dtype, values._memory()
        made._values, made._offsets, made._lengths = values, offsets, lengths
        made._ragged_idx, made._metadata_cache = _ragged_idx, _metadata_cache or {}
        if requires_grad:
            values.requires_grad_()
        return made

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    # -- parts ----------------------------------------------------------------------------------

    def values(self) -> Tensor:
        """All parts, side by side in the ragged dimension."""
        return self._values.view_as(self._values)

    def offsets(self) -> Tensor:
        """Where parts begin, and at the end where the last one ends."""
        return self._offsets

    def lengths(self) -> Tensor | None:
        """The lengths of parts that leave room between them; None where offsets say all."""
        return self._lengths

    def with_parts(self, parts: Sequence[Tensor]) -> NestedTensor:
        """A nested tensor of other parts of the same lengths, without room between them."""
        made = like(self, torch.cat(list(parts), self._ragged_idx - 1))
        if self._lengths is not None:
            made._offsets = torch.nn.functional.pad(self._lengths.cumsum(0), (1, 0))
            made._lengths = None
        return made

    def _seqlens(self) -> list[int]:
        lengths = self._offsets.diff() if self._lengths is None else self._lengths
        return lengths.tolist()

    def _get_max_seqlen(self) -> int:
        if "max_seqlen" not in self._metadata_cache:
            self._metadata_cache["max_seqlen"] = max(self._seqlens())
        return self._metadata_cache["max_seqlen"]

    def _get_min_seqlen(self) -> int:
        if "min_seqlen" not in self._metadata_cache:
            self._metadata_cache["min_seqlen"] = min(self._seqlens())
        return self._metadata_cache["min_seqlen"]

    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return self._metadata_cache.get("max_seqlen")

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return self._metadata_cache.get("min_seqlen")

    # -- shape ----------------------------------------------------------------------------------

    @property
    def _size(self) -> tuple[Any, ...]:
        inner, r = self._values.shape, self._ragged_idx - 1
        j = ragged_size(self._offsets if self._lengths is None else self._lengths)
        return (self._offsets.shape[0] - 1, *inner[:r], j, *inner[r + 1 :])

    @property
    def _strides(self) -> tuple[Any, ...]:
        steps = self._values.stride()
        return (self._size[self._ragged_idx] * steps[self._ragged_idx - 1], *steps)

    @property
    def shape(self) -> Size:
        """The sizes; that of the ragged dimension is a `RaggedSize`."""
        return Size(self._size)

    def size(self, dim: int | None = None, **more: int | None) -> Any:
        """The sizes, or the size of one dimension."""
        if more:
            return super().size(dim, **more)
        return self.shape if dim is None else self._size[wrap_dim(dim, self.dim())]

    def stride(self, dim: int | None = None, **more: int | None) -> Any:
        """Steps in elements; the first one is a multiple of the ragged size."""
        if more:
            return super().stride(dim, **more)
        return self._strides if dim is None else self._strides[wrap_dim(dim, self.dim())]

    def dim(self) -> int:
        """The number of dimensions: one more than the values have."""
        return int(self._values.ndim + 1)

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """The number of elements of all parts."""
        if self._lengths is None:
            return self._values.numel()
        fixed = (n for i, n in enumerate(self._size[1:], 1) if i != self._ragged_idx)
        return sum(self._seqlens()) * math.prod(fixed)

    nelement = numel

    def __len__(self) -> int:
        return int(self._offsets.shape[0]) - 1

    @property
    def layout(self) -> Any:
        """`torch.jagged`."""
        return torch.jagged

    def is_contiguous(self, memory_format: object = torch.contiguous_format) -> bool:
        """Whether the parts lie side by side, each in rows."""
        if self._lengths is not None:
            return False
        return memory_format is torch.preserve_format or bool(
            self._values.is_contiguous(memory_format=memory_format)
        )

    def to_padded_tensor(self, padding: float, output_size: Shape | None = None) -> Tensor:
        """A dense tensor, filled up where parts are shorter."""
        if self._lengths is not None:
            raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
        length = self._maybe_max_seqlen
        if length is None:
            length = int(self._values.shape[0])  # as long as PyTorch makes it
        return to_padded(self, padding, output_size[self._ragged_idx] if output_size else length)

    def data_ptr(self) -> int:
        """0, as in PyTorch: the memory is that of the values."""
        return 0

    # -- history, which is the values' -----------------------------------------------------------

    requires_grad = of_part("_values.requires_grad", "Whether gradients are wanted.", True)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Says whether gradients are wanted; in place."""
        self._values.requires_grad_(requires_grad)
        return self

    is_leaf = of_part("_values.is_leaf", "Whether no recorded op made its values.")
    grad_fn = of_part("_values.grad_fn", "The Node that made the values.")
    output_nr = of_part("_values.output_nr", "Which result of `grad_fn` the values are.")
    _version = of_part("_values._version")

    @property
    def grad(self) -> Any:
        """What backward accumulated: a nested tensor of the same lengths."""
        found = self._values.grad
        return None if found is None else like(self, found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._values.grad = value._values if isinstance(value, NestedTensor) else value

    @grad.deleter
    def grad(self) -> None:
        self._values.grad = None

    def retain_grad(self) -> None:
        """Makes backward fill in `.grad` though the values are no leaf."""
        self._values.retain_grad()

    retains_grad = of_part(
        "_values.retains_grad", "Whether `retain_grad` was called on this non-leaf."
    )

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Calls hook(grad) with a nested gradient; what it returns takes its place."""

        def nested(grad: Any) -> Any:
            said = hook(like(self, grad))
            return said._values if isinstance(said, NestedTensor) else said

        return self._values.register_hook(nested)

    @property
    def data(self) -> Any:
        """A nested tensor over the same memory that no graph knows of."""
        return like(self, self._values.data)

    @data.setter
    def data(self, value: object) -> None:
        raise RuntimeError("the data of a nested tensor cannot be set: make another one")

    # -- copies and texts ------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            self._values.__deepcopy__(memo)  # which refuses it
        if id(self) not in memo:
            copy = like(self, self._values.detach().clone())
            copy.requires_grad_(self.requires_grad)
            memo[id(self)] = copy
            if self.grad is not None:
                copy.grad = self.grad.__deepcopy__(memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: object) -> Any:
        parts = {
            "values": self._values.detach(),
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": dict(self._metadata_cache),
            "requires_grad": self.requires_grad,
        }
        return _rebuild_njt, (parts,)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        history = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn:
            history = f", grad_fn={self.grad_fn}"
        return (
            f"NestedTensor(size={self._size}, offsets={self._offsets}{history}, "
            f"contiguous={self.is_contiguous()})"
        )

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        names = ["_values", "_offsets"] + ["_lengths"] * (self._lengths is not None)
        return names, {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx}

    @classmethod
    def __torch_function__(
        cls, func: Fn, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        from toytorch.nested.jagged_rules import answer  # which needs this class

        return answer(func, args, kwargs or {})


def _rebuild_njt(parts: dict[str, Any]) -> NestedTensor:
    return NestedTensor(**parts)


def like(source: NestedTensor, values: Tensor, ragged: int | None = None) -> NestedTensor:
    """A nested tensor of the same lengths over other values."""
    ragged = source._ragged_idx if ragged is None else ragged
    cache = source._metadata_cache
    return NestedTensor(
        values, source._offsets, lengths=source._lengths, _ragged_idx=ragged, _metadata_cache=cache
    )


def nested_view_from_values_offsets_lengths(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Values as a nested tensor, over the same memory."""
    known = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    known = {k: v for k, v in known.items() if v is not None}
    values = values.view_as(values)
    return NestedTensor(
        values, offsets, lengths=lengths, _ragged_idx=ragged_idx, _metadata_cache=known
    )


def nested_view_from_values_offsets(
    values: Tensor,
    offsets: Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Values as a nested tensor whose offsets say all, over the same memory."""
    return nested_view_from_values_offsets_lengths(
        values, offsets, None, ragged_idx, min_seqlen, max_seqlen
    )


def jagged_from_list(
    tensors: Sequence[Tensor],
    offsets: Tensor | None,
    dtype: DType | None = None,
    device: Device = None,
) -> tuple[NestedTensor, Tensor]:
    """A nested tensor of copies of tensors, and its offsets.

    Raises RuntimeError if they differ in more than one size, in type, device or dimension.
    """
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, found in (
        ("have the same dtype", {t.dtype for t in tensors}),
        ("be on the same device", {str(t.device) for t in tensors}),
        ("have the same dim", {t.dim() for t in tensors}),
    ):
        if len(found) > 1:
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must {what}"
            )
    if not tensors[0].dim():
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    sizes = [t.shape for t in tensors]
    ragged = [d + 1 for d, of in enumerate(zip(*sizes)) if len(set(of)) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension. For example: "
            "(B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    dim = (ragged or [1])[0]
    values = torch.cat(list(tensors), dim=dim - 1).to(
        device=tensors[0].device if device is None else device, dtype=dtype or tensors[0].dtype
    )
    lengths = [s[dim - 1] for s in sizes]
    if offsets is None:
        ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        offsets = torch.tensor(ends, device=values.device)
    made = nested_view_from_values_offsets(values, offsets, dim, min(lengths), max(lengths))
    return made, offsets


def jagged_from_tensor_and_lengths(
    tensor: Tensor, starts: Tensor, lengths: Tensor
) -> tuple[NestedTensor, Tensor, Tensor | None]:
    """Part i is `tensor[i, starts[i] : starts[i] + lengths[i]]`, over the memory of the tensor."""
    batch = tensor.shape[0]
    if any(t.dim() > 1 or (t.dim() and t.shape[0] not in (1, batch)) for t in (starts, lengths)):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must "
            "be Tensors that broadcast to input.shape[0]"
        )
    first, count = starts.expand(batch), lengths.expand(batch)
    assert tensor.dim() >= 2, "tensor must at least be 2D for the nested narrow op to work"
    row = tensor.shape[1]
    places = first + row * torch.arange(batch, device=tensor.device)
    offsets = torch.cat([places, (places[-1] + count[-1]).unsqueeze(0)])
    values = tensor.view(-1, *tensor.shape[2:])
    known = int(lengths.min()), int(lengths.max())
    side_by_side = (
        not bool(count[1:-1].ne(row).any())
        and not bool(offsets[1:-2].diff().ne(row).any())
        and int(offsets[0] + count[0]) == row
    )
    if side_by_side:
        begin, end = int(offsets[0]), int(offsets[-1])
        made = nested_view_from_values_offsets(values[begin:end], offsets - begin, 1, *known)
        return made, offsets, None
    made = nested_view_from_values_offsets_lengths(values, offsets, count, 1, *known)
    return made, offsets, count


def rows_of(offsets: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of the values: which part it is of, and its place in that part."""
    lengths = offsets.diff()
    part = torch.arange(len(lengths), device=offsets.device).repeat_interleave(lengths)
    return part, torch.arange(len(part), device=offsets.device) - offsets[part]


def to_padded(nested: NestedTensor, padding: float, length: int) -> Tensor:
    """A dense tensor of shape (B, …, length, …), filled up where parts are shorter."""
    dim = nested._ragged_idx
    values = nested._values.movedim(dim - 1, 0)
    part, place = rows_of(nested._offsets)
    kept = place < length
    if not bool(kept.all()):
        part, place, values = part[kept], place[kept], values[: len(part)][kept]
    dense = values.new_full((len(nested), length, *values.shape[1:]), padding)
    return dense.index_put((part, place), values[: len(part)]).movedim(1, dim)


def from_padded(padded: Tensor, source: NestedTensor) -> NestedTensor:
    """The parts of a dense tensor of shape (B, …, length, …) that have the lengths of `source`."""
    dim = source._ragged_idx
    values = padded.movedim(dim, 1)[rows_of(source._offsets)].movedim(0, dim - 1)
    return like(source, values)
