"""The command: ``python -m tests.course.walk [NN ...] [--out DIR] [--record]``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from course.contents import find, written
from tests.course.walk import report
from tests.course.walk.learner import walk


def main() -> int:
    """Walk the chapters named, or all; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.course.walk", description=__doc__)
    parser.add_argument("chapters", nargs="*", help="04, autograd; none: all")
    parser.add_argument("--out", type=Path, help="where pictures and the findings as JSON go")
    parser.add_argument("--record", action="store_true", help="write docs/walk.md")
    parser.add_argument("--hints", action="store_true", help="answer by the three hints only")
    chosen = parser.parse_args()
    walks = []
    for chapter in [find(name) for name in chosen.chapters] or written():
        walked = walk(chapter, chosen.out, hints=chosen.hints)
        walks.append(walked)
        print(report.table([walked]), flush=True)
        if chosen.record and not walked.wrong:
            report.keep(
                [walked], hints=chosen.hints
            )  # at once: what was walked counts, whatever comes after
        if chosen.out is not None:
            text = json.dumps(walked.record, indent=1, ensure_ascii=False)
            (chosen.out / f"{chapter.stem}.json").write_text(text, encoding="utf-8")
    good = [walked for walked in walks if not walked.wrong]
    return 0 if len(good) == len(walks) else 1


if __name__ == "__main__":
    sys.exit(main())
