"""A module on several devices."""

from toytorch.nn.parallel.data_parallel import DataParallel, data_parallel
from toytorch.nn.parallel.distributed import DistributedDataParallel
from toytorch.nn.parallel.parallel_apply import parallel_apply
from toytorch.nn.parallel.replicate import replicate
from toytorch.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
