"""Data for training: datasets, samplers, batches."""

from toytorch.facts.package import show as _show
from toytorch.utils.data import _utils, distributed
from toytorch.utils.data.collate import default_collate, default_convert
from toytorch.utils.data.dataloader import DataLoader
from toytorch.utils.data.dataset import *
from toytorch.utils.data.sampler import *
from toytorch.utils.data.worker import WorkerInfo, get_worker_info

_show(globals(), "_utils", "distributed")
