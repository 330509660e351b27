"""Where every random stream of a training run is: toytorch's on each device, Python's, NumPy's, the
loader's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from toytorch import cuda
from toytorch.core.random import Generator, get_rng_state, manual_seed, set_rng_state
from toytorch.facts.dtype import int64
from toytorch.ops.creation.from_data import tensor


def seed_everything(seed: int) -> int:
    """Seeds toytorch, Python's `random` and NumPy; returns the seed.

    >>> seed_everything(3)
    3
    """
    if not 0 <= seed < 1 << 32:
        raise ValueError(f"{seed} is not in bounds, numpy accepts from 0 to 4294967295")
    random.seed(seed)
    np.random.seed(seed)
    manual_seed(seed)
    return seed


def capture(loader: object = None) -> dict[str, Any]:
    """The places of all streams, as values that a checkpoint can hold."""
    name, keys, position, has_gauss, gauss = np.random.get_state()
    version, inner, spare = random.getstate()
    return {
        "torch": get_rng_state(),
        "cuda": cuda.get_rng_state_all(),
        "python": (version, tensor(inner, dtype=int64), spare),
        "numpy": (
            str(name),
            tensor(np.asarray(keys).astype(np.int64)),
            int(position),
            int(has_gauss),
            float(gauss),
        ),
        "loader": [generator.get_state() for generator in generators_of(loader)],
    }


def restore(state: dict[str, Any], loader: object = None) -> None:
    """Puts all streams back to where `capture` found them."""
    set_rng_state(state["torch"])
    known = cuda.device_count()  # a run may go on where there are fewer devices
    cuda.set_rng_state_all(state.get("cuda", [])[:known])
    version, inner, spare = state["python"]
    random.setstate((version, tuple(inner.tolist()), spare))
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))
    found = generators_of(loader)
    if len(found) != len(state["loader"]):
        raise RuntimeError(
            f"the checkpoint has the states of {len(state['loader'])} generators of "
            f"the training loader, but this loader has {len(found)}"
        )
    for generator, place in zip(found, state["loader"]):
        generator.set_state(place)


def generators_of(loader: object) -> list[Generator]:
    """The generators that a DataLoader and its samplers draw from, each once."""
    batches = getattr(loader, "batch_sampler", None)
    holders = (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    found: list[Generator] = []
    for holder in holders:
        generator = getattr(holder, "generator", None)
        if isinstance(generator, Generator) and all(generator is not g for g in found):
            found.append(generator)
    return found
