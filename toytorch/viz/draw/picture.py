"""What every picture can do: show itself in a notebook, and be saved."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toytorch.viz.draw import png, svg
from toytorch.viz.draw.scene import Scene


class Picture:
    """A finished scene, shown as SVG and, where matplotlib is installed, as PNG beside it.

    A notebook that is not trusted shows only the PNG; every other viewer takes the SVG.
    """

    def __init__(self, scene: Scene, summary: str) -> None:
        self.scene = scene
        self._summary = summary

    def __repr__(self) -> str:
        return self._summary

    @property
    def svg(self) -> str:
        """The picture as SVG text, the same bytes at every run."""
        return svg.draw(self.scene)

    def png(self, scale: float = 2.0) -> bytes:
        """Return the picture as PNG bytes, `scale` pixels to a unit; needs matplotlib."""
        return png.draw(self.scene, scale=scale)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to `path`, in the format its ending names, and return the path.

        The file appears whole or not at all. Raises ValueError for an unknown ending.
        """
        return save(path, self._writers())

    def _writers(self) -> dict[str, Callable[[], bytes]]:
        return {".svg": lambda: self.svg.encode(), ".png": self.png}

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        return bundle(self._summary, {"image/svg+xml": self.svg}, self.scene, self.png)


def bundle(
    summary: str, shown: Mapping[str, str], scene: Scene, draw_png: Callable[[], bytes]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the data and metadata Jupyter asks for; without matplotlib the PNG is left out."""
    data = {"text/plain": summary, **shown}
    try:
        data["image/png"] = base64.b64encode(draw_png()).decode()
    except ImportError:
        return data, {}
    return data, {"image/png": {"width": round(scene.width), "height": round(scene.height)}}


def save(path: str | os.PathLike[str], writers: Mapping[str, Callable[[], bytes]]) -> Path:
    """Write what `writers` makes for the path's ending, through a temporary name and a rename."""
    target = Path(path)
    make = writers.get(target.suffix.lower())
    if make is None:
        raise ValueError(
            f"cannot save a picture as {target.name!r}: end the name in {' or '.join(writers)}"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r}: make it first")
    content = make()
    handle, name = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)  # mkstemp keeps the file to its owner, a picture is meant to be read
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target
