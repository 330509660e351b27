"""Headless Chromium for tests that look at pages: load one, run a script, read what it says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,720",
]


def find() -> str:
    """The browser's path; the test is skipped where there is none."""
    for name in _NAMES:
        path = shutil.which(name)
        if path:
            return path
    pytest.skip("no Chromium on this machine")


def ask(page: str, script: str, budget_ms: int = 20_000, width: int = 1280) -> Any:
    """Load ``page`` (HTML text) from disk, run ``script``, return what it passes to ``answer``.

    A policy that forbids the network is put in front, so that a request that would be made is
    refused and reported by the browser rather than merely looked for in the text.
    """
    guard = """<meta http-equiv="Content-Security-Policy" content="default-src 'none';
      script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:">
      <script>window.refused = []; document.addEventListener('securitypolicyviolation',
      e => window.refused.push(e.blockedURI + ' by ' + e.violatedDirective));</script>"""
    tail = f"""<script>(() => {{
      const answer = value => {{
        const box = document.createElement('pre');
        box.id = 'the-answer';
        box.textContent = JSON.stringify(value);
        document.body.appendChild(box);
      }};
      {script}
    }})();</script>"""
    page, _, _ = page.replace("<head>", "<head>" + guard, 1).rpartition("</body>")
    page += tail + "</body></html>"
    with tempfile.TemporaryDirectory(prefix="toytorch-page-") as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        dumped = dump(file, Path(folder) / "profile", budget_ms, width)
    match = re.search(r'<pre id="the-answer">(.*?)</pre>', dumped, re.S)
    assert match, f"the script in the page did not answer; the page ended with {dumped[-500:]}"
    return json.loads(unescape(match.group(1)))


def dump(file: Path, profile: Path, budget_ms: int, width: int = 1280) -> str:
    """The page's document after its scripts ran."""
    command = [
        find(),
        *_QUIET,
        f"--window-size={width},720",
        f"--user-data-dir={profile}",
        f"--virtual-time-budget={budget_ms}",
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, timeout=120)
    return done.stdout.decode("utf-8", errors="replace")
