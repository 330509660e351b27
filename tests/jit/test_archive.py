"""Archives of compiled modules and functions, `jit.freeze`, and files that mean harm.

300 damaged files; TOYTORCH_FUZZ=5000 in the environment asks for more.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from tests.serialization.test_hostile import damage
from toytorch import nn
from toytorch.serialization import DamagedArchive

FUZZ = int(os.environ.get("TOYTORCH_FUZZ", "300"))


class Block(nn.Module):
    """A module with a branch, a buffer, a child that is shared, and a second method."""

    steps: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.scale = 3
        self.register_buffer("steps", torch.zeros(()), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The network."""
        if self.training:
            self.steps += 1
        return self.drop(self.norm(self.again(self.first(x).relu()))) * self.scale

    @torch.jit.export
    def only_first(self, x: torch.Tensor, gain: float = 2.0) -> torch.Tensor:
        """Half of it."""
        return self.first(x) * gain


class Convolutions(nn.Module):
    """What freezing can fold."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 3, 3, bias=False),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Flatten(),
            nn.Linear(12, 2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The network."""
        return self.layers(x)  # type: ignore[no-any-return]


def scripted() -> Any:
    torch.manual_seed(0)
    return torch.jit.script(Block())


def through_file(compiled: Any, **how: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(compiled, file)
    return torch.jit.load(file, **how)


def train(module: Any, x: torch.Tensor) -> list[torch.Tensor]:
    """A few steps; the parameters and buffers after them."""
    torch.manual_seed(1)
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        module(x).square().mean().backward()
        optimizer.step()
    return [t.detach().clone() for t in (*module.parameters(), *module.buffers())]


@pytest.mark.parametrize("way", ["script", "trace"])
def test_a_loaded_module_is_the_module(way: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    block, x = Block(), torch.randn(6, 4)
    made = torch.jit.script(block) if way == "script" else torch.jit.trace(block.eval(), x)
    torch.jit.save(made, tmp_path / "block.pt")
    loaded = torch.jit.load(tmp_path / "block.pt")
    assert str(loaded.graph) == str(made.graph)
    assert list(loaded.state_dict()) == list(made.state_dict()) == list(block.state_dict())
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in block.named_parameters()]
    assert loaded.first.weight is loaded.again.weight  # shared ones stay shared
    assert "steps" in dict(loaded.named_buffers()) and "steps" not in loaded.state_dict()
    assert torch.equal(loaded.eval()(x), block.eval()(x))
    if way == "script":
        assert torch.equal(loaded.only_first(x, gain=4.0), block.only_first(x, 4.0))
        assert all(map(torch.equal, train(loaded, x), train(block, x)))
        assert loaded.steps == 3
    again = through_file(loaded)  # what was loaded is saved again
    assert str(again.graph) == str(made.graph) and torch.equal(again.eval()(x), loaded.eval()(x))


def test_functions_values_and_extra_files(tmp_path: Path) -> None:
    def f(x: Any, d: Any) -> Any:
        return {"sum": x + d["a"], "pair": (x, [d["b"] * 2])}

    x, d = torch.ones(2), {"a": torch.ones(2), "b": torch.zeros(2)}
    traced = torch.jit.trace(f, (x, d), strict=False)
    file = tmp_path / "f.pt"
    torch.jit.save(traced, file, _extra_files={"note.txt": "kept", "data": b"\0\1"})
    extra = {"note.txt": b"", "data": b"", "missing": b"untouched"}
    loaded = torch.jit.load(file, _extra_files=extra)
    found = loaded(x, d)
    assert found["sum"].tolist() == [2, 2] and isinstance(found["pair"], tuple)
    assert extra == {"note.txt": b"kept", "data": b"\0\1", "missing": b"untouched"}


def test_constants_of_every_kind(tmp_path: Path) -> None:
    weights = torch.tensor([[1.5, float("nan")], [float("inf"), -0.0]], dtype=torch.float64)

    def f(x: Any) -> Any:
        return (x.double() * weights).to(torch.float16), x.sum(0), x > 1

    traced = torch.jit.trace(f, torch.ones(2, 2))
    wanted, found = traced(torch.ones(2, 2)), through_file(traced)(torch.ones(2, 2))
    for a, b in zip(wanted, found):
        assert a.dtype == b.dtype and torch.equal(a.isnan(), b.isnan())
        assert torch.equal(
            a.nan_to_num() if a.is_floating_point() else a,
            b.nan_to_num() if b.is_floating_point() else b,
        )


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="'Block' object has no attribute 'save'"):
        torch.jit.save(Block(), tmp_path / "no.pt")
    assert not (tmp_path / "no.pt").exists()
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load(tmp_path / "nowhere.pt")
    with pytest.raises(ValueError, match="is a directory"):
        torch.jit.load(tmp_path)
    with pytest.raises(ValueError, match="map_location should be either None, string"):
        through_file(scripted(), map_location=3)
    torch.save(torch.ones(2), tmp_path / "tensor.pt")
    with pytest.raises(DamagedArchive, match=r"tensor\.pt is a file of toytorch\.save"):
        torch.jit.load(tmp_path / "tensor.pt")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.pt"
    torch.jit.save(torch.jit.script(lambda_free), path)
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="Could not export Python function call"):
        torch.jit.save(with_python, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["kept.pt"]


def lambda_free(x: torch.Tensor) -> torch.Tensor:
    """A function to script."""
    return x * 2


@torch.jit.ignore
def python(x: torch.Tensor) -> torch.Tensor:
    """Stays Python."""
    return x + 1


@torch.jit.script
def with_python(x: torch.Tensor) -> torch.Tensor:
    """Calls Python."""
    return python(x)


def test_freeze() -> None:
    torch.manual_seed(0)
    net, x = Convolutions(), torch.randn(5, 2, 4, 4)
    train(net, x)
    net.eval()
    made = torch.jit.script(net)
    frozen = torch.jit.freeze(made)
    kinds = [n.kind for n in frozen.graph.walk()]
    assert not {"aten::batch_norm", "aten::dropout", "prim::GetAttr"} & set(kinds)
    assert "aten::conv2d" in kinds or "aten::convolution" in kinds
    assert not list(frozen.parameters()) and not frozen.training
    assert torch.allclose(frozen(x), net(x), atol=1e-5)
    with torch.no_grad():  # a frozen module has its own weights
        wanted = frozen(x)
        net.layers[0].weight.zero_()
    assert torch.equal(frozen(x), wanted)
    assert torch.equal(through_file(frozen)(x), wanted)
    inference = torch.jit.optimize_for_inference(torch.jit.script(Block().eval()))
    assert inference(torch.ones(2, 4)).shape == (2, 4)


def test_freeze_keeps_what_it_is_asked_to() -> None:
    frozen = torch.jit.freeze(scripted().eval(), ["only_first", "scale"])
    assert frozen.scale == 3 and frozen.only_first(torch.ones(1, 4)).shape == (1, 4)
    plain = torch.jit.freeze(scripted().eval())
    assert not hasattr(plain, "only_first") and not hasattr(plain, "scale")
    with pytest.raises(RuntimeError, match="Unknown name: nothing"):
        torch.jit.freeze(scripted().eval(), ["nothing"])
    with pytest.raises(RuntimeError, match="currently only implemented for modules in eval mode"):
        torch.jit.freeze(scripted())
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule as input"):
        torch.jit.freeze(Block())


HOSTILE = {
    "an operation that is none": ("graphs/forward.txt", b"aten::relu", b"aten::system"),
    "Python in a constant": ("graphs/forward.txt", b"value=3", b"value=__import__('os')"),
    "a function of Python's": ("graphs/forward.txt", b"aten::relu", b"os::system"),
    "text that is cut off": ("graphs/forward.txt", b"  return", b"  retur"),
    "a tensor larger than its bytes": (
        "module.json",
        b'"shape": [\n    4,\n    4',
        b'"shape": [\n    4000000000,\n    4',
    ),
    "a negative size": (
        "module.json",
        b'"shape": [\n    4,\n    4',
        b'"shape": [\n    -4,\n    -4',
    ),
    "an unknown type": ("module.json", b'"float32"', b'"object"'),
    "a tensor that is not there": ("module.json", b'"tensor": 0', b'"tensor": 99'),
    "a tensor counted from the end": ("module.json", b'"tensor": 0', b'"tensor": -1'),
    "a name with underscores": ("module.json", b'"weight"', b'"__class__"'),
    "a class that is none": ("module.json", b'"class": "Block"', b'"class": "os.system"'),
    "no JSON": ("module.json", b"{", b"["),
    "an unknown kind": ("module.json", b'"kind": "module"', b'"kind": "exec"'),
    "another format": ("format", b"toytorch", b"xoytorch"),
}


def rewritten(data: bytes, change: dict[str, bytes]) -> bytes:
    """The archive with other records, their checksums right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(name, change.get(name.partition("/")[2], old.read(name)))
    return made.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pt"
    torch.jit.save(scripted(), path)
    record, old, new = HOSTILE[name]
    data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read(next(n for n in archive.namelist() if n.endswith("/" + record)))
    assert old in text, text.decode()
    path.write_bytes(rewritten(data, {record: text.replace(old, new, 1)}))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedArchive, match=r"hostile\.pt"):
            torch.jit.load(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_deep_values_end_in_an_error(tmp_path: Path) -> None:
    path = tmp_path / "deep.pt"
    torch.jit.save(scripted(), path)
    with zipfile.ZipFile(path) as archive:
        about = json.loads(
            archive.read(next(n for n in archive.namelist() if n.endswith("module.json")))
        )
    about["tree"]["attributes"]["deep"] = "HERE"
    text = json.dumps(about).replace('"HERE"', '{"list": [' * 5000 + "]}" * 5000).encode()
    path.write_bytes(rewritten(path.read_bytes(), {"module.json": text}))
    with pytest.raises(DamagedArchive, match=r"deep\.pt"):
        torch.jit.load(path)


def test_damaged_archives(tmp_path: Path) -> None:
    """Every damaged file loads to the module that was saved, or raises an error that names it."""
    path, rng = tmp_path / "fuzz.pt", random.Random(0)
    module = scripted()
    torch.jit.save(module, path)
    good = path.read_bytes()
    executed: list[str] = []
    watching = True

    def watch(event: str, args: Any) -> None:
        if watching and event in ("os.system", "subprocess.Popen", "exec", "compile"):
            name = str(getattr(args[0], "co_filename", "")) + str(args[1:2])
            if "encodings" not in name and "<unknown>" not in name:  # ast.parse of a literal
                executed.append(f"{event} {args}"[:300])

    sys.addaudithook(watch)
    refused = loaded = named = 0
    tracemalloc.start()
    try:
        for turn in range(FUZZ):
            path.write_bytes(damage(good, rng))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                got = torch.jit.load(path)
            except DamagedArchive as error:
                named += str(path) in str(error)
                refused += 1
            else:  # the bytes it hit carry no value: dates, padding, notes
                assert str(got.graph) == str(module.graph), turn
                assert all(
                    map(torch.equal, got.state_dict().values(), module.state_dict().values())
                ), turn
                loaded += 1
            assert tracemalloc.get_traced_memory()[1] - before < 8 << 20, turn
    finally:
        watching = False
        tracemalloc.stop()
    assert not executed and named == refused
    assert refused > FUZZ // 2 and loaded + refused == FUZZ


def needy(x: torch.Tensor) -> torch.Tensor:
    if x.dim() > 0:
        raise ImportError("lacks a package")
    return x


def test_any_of_pythons_exceptions_is_kept() -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(needy), file)
    file.seek(0)
    with pytest.raises(Exception, match="lacks a package"):
        torch.jit.load(file)(torch.ones(1))
