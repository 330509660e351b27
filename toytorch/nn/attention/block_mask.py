"""Masks that are known block by block, as `flex_attention` takes them."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Device, Sizes
from toytorch.nn import functional as F
from toytorch.ops.creation.create import ones, zeros
from toytorch.ops.creation.ranges import arange

Mod = Callable[..., Tensor]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that hides nothing."""
    return ones((), dtype=types.bool, device=batch.device)


def sliced_mask_mod(*args: object) -> Tensor:
    """The function of a mask of which only a part was taken: its indices would mean others."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def places(
    batch: int, heads: int, queries: int, keys: int, device: Device = None
) -> tuple[Tensor, ...]:
    """Indices of batch, head, query and key that broadcast to (B, H, L, S)."""
    numbers = (arange(n, device=device, dtype=types.int32) for n in (batch, heads, queries, keys))
    b, h, q, k = numbers
    return b.view(-1, 1, 1, 1), h.view(1, -1, 1, 1), q.view(1, 1, -1, 1), k.view(1, 1, 1, -1)


def takes(mod: Mod) -> int:
    """How many arguments a function needs: 5 with the score, 4 without."""
    needed = [
        p
        for p in inspect.signature(mod).parameters.values()
        if p.default is inspect.Parameter.empty and p.kind is not p.VAR_KEYWORD
    ]
    if any(p.kind is p.VAR_POSITIONAL for p in needed):
        return 4
    if len(needed) not in (4, 5):
        raise AssertionError(f"a mask_mod takes 4 arguments and a score_mod 5, not {len(needed)}")
    return len(needed)


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Device = None
) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) of a function of indices, or where a score is not -inf.

    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    size = (B or 1, H or 1, Q_LEN, KV_LEN)
    if takes(mod_fn) == 5:
        score = mod_fn(zeros(size, device=device), *places(*size, device=device))
        found: Tensor = ~score.isneginf()
    else:
        found = mod_fn(*places(*size, device=device))
    return found.expand(size).clone()


def _joined(name: str, mask_mods: tuple[Mod, ...], join: Callable[..., Tensor], start: Any) -> Mod:
    """The function of what masks say together."""
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        masks = (m(b, h, q_idx, kv_idx) for m in mask_mods)
        return functools.reduce(join, masks, start((), dtype=types.bool, device=b.device))

    joined.__name__ = name  # which `repr` shows
    return joined


def or_masks(*mask_mods: Mod) -> Mod:
    """The function of the union of masks."""
    return _joined("or_mask", mask_mods, operator.or_, zeros)


def and_masks(*mask_mods: Mod) -> Mod:
    """The function of what masks have in common."""
    return _joined("and_mask", mask_mods, operator.and_, ones)


def ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of blocks: how many are wanted, and their numbers, those first."""
    dense = dense.to(types.int32)
    numbers = dense.argsort(dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(types.int32), numbers.to(types.int32)


def dense_of(count: Tensor, numbers: Tensor, columns: int) -> Tensor:
    """The blocks that are wanted, as zeros and ones."""
    wanted = arange(numbers.shape[-1], device=count.device) < count.unsqueeze(-1)
    where = numbers.long().masked_fill(~wanted, columns)
    full = zeros((*numbers.shape[:-1], columns + 1), dtype=types.int32, device=count.device)
    return full.scatter(-1, where, 1)[..., :columns].contiguous()


class BlockMask:
    """Which blocks of (query, key) are to be computed, and the function that masks inside of them.

    For each row of blocks `kv_num_blocks` counts those that are partly hidden and `kv_indices` names
    them; `full_kv_…` say the same of those of which nothing is hidden. `create_block_mask` makes it.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        q_num_blocks: Tensor | None = None,
        q_indices: Tensor | None = None,
        full_q_num_blocks: Tensor | None = None,
        full_q_indices: Tensor | None = None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: Mod = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Mod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask from what is known of its rows; its columns follow."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        assert (full_kv_num_blocks is None) == (full_kv_indices is None), (
            "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
        )
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        columns: list[Any] = []
        for count, numbers in ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)):
            if count is None or numbers is None or not compute_q_blocks:
                columns += [None, None]
            else:
                dense = dense_of(count, numbers, numbers.shape[-1])
                columns += ordered(dense.transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1]
        rows = kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices
        c: list[Any] = columns
        return cls(seq_lengths, *rows, c[0], c[1], c[2], c[3], size, mask_mod or noop_mask)

    @property
    def shape(self) -> Sizes:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs of query and key."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many of a hundred pairs need not be computed."""
        count = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            count += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - count * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """The blocks that are computed, as zeros and ones."""
        found = dense_of(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            numbers = self.full_kv_indices
            found = found | dense_of(self.full_kv_num_blocks, numbers, numbers.shape[-1])
        return found

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All that it consists of."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *self._tensors(), *size, self.mask_mod)

    def _tensors(self) -> tuple[Tensor | None, ...]:
        rows = self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices
        columns = self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices
        return *rows, *columns

    def to(self, device: Device) -> BlockMask:
        """The same mask on another device."""
        moved: list[Any] = [None if t is None else t.to(device) for t in self._tensors()]
        made = BlockMask(self.seq_lengths, *moved)
        made.BLOCK_SIZE, made.mask_mod = self.BLOCK_SIZE, self.mask_mod
        return made

    def __getitem__(self, index: Any) -> BlockMask:
        asked = index if isinstance(index, tuple) else (index,)
        padded = (*asked, slice(None), slice(None), slice(None))[:3]
        sizes = self.kv_num_blocks.shape[:3]
        where = tuple(
            (slice(i % n, i % n + 1) if -n <= i < n else slice(i, i + 1))
            if isinstance(i, int)
            else i
            for i, n in zip(padded, sizes)
        )
        rows: list[Any] = [None if t is None else t[where] for t in self._tensors()[:4]]
        return self._with_rows(rows, sliced_mask_mod, self.seq_lengths)

    def _with_rows(self, rows: list[Any], mask_mod: Mod, lengths: tuple[int, int]) -> BlockMask:
        """A mask of other rows, which knows of its columns if this one does."""
        return BlockMask.from_kv_blocks(
            rows[0], rows[1], rows[2], rows[3], self.BLOCK_SIZE, mask_mod, lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left part of the mask."""
        height, width = (-(-n // s) for n, s in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        rows: list[Any] = []
        for count, numbers in zip(self._tensors()[0:4:2], self._tensors()[1:4:2]):
            if count is None or numbers is None:
                rows += [None, None]
                continue
            numbers = numbers[:, :, :height, :width]
            count = count[:, :, :height].clamp(max=width)
            rows += [(numbers < count[..., None]).sum(-1).to(types.int32), numbers]
        return self._with_rows(rows, self.mask_mod, (new_q_len, new_kv_len))

    def __str__(self) -> str:
        blocks = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{blocks}\n)"

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """The blocks as a picture of at most `grid_size` rows and columns: full, partly there, empty."""
        dense = self.to_dense().float()
        size = dense.shape[-2:]
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        high, wide = (max(1, -(-n // m)) for n, m in zip(size, most))
        shown: list[str] = []
        for place in itertools.product(*map(range, dense.shape[:-2])):
            if len(shown) == limit:
                shown += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            text = f"{place}\n"
            for r in range(0, size[0], high):
                for c in range(0, size[1], wide):
                    share = dense[place][r : r + high, c : c + wide].mean().item()
                    text += ("█" if share == 1 else "░" if share else " ") * 2
                text += "\n"
            shown.append(text)
        return "\n".join(shown)

    def __repr__(self) -> str:
        names = "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks q_indices"
        every = [*names.split(), "full_q_num_blocks", "full_q_indices"]
        shapes = (None if t is None else t.shape for t in self._tensors())
        lines = [f"    {n}={s},\n" for n, s in zip(every, shapes)]
        return (
            f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n"
            f"    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n"
            f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The block mask of a function of indices (batch, head, query, key).

    >>> create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 256, 256).sparsity()
    25.0
    """
    if takes(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = F.pad(mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    batch, heads, height, width = mask.shape
    tiles = mask.view(batch, heads, height // rows, rows, width // columns, columns)
    seen = tiles.permute(0, 1, 2, 4, 3, 5).sum((-2, -1))
    whole = seen == rows * columns
    partly = ordered((seen > 0) & ~whole if separate_full_blocks else seen > 0)
    fully = ordered(whole) if separate_full_blocks else (None, None)
    how: Any = {"BLOCK_SIZE": (rows, columns), "mask_mod": mask_mod, "seq_lengths": (Q_LEN, KV_LEN)}
    return BlockMask.from_kv_blocks(*partly, *fully, **how)
