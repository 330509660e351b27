"""Messages of sound, moving pictures, pictures with boxes, and meshes, for TensorBoard."""

from __future__ import annotations

import importlib
import io
import json
import math
import wave
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.utils.tensorboard import images, summaries
from toytorch.utils.tensorboard.protos import proto

HIGHEST = int(np.iinfo(np.int16).max)
PARTS = {"VERTEX": 1, "FACE": 2, "COLOR": 3}  # of a mesh, by the numbers of its message


def pillow(part: str) -> Any:
    """A part of the package Pillow; ImportError where that is missing."""
    try:
        return importlib.import_module(f"PIL.{part}")
    except ImportError:
        raise ImportError("this picture needs the package Pillow: pip install pillow") from None


def audio(tag: str, sound: Array, sample_rate: int) -> Any:
    """Sound of one channel, numbers in [-1, 1], as a WAV file of 16 bits."""
    found = images.make_np(sound).squeeze()
    if np.abs(found).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        found = found.clip(-1, 1)
    if found.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes((found * HIGHEST).astype("<i2").tobytes())
    made = proto("summary").Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=found.size,
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return summaries.value(tag, audio=made)


def frames(batch: Array) -> Any:
    """Films (N, T, C, H, W) side by side, as (T, height, width, C): half as many rows as columns, or as
    many; the number of films is filled up to a power of two."""
    n, t, c, h, w = batch.shape
    places = 1 << (n - 1).bit_length() if n & (n - 1) else n
    filled = np.zeros((places, t, c, h, w), batch.dtype)
    filled[:n] = batch
    rows = 1 << (n.bit_length() - 1) // 2
    return (
        filled.reshape(rows, places // rows, t, c, h, w)
        .transpose(2, 0, 4, 1, 5, 3)
        .reshape(t, rows * h, places // rows * w, c)
    )


def video(tag: str, films: Array, fps: float) -> Any:
    """Films (N, T, C, H, W), bytes or numbers in [0, 1], as an animated GIF."""
    pixels = images.as_bytes(frames(images.make_np(films)))
    _, height, width, channels = pixels.shape
    make = pillow("Image").fromarray
    first, *rest = [make(one[..., 0] if channels == 1 else one) for one in pixels]
    file = io.BytesIO()
    shown = 1000 / fps  # milliseconds
    first.save(file, "GIF", save_all=True, append_images=rest, duration=shown, loop=0)
    return picture(tag, (height, width, channels), file.getvalue())


def picture(tag: str, sizes: tuple[int, int, int], file: bytes) -> Any:
    """A picture whose file is made."""
    height, width, channels = sizes
    made = proto("summary").Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=file
    )
    return summaries.value(tag, image=made)


def boxed(
    tag: str, image: Array, boxes: Array, rescale: float, order: str, labels: Sequence[str] | None
) -> Any:
    """A picture with red boxes (xmin, ymin, xmax, ymax), each with its label above the lower edge."""
    pixels = images.as_bytes(images.to_hwc(images.make_np(image), order))
    height, width, _ = pixels.shape
    shown = pillow("Image").fromarray(pixels)
    draw = pillow("ImageDraw").Draw(shown)
    for k, (left, top, right, bottom) in enumerate(images.make_np(boxes).tolist()):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(corners, width=2, fill="Red")
        if labels is not None:
            font = pillow("ImageFont").load_default()
            x0, y0, x1, y1 = font.getbbox(labels[k])
            margin = math.ceil(0.05 * (y1 - y0))
            start = bottom - (y1 - y0) - 2 * margin
            draw.rectangle([(left, start), (left + x1 - x0, bottom)], fill="Red")
            draw.text((left + margin, start + margin), labels[k], fill="black", font=font)
    smooth = pillow("Image").Resampling.LANCZOS
    resized = shown.resize((int(width * rescale), int(height * rescale)), smooth)
    file = io.BytesIO()
    resized.save(file, "PNG")
    return picture(tag, pixels.shape, file.getvalue())


def mesh(tag: str, config: object, **parts: Array | None) -> Any:
    """Points, triangles and colours (B, N, 3), one value for each; `config` is what three.js is told."""
    given = {name: images.make_np(a) for name, a in parts.items() if a is not None}
    for array in given.values():
        if array.ndim != 3:
            raise ValueError(f"Tensor shape should be of shape BxNx3, but got {array.shape}.")
    made = [
        summaries.value(
            f"{tag}_{name}",
            "mesh",
            proto("mesh")
            .MeshPluginData(
                version=0,
                name=tag,
                content_type=PARTS[name],
                components=sum(1 << PARTS[other] for other in given),
                shape=array.shape,
                json_config="{}" if config is None else json.dumps(config, sort_keys=True),
            )
            .SerializeToString(),
            tensor=summaries.tensor(
                "DT_FLOAT", array.shape, float_val=array.reshape(-1).astype(float).tolist()
            ),
        ).value[0]
        for name, array in given.items()
    ]
    return proto("summary").Summary(value=made)
