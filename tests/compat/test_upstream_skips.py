"""The list of PyTorch's tests that are not tried says why, once for each, of what is in the list."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("upstream_skips.toml")
BASELINE = Path(__file__).parents[2] / "../shared/upstream/baseline.txt.gz"


def test_reasons() -> None:
    skips = tomllib.loads(FILE.read_text())["skip"]
    named = [(f, t) for skip in skips for f in skip["files"] for t in skip["tests"]]
    assert len(named) == len(set(named))
    assert all(len(skip["reason"]) > 20 for skip in skips)


@pytest.mark.skipif(not BASELINE.exists(), reason="the list of tests is beside the checkout only")
def test_names_are_in_the_list() -> None:
    with gzip.open(BASELINE, "rt") as file:
        known = [line.split() for line in file]
    for skip in tomllib.loads(FILE.read_text())["skip"]:
        tests = [test.split(".")[1] for name, test in known if name in skip["files"]]
        for wanted in skip["tests"]:
            assert any(test.startswith(wanted) for test in tests), wanted
