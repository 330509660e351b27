"""Headless Chromium for tests that look at pages: where it is, and what a page says without network."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.course.walk.devtools import Browser

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


def ask(browser: Browser, page: str, script: str, width: int = 1280) -> Any:
    """Load ``page`` (HTML text) from disk, run ``script``, return what it passes to ``answer``.

    A policy that forbids the network is put in front, so that a request that would be made is
    refused and reported by the browser rather than merely looked for in the text.
    """
    guard = """<meta http-equiv="Content-Security-Policy" content="default-src 'none';
      script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:">
      <script>window.refused = []; document.addEventListener('securitypolicyviolation',
      e => window.refused.push(e.blockedURI + ' by ' + e.violatedDirective));</script>"""
    tail = f"""<script>(() => {{
      const answer = value => {{ window.answered = [value]; }};
      {script}
    }})();</script>"""
    page, _, _ = page.replace("<head>", "<head>" + guard, 1).rpartition("</body>")
    page += tail + "</body></html>"
    browser.size(width, 720)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    with tempfile.TemporaryDirectory(prefix="toytorch-page-") as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        browser.open(file.as_uri())
        return browser.until(f"location.href === {file.as_uri()!r} && window.answered")[0]
