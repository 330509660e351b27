"""Transforms: against direct computation, and torchvision's documented texts and errors."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

import toytorch as torch
from toytorch.vision import transforms as T
from toytorch.vision.transforms import functional as F

BILINEAR = T.InterpolationMode.BILINEAR


@pytest.fixture
def img():
    torch.manual_seed(0)
    return torch.rand(3, 6, 8)


def close(a, b, atol=1e-6):
    assert a.shape == torch.as_tensor(b).shape
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=atol, rtol=1e-5)


REPRS = {
    "Compose(\n    ToTensor()\n    Normalize(mean=(0.5,), std=(0.25,))\n)": T.Compose(
        [T.ToTensor(), T.Normalize((0.5,), (0.25,))]
    ),
    "Lambda()": T.Lambda(len),
    "Resize(size=32, interpolation=bilinear, max_size=None, antialias=True)": T.Resize(32),
    "CenterCrop(size=(4, 4))": T.CenterCrop(4),
    "RandomCrop(size=(4, 5), padding=2)": T.RandomCrop((4, 5), padding=2),
    "RandomHorizontalFlip(p=0.5)": T.RandomHorizontalFlip(),
    "RandomVerticalFlip(p=0.1)": T.RandomVerticalFlip(0.1),
    "Pad(padding=1, fill=0, padding_mode=constant)": T.Pad(1),
    "Grayscale(num_output_channels=3)": T.Grayscale(3),
    "ColorJitter(brightness=(0.5, 1.5), contrast=None, saturation=None, hue=(-0.1, 0.1))": T.ColorJitter(
        0.5, hue=0.1
    ),
    "RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0)": T.RandomRotation(
        10
    ),
    "RandomAffine(degrees=[0.0, 5.0], translate=(0.1, 0.2), shear=[-3.0, 3.0], "
    "interpolation=bilinear)": T.RandomAffine((0, 5), (0.1, 0.2), shear=3, interpolation=BILINEAR),
    "RandomErasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False)": T.RandomErasing(),
    "RandomResizedCrop(size=(4, 4), scale=(0.08, 1.0), ratio=(0.75, 1.3333), "
    "interpolation=bilinear, antialias=True)": T.RandomResizedCrop(4),
    "RandomApply(\n    p=0.3\n    Grayscale(num_output_channels=1)\n)": T.RandomApply(
        [T.Grayscale()], 0.3
    ),
    "RandomChoice(\n    ToTensor()\n)(p=None)": T.RandomChoice([T.ToTensor()]),
    "ConvertImageDtype()": T.ConvertImageDtype(torch.float64),
}


@pytest.mark.parametrize("text", REPRS)
def test_reprs(text):
    assert repr(REPRS[text]) == text


def test_to_tensor():
    array = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    found = T.ToTensor()(array)
    assert found.dtype is torch.float32
    close(found, array.transpose(2, 0, 1) / 255)
    assert T.ToTensor()(array.astype(np.int32)).dtype is torch.int32
    assert T.ToTensor()(array[:, :, 0]).shape == (1, 2, 4)
    array[:] = 0
    assert found.max().item() > 0  # a copy
    with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
        T.ToTensor()(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"2/3 dimensional\. Got 4"):
        T.ToTensor()(np.zeros((1, 2, 3, 4)))


def test_normalize(img):
    mean, std = [0.1, 0.2, 0.3], [0.5, 1.0, 2.0]
    expected = (img.numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    before = img.clone()
    close(T.Normalize(mean, std)(img), expected)
    assert torch.equal(img, before)
    T.Normalize(mean, std, inplace=True)(img)
    close(img, expected)
    with pytest.raises(TypeError, match=r"should be a float tensor\. Got torch\.uint8"):
        F.normalize(img.to(torch.uint8), mean, std)
    with pytest.raises(ValueError, match="std evaluated to zero"):
        F.normalize(img, mean, [0.0, 1.0, 1.0])


def test_types():
    grey = torch.tensor([[0, 127, 255]], dtype=torch.uint8)
    assert F.convert_image_dtype(F.convert_image_dtype(grey), torch.uint8).tolist() == grey.tolist()
    assert F.convert_image_dtype(grey, torch.int16).tolist() == [[0, 127 * 128, 255 * 128]]
    assert F.convert_image_dtype(
        torch.tensor([[0, 128, 32767]], dtype=torch.int16), torch.uint8
    ).tolist() == [[0, 1, 255]]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(torch.rand(2, 2), torch.int64)


@pytest.mark.parametrize(("size", "shape"), [(3, (3, 4)), ([4, 4], (4, 4)), ((12,), (12, 16))])
def test_resize(img, size, shape):
    found = T.Resize(size)(img)
    assert found.shape == (3, *shape)
    expected = torch.nn.functional.interpolate(
        img[None], shape, mode="bilinear", align_corners=False, antialias=True
    )[0]
    close(found, expected)
    whole = T.Resize(size)((img * 255).to(torch.uint8))
    assert whole.dtype is torch.uint8
    assert np.abs(whole.numpy() - found.numpy() * 255).max() < 1.5


def test_resize_keeps_the_ratio_and_max_size(img):
    assert T.Resize(12, max_size=14)(img).shape == (3, 10, 14)
    assert T.Resize(4)(img.mT).shape == (3, 5, 4)
    assert T.Resize(6)(img) is img
    with pytest.raises(ValueError, match="max_size = 4 must be strictly greater"):
        T.Resize(4, max_size=4)(img)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [2, [1, 2], [1, 0, 2, 3]])
def test_pad(img, mode, padding):
    left, top, right, bottom = (
        [padding] * 4 if isinstance(padding, int) else padding * (4 // len(padding))
    )
    options = {"constant_values": 0.5} if mode == "constant" else {}
    expected = np.pad(img.numpy(), ((0, 0), (top, bottom), (left, right)), mode=mode, **options)
    close(T.Pad(padding, 0.5, mode)(img), expected)


def test_crops(img):
    assert torch.equal(T.CenterCrop(4)(img), img[:, 1:5, 2:6])
    wide = T.CenterCrop((8, 4))(img)
    assert torch.equal(wide[:, 1:7], img[:, :, 2:6])
    assert wide[:, [0, 7]].abs().sum().item() == 0
    assert torch.equal(F.crop(img, -1, 6, 3, 4)[:, 1:, :2], img[:, :2, 6:])
    for _ in range(20):
        part = T.RandomCrop(3)(img)
        places = [
            (i, j)
            for i in range(4)
            for j in range(6)
            if torch.equal(part, img[:, i : i + 3, j : j + 3])
        ]
        assert len(places) == 1
    assert T.RandomCrop(10, pad_if_needed=True)(img).shape == (3, 10, 10)
    with pytest.raises(ValueError, match=r"crop size \(7, 7\) is larger than .* \(6, 8\)"):
        T.RandomCrop(7)(img)


def test_every_place_of_a_crop_is_drawn():
    torch.manual_seed(1)
    picture = torch.arange(16.0).view(1, 4, 4)
    assert {T.RandomCrop(2)(picture)[0, 0, 0].item() for _ in range(200)} == {
        0.0,
        1.0,
        2.0,
        4.0,
        5.0,
        6.0,
        8.0,
        9.0,
        10.0,
    }


def test_flips(img):
    assert torch.equal(T.RandomHorizontalFlip(1.0)(img), img.flip(-1))
    assert torch.equal(T.RandomVerticalFlip(1.0)(img), img.flip(-2))
    assert T.RandomHorizontalFlip(0.0)(img) is img
    turned = sum(T.RandomHorizontalFlip(0.3)(img) is not img for _ in range(300))
    assert 60 < turned < 120


@pytest.mark.parametrize("quarter", [1, 2, 3])
@pytest.mark.parametrize("mode", [T.InterpolationMode.NEAREST, BILINEAR])
def test_quarter_turns(img, quarter, mode):
    found = F.rotate(img, 90 * quarter, mode, expand=True, fill=0)
    close(found, np.rot90(img.numpy(), quarter, (1, 2)).copy(), atol=1e-4)


def test_moves(img):
    found = F.affine(img, 0, [2, -1], 1.0, 0)
    expected = np.zeros_like(img.numpy())
    expected[:, :-1, 2:] = img.numpy()[:, 1:, :-2]
    close(found, expected)
    filled = F.affine(img, 0, [2, -1], 1.0, 0, fill=[1.0, 2.0, 3.0])
    assert filled[:, 0, 0].tolist() == [1.0, 2.0, 3.0]
    close(filled[:, :-1, 2:], img[:, 1:, :-2])


@pytest.mark.parametrize("center", [None, [1.0, 2.0]])
def test_any_affine_map_looks_up_its_pixels(center):
    """Nearest pixels by the matrices of torchvision's documentation, one by one."""
    torch.manual_seed(3)
    img = torch.rand(1, 9, 11)
    angle, move, scale, (sx, sy) = 25.0, (1.5, -2.0), 0.8, (10.0, 5.0)
    found = F.affine(img, angle, move, scale, [sx, sy], center=center)
    a, sx, sy = np.radians([angle, sx, sy])
    matrix = scale * np.array(
        [
            [np.cos(a - sy) / np.cos(sy), -np.cos(a - sy) * np.tan(sx) / np.cos(sy) - np.sin(a)],
            [np.sin(a - sy) / np.cos(sy), -np.sin(a - sy) * np.tan(sx) / np.cos(sy) + np.cos(a)],
        ]
    )
    middle = np.array(center) if center else np.array([5.5, 4.5])
    agree = 0
    for i in range(9):
        for j in range(11):
            place = np.array([j + 0.5, i + 0.5])
            x, y = np.linalg.solve(matrix, place - middle - np.array(move)) + middle
            inside = 0 <= x < 11 and 0 <= y < 9
            expected = img[0, int(y), int(x)].item() if inside else 0.0
            agree += found[0, i, j].item() == expected
    assert agree >= 97  # of 99: a pixel on an edge may round to either side


def test_grey_and_factors(img):
    r, g, b = img.numpy()
    grey = 0.2989 * r + 0.587 * g + 0.114 * b
    close(T.Grayscale()(img), grey[None])
    close(T.Grayscale(3)(img), np.stack([grey] * 3))
    close(F.adjust_brightness(img, 1.5), np.minimum(img.numpy() * 1.5, 1))
    close(F.adjust_saturation(img, 0.3), 0.3 * img.numpy() + 0.7 * grey)
    close(F.adjust_contrast(img, 0.3), 0.3 * img.numpy() + 0.7 * grey.mean())
    whole = (img * 255).to(torch.uint8)
    assert (
        F.adjust_brightness(whole, 2.0).tolist()
        == np.minimum(whole.numpy().astype(int) * 2, 255).tolist()
    )
    with pytest.raises(ValueError, match="is not non-negative"):
        F.adjust_contrast(img, -1)
    with pytest.raises(TypeError, match=r"permitted channel values are .* found 2"):
        F.adjust_brightness(img[:2], 1)


@pytest.mark.parametrize("factor", [-0.5, -0.2, 0.0, 0.3])
def test_hue(img, factor):
    pixels = img.numpy().reshape(3, -1).T.astype(float)
    expected = []
    for pixel in pixels:
        h, s, v = colorsys.rgb_to_hsv(*pixel)
        expected.append(colorsys.hsv_to_rgb((h + factor) % 1.0, s, v))
    close(
        F.adjust_hue(img, factor),
        np.array(expected, dtype=np.float32).T.reshape(3, 6, 8),
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="is not in"):
        F.adjust_hue(img, 0.6)


def test_jitter_stays_in_its_range(img):
    for _ in range(20):
        share = (T.ColorJitter(brightness=(0.2, 0.4))(img) / img).mean().item()
        assert 0.2 <= share <= 0.4
    with pytest.raises(ValueError, match="must be non negative"):
        T.ColorJitter(brightness=-1)
    with pytest.raises(ValueError, match="hue values should be between"):
        T.ColorJitter(hue=0.7)


def test_erasing(img):
    for _ in range(20):
        found = T.RandomErasing(1.0, value=7)(img)
        gone = (found == 7).numpy()
        assert (gone == gone[0]).all()
        rows, columns = np.where(gone[0])
        assert gone[0].sum() == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
    assert T.RandomErasing(0.0)(img) is img
    noise = T.RandomErasing(1.0, value="random")(img)
    assert (noise != img).any().item()
    with pytest.raises(ValueError, match="should be 'random'"):
        T.RandomErasing(value="noise")


def test_resized_crops(img):
    for _ in range(10):
        assert T.RandomResizedCrop((4, 5))(img).shape == (3, 4, 5)
    top, left, h, w = T.RandomResizedCrop.get_params(img, (0.5, 0.5), (1.0, 1.0))
    assert (h, w) == (5, 5)
    assert 0 <= top <= 1
    assert 0 <= left <= 3


def test_choices():
    torch.manual_seed(0)
    plus = [T.Lambda(lambda x, n=n: x + [n]) for n in range(3)]
    drawn = [T.RandomChoice(plus, [1, 0, 3])([])[0] for _ in range(400)]
    assert 60 < drawn.count(0) < 140
    assert drawn.count(1) == 0
    assert {tuple(T.RandomOrder(plus)([])) for _ in range(60)} == {
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (2, 1, 0),
    }
    assert 100 < sum(len(T.RandomApply(plus, 0.4)([])) == 3 for _ in range(400)) < 220


def test_the_same_seed_draws_the_same(img):
    chain = T.Compose(
        [
            T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5),
            T.RandomCrop(5, padding=1),
            T.ColorJitter(0.3, 0.3, 0.3, 0.1),
            T.RandomErasing(),
            T.RandomChoice([T.RandomRotation(9), T.RandomHorizontalFlip()]),
        ]
    )
    drawn = []
    for _ in range(2):
        torch.manual_seed(8)
        drawn.append([chain(img) for _ in range(5)])
    assert all(torch.equal(a, b) for a, b in zip(*drawn))
    assert not torch.equal(drawn[0][0], drawn[0][1])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: T.CenterCrop(2)(x),
        lambda x: T.RandomHorizontalFlip(1.0)(x),
        lambda x: T.Resize(2)(x),
        lambda x: F.rotate(x, 3),
        lambda x: T.Pad(1)(x),
    ],
)
def test_arrays_are_refused_with_a_hint(call):
    with pytest.raises(TypeError, match="Tensor image"):
        call(np.zeros((4, 4, 3)))
