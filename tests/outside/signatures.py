"""What can be called: the schemas of PyTorch's operators that users reach by a public name."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any, NamedTuple

from tests.oracle import torch


class Argument(NamedTuple):
    type: str  # as the schema prints it: "int[1]?", "Scalar"
    name: str
    default: str | None  # None where there is none
    keyword_only: bool


class Signature(NamedTuple):
    name: str
    arguments: tuple[Argument, ...]
    written: bool  # whether the first argument is written to
    outs: int  # how many `out=` tensors the form takes


HOMES = ("linalg", "fft", "special")
# Results that are not a function of the arguments (memory nobody wrote, places of objects), other
# devices, quantized types, and what would end the process or take its memory.
LEFT_OUT = re.compile(
    r"^(_|cudnn|miopen|mkldnn|fbgemm|quantize|q_|sym_|to_mkldnn|to_sparse|sparse|empty|new_empty"
    r"|resize|set_|data$|record_stream|rename|names|align|refine|is_pinned|pin_memory|cuda"
    r"|fake_quant|int_repr|dequantize|fused_moving|choose_qparams|rrelu|from_file|get_device"
    r"|is_set_to|storage|share_memory|type$|numpy|values|indices|crow|col_ind|ccol|row_ind"
    r"|coalesce|is_coalesced|dense_dim|nested|to_padded|xlogy_|thnn|slow_conv|lstm|gru|rnn|chunk_cat"
    r"|retain_grad|backward|__|output_nr|is_leaf|requires_grad|triton|grad$|has_names|warn|item$"
    r"|random|normal|uniform|cauchy|exponential|geometric|log_normal|bernoulli|multinomial|poisson"
    r"|binomial|standard_gamma|rand|.*dropout|svd_lowrank|pca_lowrank|hash_tensor|feature_"
    r"|segment_reduce|max_pool.d_with_indices_backward|.*_backward|nuclear_norm|nested_|tolist"
    r"|empty_|slice_inverse|batch_norm_(stats|elemt|update|gather)|native_channel|_powsum|is_vulkan|linalg__|mm$|addmm_dtype|complex32|chalf|histogram|unsafe_|index$)"
)
TYPES = re.compile(
    r"^(Tensor(\(.*?\))?(\[\d*\])?\??|Scalar\??|(Sym)?[iI]nt(\[\d*\])?\??|float(\[\d*\])?\??"
    r"|bool(\[\d*\])?\??|str\??|ScalarType\??|Layout\??|Device\??|MemoryFormat\??|Generator\??"
    r"|Tensor\?\[\])$"
)


def split(text: str) -> list[str]:
    """The arguments of a schema's text; commas inside brackets divide nothing."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def read(text: str) -> Signature | None:
    """A schema's text as a signature; None for what users do not reach, or that cannot be drawn."""
    found = re.match(r"aten::(\w+)(?:\.\w+)?\((.*)\) -> (.*)$", text)
    if found is None:
        return None
    name, inside, _ = found.groups()
    arguments, keyword_only, outs, written = [], False, 0, False
    for i, part in enumerate(split(inside)):
        if part == "*":
            keyword_only = True
            continue
        kind, _, rest = part.rpartition(" ")
        word, _, default = rest.partition("=")
        if not TYPES.match(kind):
            return None
        if "!" in kind and keyword_only:
            outs += 1
            continue
        written |= i == 0 and "!" in kind
        kind = re.sub(r"\(.*?\)", "", kind).replace("SymInt", "int")
        arguments.append(Argument(kind, word, default if "=" in rest else None, keyword_only))
    if LEFT_OUT.match(name):
        return None
    return Signature(name, tuple(arguments), written, outs)


@functools.cache
def signatures() -> list[Signature]:
    """All of them, in an order that does not depend on the process."""
    texts = sorted({str(s) for s in torch._C._jit_get_all_schemas()})
    return [s for s in map(read, texts) if s is not None and spellings(s)]


@functools.cache
def by_name() -> dict[str, list[Signature]]:
    """Signatures under each name, so that a name with ten forms is not drawn ten times as often."""
    found: dict[str, list[Signature]] = {}
    for s in signatures():
        found.setdefault(s.name, []).append(s)
    return found


@functools.cache
def spellings(s: Signature) -> tuple[str, ...]:
    """The public names of a signature: "torch.sum", ".sum" (a method), "torch.linalg.det"."""
    out = []
    home, _, tail = s.name.partition("_")
    if home in HOMES and tail and hasattr(getattr(torch, home), tail):
        out.append(f"torch.{home}.{tail}")
    elif (
        hasattr(torch._C._VariableFunctions, s.name)
        and hasattr(torch, s.name)
        and not (s.written and s.name[-1] != "_")
    ):
        out.append(f"torch.{s.name}")
    if hasattr(torch.Tensor, s.name) and s.arguments and s.arguments[0].name == "self":
        out.append(f".{s.name}")
    elif hasattr(torch.nn.functional, s.name) and not out:
        out.append(f"torch.nn.functional.{s.name}")
    return tuple(out)


@functools.cache
def database() -> list[Any]:
    """PyTorch's database of operators, as far as its package for tests is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    except ImportError:
        return []
    return [
        i
        for i in op_db
        if "aten" not in i.name and not LEFT_OUT.match(i.name.rpartition(".")[2]) and where(i)
    ]


def where(info: Any) -> str:
    """How a program calls an entry of the database: "torch.nn.functional.relu", ".item"."""
    found: Any = torch
    for part in info.name.split("."):
        found = getattr(found, part, None)
    if callable(found) and not info.name.startswith(("_", "masked.", "ops.", "sparse", "signal")):
        return f"torch.{info.name}"
    return f".{info.name}" if hasattr(torch.Tensor, info.name) and info.name[0] != "_" else ""
