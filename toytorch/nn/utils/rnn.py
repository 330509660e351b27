"""Sequences of different lengths: padded into one tensor, or packed step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.core.views import of_its_own
from toytorch.facts.composed import called
from toytorch.facts.dtype import int64
from toytorch.facts.hints import Device
from toytorch.facts.parts import of_part
from toytorch.ops.creation.from_data import as_tensor
from toytorch.ops.creation.ranges import arange


class PackedSequence_(NamedTuple):
    """The fields of a packed batch."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences without padding: all first steps, all second steps, … in one tensor.

    batch_sizes says how many sequences have each step; the longest come first, and
    `sorted_indices` leads there from the user's order, `unsorted_indices` back.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _over(self, change: Any, orders: Any = None) -> PackedSequence:
        data, orders = change(self.data), orders or (lambda t: t)
        if data is self.data:
            return self
        return type(self)(
            data,
            self.batch_sizes,
            *(
                None if t is None else orders(t)
                for t in (self.sorted_indices, self.unsorted_indices)
            ),
        )

    def to(self, *args: object, **kwargs: object) -> PackedSequence:
        """With the data in another type or on another device."""

        def change(t: Tensor) -> Any:
            return t.to(*args, **kwargs)

        where = change(self.data).device
        return self._over(change, lambda t: t.to(where))

    def cpu(self) -> PackedSequence:
        """In the CPU's memory."""
        return self.to("cpu")

    def cuda(self, device: Device = "cuda") -> PackedSequence:
        """On a GPU."""
        return self.to(device)

    def pin_memory(self) -> PackedSequence:
        """In pinned memory."""
        return self._over(lambda t: t.pin_memory(), lambda t: t.pin_memory())

    is_cuda = of_part("data.is_cuda", "Whether the data is on a GPU.")

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def _converting(name: str) -> Any:
    def convert(self: PackedSequence) -> PackedSequence:
        return self._over(lambda t: getattr(t, name)())

    return called(name, f"With data as `Tensor.{name}` makes it.", convert)


for _name in ("double", "float", "half", "short", "char", "byte", "long", "int"):
    setattr(PackedSequence, _name, _converting(_name))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another.

    >>> invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """A padded batch (T, B, …) without its padding.

    >>> packed = pack_padded_sequence(torch.tensor([[1, 4], [2, 5], [3, 0]]), [3, 2])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """
    lengths = as_tensor(lengths, dtype=int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    x = input.transpose(0, 1) if batch_first else input
    sizes = lengths.tolist()
    if len(sizes) != x.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(sizes)} (batch_size={x.shape[1]})"
        )
    if not sizes or min(sizes) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in"
            " 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(sizes, sizes[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if sizes[0] > x.shape[0]:
        raise RuntimeError(
            f"Expected lengths to be at most {x.shape[0]}, the length of the padded "
            f"sequences, but got {sizes[0]}"
        )
    batch = x.shape[1]
    counts = (np.asarray(sizes) > np.arange(sizes[0])[:, None]).sum(1)
    rows = np.concatenate([t * batch + np.arange(n) for t, n in enumerate(counts)])
    flat = x.reshape([x.shape[0] * batch, *x.shape[2:]])
    data = flat.index_select(0, wrap(rows.astype("int64")).to(input.device))
    return PackedSequence(data, wrap(counts.astype("int64")), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch (T, B, …) of a packed one, and the lengths."""
    counts = sequence.batch_sizes.tolist()
    longest = len(counts)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    data, batch = sequence.data, counts[0]
    rows = np.concatenate([t * batch + np.arange(n) for t, n in enumerate(counts)])
    made = data.new_full((longest * batch, *data.shape[1:]), padding_value)
    made = made.index_copy(0, wrap(rows.astype("int64")).to(data.device), data)
    made = of_its_own(made.reshape([longest, batch, *data.shape[1:]]))
    made = made.transpose(0, 1) if batch_first else made
    lengths = wrap((np.asarray(counts)[:, None] > np.arange(batch)).sum(0).astype("int64"))
    back = sequence.unsorted_indices
    if back is not None:
        made = made.index_select(0 if batch_first else 1, back)
        lengths = lengths.index_select(0, back.cpu())
    return made, lengths


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (Tᵢ, …) as one tensor (T, B, …) of the longest's length.

    >>> pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of "
            f"type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    parts = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    first = parts[0]
    if not first.ndim:
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    longest = max(p.shape[0] for p in parts)
    sizes = (len(parts), longest) if batch_first else (longest, len(parts))
    made = first.new_full((*sizes, *first.shape[1:]), padding_value)
    for i, p in enumerate(parts):
        start = longest - p.shape[0] if padding_side == "left" else 0
        own = slice(start, start + p.shape[0])
        made[(i, own) if batch_first else (own, i)] = p
    return made


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch, each of its own length."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    places = arange(x.shape[1], device=lengths.device)
    return [part[places < n] for part, n in zip(x, lengths)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (Tᵢ, …), packed."""
    return pack_padded_sequence(
        pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
