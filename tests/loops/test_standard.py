"""The compiled kernels that come with the package: found, sound, and without calls outside."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import standard_kernels
from toytorch.loops import processor
from toytorch.loops.runtime import jit, standard

ROOT = Path(__file__).parents[2]
PACKS = sorted(standard.FOLDER.glob("*.zip"))
IN_EVERY_PROCESS = {"memset", "memcpy"}  # what LLVM makes of loops that fill or copy
STEP = """
from tests import standard_kernels
standard_kernels.usual()
from toytorch.loops.runtime import jit
texts, plain = [], jit.compiled
jit.compiled = lambda machine, text: texts.append(text) or plain(machine, text)
import sys
sys.path.insert(0, "examples")
import digits_cnn
import toytorch as torch
from toytorch import nn
torch.manual_seed(0)
images, labels = digits_cnn.digits(train=True)
model = digits_cnn.network()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images, labels), batch_size=64, shuffle=True
)
losses = []
for k, (x, y) in zip(range(3), loader):
    loss = nn.functional.cross_entropy(model(digits_cnn.moved(x)), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print(len(texts), *losses)
"""

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels are not compiled here")


def first_steps(level: str, more: str = "") -> list[float]:
    """How many kernels a process without a cache compiles, and its three losses."""
    environment = {**os.environ, "TOYTORCH_CPU": level, "TOYTORCH_CACHE": ""}
    command = [sys.executable, "-c", more + STEP]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return [float(word) for word in ended.stdout.split()]


@pytest.mark.parametrize("level", ["native", "avx2", "avx512", "neon"])
def test_a_first_step_compiles_nothing(level: str) -> None:
    if level != "native" and level not in processor.levels():
        pytest.skip("this processor cannot run it")
    if level == "native" and processor.level() not in standard_kernels.TRIPLES:
        pytest.skip("there is no pack for this processor")
    for path in PACKS:
        if standard_kernels.content(path.read_bytes())["llvm"] != standard_kernels.version():
            pytest.skip("the packs were made by another LLVM, which may write other texts")
    count, *losses = first_steps(level)
    assert count == 0
    hide = "from toytorch.loops.runtime import standard; standard.find = lambda text: None;"
    compiled, *again = first_steps(level, hide)
    assert compiled > 20
    # The same code, but for the order of instructions on this very processor.
    assert losses == pytest.approx(again, 1e-5)


@pytest.mark.parametrize("path", PACKS, ids=lambda p: p.stem)
def test_whole(path: Path) -> None:
    files = standard_kernels.content(path.read_bytes())
    assert re.fullmatch(rb"\d+\.\d+\.\d+", files.pop("llvm"))
    assert len(files) > 40
    magic = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe", "win32": b"\x64\x86"}
    for code in files.values():
        assert code.startswith(magic[path.stem.split("-")[0]])


def undefined(code: bytes) -> Iterator[str]:
    """The names that a 64-bit ELF file takes from elsewhere."""
    (start,), (count,) = struct.unpack_from("<Q", code, 0x28), struct.unpack_from("<H", code, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * i) for i in range(count)]
    for section in sections:
        if section[1] == 2:  # the table of symbols
            names = sections[section[6]][4]
            for k in range(section[5] // 24):
                name, _, _, where = struct.unpack_from("<IBBH", code, section[4] + 24 * k)
                if name and not where:
                    yield code[names + name : code.index(b"\0", names + name)].decode()


@pytest.mark.parametrize("level", standard_kernels.TRIPLES)
def test_loops_call_no_library(level: str) -> None:
    files = standard_kernels.content(standard.pack("linux", level).read_bytes())
    named = {n for name, code in files.items() if name != "llvm" for n in undefined(code)}
    assert named <= {"_GLOBAL_OFFSET_TABLE_", *IN_EVERY_PROCESS}


def test_a_damaged_pack_is_no_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PACKS[0].read_bytes()
    files = standard_kernels.content(whole)
    system, level = PACKS[0].stem.split("-")
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(processor, "level", lambda: level)
    monkeypatch.setattr(standard, "FOLDER", tmp_path)
    names = [name for name in files if name != "llvm"]
    monkeypatch.setattr(standard, "name", lambda text: text)
    torn = whole.replace(whole[2000:2040], bytes(40))
    for written, found in ((None, 0), (b"", 0), (whole[:-400], 0), (torn, len(names) - 1)):
        if written is not None:
            standard.pack(system, level).write_bytes(written)
        standard.opened.cache_clear()
        assert [standard.find(n) for n in names].count(None) == len(names) - found
        assert standard.find("another") is None
    standard.opened.cache_clear()


def innermost(assembly: str) -> Iterator[list[str]]:
    """The instructions of each loop without another in it."""
    lines = assembly.splitlines()
    places = {line[:-1]: k for k, line in enumerate(lines) if re.fullmatch(r"\.LBB\d+_\d+:", line)}
    for k, line in enumerate(lines):
        back = re.search(r"\t(?:b\.\w+|b|cbn?z|tbn?z)\t.*?(\.LBB\d+_\d+)$", line)
        start = places.get(back[1], k) if back else k
        if start < k and not any(start < place < k for place in places.values()):
            yield [text for text in lines[start:k] if text.startswith("\t")]


def count(loop: list[str], *names: str) -> int:
    return sum(text.startswith(tuple(f"\t{name}\t" for name in names)) for text in loop)


def test_arm() -> None:
    """The loops of ARM's kernels, as LLVM writes them: vectors multiplied and added at once, sums
    that stay in registers."""
    machine = standard_kernels.machine_of("neon", "aarch64-unknown-linux-gnu")
    texts = standard_kernels.asked("neon")
    written = [str(machine.emit_assembly(jit.optimised(machine, t))) for t in texts]
    tiles = 0
    for text in written:
        # What else is called are parts of the kernel, or addresses of a table (blr).
        calls = set(re.findall(r"\tbl\t(\S+)", text))
        assert all(name in IN_EVERY_PROCESS or f"\n{name}:" in text for name in calls), calls
        for loop in innermost(text):
            added = count(loop, "fmla")
            if added >= 12 and 2 * added > len(loop):  # not e^x beside a sum
                tiles += 1
                assert re.search(r"\tfmla\tv\d+\.4s", "\n".join(loop))
                # A tile stores nothing, or the 4 lines of few channels once for 9 taps each.
                assert count(loop, "str", "stp", "stur") <= max(2, added // 9)
    assert tiles >= 10
