"""What the programs share: numbers from NumPy, so that they are the same under either package."""

import numpy as np
import torch


def array(*shape, seed=0, scale=1.0):
    """Normal numbers as a float32 tensor."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy((rng.standard_normal(shape) * scale).astype(np.float32))


def labels(count, classes, seed=0):
    """Class numbers."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, classes, count))


def fill(model, seed=0, scale=0.3):
    """Starting values for every parameter, in order."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            bound = scale if p.dim() < 2 else (3.0 / p[0].numel()) ** 0.5
            p.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(p.shape)).astype(np.float32)))
    return model


def digits(count=64, size=12, classes=4, seed=0):
    """Small pictures: a bright bar whose place tells the class, and noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, count)
    x = rng.standard_normal((count, 1, size, size)).astype(np.float32) * 0.3
    step = size // classes
    for i, k in enumerate(y):
        x[i, 0, k * step : (k + 1) * step] += 1
    return torch.from_numpy(x), torch.from_numpy(y)
