"""What an exercise's reference and mutants come to, run once and kept between markings."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from pathlib import Path

from course.contents import ROOT
from course.files import write_atomically
from course.marking import supervisor
from course.marking.supervisor import Limits, Result
from course.records import Exercise

BASELINE = Limits(60.0, 4096)  # ample: what is slow here is the machine


def baseline(found: Exercise) -> Result:
    """Outcomes of the reference and of every mutant, by their names in a job."""
    place = _folder() / f"{found.name}-{_state()}.json"
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
        return Result({str(name): dict(report) for name, report in kept.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        pass
    names = ["reference", *map(str, range(len(found.mutants)))]
    result = supervisor.work(found, [], names, BASELINE)
    said = result.reports.get("reference", {}).get("outcomes", [])
    if not result.ended and said and all(row[1] == "ok" for row in said):
        with contextlib.suppress(OSError):  # else it is computed again next time
            write_atomically(place, json.dumps(result.reports).encode())
    return result


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "toytorch" / "marking"


@functools.cache
def _state() -> str:
    """A digest of the framework and the course: what was kept holds for these only."""
    digest = hashlib.sha256()
    for name in ("toytorch", "course"):
        for path in sorted((ROOT / name).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
