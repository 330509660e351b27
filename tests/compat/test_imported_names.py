"""Names that programs import from PyTorch's files, private ones among them: all are found under its name.

`imported_names.txt` was put together from what public repositories import, and holds what PyTorch 2.13
has. toytorch's own records know nothing of it.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NAMES = Path(__file__).with_suffix("").with_name("imported_names.txt")
FIND = """
import importlib, json, sys
import toytorch.alias
toytorch.alias.install()

def found(name):
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            value = getattr(value, part, None)
        return value is not None
    return False

print(json.dumps([name for name in json.loads(sys.stdin.read()) if not found(name)]))
"""
NONE_IN_BOTH = {"torch.version.cuda", "torch.version.hip"}  # which say so where there are no GPUs


def test_all_are_found() -> None:
    names = sorted(set(NAMES.read_text().split()) - NONE_IN_BOTH)
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIND],
        input=json.dumps(names), cwd=Path(__file__).parents[2], capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(made.stdout) == []


@pytest.mark.filterwarnings("ignore")  # of PyTorch's own files
def test_pytorch_has_them() -> None:
    pytest.importorskip("torch")
    for name in NAMES.read_text().split():
        parts, value = name.split("."), None
        for count in range(len(parts), 0, -1):
            try:
                value: Any = importlib.import_module(".".join(parts[:count]))
            except ImportError:
                continue
            for part in parts[count:]:
                value = getattr(value, part)
            break
