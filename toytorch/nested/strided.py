"""Nested tensors of the layout `torch.strided`: a list of tensors of any sizes that acts as one.

PyTorch keeps such a tensor as one buffer with sizes and strides; here it is the tuple of its parts,
each a tensor with a history of its own, and functions go from part to part. Its range is PyTorch's,
and somewhat wider (all pointwise ops); the layout that PyTorch develops is `torch.jagged`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import toytorch as torch
from toytorch import overrides
from toytorch.core.tensor import Tensor, new
from toytorch.facts.device import given
from toytorch.facts.hints import Args, Device, DType, Fn, Kwargs, Shape
from toytorch.facts.size import wrap_dim

_warned: list[bool] = []
PROTOTYPE = (
    "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We "
    "recommend specifying layout=torch.jagged when constructing a nested tensor, as this layout "
    "receives active development, has better operator coverage, and works with torch.compile."
)
NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."


class StridedNested(Tensor):
    """A batch of tensors of one dimension and of any sizes. `torch.nested.nested_tensor` makes it.

    The first one of a process warns that PyTorch recommends the other layout.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
    >>> 2 * x
    nested_tensor([
      tensor([2., 4.]),
      tensor([6.])
    ])
    """

    is_nested = True
    parts: tuple[Tensor, ...]

    def __new__(cls, parts: Sequence[Tensor], empty: Tensor | None = None) -> StridedNested:
        overrides.arm()
        made: StridedNested = new(cls)
        made.parts = tuple(parts)
        first = made.parts[0] if made.parts else (torch.empty(0) if empty is None else empty)
        made._array, made._dtype, made._storage = first._array, first._dtype, first._memory()
        made._requires_grad, made._grad_edge = False, None
        return made

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    # -- shape ----------------------------------------------------------------------------------

    @property
    def shape(self) -> Any:
        """Refused, as in PyTorch: sizes differ."""
        raise RuntimeError(NO_SIZES.format("sizes"))

    def size(self, dim: int | None = None, **more: int | None) -> Any:
        """The size of a dimension in which all parts agree."""
        if more:
            return super().size(dim, **more)
        if dim is None:
            raise RuntimeError(NO_SIZES.format("sizes"))
        at = wrap_dim(dim, self.dim())
        if at == 0:
            return len(self.parts)
        found = {int(p.shape[at - 1]) for p in self.parts}
        if len(found) > 1:
            raise RuntimeError(f"Given dimension {at} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim: int | None = None, **more: int | None) -> Any:
        """Refused, as in PyTorch."""
        if more:
            return super().stride(dim, **more)
        raise RuntimeError(NO_SIZES.format("strides"))

    def dim(self) -> int:
        """One more than the parts have."""
        return 1 + (self.parts[0].dim() if self.parts else 0)

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """The number of elements of all parts."""
        return sum(p.numel() for p in self.parts)

    nelement = numel

    def __len__(self) -> int:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def is_contiguous(self, memory_format: object = None) -> bool:
        """Whether each part lies in rows."""
        return all(p.is_contiguous() for p in self.parts)

    def _nested_tensor_size(self) -> Tensor:
        return torch.tensor([list(p.shape) for p in self.parts])

    def layout_of_parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """How parts lie in `values()`: sizes, strides and where each begins."""
        dense = [torch.empty(p.shape, device="meta").stride() for p in self.parts]
        counts = torch.tensor([0, *(p.numel() for p in self.parts[:-1])], dtype=torch.int64)
        return self._nested_tensor_size(), torch.tensor([list(s) for s in dense]), counts.cumsum(0)

    def with_parts(self, parts: Sequence[Tensor]) -> StridedNested:
        """A nested tensor of other parts."""
        return StridedNested(parts, self)

    def values(self) -> Tensor:
        """The elements of all parts, one after the other."""
        if not self.parts:
            return torch.empty(0, dtype=self.dtype)
        return torch.cat([p.reshape(-1) for p in self.parts])

    def to_padded_tensor(self, padding: float, output_size: Shape | None = None) -> Tensor:
        """A dense tensor of the parts, filled up to the size of the largest."""
        sizes = [max(n) for n in zip(*(p.shape for p in self.parts))]
        wanted = [len(self.parts), *sizes] if output_size is None else list(output_size)
        if any(w < n for w, n in zip(wanted[1:], sizes)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not "
                "supported."
            )
        rows = []
        for p in self.parts:
            room = [w - n for n, w in zip(p.shape, wanted[1:])]
            ends = [n for more in reversed(room) for n in (0, more)]
            rows.append(torch.nn.functional.pad(p, ends, value=padding))
        return torch.stack(rows)

    # -- history, which is the parts' -------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted."""
        return any(p.requires_grad for p in self.parts)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Says whether gradients are wanted; in place."""
        for p in self.parts:
            p.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made the parts."""
        return all(p.is_leaf for p in self.parts)

    @property
    def grad_fn(self) -> Any:
        """The Node that made the first part."""
        return self.parts[0].grad_fn if self.parts else None

    @property
    def grad(self) -> Any:
        """What backward accumulated: a nested tensor."""
        found = [p.grad for p in self.parts]
        if not any(g is not None for g in found):
            return None
        return StridedNested(
            [torch.zeros_like(p) if g is None else g for p, g in zip(self.parts, found)]
        )

    @grad.setter
    def grad(self, value: Any) -> None:
        given = [None] * len(self.parts) if value is None else value.parts
        for p, g in zip(self.parts, given):
            p.grad = g

    @property
    def data(self) -> Any:
        """A nested tensor over the same memory that no graph knows of."""
        return StridedNested([p.data for p in self.parts], self)

    @data.setter
    def data(self, value: object) -> None:
        raise RuntimeError("the data of a nested tensor cannot be set: make another one")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = StridedNested([p.__deepcopy__(memo) for p in self.parts], self)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: object) -> Any:
        return _rebuild, ([p.detach() for p in self.parts], self.requires_grad)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        shown = []
        for p in self.parts:
            plain = p.detach().requires_grad_(p.requires_grad)  # without the name of its history
            shown.append("  " + repr(plain).replace("\n", "\n  "))
        end = "" if not self.requires_grad else ", requires_grad=True"
        if self.grad_fn is not None:
            end = f", grad_fn=<{type(self.grad_fn).__name__}>"
        return "nested_tensor([\n" + ",\n".join(shown) + f"\n]{end})"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    @classmethod
    def __torch_function__(
        cls, func: Fn, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        from toytorch.nested.strided_rules import answer  # which needs this class

        return answer(func, args, kwargs or {})


def _rebuild(parts: list[Tensor], requires_grad: bool) -> StridedNested:
    made = StridedNested(parts)
    return made.requires_grad_(True) if requires_grad else made


def from_buffer(flat: Tensor, sizes: Tensor, strides: Tensor, starts: Tensor) -> StridedNested:
    """A nested tensor over the memory of a buffer, as files describe it."""
    each = zip(sizes.tolist(), strides.tolist(), starts.tolist())
    return StridedNested([flat.as_strided(n, s, at) for n, s, at in each], flat)


def strided_from_list(
    tensors: Sequence[Tensor], dtype: DType | None = None, device: Device = None
) -> StridedNested:
    """A nested tensor of copies of tensors, which has their history.

    Raises RuntimeError if their numbers of dimensions differ.
    """
    if not _warned:
        _warned.append(True)
        warnings.warn(PROTOTYPE, UserWarning, stacklevel=4)
    if not tensors:
        return StridedNested([], torch.empty(0, dtype=dtype))
    for i, t in enumerate(tensors):
        if t.dim() != tensors[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{t.dim()} for Tensor at index {i} and dimension {tensors[0].dim()} for Tensor at "
                "index 0."
            )
    kind, place = dtype or tensors[0].dtype, given(device, tensors[0].device)
    flat = torch.cat([t.reshape(-1).to(device=place, dtype=kind) for t in tensors])
    pieces = flat.split([t.numel() for t in tensors])
    return StridedNested([p.view(t.shape) for p, t in zip(pieces, tensors)])
