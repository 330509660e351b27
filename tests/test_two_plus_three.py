"""The example that follows one computation through every layer says what is so."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from toytorch import ops
from toytorch.loops.runtime import jit

ROOT = Path(__file__).resolve().parents[1]


def test_two_plus_three(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / "two_plus_three.py"
    spec = importlib.util.spec_from_file_location("two_plus_three", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    steps = module.main()
    printed = capsys.readouterr().out
    assert all(f"== {title}\n{text}\n" in printed for title, text in steps.items())
    named = [name for title in steps for name in re.findall(r"[\w/]+\.py", title)]
    assert len(named) > 8
    for name in named:  # the files that the headings name are there
        assert (ROOT / "toytorch" / name).exists(), name
    found = list(steps.values())
    assert str(ops.add.formula) in found[1]
    assert "z = 5.0" in found[3] and "AddBackward0" in found[3]
    assert "dz/dx = 1.0" in found[4]
    assert "aten::add" in found[5]
    loop = next(text for text in found if text.startswith("def kernel("))
    space: dict = {}
    exec(loop, space)  # the printed loop computes it, too
    made = np.empty(3, "float32")
    space["kernel"](made, np.full(3, 2, "float32"), np.full(3, 3, "float32"), 0, 3)
    assert made.tolist() == [2.5] * 3
    assert any("__global__" in text for text in found)
    assert any(" fadd " in text for text in found) == jit.works()
    assert found[-1] == "[2.5, 2.5, 2.5]"
