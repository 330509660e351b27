"""Points for TensorBoard's projector: a table of numbers, labels, and a sheet of small pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array
from toytorch.utils.tensorboard import images


def put(path: str, content: bytes) -> None:
    """Writes a file under another name, which then becomes this one."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def encode(tag: str) -> str:
    """A tag as the name of a folder: %, / and \\ by their numbers."""
    for letter in "%/\\":
        tag = tag.replace(letter, f"%{ord(letter):02x}")
    return tag


def write(
    folder: str,
    subfolder: str,
    step: int,
    tag: str,
    points: Array,
    labels: Sequence[object],
    pictures: Tensor | None,
    header: Sequence[str] | None,
) -> str:
    """Writes the files of one set of points; returns its entry for projector_config.pbtxt."""
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    place = os.path.join(folder, subfolder)
    os.makedirs(place, exist_ok=True)
    lines = [f'  tensor_name: "{tag}:{step:05d}"']
    if labels is not None:
        if len(points) != len(labels):
            raise AssertionError("#labels should equal with #data points")
        put(os.path.join(place, "metadata.tsv"), table_of(labels, header).encode())
        lines.append(f'  metadata_path: "{subfolder}/metadata.tsv"')
    if pictures is not None:
        if len(points) != len(pictures):
            raise AssertionError("#images should equal with #data points")
        put(os.path.join(place, "sprite.png"), images.png(sprite(images.make_np(pictures))))
        lines += [
            "  sprite {",
            f'    image_path: "{subfolder}/sprite.png"',
            f"    single_image_dim: {pictures.shape[3]}",
            f"    single_image_dim: {pictures.shape[2]}",
            "  }",
        ]
    rows = "".join("\t".join(str(v.item()) for v in point) + "\n" for point in points)
    put(os.path.join(place, "tensors.tsv"), rows.encode())
    lines.append(f'  tensor_path: "{subfolder}/tensors.tsv"')
    return "\n".join(["embeddings {", *lines, "}"]) + "\n"


def table_of(labels: Any, header: Any) -> str:
    """Labels, one a line; with a header, each is a row of columns."""
    if not header:
        return "\n".join(str(label) for label in labels) + "\n"
    if len(header) != len(labels[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    return "".join("\t".join(str(cell) for cell in row) + "\n" for row in [header, *labels])


def sprite(pictures: Array) -> Any:
    """All pictures on a square sheet, as bytes."""
    sheet = images.grid(pictures, math.ceil(len(pictures) ** 0.5))
    square = np.zeros((sheet.shape[1], sheet.shape[1], 3), sheet.dtype)
    square[: sheet.shape[0]] = sheet
    return (square * 255).clip(0, 255).astype(np.uint8)
