"""1,797 handwritten digits of 8 × 8 pixels: as tensors, as arrays, and as a Dataset."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.ops.creation.from_data import tensor
from toytorch.utils.data.dataset import Dataset

TRAIN = 1437  # of 1,797, the other 360 are for testing
_SEED = 0  # of the split, which is the same for everyone


def digits(train: bool = True) -> tuple[Tensor, Tensor]:
    """1,797 handwritten digits of 8 × 8 pixels: (images, labels), 1,437 to train and 360 to test.

    Images are float32 in 0..1 of shape (n, 1, 8, 8), labels are int64 of shape (n,). The split is
    a fixed shuffle, because the file has the writers in turn. Every call gives tensors of their
    own. `torchvision.datasets.MNIST` is the larger relative; source and licence (E. Alpaydin and
    C. Kaynak, UCI, CC BY 4.0) stand in `data/README.md`.

    >>> images, labels = digits()
    >>> images.shape, labels.shape
    (torch.Size([1437, 1, 8, 8]), torch.Size([1437]))
    >>> len(digits(train=False)[1])
    360
    """
    images, labels = _part(train)
    scaled = images[:, None].astype(np.float32) / np.float32(16)
    return tensor(scaled), tensor(labels.astype(np.int64))


def everything() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All digits in the file's order, as NumPy arrays: images (1797, 8, 8) in 0..1, and labels."""
    images, labels = _read()
    return images.astype(np.float32) / np.float32(16), labels.astype(np.int64)


class Digits(Dataset):
    """The digits one by one, in the form of `torchvision.datasets.MNIST`.

    `data` is a uint8 tensor (n, 8, 8) of grey values 0 to 255, `targets` an int64 tensor (n,).
    An example is (image, label): the image a NumPy array (8, 8, 1) of uint8, as `ToTensor` takes
    it, then sent through `transform`; the label an int, sent through `target_transform`.

    >>> from toytorch.vision.transforms import ToTensor
    >>> image, label = Digits(train=True, transform=ToTensor())[0]
    >>> image.shape, image.dtype, label
    (torch.Size([1, 8, 8]), torch.float32, 2)
    """

    classes = (
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six",
        "7 - seven", "8 - eight", "9 - nine",
    )  # fmt: skip

    def __init__(
        self,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.train, self.transform, self.target_transform = train, transform, target_transform
        images, labels = _part(train)
        grey = np.round(images * (255 / 16)).astype(np.uint8)
        self.data, self.targets = tensor(grey), tensor(labels.astype(np.int64))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = self.data[index].numpy()[:, :, None]
        label: Any = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        split = "Train" if self.train else "Test"
        lines = [f"Number of datapoints: {len(self)}", f"Split: {split}"]
        for name in ("transform", "target_transform"):
            if getattr(self, name) is not None:
                lines.append(f"{name}: {getattr(self, name)!r}")
        return "\n    ".join([f"Dataset {type(self).__name__}", *lines])


def _part(train: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """One side of the split, with values 0 to 16."""
    images, labels = _read()
    order = np.random.RandomState(_SEED).permutation(len(labels))  # its stream is frozen for good
    chosen = order[:TRAIN] if train else order[TRAIN:]
    return images[chosen], labels[chosen]


@functools.cache
def _read() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    with (files("toytorch.vision") / "data" / "digits.npz").open("rb") as source:
        found = np.load(source)
        return found["images"], found["labels"]
