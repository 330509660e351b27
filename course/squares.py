"""A small tensor drawn as squares: chapter 03's picture of broadcasting."""

from __future__ import annotations

from typing import Any


def draw(ax: Any, x: Any, shape: tuple[int, ...], color: str, sign: str = "") -> None:
    """Draw a tensor stretched to ``shape``; squares that are only shown again are pale.

    Args:
        ax: the matplotlib axes.
        sign: what stands to the left of it, such as ``"+"``.
    """
    import numpy as np
    from matplotlib.patches import Rectangle

    rows, columns = (1, 1, *x.shape)[-2:]
    for (i, j), value in np.ndenumerate(x.expand(shape).numpy()):
        real = i < rows and j < columns
        ink, fill = ("white", 1.0) if real else (color, 0.2)
        ax.add_patch(Rectangle((j, i), 0.9, 0.9, fc=color, alpha=fill))
        ax.text(j + 0.45, i + 0.47, value, ha="center", va="center", c=ink)
    ax.set(xlim=(0, 4), ylim=(3, 0), aspect="equal", title=tuple(x.shape))
    ax.text(-0.6, 1.5, sign, ha="center", va="center", fontsize=16)
    ax.axis("off")
