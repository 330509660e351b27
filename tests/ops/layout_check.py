"""Strides, contiguity and aliasing of results on PyTorch's database of operators.

python -m tests.ops.layout_check            all samples of all entries, in six layouts
python -m tests.ops.layout_check cat fft    entries that have one of these in their names
TOYTORCH_SAMPLES=5                          so many samples of each

Dimensions of size 1 have no stride that matters; values are compared elsewhere.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tests.oracle import ORACLE, SUBJECT, attempt, dtype_name, leaves, steps, torch

# Entries that differ on some samples, and why.
SINGULAR = "matrices of equal rows, which are singular: whose LU has a zero is a matter of rounding"
EMPTY = "a result of no elements has its strides from empty_like in PyTorch, of which none is ever walked"
OTHERWISE: dict[str, str] = {
    "nn.functional.hardtanh": EMPTY,
    "nn.functional.relu6": EMPTY,
    "linalg.lu_factor": SINGULAR,
    "linalg.tensorsolve": SINGULAR,
    "nn.functional.conv_transpose3d": "oneDNN's result has channels last, that of PyTorch's own "
    "kernel does not; which of them computes depends on sizes and on the number of threads",
    "nn.functional.rms_norm": "(0, 1) times (1,) has strides (1, 0) in PyTorch, of which none is "
    "ever walked; the fast path of products does not look for it",
}
Layout = Callable[[Any], Any]


def transposed(t: Any) -> Any:
    order = tuple(reversed(range(t.ndim)))
    return t.permute(order).contiguous().permute(order)


def channels_last(t: Any) -> Any:
    if t.ndim not in (4, 5):
        return t
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return t.contiguous(memory_format=formats[t.ndim])


def expanded(t: Any) -> Any:
    return t[:1].expand(t.shape) if t.ndim and t.shape[0] else t


def sliced(t: Any) -> Any:
    if not t.ndim:
        return t
    wide = t.new_zeros((*t.shape[:-1], 2 * t.shape[-1]))
    part = wide[..., ::2]
    part.copy_(t)
    return part


def empty(t: Any) -> Any:
    return t[:0] if t.ndim else t


LAYOUTS: dict[str, Layout] = {
    "contiguous": lambda t: t.contiguous(),
    "transposed": transposed,
    "channels_last": channels_last,
    "expanded": expanded,
    "sliced": sliced,
    "empty": empty,
}


def laid(x: Any, layout: Layout) -> Any:
    """A nested value whose tensors lie in a layout; tensors with no other order stay as they are."""
    if isinstance(x, torch.Tensor):
        return layout(x.detach()) if x.layout is torch.strided else x
    if type(x) in (list, tuple):
        return type(x)(laid(v, layout) for v in x)
    if type(x) is dict:
        return {k: laid(v, layout) for k, v in x.items()}
    return x


def strided(x: Any, side: Any) -> list[Any]:
    return [
        t
        for t in leaves(x)
        if isinstance(t, side.Tensor)
        and str(t.layout) == "torch.strided"
        and t.device.type == "cpu"
    ]


def described(result: Any, given: Any, side: Any) -> list[tuple[Any, ...]]:
    """Of each tensor that comes out: shape, strides, forms of contiguity, and whose memory it is."""
    inputs = strided(given, side)
    owners = {t.untyped_storage().data_ptr(): i for i, t in reversed(list(enumerate(inputs)))}
    root = side.root
    made = []
    for t in strided(result, side):
        forms = [t.is_contiguous()]
        if t.ndim == 4:
            forms.append(t.is_contiguous(memory_format=root.channels_last))
        owner = owners.get(t.untyped_storage().data_ptr()) if t.numel() else None
        offset = t.storage_offset() if owner is not None else 0
        made.append((tuple(t.shape), steps(t) if t.numel() else t.stride(), forms, owner, offset))
    return made


def samples(info: Any, most: int) -> Iterator[tuple[Any, Any]]:
    """Arguments and options of the samples of an entry, which both sides can take."""
    kind = torch.float32 if torch.float32 in info.dtypes else next(iter(info.dtypes), None)
    if kind is None or dtype_name(kind) not in ("float32", "int64", "bool", "complex64"):
        return
    known = (torch.Tensor, torch.dtype, torch.device, torch.memory_format, torch.layout, int, float,
             complex, str, bool, slice, type(None), type(...))  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, sample in enumerate(info.sample_inputs("cpu", kind)):
            if k >= most:
                return
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            plain = [list(args), kwargs]
            if all(
                isinstance(v, known) or type(v).__name__ == "Size" for v in leaves(plain)
            ) and all(t.layout is torch.strided for t in ORACLE.tensors(plain)):
                yield args, kwargs


def carried(x: Any) -> Any:
    """For this side, with memory formats and layouts of its own."""
    if isinstance(x, (torch.memory_format, torch.layout)):
        return getattr(SUBJECT.root, str(x).removeprefix("torch."))
    if type(x) in (list, tuple):
        return type(x)(carried(v) for v in x)
    if type(x) is dict:
        return {k: carried(v) for k, v in x.items()}
    return SUBJECT.carry(x)


def compare(info: Any, function: Any, most: int) -> tuple[int, list[str]]:
    """How many calls were compared, and how those differ that do."""
    tried, bad = 0, []
    for args, kwargs in samples(info, most):
        for word, layout in LAYOUTS.items():
            (theirs, their_words), refused = attempt(laid, (args, kwargs), layout)
            if refused is not None:
                continue
            mine = carried(list(theirs)), carried(their_words)
            want, refused = attempt(info.op, *theirs, **their_words)
            if refused is not None:
                continue
            got, failure = attempt(function, *mine[0], **mine[1])
            tried += 1
            if failure is not None:
                bad.append(
                    f"{word} {brief(theirs)} {their_words}: {type(failure).__name__} {failure}"
                )
                continue
            wants = described(want, [list(theirs), their_words], ORACLE)
            gots = described(got, [mine[0], mine[1]], SUBJECT)
            if wants != gots:
                pairs = [(g, w) for g, w in zip(gots, wants) if g != w] or [(gots, wants)]
                bad.append(
                    f"{word} {brief(theirs)} {their_words}: {pairs[0][0]}, PyTorch {pairs[0][1]}"
                )
    return tried, bad


def brief(args: Any) -> str:
    return ", ".join(
        f"{tuple(v.shape)}:{v.stride()}" if isinstance(v, torch.Tensor) else repr(v)[:40]
        for v in leaves(list(args))
    )


def entries() -> Iterator[tuple[str, Any, Any]]:
    """Name, entry and our function of all that can be compared."""
    from tests.ops.test_database import ABSENT, ENTRIES, ours

    for name in sorted(ENTRIES.keys() - ABSENT.keys()):
        info = ENTRIES[name]
        plain = getattr(info.op, "__module__", "").startswith(("torch.testing", "torch._refs"))
        function = ours(info)
        if not plain and getattr(info.op, "__name__", "") != "<lambda>" and function is not None:
            yield name, info, function


def main(words: list[str]) -> int:
    most = int(os.environ.get("TOYTORCH_SAMPLES", "1000"))
    shown = int(os.environ.get("TOYTORCH_SHOWN", "3"))
    calls = count = 0
    wrong: dict[str, int] = {}
    for name, info, function in entries():
        if words and not any(w in name for w in words):
            continue
        torch.manual_seed(0)
        SUBJECT.root.manual_seed(0)
        tried, bad = compare(info, function, most)
        calls, count = calls + tried, count + 1
        if bad:
            wrong[name] = len(bad)
            print(f"{name}: {len(bad)} of {tried}  {OTHERWISE.get(name, '')}", flush=True)
            for line in bad[:shown]:
                print("    " + line[:400], flush=True)
    known = sum(n for name, n in wrong.items() if name in OTHERWISE)
    print(
        f"{count} entries, {calls} calls: {sum(wrong.values())} differ, of {len(wrong)} entries; "
        f"{known} for a reason that is written down"
    )
    return 1 if wrong.keys() - OTHERWISE.keys() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
