"""`python3 -m course test --gpu`: the suite's part for devices on a card, and a report to send back.

Standard library only: what needs toytorch runs in a process of its own.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course.contents import ROOT
from course.environment import python_of

NO_CARD = 2  # the exit status where there is none
ASKED = """\
from toytorch.backends.cupy import backend
print(backend.why_unavailable())
"""
HELP = """\
No tests were run: {reason}

To run them:
  1. a computer with an NVIDIA GPU and its driver (nvidia-smi shows both);
  2. {python} -m pip install -e '.[test,cuda]'     for a driver of release 580 or later,
     {python} -m pip install -e '.[test,cuda12]'   for 525 or later;
  3. {python} -m pip install torch --index-url https://download.pytorch.org/whl/cpu
     which the ops are compared with (a CUDA build of PyTorch is timed beside toytorch);
  4. python3 -m course test --gpu
"""
SENT = "Please send it back: open an issue of the project and attach the file."
SUITES = ["tests/cuda", "tests/ops"]
LONGEST = 40  # failures that are shown with their tracebacks


def run(arguments: Sequence[str]) -> int:
    """Runs the tests on the card and writes the report; 2 where there is no card."""
    python = interpreter()
    missing = why_not(python)
    if missing:
        print(HELP.format(reason=missing, python=python), file=sys.stderr)
        return NO_CARD
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        # `-k cuda`: all of tests/cuda, and of the other suites the cases whose device is "cuda".
        command = [str(python), "-m", "pytest", *SUITES, "-k", "cuda", "-q", "-n", "0",
                   f"--junitxml={results}", *arguments]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "TOYTORCH_TEST_GPU": "1"})
        counts, failures = outcome(results)
    measured = subprocess.run(
        [str(python), "-m", "tests.cuda.measure"], cwd=ROOT, capture_output=True, text=True
    )
    try:
        facts = json.loads(measured.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        facts = {"card": "unknown", "broken": measured.stderr[-3000:]}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    name = re.sub(r"[^A-Za-z0-9]+", "-", facts["card"]).strip("-").lower()
    path = Path.cwd() / f"gpu-report-{name}-{today}.md"
    path.write_text(report(facts, counts, failures, today), encoding="utf-8")
    print(f"\n{path}\n{SENT}")
    return done.returncode


def interpreter() -> Path:
    """The course's interpreter where it is set up, else the one that runs this."""
    own = python_of(ROOT / ".venv")
    return own if own.exists() else Path(sys.executable)


def why_not(python: Path) -> str:
    """Why no GPU can be used; empty where one can."""
    asked = subprocess.run(
        [str(python), "-c", ASKED], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    if asked.returncode:
        lines = asked.stderr.strip().splitlines() or ["python does not run"]
        return f"toytorch cannot be imported ({lines[-1]})"
    return asked.stdout.strip()


def outcome(results: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """How many tests passed, failed and were skipped, and the failures with their tracebacks."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures: list[tuple[str, str]] = []
    if not results.exists():
        return counts, [("pytest", "it wrote no results")]
    for case in xml.parse(results).getroot().iter("testcase"):
        broken = [*case.findall("failure"), *case.findall("error")]
        if broken:
            counts["failed"] += 1
            failures.append((f"{case.get('classname')}.{case.get('name')}", broken[0].text or ""))
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return counts, failures


def report(
    facts: dict[str, Any], counts: dict[str, int], failures: list[tuple[str, str]], date: str
) -> str:
    """The report, as a page of Markdown."""
    lines = [f"# toytorch on {facts['card']}, {date}", ""]
    words = {"capability": "Compute capability", "driver": "CUDA of the driver", "cuda": "CUDA",
             "cupy": "CuPy", "toytorch": "toytorch"}  # fmt: skip
    lines += [f"- {word}: {facts[key]}" for key, word in words.items() if key in facts]
    lines += ["", "## Tests", ""]
    lines += [", ".join(f"{n} {word}" for word, n in counts.items()) + "."]
    lines += ["", "## Times", "", *(times(facts["measured"]) if "measured" in facts else
              ["The measurements did not run:", "", "```", facts.get("broken", ""), "```"])]  # fmt: skip
    if failures:
        lines += ["", "## Failures", ""]
        for name, text in failures[:LONGEST]:
            lines += [f"### {name}", "", "```", text.strip()[-3000:], "```", ""]
        if len(failures) > LONGEST:
            lines += ["And also:", "", *(f"- {name}" for name, _ in failures[LONGEST:])]
    return "\n".join(lines) + "\n"


def times(measured: dict[str, Any]) -> list[str]:
    """The table of times: milliseconds, share of a copy's bandwidth, and PyTorch's time over ours."""
    rows, columns = measured["shape"]
    copy = measured["bandwidth"]["copy"]
    theirs = measured.get("torch", {}).get("seconds", {})
    lines = [
        f"Float32 of {rows} × {columns}; a copy reaches {copy / 1e9:.0f} GB/s. Fused IoU is "
        f"{measured['fused over eager']:.1f} times as fast as eager.",
        "",
        "| op | ms | of a copy's bandwidth |" + " time over PyTorch's |" * bool(theirs),
        "| --- | ---: | ---: |" + " ---: |" * bool(theirs),
    ]
    for name, s in measured["seconds"].items():
        share = measured["bandwidth"][name] / copy
        line = f"| {name} | {1e3 * s:.3f} | {share:.0%} |"
        lines.append(line + (f" {s / theirs[name]:.2f} |" if theirs else ""))
    if theirs:
        lines += ["", f"PyTorch is {measured['torch']['version']}."]
    return lines
