"""A dataset, a sampler and a collate function of one's own; weighted and batch samplers."""

import math
from typing import Iterator, List, Tuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)


class Sentences(Dataset):
    def __init__(self, sizes: List[int]) -> None:
        self.items = [torch.arange(1, n + 1) for n in sizes]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Tuple[Tensor, int]:
        return self.items[index], index % 2


class ByLength(Sampler):
    def __init__(self, data: Sentences) -> None:
        self.order = sorted(range(len(data)), key=lambda i: len(data[i][0]))

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)


def collate(batch):
    words, labels = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return {
        "words": pad_sequence(words, batch_first=True, padding_value=0),
        "lengths": lengths,
        "labels": torch.as_tensor(labels),
    }


class Counter(IterableDataset):
    def __init__(self, end):
        self.end = end

    def __iter__(self):
        return iter(range(self.end))


data = Sentences([5, 2, 7, 3, 1, 4])
for batch in DataLoader(data, batch_size=2, sampler=ByLength(data), collate_fn=collate):
    print(batch["words"].tolist(), batch["lengths"], batch["labels"])
loader = DataLoader(
    data, batch_sampler=BatchSampler(SequentialSampler(data), 4, drop_last=True), collate_fn=collate
)
print(len(loader), [b["words"].shape for b in loader])
weighted = WeightedRandomSampler([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], num_samples=3)
print(list(weighted), len(list(RandomSampler(data, replacement=True, num_samples=9))))
both = ConcatDataset([data, Subset(data, [0, 2])])
print(len(both), both[7][0], both.cumulative_sizes)
print([b.tolist() for b in DataLoader(Counter(5), batch_size=2)])
print(math.ceil(len(data) / 4) == len(DataLoader(data, batch_size=4)))
for words, label in DataLoader(Subset(data, [0]), batch_size=None):
    print(words, label)
print(torch.utils.data.default_collate([{"a": 1.0, "b": (torch.ones(2), "x")}] * 2))
