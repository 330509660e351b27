"""A module on several devices."""

from toytorch.facts.package import show as _show
from toytorch.nn.parallel.data_parallel import DataParallel, data_parallel
from toytorch.nn.parallel.distributed import DistributedDataParallel
from toytorch.nn.parallel.parallel_apply import parallel_apply
from toytorch.nn.parallel.replicate import replicate
from toytorch.nn.parallel.scatter_gather import gather, scatter

_show(globals())
