"""The data sets inside the package."""

import numpy as np
import pytest

import toytorch as torch
from toytorch.vision import datasets
from toytorch.vision.transforms import ToTensor


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


def test_digits_one_by_one():
    data = datasets.Digits(train=False, transform=ToTensor(), target_transform=lambda y: -y)
    images, labels = datasets.digits(train=False)
    assert len(data) == 360
    for i in (0, 100, 359):
        image, label = data[i]
        assert label == -labels[i].item()
        assert (image - images[i]).abs().max().item() < 0.5 / 255 + 1e-6
    plain, label = datasets.Digits()[0]
    assert plain.shape == (8, 8, 1)
    assert plain.dtype == np.uint8
    assert label == 2
    assert datasets.Digits().class_to_idx["3 - three"] == 3
    assert repr(data).splitlines()[:3] == [
        "Dataset Digits",
        "    Number of datapoints: 360",
        "    Split: Test",
    ]


def test_penguins():
    measurements, species = datasets.penguins()
    assert measurements.shape == (342, 4)
    assert species.bincount().tolist() == [151, 68, 123]
    table = datasets.penguin_table()
    assert len(table) == 344
    assert sum(bird["sex"] is None for bird in table) == 11
    gentoo = measurements[species == 2]
    assert gentoo[:, 3].mean().item() == pytest.approx(5076.0, abs=0.1)  # the published mean mass
    table[0]["species"] = "auk"
    assert datasets.penguin_table()[0]["species"] == "Adelie"


def test_the_story():
    story = datasets.text()
    assert 12_000 < len(story) < 20_000
    assert 50 < len(set(story)) < 80
    assert "\r" not in story
    assert story.count("Wren") == 20


@pytest.mark.parametrize(
    ("make", "shape", "classes"),
    [(datasets.spirals, (2,), 3), (datasets.moons, (2,), 2), (datasets.signals, (40,), 10)],
)
def test_what_is_drawn(make, shape, classes):
    inputs, labels = make(60, generator=torch.Generator().manual_seed(1))
    assert inputs.shape == (60, *shape)
    assert inputs.dtype is torch.float32
    assert labels.bincount().tolist() == [60 // classes] * classes
    assert labels[:10].tolist() != sorted(labels[:10].tolist())
    again = make(60, generator=torch.Generator().manual_seed(1))
    assert torch.equal(inputs, again[0])
    assert torch.equal(labels, again[1])
    assert not torch.equal(inputs, make(60)[0])
    with pytest.raises(ValueError, match="n=-1"):
        make(-1)
    with pytest.raises(ValueError, match=r"noise=-0\.5"):
        make(5, noise=-0.5)


def test_without_noise_points_lie_on_their_curves():
    points, labels = datasets.moons(50, noise=0.0)
    centre = torch.tensor([[0.0, 0.0], [1.0, 0.5]])[labels]
    assert torch.allclose((points - centre).norm(dim=1), torch.ones(50), atol=1e-5)
    points, labels = datasets.spirals(50, classes=4, noise=0.0)
    radius = points.norm(dim=1)
    turn = torch.atan2(points[:, 0], points[:, 1]) - 4 * radius - torch.pi / 2 * labels
    assert torch.allclose(torch.cos(turn), torch.ones(50), atol=1e-4)
    with pytest.raises(ValueError, match="classes=0"):
        datasets.spirals(5, classes=0)


def test_a_small_convolution_reads_signals():
    """Where the sketch stands is random, so what is learnt must hold in every place."""
    torch.manual_seed(0)
    inputs, labels = datasets.signals(1200)
    model = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 40)),
        torch.nn.Conv1d(1, 16, 5, 2, 2),
        torch.nn.ReLU(),
        torch.nn.Conv1d(16, 32, 3, 2, 1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(320, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        for i in range(0, 1000, 100):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                model(inputs[i : i + 100]), labels[i : i + 100]
            )
            loss.backward()
            optimizer.step()
    right = (model(inputs[1000:]).argmax(1) == labels[1000:]).float().mean().item()
    assert right > 0.5  # by chance 0.1
