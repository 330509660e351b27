"""Data for training: datasets, samplers, batches."""

from toytorch.utils.data.collate import default_collate, default_convert
from toytorch.utils.data.dataloader import DataLoader
from toytorch.utils.data.dataset import (
                                         ConcatDataset,
                                         Dataset,
                                         IterableDataset,
                                         Subset,
                                         TensorDataset,
                                         random_split,
)
from toytorch.utils.data.sampler import (
                                         BatchSampler,
                                         RandomSampler,
                                         Sampler,
                                         SequentialSampler,
                                         SubsetRandomSampler,
                                         WeightedRandomSampler,
)

__all__ = ["BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset",
           "RandomSampler", "Sampler", "SequentialSampler", "Subset", "SubsetRandomSampler",
           "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert",
           "random_split"]
