"""Pictures for TensorBoard: from arrays in any order of dimensions to PNG."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array

COLOURS = {1: 0, 3: 2, 4: 6}  # PNG's number for grey, RGB and RGBA


def make_np(value: Any) -> Any:
    """A NumPy array of a tensor, an array or a number; NotImplementedError for anything else."""
    if isinstance(value, np.ndarray):
        return value
    if np.isscalar(value):
        return np.array([value])
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return (value.float() if value.dtype.extended else value).numpy()
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def png(pixels: Array) -> bytes:
    """The PNG file of (height, width, 1, 3 or 4) bytes; ISO 15948, without filters.

    >>> png(np.zeros((1, 1, 3), np.uint8))[:4]
    b'\\x89PNG'
    """
    height, width, channels = pixels.shape
    if channels not in COLOURS:
        raise ValueError(f"an image has 1, 3 or 4 channels, but this one has {channels}")
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, COLOURS[channels], 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    """A part of a PNG file: length, kind, data, checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def as_bytes(image: Array) -> Any:
    """Values as bytes: those of uint8 as they are, others from [0, 1] times 255."""
    scale = 1 if image.dtype == np.uint8 else 255
    return (image.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def to_hwc(array: Array, order: str) -> Any:
    """An image (or a batch, as a grid) as (height, width, channels); one channel becomes three.

    `order` names the dimensions: "CHW", "NHWC", "HW" and the like.
    """
    if len(set(order)) != len(order):
        raise AssertionError(
            f"You can not use the same dimension shorthand twice. input_format: {order}"
        )
    if array.ndim != len(order):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"tensor shape: {array.shape}, input_format: {order}"
        )
    order = order.upper()
    target = {4: "NCHW", 3: "HWC", 2: "HW"}[len(order)]
    array = array.transpose([order.index(letter) for letter in target])
    if target == "NCHW":
        return grid(array)
    if target == "HW":
        array = array[..., None]
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def grid(batch: Array, columns: int = 8) -> Any:
    """Images (N, 1 or 3, H, W) side by side, as (height, width, 3)."""
    if batch.shape[1] == 1:
        batch = np.repeat(batch, 3, axis=1)
    if batch.ndim != 4 or batch.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, _, height, width = batch.shape
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    canvas = np.zeros((rows * columns, 3, height, width), batch.dtype)
    canvas[:count] = batch
    canvas = canvas.reshape(rows, columns, 3, height, width)
    return canvas.transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, 3)


def of_figure(figure: Any, close: bool) -> Any:
    """The pixels (3, height, width) of a matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # an optional package

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1).copy()
    if close:
        import matplotlib.pyplot as plt  # an optional package

        plt.close(figure)
    return pixels
