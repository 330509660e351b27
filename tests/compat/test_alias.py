"""toytorch under the name torch: imports of parts, the command, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, where PyTorch has not been imported."""
    return subprocess.run([sys.executable, *arguments], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


PROGRAM = """
import sys, torch, toytorch
import torch.nn as nn, torch.nn.functional as F
import torch.utils.data
from torch import Tensor, optim
from torch.utils.data import DataLoader, Dataset
from torch.optim.lr_scheduler import StepLR
from torch.nn.utils.rnn import pack_padded_sequence
import helper
assert torch is toytorch and nn is toytorch.nn and torch.nn.functional is F
assert DataLoader is toytorch.utils.data.DataLoader and Tensor is toytorch.Tensor
assert sys.modules["torch.nn"] is sys.modules["toytorch.nn"]
assert toytorch.nn.__spec__.name == "toytorch.nn" and isinstance(helper.made, Tensor)
print(__name__, sys.argv[1:], type(torch.ones(1)))
"""


def test_a_program_with_arguments_and_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("import torch\nmade = torch.zeros(2)\n")
    done = run("-m", "toytorch", str(tmp_path / "program.py"), "--epochs", "3", "-v")
    assert done.stdout == "__main__ ['--epochs', '3', '-v'] <class 'torch.Tensor'>\n", done.stderr


def test_the_exit_code_is_the_programs(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(7)\n")
    assert run("-m", "toytorch", "ends.py", cwd=tmp_path).returncode == 7
    (tmp_path / "fails.py").write_text("import torch\ntorch.ones(2) @ torch.ones(3)\n")
    done = run("-m", "toytorch", "fails.py", cwd=tmp_path)
    assert done.returncode == 1 and "RuntimeError: inconsistent tensor size" in done.stderr


def test_without_a_program_the_use_is_told() -> None:
    done = run("-m", "toytorch")
    assert done.returncode == 1 and done.stderr.startswith("usage: python -m toytorch PROGRAM.py")


@pytest.mark.parametrize(("statement", "told"), [
    ("import torch.onnx", "No module named 'torch.onnx' (toytorch has no export to ONNX"),
    ("from torch.distributions import Normal", "(toytorch has no probability distributions"),
    ("import torch.nowhere", "No module named 'torch.nowhere' (toytorch has no part of this name)"),
    ("from torch.nn import Nothing", "cannot import name 'Nothing' from 'toytorch.nn'"),
])
def test_what_is_lacking_says_so(statement: str, told: str) -> None:
    done = run("-c", f"from toytorch.alias import install; install()\n{statement}")
    assert done.returncode == 1 and told in done.stderr.splitlines()[-1]


def test_the_name_is_taken_once_and_not_from_pytorch() -> None:
    done = run("-c", "from toytorch.alias import install\nassert install() is install()\n"
               "import torch, pickle\nx = pickle.loads(pickle.dumps(torch.ones(2)))\n"
               "assert x.tolist() == [1, 1]")
    assert done.returncode == 0, done.stderr
    done = run("-c", "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n"
               "from toytorch.alias import install\ninstall()")
    assert "PyTorch has been imported already" in done.stderr.splitlines()[-1]
