"""The data sets inside the package."""

import numpy as np

import toytorch as torch
from toytorch.vision import datasets


def test_shapes_types_and_range():
    images, labels = datasets.digits()
    assert images.shape == (1437, 1, 8, 8)
    assert images.dtype is torch.float32
    assert labels.shape == (1437,)
    assert labels.dtype is torch.int64
    assert images.min().item() == 0.0
    assert images.max().item() == 1.0
    assert sorted(set(labels.tolist())) == list(range(10))


def test_the_two_parts_make_up_the_whole_set():
    train, test = datasets.digits(), datasets.digits(train=False)
    assert test[0].shape == (360, 1, 8, 8)
    labels = np.concatenate([train[1].numpy(), test[1].numpy()])
    # how often each digit occurs in the published set
    published = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(labels).tolist() == published
    pixels = train[0].sum(dtype=torch.float64) + test[0].sum(dtype=torch.float64)
    assert pixels.item() * 16 == 561718


def test_no_digit_is_in_both_parts():
    def rows(train):
        return {image.tobytes() for image in datasets.digits(train)[0].numpy()}

    assert not rows(True) & rows(False)


def test_the_split_is_the_same_for_everyone():
    assert datasets.digits()[1][:8].tolist() == [2, 8, 2, 6, 6, 7, 1, 9]
    assert datasets.digits(train=False)[1][:4].tolist() == [7, 9, 4, 7]


def test_every_digit_is_in_the_test_part_often_enough():
    counts = np.bincount(datasets.digits(train=False)[1].numpy())
    assert len(counts) == 10
    assert counts.min() >= 20


def test_a_call_gives_tensors_of_its_own():
    images, labels = datasets.digits()
    images.zero_()
    labels.zero_()
    again, known = datasets.digits()
    assert again.max().item() == 1.0
    assert known.max().item() == 9
