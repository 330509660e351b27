"""The table of contents: every chapter, whether it is written yet or not.

Standard library only: the launcher reads this before any package is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "course" / "chapters"


@dataclass(frozen=True)
class Chapter:
    """One chapter: its number, its file name's slug, and how the start page names it."""

    number: int
    slug: str
    title: str
    part: str
    line: str

    @property
    def example(self) -> str:
        """A script that stands in the chapter's place until it is written; its path from ROOT."""
        return _EXAMPLES.get(self.slug, "")

    @property
    def stem(self) -> str:
        """File name without ending, the same in every folder: ``01_tensors``."""
        return f"{self.number:02d}_{self.slug}"

    @property
    def source(self) -> Path:
        """The jupytext source that notebook, solution and slides are made from."""
        return SOURCES / f"{self.stem}.py"

    @property
    def written(self) -> bool:
        """Whether the chapter has a source yet."""
        return self.source.exists()


_TABLE = {
    "Arrays": [
        ("tensors", "Tensors", "The array of numbers that everything else is made of."),
        ("memory", "Memory: storage, strides, views", "One block of bytes, many shapes."),
        ("operations", "Operations", "One record per operation, dispatch, broadcasting."),
    ],
    "Gradients": [
        ("autograd", "Autograd", "A program records its graph; gradients go back through it."),
        (
            "inplace",
            "Leaves, in-place writes, versions",
            "How a write that makes a gradient wrong is noticed.",
        ),
        (
            "extending",
            "Extending autograd",
            "Operations with derivatives of your own, and their check.",
        ),
    ],
    "Learning": [
        ("modules", "Modules", "Networks as trees of parameters."),
        ("optimizers", "Losses and optimizers", "What to reduce, and which way to step."),
        ("data", "Data", "From a folder of numbers to shuffled batches."),
        ("training", "Training for real", "Digits, checkpoints, fine-tuning, TensorBoard."),
    ],
    "Speed": [
        ("measure", "Measure first", "The profiler, and how memory traffic sets the pace."),
        ("accelerators", "Accelerators", "Asynchrony, streams, memory; with or without a GPU."),
        ("tracing", "Tracing and scripting", "From a Python function to a graph."),
        ("fusion", "Passes and fusion", "Rewriting the graph until one kernel is left."),
        ("kernels", "Kernels", "Blocks, warps and shared memory, in emulation."),
    ],
    "Scale": [
        ("distributed", "Many processes", "All-reduce, buckets, overlap, remote calls."),
        ("precision", "Fewer bits, and beyond Python", "Quantization, archives, ONNX, C++."),
        ("names", "Named and sparse tensors", "Named dimensions and sparse data."),
        ("capstone", "Capstone", "A GPT trained on what you built."),
        (
            "pytorch",
            "Reading PyTorch itself",
            "Where each part of toytorch stands in PyTorch's source.",
        ),
    ],
}

_EXAMPLES = {"pytorch": "examples/two_plus_three.py"}

CHAPTERS: tuple[Chapter, ...] = tuple(
    Chapter(number, slug, title, part, line)
    for number, (part, (slug, title, line)) in enumerate(
        ((part, row) for part, rows in _TABLE.items() for row in rows), start=1
    )
)


def find(name: str | int) -> Chapter:
    """The chapter meant by ``4``, ``"04"``, ``"04_autograd"`` or ``"autograd"``.

    Raises:
        LookupError: no such chapter; the message lists what there is.
    """
    wanted = Path(str(name)).stem
    for chapter in CHAPTERS:
        if wanted in (chapter.slug, chapter.stem, str(chapter.number), f"{chapter.number:02d}"):
            return chapter
    written = ", ".join(f"{c.number:02d}" for c in CHAPTERS if c.written) or "none yet"
    raise LookupError(
        f"there is no chapter {str(name)!r}: say a number from 01 to {len(CHAPTERS)} "
        f"(written so far: {written})"
    )


def written() -> list[Chapter]:
    """The chapters that have a source, in order."""
    return [chapter for chapter in CHAPTERS if chapter.written]
