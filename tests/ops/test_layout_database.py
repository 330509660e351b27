"""The first sample of each entry of PyTorch's database, in six layouts: strides and aliasing.

`python -m tests.ops.layout_check` goes through all samples.
"""

from __future__ import annotations

import os

import pytest

from tests.oracle import SELFTEST, torch, tt

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)

from tests.ops.layout_check import OTHERWISE, compare, entries

SAMPLES = int(os.environ.get("TOYTORCH_SAMPLES", "1"))
ENTRIES = {name: (info, function) for name, info, function in entries()}


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in OTHERWISE])
def test_layouts(name: str) -> None:
    for m in (torch, tt):
        m.manual_seed(0)
    _, bad = compare(*ENTRIES[name], SAMPLES)
    assert not bad, bad[:3]
