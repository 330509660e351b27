"""Slides on paper: one page for each, printed by a browser that nobody sees."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
SECONDS = 120


def browser() -> str:
    """The path of a browser that can print.

    Raises:
        LookupError: there is none; the message says what to do.
    """
    for name in _NAMES:
        path = shutil.which(name)
        if path:
            return path
    for place in _PLACES:
        if Path(place).exists():
            return place
    raise LookupError(
        "A PDF is printed by Chromium, Chrome or Edge, and none of them was found. Install one, or "
        "open the\nfile in slides/ in any browser and print it there: it is one slide a page."
    )


def write(slides: Path, target: Path) -> None:
    """Print slides to a PDF.

    Raises:
        LookupError: no browser, or it printed nothing; the message says what it said.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="toytorch-print-", ignore_cleanup_errors=True
    ) as folder:
        made = Path(folder) / "slides.pdf"
        command = [
            browser(),
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile",
            "--virtual-time-budget=10000",
            f"--print-to-pdf={made}",
            slides.resolve().as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # as root Chromium refuses to start otherwise
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS)
            said = done.stderr.decode("utf-8", errors="replace").strip()
        except subprocess.TimeoutExpired:
            said = f"it did not end within {SECONDS} seconds"
        if not made.exists():
            raise LookupError(f"{Path(command[0]).name} printed no {target.name}: {said[-400:]}")
        shutil.copyfile(made, target)
