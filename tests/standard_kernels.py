"""The packs of compiled kernels that come with the package: made, and checked against a rebuild.

    python -m tests.standard_kernels            writes toytorch/loops/standard/*.zip
    python -m tests.standard_kernels --check    says whether they are what would be written

What is in them is what the examples need: one step each of a convolutional network, an LSTM and a
GPT, a multi-layer perceptron with four optimizers, and prediction with each; and reductions, losses
and a block of a convolutional network that many programs have. Their kernels are
written once for a level of processors, by a process that is told so (by TOYTORCH_CPU, or, of a level that
this processor cannot run, by `pretend`: the text is the same), and compiled for each operating system.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from toytorch.kernels import batched_product, tiled_product
from toytorch.loops import processor
from toytorch.loops.runtime import jit, standard

ROOT = Path(__file__).parents[1]
TRIPLES = {  # LLVM's names of the systems that each level is compiled for
    "avx2": {"linux": "x86_64-unknown-linux-gnu", "win32": "x86_64-pc-windows-msvc"},
    "avx512": {"linux": "x86_64-unknown-linux-gnu", "win32": "x86_64-pc-windows-msvc"},
    "neon": {"linux": "aarch64-unknown-linux-gnu", "darwin": "arm64-apple-macosx11.0.0"},
}
DATE = (1980, 1, 1, 0, 0, 0)  # of every file in a pack, so that equal content is an equal pack


def work() -> None:
    """Runs what the packs are for."""
    sys.path.insert(0, str(ROOT / "examples"))
    import digits_cnn
    import language_model

    import toytorch as torch
    from toytorch import nn, optim
    from toytorch.utils.data import DataLoader, TensorDataset
    from toytorch.vision.datasets import digits

    torch.randn(5000)  # from now on small draws are compiled, too
    torch.manual_seed(1)
    torch.set_num_threads(2)  # so that the pool of threads is in the packs, too

    def learn(model: Any, loss: Any, optimizer: Any) -> None:
        for _ in range(2):
            optimizer.zero_grad()
            loss().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss()

    images, labels = digits(train=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    x, y = next(iter(DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)))
    network = digits_cnn.network()
    rule: Any = optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    learn(network, lambda: criterion(network(digits_cnn.moved(x)), y), rule)
    digits_cnn.accuracy(network, images, labels)
    rules: list[Any] = [
        lambda p: optim.SGD(p, 0.1),
        lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
        lambda p: optim.Adam(p, 1e-3),
        lambda p: optim.RMSprop(p, 1e-3),
    ]
    for make in rules:
        layers = [nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Dropout(), nn.Linear(128, 10)]
        plain = nn.Sequential(*layers)
        learn(plain, lambda p=plain: nn.functional.cross_entropy(p(x), y), make(plain.parameters()))
    for sort in (language_model.LSTM, language_model.GPT):
        model = sort(30)
        data = torch.randint(30, (500,))
        pieces = language_model.batch(data, 16, 32)
        rule = optim.AdamW(model.parameters(), lr=1e-3)
        learn(model, lambda m=model, p=pieces: language_model.loss_of(m, *p), rule)

    few = torch.randn(5, 6)
    for x, dim in ((few, 0), (torch.randn(5, 6, 7), 1)):
        x.softmax(dim)
        x.log_softmax(dim)
    for dim in (0, 1):
        few.var(dim)
        few.logsumexp(dim)
    for compare in ("huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"):
        getattr(nn.functional, compare)(few, few.sigmoid())
    blocks: list[Any] = [
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.BatchNorm2d(8),
        nn.GroupNorm(2, 8),
        nn.LeakyReLU(0.2),
    ]
    block = nn.Sequential(*blocks)
    block(torch.randn(2, 8, 40, 40, requires_grad=True)).sum().backward()


def usual() -> None:
    """Caches as most processors have them, whatever this one's: they decide which tiles are asked
    for, and a pack has to be the same wherever it is made."""
    processor.caches = lambda: (32 << 10, 1 << 20)
    processor.this.cache_clear()


def texts() -> list[str]:
    """LLVM's text of every kernel that `work` needs, for the processor of this process."""
    found: dict[str, None] = {}

    def note(text: str) -> None:
        found[text] = None

    standard.find = note  # nothing is found, so all is written
    for narrow in (False, True):  # whichever BLAS this machine has
        tiled_product.beats_blas = lambda narrow=narrow: narrow
        for remembered in (tiled_product.fewest, tiled_product.plan, batched_product.plan):
            remembered.cache_clear()
        work()
    return list(found)


def pretend(level: str) -> None:
    """Makes kernels for a level that this processor may not have: their text is that level's, and
    what LLVM makes of it here runs here."""
    name, features, _ = processor.host()
    words = ",".join(("+" if on else "-") + f for f, on in sorted(features.items()))
    made = processor.of_level(level)._replace(name=name, features=words)
    processor.this = lambda: made  # in a process of its own


def asked(level: str) -> list[str]:
    """The texts of a level, from a process of its own."""
    here = {"TOYTORCH_CPU": level} if level in processor.levels() else {}
    command = [sys.executable, "-m", "tests.standard_kernels", "--texts", level]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **here, "TOYTORCH_CACHE": ""}, check=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    return list(json.loads(ended.stdout))


def machine_of(level: str, triple: str) -> Any:
    """LLVM's machine of a level and a system."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    cpu = processor.LEVELS[level][0]
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, **jit.MACHINE)


def version() -> bytes:
    """LLVM's, which is written into a pack."""
    return ".".join(map(str, llvm.llvm_version_info)).encode()


def packed(texts: list[str], level: str, triple: str) -> bytes:
    """The pack of these texts for a level and a system."""
    machine, memory = machine_of(level, triple), io.BytesIO()
    with zipfile.ZipFile(memory, "w") as pack:
        files = {standard.name(text): jit.compiled(machine, text) for text in texts}
        files["llvm"] = version()
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = 3  # not the system it is made on
            pack.writestr(entry, files[name], zipfile.ZIP_DEFLATED, 9)
    return memory.getvalue()


def content(pack: bytes) -> dict[str, bytes]:
    """The files in a pack."""
    with zipfile.ZipFile(io.BytesIO(pack)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def difference(old: dict[str, bytes], new: dict[str, bytes]) -> str:
    """How a pack differs from a rebuild, or "". Of another LLVM's nothing is said: it makes other
    code of the same text, and from LLVM 22 on there are other texts."""
    if old and old["llvm"] != new["llvm"]:
        return ""
    if old.keys() != new.keys():
        return (
            f"{len(new.keys() - old.keys())} kernels lack, {len(old.keys() - new.keys())} are old"
        )
    other = [name for name in new if old[name] != new[name]]
    return f"{len(other)} kernels differ" if other else ""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--texts"]:
        usual()
        if arguments[1] not in processor.levels():
            pretend(arguments[1])
        print(json.dumps(texts()))
        return 0
    check, failed = arguments == ["--check"], False
    for level, triples in TRIPLES.items():
        found = asked(level)
        for system, triple in triples.items():
            path, new = standard.pack(system, level), packed(found, level, triple)
            said = f"{path.name}: {len(found)} kernels, {len(new) / 1024:.0f} KiB"
            if check:
                old = content(path.read_bytes()) if path.exists() else {}
                wrong = difference(old, content(new))
                failed |= bool(wrong)
                said += f"; {wrong}: run python -m tests.standard_kernels" if wrong else "; in step"
            else:
                path.parent.mkdir(exist_ok=True)
                path.with_suffix(".tmp").write_bytes(new)
                path.with_suffix(".tmp").replace(path)
            print(said, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
