"""The place where PyTorch keeps `DistributedSampler`."""

from toytorch.utils.data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
