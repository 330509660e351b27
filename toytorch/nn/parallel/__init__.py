"""A module on several devices."""

from toytorch.nn.parallel.data_parallel import DataParallel, data_parallel
from toytorch.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
