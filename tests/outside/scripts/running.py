"""Runs a script on either package, and notes what it shows."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import itertools
import re
import signal
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tests.oracle import dtype_name
from tests.outside.scripts.grammar import HERE

SECONDS = 20
PRELUDE = compile((HERE / "prelude.txt").read_text(), "prelude.txt", "exec")
number = itertools.count()


class Seen(NamedTuple):
    """Something a script showed: where it did, words, and numbers (with their type) if it was a tensor."""

    part: int
    text: str
    values: np.ndarray[Any, Any] | None = None
    dtype: str = ""
    node: str | None = None


def start(root: Any) -> dict[str, Any]:
    """The names that scripts begin with, those of a fresh module."""
    module = types.ModuleType("script")
    sys.modules["script"] = module  # where pickle finds their classes
    module.__dict__["torch"] = root
    exec(PRELUDE, module.__dict__)
    return module.__dict__


def run(root: Any, parts: Iterable[str]) -> list[Seen]:
    """What the script shows on one side, and what its parts raise."""
    seen: list[Seen] = []
    with settings(root), warnings.catch_warnings(), within(SECONDS):
        warnings.simplefilter("ignore")
        names = start(root)
        root.manual_seed(0)
        root.distributions.Distribution.set_default_validate_args(
            True
        )  # which torch.compile switches off
        for i, part in enumerate(parts):

            def see(*values: object, i: int = i) -> None:
                for value in values:
                    seen.extend(Seen(i, *what) for what in shown(value, root))

            names["see"] = see
            try:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    # a new file name, for those who read the source of functions
                    exec(compiled(part), names)
                if printed.getvalue():
                    seen.append(Seen(i, plain(printed.getvalue())))
            except TooLong:
                raise
            except Exception as e:
                seen.append(Seen(i, "raised " + told(e)))
    return seen


def compiled(part: str) -> types.CodeType:
    """The part's code, whose source `inspect` finds."""
    import linecache  # what inspect asks

    name = f"<script {next(number)}>"
    linecache.cache[name] = (len(part), None, part.splitlines(True), name)
    return builtins.compile(part, name, "exec")


def told(e: BaseException) -> str:
    """An exception's class and first line."""
    lines = str(e).strip().splitlines() or [""]
    if isinstance(e, AttributeError) and " object has no attribute" in lines[0]:
        return type(e).__name__  # which attribute a library misses first in what is no tensor
    return plain(f"{type(e).__name__}: {lines[0].strip()}")


def plain(text: str) -> str:
    """A text without addresses, numbers of runs, last digits and the package's own name."""
    text = re.sub(r"0x[0-9a-f]+|\x1b\[\d*m", "", text)
    text = re.sub(r"<script \d+>", "<script>", text)
    text = text.replace("toytorch", "torch")
    text = re.sub(r"\d+\.\d{7,}(e-\d+)?", lambda m: f"{float(m[0]):.5g}", text)  # rounded ones
    return re.sub(
        r"\btorch(\.\w+)+\.([A-Z]\w*)", r"\2", text
    )  # where a class stands is right under the alias only


def shown(value: Any, root: Any, where: str = "") -> Iterator[tuple[Any, ...]]:
    """The words and numbers that stand for a value."""
    if isinstance(value, root.Tensor):
        yield from of_tensor(value, root, where)
    elif isinstance(value, bool) or value is None:
        yield (f"{where}{value}",)
    elif isinstance(value, (float, complex, np.floating)):
        yield f"{where}{type(value).__name__}", np.asarray(value), "float"
    elif isinstance(value, (str, int)):
        yield (f"{where}{value if isinstance(value, int) else plain(value)!r}",)
    elif isinstance(value, np.ndarray):
        yield f"{where}array {value.dtype} {value.shape}", value, str(value.dtype)
    elif isinstance(value, dict):
        yield (
            f"{where}{type(value).__name__} {plain(str([k for k in value if not isinstance(k, root.Tensor)]))}",
        )
        for k, v in value.items():
            yield from shown(v, root, f"{where}[{'' if isinstance(k, root.Tensor) else k}] ")
    elif isinstance(value, (list, tuple)):
        yield (f"{where}{type(value).__name__} of {len(value)}",)
        for i, v in enumerate(value):
            yield from shown(v, root, f"{where}{i} ")
    elif isinstance(value, root.Generator):
        yield (f"{where}generator",)
    else:
        yield (where + plain(repr(value)),)


def of_tensor(value: Any, root: Any, where: str) -> Iterator[tuple[Any, ...]]:
    node = type(value.grad_fn).__name__ if value.grad_fn is not None else None
    kind = dtype_name(value.dtype)
    text = f"{where}{type(value).__name__} {kind} {tuple(value.shape)} {value.requires_grad}"
    if value.layout is not root.strided or value.device.type != "cpu" or value.is_nested:
        yield (f"{text} {plain(str(value.layout))} {value.device}",)
        if value.layout is root.sparse_coo:
            yield from shown(value.detach().coalesce().to_dense(), root, where)
        return
    x = value.detach().resolve_conj().resolve_neg()
    yield (
        f"{text} {steps(value)}",
        (x.float() if kind == "bfloat16" else x).numpy().copy(),
        kind,
        node,
    )


def steps(x: Any) -> tuple[int, ...]:
    """Strides, without those along which no step is ever taken."""
    return tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n != 1) if x.numel() else ()


class TooLong(BaseException):
    """A script that did not end in time."""


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Ends what takes longer."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def settings(root: Any) -> Iterator[None]:
    """Puts back what scripts change for the whole process."""
    kind, grad = root.get_default_dtype(), root.is_grad_enabled()
    hooks = importlib.import_module(f"{root.__name__}.nn.modules.module")
    try:
        yield
    finally:
        root.set_default_dtype(kind)
        root.set_grad_enabled(grad)
        root.autograd.set_detect_anomaly(False)
        for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
            getattr(hooks, name, {}).clear()
