"""Compares what a script shows on both sides, and shortens a script whose sides differ."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from tests.oracle import torch, tt
from tests.outside.compare import NODES, same_node
from tests.outside.scripts.running import Seen, TooLong, run
from tests.outside.scripts.script import Script, script

CLOSE = {"bfloat16": 5e-2, "float16": 1e-2, "float64": 1e-6, "complex128": 1e-6}
ENDS = (  # after which the two sides are not compared any more
    ("derivative for ", "is not implemented", ""),  # derivatives of derivatives that PyTorch lacks
    ("could not create a primitive", "", ""),  # for layers in half types, on some processors
    ("", "", "DamagedPickle"),  # hooks in files are code, which toytorch does not run
)
COMPOSED = {  # one record in PyTorch, several here, or the other way round (as in `tests.outside.compare`)
    ("WeightNormInterfaceBackward0", "MulBackward0"), ("CopySlices", "ViewBackward0"),
    ("NativeBatchNormBackward0", "ToCopyBackward0"), ("AddBackward0", "ConvolutionBackward0"),
    ("TBackward0", "MmBackward0"), ("NativeGroupNormBackward0", "ToCopyBackward0"),
}  # fmt: skip
# `gradgradcheck` says that PyTorch's second derivative of weight_norm is wrong.
WRONG_IN_PYTORCH = re.compile(
    r"(WN\(|weight_norm\()[^$]*create_graph|create_graph[^$]*(WN\(|weight_norm\()"
)
OWN_DRAWS = re.compile(r"F\.dropout[^$]*torch\.compile\(net\)")  # inductor's random numbers
HALVES = {"bfloat16": 2**-8, "float16": 2**-11}  # a step in the last digit
DOUBLE = "torch.set_default_dtype(torch.float64)"


class Difference(NamedTuple):
    kind: str  # "raised", "words" or "numbers"
    part: int
    expected: str
    got: str


def difference(parts: tuple[str, ...]) -> Difference | None:
    """The first difference that rounding does not explain."""
    text = "\n".join(parts)
    if WRONG_IN_PYTORCH.search(text) or OWN_DRAWS.search(text):
        return None
    found = compared(parts)
    if found is None or found.kind != "numbers":
        return found
    # What rounding began is gone where numbers are exact to twice as many digits.
    exact = [p.replace(".float()", ".double()").replace("float32", "float64") for p in parts]
    found = compared((DOUBLE, *exact))
    if found is None or (found.kind == "numbers" and moves((DOUBLE, *exact), found)):
        return None
    return found._replace(part=max(found.part - 1, 0))


def compared(parts: tuple[str, ...]) -> Difference | None:
    try:
        want = run(torch, parts)
    except TooLong:
        return None
    try:
        got = run(tt, parts)
    except TooLong:
        return Difference("words", 0, "an end", "none in time")
    for a, b in zip(want, got):
        if any(
            p in a.text and q in a.text and r in b.text and (p or a.text != b.text)
            for p, q, r in ENDS
        ):
            return None
        found = differs(a, b)
        if found is not None:
            return found
    if len(want) != len(got):
        more = (want if len(want) > len(got) else got)[min(len(want), len(got))]
        return Difference(
            "words", more.part, f"{len(want)} things shown", f"{len(got)}: {more.text}"
        )
    return None


def moves(parts: tuple[str, ...], found: Difference) -> bool:
    """Whether PyTorch's own numbers change where inputs do in their last digits: a sign of noise, a tie."""
    half = next((k for k in HALVES if f"Tensor {k} " in found.expected), "")
    plain = run(torch, parts)
    for wave in ("sin", "cos", "tanh"):
        noise = (
            "\nwith torch.no_grad():\n    for _p in {}:\n"
            "        if not nn.parameter.is_lazy(_p) and _p.is_floating_point():\n"
            f"            _p *= 1 + {HALVES.get(half, 1e-9)} * torch.arange(_p.numel()).{wave}().view_as(_p)"
        )
        to = {
            "model = nn.Seq": noise.format("model.parameters()"),
            "x = torch.r": noise.format("[x]"),
        }
        shaken = [
            p + next((t for first, t in to.items() if p.startswith(first)), "") for p in parts
        ]
        pairs = zip(plain, run(torch, shaken))
        if any(differs(a, b) for a, b in pairs if half in ("", a.dtype)):
            return True
    return False


def differs(a: Seen, b: Seen) -> Difference | None:
    """How what the sides show at one place differs."""
    nodes = (
        same_node(a.node, b.node)
        or (a.node, b.node) in COMPOSED
        or (a.node and b.node in NODES)
        or a.node == "CompiledFunctionBackward"  # all that one of PyTorch's compilers made
    )
    if a.text != b.text or a.part != b.part or not nodes:
        raised = a.text.startswith("raised"), b.text.startswith("raised")
        kind = "messages" if all(raised) else "raised" if any(raised) else "words"
        return Difference(kind, min(a.part, b.part), tale(a), tale(b))
    if a.values is None or b.values is None or same(a.values, b.values, a.dtype):
        return None
    return Difference("numbers", a.part, tale(a), tale(b))


def tale(seen: Seen) -> str:
    """What was seen, in a line or two."""
    values = "" if seen.values is None else np.array2string(seen.values.ravel()[:8], precision=6)
    return f"{seen.text} {seen.node or ''} {values}"


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], dtype: str) -> bool:
    """Whether numbers agree up to the rounding of a few steps."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool((a == b).all())
    finite = np.abs(a[np.isfinite(a)])
    close = CLOSE.get(dtype, 2e-4)
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(
                b, a, close, close * min(1.0, finite.max(initial=0.0)) + 1e-7, equal_nan=True
            )
        )


def look(seed: int) -> tuple[Script, Difference] | None:
    """The script of a seed and the first difference, if there is one."""
    drawn = script(seed)
    found = difference(drawn.parts)
    return None if found is None else (drawn, found)


def shorter(drawn: Script, found: Difference) -> tuple[Script, Difference]:
    """A script with fewer parts, and fewer lines in them, that shows a difference of the kind."""
    parts = (
        drawn.parts[: found.part + 1] if difference(drawn.parts[: found.part + 1]) else drawn.parts
    )
    parts, found = without(parts, found)
    for i in reversed(range(len(parts))):
        before, after = parts[:i], parts[i + 1 :]

        def whole(
            lines: tuple[str, ...], before: Any = before, after: Any = after
        ) -> tuple[str, ...]:
            return (*before, "\n".join(lines), *after)

        lines, found = without(tuple(parts[i].split("\n")), found, whole)
        parts = whole(lines)
    return Script(drawn.seed, parts), found


def without(
    items: tuple[str, ...], found: Difference, whole: Any = tuple
) -> tuple[tuple[str, ...], Difference]:
    """The items that are needed for the difference."""
    for i in reversed(range(len(items))):
        fewer = items[:i] + items[i + 1 :]
        if not fewer:
            continue
        now = difference(whole(fewer))
        if now is not None and now.kind == found.kind and alike(now, found):
            items, found = fewer, now
    return items, found


def alike(a: Difference, b: Difference) -> bool:
    """Whether two differences look like one: that a line is gone must not make another one of it."""
    return (
        a.expected.split(" ")[:3] == b.expected.split(" ")[:3]
        and a.got.split(" ")[:3] == b.got.split(" ")[:3]
    )
