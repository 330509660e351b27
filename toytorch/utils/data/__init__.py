"""Data for training: datasets, samplers, batches."""

from toytorch.facts.package import show as _show
from toytorch.utils.data import _utils, distributed
from toytorch.utils.data.collate import default_collate, default_convert
from toytorch.utils.data.dataloader import DataLoader
from toytorch.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from toytorch.utils.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from toytorch.utils.data.worker import WorkerInfo, get_worker_info

_show(globals(), "_utils", "distributed")
