"""toytorch under the name torch: imports of parts, names, versions, and what is refused."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import operator
import os
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import attempt, names, torch, tt
from toytorch.torch_version import TorchVersion
from toytorch.version import compatible

ROOT = Path(__file__).parents[2]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, where PyTorch has not been imported."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


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
assert toytorch.nn.__spec__.name == "torch.nn" and isinstance(helper.made, Tensor)
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


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "import torch.export",
            "No module named 'torch.export' (toytorch has no export of programs",
        ),
        (
            "import torch.nowhere",
            "No module named 'torch.nowhere'",
        ),
        (
            "import torch.export.unflatten",
            "No module named 'torch.export' (toytorch has no export",
        ),
        (
            "import torch.ao.quantization.quantize_fx",
            "'torch.ao.quantization.quantize_fx' (toytorch has no quantization: torch.autocast",
        ),
        (
            "import torch._subclasses.functional_tensor.nothing",
            "nothing' (toytorch has no graphs of whole programs with their derivatives",
        ),
        ("from torch.nn import Nothing", "cannot import name 'Nothing' from 'torch.nn'"),
    ],
)
def test_what_is_lacking_says_so(statement: str, told: str) -> None:
    done = run("-c", f"from toytorch.alias import install; install()\n{statement}")
    assert done.returncode == 1 and told in done.stderr.splitlines()[-1]


def test_what_is_there_can_be_asked() -> None:
    """Libraries ask `find_spec` what they may import, and `torch.ops` for operators of their own."""
    done = run(
        "-c",
        "from toytorch.alias import install; install()\n"
        "import torch\nfrom importlib.util import find_spec\n"
        "names = 'nowhere nn.nowhere utils.nowhere ops.nowhere nn.functional fx optim.adamw _tensor'\n"
        "print([bool(find_spec(f'torch.{n}')) for n in names.split()])\n"
        "torch.library.define('mine::f', '(Tensor a) -> Tensor')\nprint(torch.ops.mine.f)",
    )
    assert done.stdout == f"{[False] * 4 + [True] * 4}\nmine.f\n", done.stderr


def test_the_name_is_taken_once_and_not_from_pytorch() -> None:
    done = run(
        "-c",
        "from toytorch.alias import install\nassert install() is install()\n"
        "import torch, pickle\nx = pickle.loads(pickle.dumps(torch.ones(2)))\n"
        "assert x.tolist() == [1, 1]",
    )
    assert done.returncode == 0, done.stderr
    done = run(
        "-c",
        "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n"
        "from toytorch.alias import install\ninstall()",
    )
    assert "PyTorch has been imported already" in done.stderr.splitlines()[-1]


def test_a_module_below_one_that_somebody_else_made(tmp_path: Path) -> None:
    """`import torch.export.x` asks the parent that is there, whoever put it there."""
    (tmp_path / "x.py").write_text("value = 3\n")
    program = (
        "from toytorch.alias import install; install()\nimport sys, types\n"
        "made = types.ModuleType('torch.export'); made.__path__ = [sys.argv[1]]\n"
        "sys.modules['torch.export'] = made\nimport torch.export.x as x\n"
        "assert x.value == 3 and made.x is x\n"
        "try: import torch.export.nowhere\n"
        "except ModuleNotFoundError as e: print(e)"
    )
    done = run("-c", program, str(tmp_path))
    assert done.stdout == "No module named 'torch.export.nowhere'\n", done.stderr


def test_names_with_nothing_behind_them() -> None:
    """Libraries import them to ask `isinstance(x, DTensor)`; what is made of one says what is missing."""
    program = (
        "from toytorch.alias import install; install()\n"
        "import torch, torch.fx\nfrom torch.distributed.tensor import DTensor\n"
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        "assert not isinstance(torch.ones(1), (DTensor, FSDP))\n"
        "assert torch.fx.Graph().nodes is not None and not torch.onnx.is_in_onnx_export()\n"
        "for make in (DTensor, FSDP, torch.PyTorchFileReader):\n"
        "    try: make(1)\n"
        "    except NotImplementedError as e: print(e)\n"
        "try: from torch.distributed.tensor import Nothing\n"
        "except ImportError as e: print(e.name)"
    )
    done = run("-c", program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("torch.distributed.tensor.DTensor: toytorch has no process groups")
    assert len(lines) == 4 and lines[-1] == "torch.distributed.tensor"


# -- every (package, submodule) pair ---------------------------------------------------------------


def parts() -> list[str]:
    """All modules of toytorch, under the name torch; packages come before what is in them."""
    package = ROOT / "toytorch"
    found = []
    for file in package.rglob("*.py"):
        *folders, name = file.relative_to(package).with_suffix("").parts
        if name != "__main__" and folders[:1] != ["stand_in"]:
            found.append(".".join(["torch", *folders, *([] if name == "__init__" else [name])]))
    return sorted(set(found) - {"torch"})


KINDS = """
import importlib, json, sys, types, warnings
warnings.simplefilter("ignore")
package, *names = sys.argv[1:]
if package == "toytorch":
    import toytorch.alias
if package == "alias":
    from toytorch.alias import install
    install()
    package = "torch"
root = importlib.import_module(package)

def kind(name):
    owner = root
    for part in name.split(".")[1:]:
        owner = getattr(owner, part, None)
    return ("nothing" if owner is None else "module" if isinstance(owner, types.ModuleType)
            else "class" if isinstance(owner, type) else "function" if callable(owner) else "value")

before = {name: kind(name) for name in names}
for name in names:
    importlib.import_module(name.replace("torch", package, 1))
after = {name: kind(name) for name in names}
called = {name: sys.modules[name.replace("torch", package, 1)].__name__ for name in names}
print(json.dumps([before, after, called]))
"""


@cache
def kinds(package: str, *only: str) -> Any:
    """What each name is before and after all of them are imported, and what modules are called."""
    done = run("-c", KINDS, package, *(only or parts()))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@cache
def shared() -> tuple[str, ...]:
    """The modules that PyTorch has too."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in parts():
            if name.startswith(("torch.backends", "torch.ops")):
                continue  # objects of classes of their own in PyTorch
            with contextlib.suppress(ImportError):
                found += [name] if importlib.util.find_spec(name) else []
    return tuple(found)


def test_imports_leave_the_same_attributes_under_both_names() -> None:
    """What a package calls a function stays one, whichever of its submodules are imported."""
    native, alias = kinds("toytorch"), kinds("alias")
    before = [
        {name: what for name, what in found[0].items() if not name.startswith("torch.compat.")}
        for found in (native, alias)  # which PyTorch's name loads a file of
    ]
    assert before[0] == before[1] and native[1] == alias[1]
    pairs = [name for name, what in alias[1].items() if what != "module"]
    assert {"torch.autograd.gradcheck", "torch.nn.utils.weight_norm", "torch.jit.trace"} < {*pairs}
    for name in pairs:
        assert alias[0][name] in (alias[1][name], "nothing"), name
    assert alias[2] == {name: name for name in parts()}
    assert native[2] == {name: "toy" + name for name in parts()}


def test_attributes_are_pytorchs() -> None:
    """Submodules are there after `import torch` where PyTorch's are, as are functions."""
    alias, theirs = kinds("alias"), kinds("torch", *shared())
    hidden = {name for name, what in theirs[1].items() if what == "nothing"}  # deleted by PyTorch
    for name in set(shared()) - hidden:
        assert alias[1][name] == theirs[1][name], name
        if theirs[0][name] != "nothing":
            assert alias[0][name] == theirs[0][name], name
    assert len(shared()) > 80


NAMED = r"""
import torch, torch.nn.functional as F, inspect, pickle, warnings
from torch.autograd import gradcheck
import torch.autograd.gradcheck
print(callable(torch.autograd.gradcheck), gradcheck is torch.autograd.gradcheck)
def plain(m): return repr(m).split(" from ")[0]
print(plain(torch), plain(F), torch.nn.__spec__.name, torch.nn.__package__)
print(type(torch.ones(1)), type(torch.float32), type(torch.Size([])), torch.device, torch.layout)
for name in ("Linear LSTMCell MultiheadAttention ParameterList Softmax ChannelShuffle Module "
             "MarginRankingLoss Parameter LazyConv2d").split():
    print(getattr(torch.nn, name))
print(torch.optim.SGD, torch.optim.Adam, torch.optim.lr_scheduler.StepLR, torch.no_grad)
print(torch.utils.data.DataLoader, torch.utils.data.distributed.DistributedSampler)
print(inspect.getmodule(torch.nn.Linear).__name__, inspect.getmodule(F.relu).__name__[:19])
print(b"ctorch.nn.modules.activation\nGLU" in pickle.dumps(torch.nn.GLU, 2))
net = pickle.loads(pickle.dumps(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.GLU(0))))
print(net, type(net[1]).__module__)
try: torch.ops.load_library("nowhere.so")
except OSError as e: print(str(e).split(": ")[0])
print(isinstance(torch.__version__, str), type(torch.__version__), torch.__version__ >= "2.13",
      torch.__version__ >= (2, 13), torch.__version__ < "2.14", torch.version.cuda,
      torch.version.hip, isinstance(torch.version.git_version, str), torch.version.debug,
      torch.version.__all__, type(torch.version.__version__))
import importlib.metadata, importlib.util
print(importlib.metadata.version("torch") == torch.__version__)
print(importlib.util.find_spec("torch") is not None, importlib.util.find_spec("torch.nn").name)
class Own(torch.optim.lr_scheduler.LRScheduler): pass
print(Own.__mro__)
"""


def test_names_are_pytorchs(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text(NAMED)
    ours = run("-m", "toytorch", str(tmp_path / "named.py"))
    theirs = run(str(tmp_path / "named.py"))
    assert ours.returncode == theirs.returncode == 0, ours.stderr + theirs.stderr
    assert ours.stdout == theirs.stdout


def test_workers_find_the_name_too(tmp_path: Path) -> None:
    """A process started afresh knows its parent's path only."""
    (tmp_path / "program.py").write_text(
        "import torch, toytorch\nfrom torch.utils.data import DataLoader\n"
        "class Set(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return str(torch.__version__) * (torch is toytorch)\n"
        "if __name__ == '__main__':\n    print(*[list(DataLoader(Set(), 2, num_workers=1, "
        "multiprocessing_context=c)) for c in ('fork', 'spawn', 'forkserver')])\n"
    )
    done = run("-m", "toytorch", str(tmp_path / "program.py"))
    assert done.stdout == " ".join([repr([[compatible] * 2])] * 3) + "\n", done.stderr


def test_the_own_version_is_kept_where_no_name_was_taken() -> None:
    assert run(
        "-c", "import toytorch as t; print(t.__version__, t.version.__version__, t.nn)"
    ).stdout.startswith("0.1.0 0.1.0 <module 'toytorch.nn' from")


VERSIONS = names("1 1.0 1.10 1.9 2.0a1 2.0b2 2.0rc1 2.0 2.0.dev3 2.0.post1 2.0.post1.dev2 "
                 "2.0a1.dev1 2.0+cpu 2.0+cpu.1 2.0+2 2.0.0 v2.0 1!0.1 2.0-1 2.0_alpha 2.0.preview3 "
                 "parrot 2.13.0+toytorch 2.13.0a0+gitabc")  # fmt: skip


@pytest.mark.parametrize(
    "compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)
def test_versions_compare_as_pytorchs(compare: Any) -> None:
    theirs = torch.torch_version.TorchVersion
    version = pytest.importorskip("packaging.version", reason="gives versions to compare with")
    for a in VERSIONS:
        for b in [*VERSIONS, (2,), (2, 0), (2, 0, 1), ("2", "0a1"), [1, 10]]:
            (want, refused), (got, failure) = (
                attempt(compare, kind(a), b) for kind in (theirs, TorchVersion)
            )
            assert (want, type(refused)) == (got, type(failure)), (a, b)
            if isinstance(b, str) and "parrot" not in (a, b):
                b = version.Version(b)
                assert compare(TorchVersion(a), b) == compare(version.Version(a), b) or (
                    compare is operator.ne
                ), (a, b)
    with pytest.raises(TypeError):
        assert TorchVersion("2.0") < 3
    assert isinstance(tt.__version__, TorchVersion) and hash(tt.__version__) == hash("0.1.0")
    assert str(version.Version(compatible)) == compatible
