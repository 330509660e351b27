"""A run in words: its table, the pages of docs/benchmarks, and what has become slower.

What a run with --write measured is kept in docs/benchmarks/KIND.json, one file for each kind of
processor; the page beside it is made of that file, and later runs compare themselves with it.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from tests.benchmarks.roofline import Roofline

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
WORSE = 1.1  # a row is worse if three of four of its pairs are slower than before by so much
HEAD = (
    f"{'':44}{'toytorch':>11}{'PyTorch':>11}{'ratio':>8}  {'quartiles':<11}  {'target':<8}roofline"
)


def microseconds(seconds: float) -> str:
    """Three or four digits of a time.

    >>> microseconds(7.3e-7), microseconds(0.0345)
    ('0.73 µs', '34.5 ms')
    """
    us = seconds * 1e6
    return f"{us:.2f} µs" if us < 100 else f"{us:.0f} µs" if us < 10_000 else f"{us / 1000:.1f} ms"


def row(r: dict[str, Any], roofline: Roofline) -> str:
    """One line of the table."""
    target = f"≤ {r['target']}" if r["target"] else ""
    line = (
        f"{r['name']:44}{microseconds(r['toytorch']):>11}{microseconds(r['pytorch']):>11}"
        f"{r['ratio']:>8.2f}  {r['low']:.2f}...{r['high']:.2f}  {target:<8}"
        f"{roofline.share(r['toytorch'], r['flops'], r['traffic'])}"
    )
    return line.rstrip()


def geometric_mean(ratios: list[float]) -> float:
    """The one number for many rows."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summary(results: list[dict[str, Any]]) -> str:
    """How many rows are ahead, and the mean."""
    ratios = [r["ratio"] for r in results]
    missed = sum(r["target"] is not None and r["ratio"] > r["target"] for r in results)
    return (
        f"{len(ratios)} rows, geometric mean {geometric_mean(ratios):.2f}; "
        f"{sum(r <= 1 for r in ratios)} at most PyTorch's time, {missed} above their target"
    )


def kept(kind: str) -> dict[str, Any]:
    """What earlier runs on this kind of processor measured, by the number of threads."""
    file = FOLDER / f"{kind}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def worse(results: list[dict[str, Any]], before: dict[str, Any]) -> list[str]:
    """The rows that are slower than they were, with both ratios."""
    earlier = {r["name"]: r for r in before.get("results", ())}
    return [
        f"{r['name']}: {earlier[r['name']]['ratio']:.2f} -> {r['ratio']:.2f}"
        for r in results
        if r["name"] in earlier and r["low"] > WORSE * earlier[r["name"]]["high"]
    ]


def keep(kind: str, run: dict[str, Any]) -> None:
    """Writes a run to the kind's file (rows that it left out stay), and the page made of it."""
    runs = kept(kind)
    threads = str(run["about"]["pytorch_threads"])
    new = {r["name"]: _rounded(r) for r in run["results"]}
    old = {r["name"]: r for r in runs.get(threads, {}).get("results", ())}
    runs[threads] = {**run, "results": list({**old, **new}.values())}
    FOLDER.mkdir(exist_ok=True)
    _write(FOLDER / f"{kind}.json", json.dumps(runs, indent=1) + "\n")
    _write(FOLDER / f"{kind}.md", page(kind, runs))


def _rounded(result: dict[str, Any]) -> dict[str, Any]:
    """Four digits of each number, which is more than a run can tell."""
    return {k: float(f"{v:.4g}") if v.__class__ is float else v for k, v in result.items()}


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, file)


def page(kind: str, runs: dict[str, Any]) -> str:
    """The page of one kind of processor."""
    parts = [
        f"# What the benchmarks printed: {kind}\n\n"
        "Made by `python -m tests.benchmarks --write`, from the file beside it. Ratios are toytorch's "
        "time to PyTorch's, medians of\nsamples in turn; the roofline is what NumPy reached in the same "
        "run: a product of matrices, a copy of a million floats.\n"
    ]
    for threads, run in sorted(runs.items()):
        about = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in run["about"].items())
        roofline = Roofline(**run["roofline"])
        lines = [row(r, roofline) for r in run["results"]]
        count = "One thread" if threads == "1" else f"{threads} threads"
        parts.append(
            f"\n## {count}\n\n{about}.\n\n{summary(run['results'])}.\n\n"
            + "\n".join(["```", HEAD, *lines, "```", ""])
        )
    return "".join(parts)
