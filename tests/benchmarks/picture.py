"""The plot of a run: a bar per case."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def plot(results: list[dict[str, Any]], about: dict[str, Any], file: Path) -> None:
    """A bar per case, toytorch's time over PyTorch's; the same numbers give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "toytorch", "svg.fonttype": "path", "font.size": 10})
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(results) + 1.2), layout="constrained")
    places = range(len(results))[::-1]
    for y, r in zip(places, results, strict=True):
        axes.barh(y, r["ratio"], color="#3b7dd8" if r["ratio"] <= 1 else "#d9822b", height=0.62)
        axes.plot([r["low"], r["high"]], [y, y], color="#20304a", linewidth=1.2)
        end = max(r["ratio"], r["high"])
        if r["target"] and end * 0.95 < r["target"] < end * 1.3:
            end = max(end, r["target"])  # the number stands behind the dotted line, not on it
        axes.text(end * 1.05, y, f"{r['ratio']:.2f}", va="center")
        if r["target"]:
            axes.plot([r["target"]] * 2, [y - 0.38, y + 0.38], color="#20304a", linestyle=":")
    axes.set_ylim(-0.6, len(results) - 0.4)
    axes.axvline(1, color="#20304a", linewidth=1)
    axes.set_xscale("log")
    most = max(max(r["high"] for r in results), 1)
    axes.set_xlim(min(0.2, min(r["low"] for r in results) / 1.3), most * 1.6)
    ticks = [
        t
        for t in (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10)
        if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]
    ]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(list(places), [r["name"] for r in results])
    count = about["pytorch_threads"]
    threads = "one thread" if count == 1 else f"{count} threads"
    figure.supxlabel(
        f"time over PyTorch {about['pytorch']} eager, {threads}\n"
        "left of 1: faster; dotted: the limit asked for",
        fontsize="medium",
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
