"""The examples in PyTorch's own docstrings, run with PyTorch and with toytorch: both print the same.

    python -m tests.outside.documented [-k TEXT] [--folder FOLDER]

The examples are read from the PyTorch that is installed. Each docstring runs in a process of its own,
with seeds set, statement by statement; what a statement prints, or the error that it raises, is
compared, numbers to two digits in a thousand. Where the two differ for a reason, `REASONS` says it.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MODULES = """
torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.grad
torch.nn.utils.parametrize torch.nn.utils.parametrizations torch.nn.utils.prune torch.nn.parameter
torch.nn.utils.stateless torch.nn.attention torch.nn.attention.flex_attention torch.optim torch.linalg
torch.optim.lr_scheduler torch.optim.swa_utils torch.fft torch.special torch.distributions torch.jit
torch.distributions.transforms torch.autograd torch.autograd.functional torch.autograd.forward_ad
torch.autograd.graph torch.autograd.profiler torch.func torch.sparse torch.nested torch.masked
torch.signal.windows torch.utils.data torch.utils.checkpoint torch.utils.dlpack torch.utils.benchmark
torch.utils._pytree torch.fx torch.random torch.testing torch.overrides torch.library torch.amp
torch.profiler torch.futures torch.serialization torch.compiler torch.cpu torch.utils.flop_counter
"""
SECONDS = 25
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?|nan|inf")
# Why what is printed differs: (what either side prints or the example says, the reason).
REASONS = (
    (r"compiled with CUDA|support for cuda|CUDA generator|Accelerator", "there is no device"),
    (r"empty|skip_init", "memory that nobody has filled"),
    (r"object at 0x|built-in method|^\d{15,}$|UUID|\.seed\(\)", "addresses, and seeds of chance"),
    (r"quant", "quantization is not there"),
    (r"\bhub\.", "nothing is fetched from the network"),
    (r"process_group|new_group", "process groups are not there"),
    (
        r"make_fx|monitor|emit_itt|get_kernel|register_package|wrap_numpy|budget",
        "said to be missing",
    ),
    (r"is_conj|is_neg", "conjugates and negatives are computed at once"),
    (
        r"prof\.|complex32|flush_denormal|allclose|torch.dist\(|\.sort\(|-0\.0000j",
        "times and rounding",
    ),
    (r"usual kernel|backend: no function|Could not run", "the end of a message"),
    (
        r"_is_device_backend|_powsum|get_testing_overrides|substitute_in_graph",
        "of PyTorch's inside",
    ),
    (r"Backward", "the name of a node of a second derivative"),
)


def examples() -> Iterator[tuple[str, list[str]]]:
    """(name, statements) of each docstring that has any."""
    seen: set[str] = set()
    for place in MODULES.split():
        module = importlib.import_module(place)
        for name in sorted(vars(module)):
            if name.startswith("__"):
                continue
            thing = getattr(module, name)
            parts = [(f"{place}.{name}", thing)]
            if inspect.isclass(thing):
                public = [n for n in sorted(dir(thing)) if not n.startswith("__")]
                parts += [(f"{place}.{name}.{n}", getattr(thing, n, None)) for n in public]
            for full, part in parts:
                doc = getattr(part, "__doc__", None)
                if not isinstance(doc, str) or ">>>" not in doc or doc in seen:
                    continue
                seen.add(doc)
                with contextlib.suppress(ValueError):  # prompts that are not indented alike
                    found = [e.source for e in doctest.DocTestParser().get_examples(doc)]
                    yield full, found


def said_by(statements: list[str]) -> list[str]:
    """What each statement prints, or the error that it raises."""
    import numpy as np
    import torch

    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    space: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    told = []
    for text in statements:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            try:
                exec(compile(text, "<example>", "single"), space)
            except TimeoutError:
                raise
            except BaseException as error:
                printed.write(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        told.append(printed.getvalue())
    return told


def run(which: str, path: Path) -> None:
    """Writes what one package says to the examples in a file."""
    if which == "toytorch":
        importlib.import_module("toytorch.alias").install()
    import torch

    for name in ("nn.functional", "distributions", "func", "fx"):
        importlib.import_module(f"torch.{name}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    told: dict[str, list[str]] = {}
    for name, statements in json.loads(path.read_text()):
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.chdir(
                tempfile.mkdtemp(dir=path.parent)
            )  # files of one example are not there for others
            signal.signal(signal.SIGALRM, late)
            signal.alarm(SECONDS)
            try:
                found = said_by(statements)
            except BaseException as error:
                found = [f"{type(error).__name__}: {error}"]
            with os.fdopen(theirs, "w") as file:
                json.dump(found, file)
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as file:
            told[name] = json.loads(file.read() or '["the process ended"]')
        os.waitpid(child, 0)
    (path.parent / f"{which}.json").write_text(json.dumps(told))


def late(*_: object) -> None:
    """Ends an example that takes too long."""
    raise TimeoutError(f"longer than {SECONDS} seconds")


def alike(a: str, b: str) -> bool:
    """Whether two texts say the same, numbers nearly."""
    a, b = (re.sub(r"0x[0-9a-f]+", "0x", text.replace("toytorch", "torch")) for text in (a, b))
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)) for text in (a, b)]
    if words[0] != words[1]:
        return False
    pairs = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)))
    return all(
        x == y or x != x != y or abs(x - y) <= 2e-3 * max(abs(x), abs(y), 1e-2) for x, y in pairs
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only docstrings with this in their names")
    parser.add_argument("--folder", type=Path, help="where what was said is kept")
    parser.add_argument("--run", nargs=2, metavar=("PACKAGE", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(given.run[0], Path(given.run[1]))
        return
    folder = given.folder or Path(tempfile.mkdtemp())
    path = folder / "examples.json"
    warnings.simplefilter("ignore")
    chosen = [(name, texts) for name, texts in examples() if given.k in name]
    path.write_text(json.dumps(chosen))
    told = []
    for which in ("torch", "toytorch"):
        again = [sys.executable, "-m", "tests.outside.documented", "--run", which, str(path)]
        subprocess.run(again, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        told.append(json.loads((folder / f"{which}.json").read_text()))
    explained: dict[str, int] = {}
    left = 0
    for name, texts in chosen:
        theirs, ours = (t[name] for t in told)
        for text, a, b in zip(texts, theirs, ours):
            if alike(a, b):
                continue
            why = next(
                (why for sign, why in REASONS if re.search(sign, f"{name}\n{text}\n{a}\n{b}")), ""
            )
            if why:
                explained[why] = explained.get(why, 0) + 1
            else:
                left += 1
                print(
                    f"{name}: {text.strip()[:200]}\n  PyTorch:  {a.strip()[:300]}\n  toytorch: {b.strip()[:300]}"
                )
            break
    for why, count in sorted(explained.items()):
        print(f"{count:4} differ: {why}")
    print(
        f"{len(chosen)} docstrings, {sum(map(len, dict(chosen).values()))} statements: {left} differ"
    )


if __name__ == "__main__":
    main()
