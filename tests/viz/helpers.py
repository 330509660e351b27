"""What several tests of pictures share: a graph to draw, and questions to ask of a scene."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch

SVG = "{http://www.w3.org/2000/svg}"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

# the computation that pictures are made of in another process, to compare bytes
PROGRAM = """
import sys
import toytorch as torch
from toytorch import viz
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.tensor([[2.0], [4.0]], requires_grad=True)
y = w * x
loss = (y * y + x.exp()).sum()
names = {"x": x, "w": w, "y": y, "loss": loss}
"""


def small_graph() -> tuple[Any, dict[str, Any]]:
    """Return a scalar result of a small graph with a fork and a join, and names for its tensors."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = torch.tensor([[2.0], [4.0]], requires_grad=True)
    y = w * x
    loss = (y * y + x.exp()).sum()
    return loss, {"x": x, "w": w, "y": y, "loss": loss}


def in_another_process(expression: str, *, hash_seed: str) -> bytes:
    """Return the bytes that `expression` gives after PROGRAM, in a fresh interpreter."""
    code = f"{PROGRAM}\nsys.stdout.buffer.write({expression})"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return run.stdout


def parsed(svg: str) -> ElementTree.Element:
    """Return the SVG's root element; fails where the text is no well-formed XML."""
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    """Return what every text element of the SVG says, without the tip it may carry."""
    return [
        (element.text or "") + "".join(child.tail or "" for child in element)
        for element in parsed(svg).iter(f"{SVG}text")
    ]


def in_browser(html: str) -> str:
    """Return the page's document after its scripts ran, in headless Chromium; skips without one."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
        ]  # fmt: skip
        run = subprocess.run(
            [found, *flags, f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000",
             "--dump-dom", page.as_uri()],
            capture_output=True,
            timeout=120,
            check=True,
        )  # fmt: skip
    return run.stdout.decode()


def logged(document: str) -> list[str]:
    """Return the lines that a page's test script left in its element `log`."""
    match = re.search(r'<pre id="log">(.*?)</pre>', document, re.DOTALL)
    assert match, "the page's test script did not run to its end"
    return match.group(1).split("\n")
