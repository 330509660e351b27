"""What the checks of chapter 15 share: kernels in CUDA C, launched in emulation."""

import numpy as np

import toytorch as torch


def launched(source, grid, block, *arguments, races="list"):
    """What a launch in emulation counted; errors of the source come as they are."""
    return torch.cuda.kernel(source, races=races)[grid, block](*arguments)


def matrix(rows, columns, seed=0):
    """Numbers of the normal distribution in float32."""
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def races_of(done):
    """Who races with whom, without places in a text that somebody else wrote."""
    return sorted({f"{race.memory}[{race.index}]: one thread {race.before.kind}, "
                   f"another one {race.after.kind}"
                   for race in done.races})
