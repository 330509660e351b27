"""`torch._C._functorch`: what `vmap` does to tensors, step by step, for libraries that do it themselves."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from toytorch.autograd.vmap import Batch
from toytorch.core.tensor import Tensor
from toytorch.facts import state

ENTERED: list[ExitStack] = []  # of the levels that were opened here, innermost last


def levels() -> list[Batch]:
    """The runs of `vmap` that this call is in, outermost first; the first one is level 1."""
    return [mode for mode in state.local.modes if isinstance(mode, Batch)]


def maybe_current_level() -> int | None:
    """The number of the innermost level; None outside of all."""
    return len(levels()) or None


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Opens a level, and gives its number."""
    ENTERED.append(ExitStack())
    ENTERED[-1].enter_context(state.watching(Batch(batch_size, randomness)))
    return len(levels())


def _vmap_decrement_nesting() -> int:
    """Closes the innermost level, and gives its number."""
    number = len(levels())
    ENTERED.pop().close()
    return number


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    """What a function sees of a batch: one example."""
    return levels()[level - 1].hide(tensor.movedim(batch_dim, 0))


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Any:
    """The batch of which a function saw one example, or so many times what is the same for all."""
    whole = levels()[level - 1].full(tensor)
    if whole is None:
        whole = tensor.unsqueeze(0).expand(batch_size, *tensor.shape)
    return whole.movedim(0, out_dim)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is one example of a batch."""
    return isinstance(tensor, Tensor) and bool(tensor._batches)


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Never: gradients are recorded without a wrapper around the tensor."""
    return False


is_functionaltensor = is_legacy_batchedtensor = is_gradtrackingtensor
is_functorch_wrapped_tensor = is_batchedtensor


def get_unwrapped(tensor: Tensor) -> Any:
    """The batch of the innermost level, of which a tensor is one example."""
    if not is_batchedtensor(tensor):
        raise RuntimeError("No wrappers present!")
    return list(tensor._batches.values())[-1]


def maybe_get_level(tensor: Tensor) -> int:
    """The level that made an example of a batch; -1 for other tensors."""
    found = [k for k, mode in enumerate(levels(), 1) if mode.full(tensor) is not None]
    return found[-1] if found else -1


def maybe_get_bdim(tensor: Tensor) -> int:
    """Where the examples lie in a batch: in front; -1 for other tensors."""
    return 0 if is_batchedtensor(tensor) else -1
