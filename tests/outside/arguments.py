"""The text of an argument, from its type in the schema and from its name."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.oracle import torch
from tests.outside.leaves import DTYPES, FLOATS, INTS, tensor
from tests.outside.signatures import Argument, Signature

Scope = dict[str, Any]  # the variables of a program, as PyTorch has them
WORDS = {
    "reduction": ("'mean'", "'sum'", "'none'", "1", "2", "0"),
    "rounding_mode": ("None", "'trunc'", "'floor'"),
    "approximate": ("'none'", "'tanh'"),
    "norm": ("'ortho'", "'forward'", "'backward'", "None"),
    "ord": ("'fro'", "'nuc'"),
    "reduce": ("'sum'", "'prod'", "'mean'", "'amax'", "'amin'"),
    "side": ("'left'", "'right'"),
    "mode": ("'reduced'", "'complete'", "'r'"),
    "indexing": ("'ij'", "'xy'"),
    "UPLO": ("'L'", "'U'"),
    "interpolation": ("'linear'", "'lower'", "'higher'", "'nearest'", "'midpoint'"),
    "driver": ("None",),
    "equation": ("'ij,jk->ik'", "'ij->ji'", "'...i->...'", "'ii->i'", "'ij,ij'"),
}
# NumPy's words, which PyTorch's parser takes as well.
ALIASES = {"dim": "axis", "keepdim": "keepdims", "self": "x", "other": "x2"}


def tensors(scope: Scope) -> list[str]:
    return [n for n, v in scope.items() if isinstance(v, torch.Tensor)]


def like(rng: Random, scope: Scope, ref: Any) -> str:
    """A variable that may go with another, or a new tensor whose shape broadcasts with it."""
    names = tensors(scope)
    if ref is None:
        return rng.choice(names)
    same = [n for n in names if scope[n].shape == ref.shape]
    way = rng.random()
    if way < 0.5 and same:
        return rng.choice(same)
    if way < 0.8:
        return rng.choice(names)
    shape = tuple(ref.shape)
    shape = shape[rng.randint(0, len(shape)) :] if rng.random() < 0.3 else shape
    shape = tuple(1 if rng.random() < 0.2 else s for s in shape)
    dtype = str(ref.dtype)[6:] if rng.random() < 0.6 else rng.choice(DTYPES)
    return tensor(rng, shape, dtype) if ref.numel() <= 40 else rng.choice(names)


def index(rng: Random, ref: Any) -> str:
    """An integer tensor whose elements are places of a small dimension."""
    ref = torch.zeros(3) if ref is None or ref.numel() > 40 else ref
    small = min([s for s in ref.shape if s > 0] or [1])  # `as_strided_` takes sizes below 0
    shape = tuple(ref.shape) if rng.random() < 0.6 else (rng.randint(0, 3),)
    one = torch.Size(shape).numel()
    values = [rng.randint(0, small - 1) for _ in range(one)]
    dtype = "" if rng.random() < 0.8 else ".to(torch.int32)"
    return f"torch.tensor({values}, dtype=torch.int64).reshape{shape}{dtype}"


def dim(rng: Random, ref: Any) -> int:
    n = ref.dim() if ref is not None else 2
    if rng.random() < 0.05:
        return rng.choice((n, -n - 1))
    return rng.randint(-n, max(n - 1, 0)) if n else rng.choice((0, -1))


def dims(rng: Random, ref: Any, some: bool = False) -> str:
    n = ref.dim() if ref is not None else 2
    count = rng.randint(1 if some else 0, max(n, 1))
    chosen = [d - n if rng.random() < 0.3 else d for d in rng.sample(range(max(n, 1)), count)]
    return str(tuple(chosen) if rng.random() < 0.6 else chosen)


def size(rng: Random, ref: Any) -> str:
    """A size to view or expand to: often one with as many elements."""
    if ref is None:
        return str(tuple(rng.randint(0, 3) for _ in range(rng.randint(0, 3))))
    n, way = ref.numel(), rng.random()
    divisors = [d for d in range(1, n + 1) if n % d == 0] or [0]
    first = rng.choice(divisors)
    if way < 0.25:
        return "(-1,)"
    if way < 0.6:
        return str((first, n // first if first else 0))
    if way < 0.7:
        return str((first, -1))
    if way < 0.9:
        return str((2,) * (rng.random() < 0.4) + tuple(3 if s == 1 else s for s in ref.shape))
    return str(tuple(ref.shape)[::-1])


def scalar(rng: Random) -> str:
    return rng.choice(
        ("2", "0", "1", "-1", "3", "0.5", "2.0", "-1.5", "0.0", "1e-3", "True", "2.5")
        + ("float('nan')", "float('inf')", "(1+2j)") * (rng.random() < 0.15)
    )


def value(rng: Random, a: Argument, s: Signature, scope: Scope, ref: Any) -> str:
    """An expression for one argument; ref is the tensor that the call is about."""
    kind, word = a.type.rstrip("?"), a.name
    if kind == "Tensor":
        if word in ("index", "indices", "target", "repeats") and rng.random() < 0.8:
            return index(rng, ref)
        if word in ("mask", "condition") and rng.random() < 0.8 and ref is not None:
            return tensor(rng, tuple(ref.shape), "bool") if ref.numel() <= 40 else "True"
        return like(rng, scope, ref)
    if kind in ("Tensor[]", "Tensor?[]"):
        same = [like(rng, scope, ref) for _ in range(rng.randint(1, 3))]
        return "[" + ", ".join(same) + "]" if rng.random() < 0.7 else f"({', '.join(same)},)"
    if kind == "Scalar":
        return scalar(rng)
    if kind.startswith("int["):
        if word in ("dim", "dims", "axis", "axes"):
            return dims(rng, ref, "?" not in a.type) if rng.random() < 0.8 else str(dim(rng, ref))
        if word in ("size", "shape", "sizes"):
            return size(rng, ref)
        if word in ("kernel_size", "stride", "output_size", "dilation"):
            return rng.choice(("1", "2", "(1, 2)", "(2, 1)", "[2, 2]", "(2,)", "(1, 1, 2)"))
        n = ref.dim() if ref is not None else 2
        return str(tuple(rng.randint(-1 if word == "shifts" else 0, 2) for _ in range(n)))
    if kind == "int":
        if "dim" in word or word in ("axis", "start_dim", "end_dim"):
            return str(dim(rng, ref))
        if word in ("index", "start", "offset", "diagonal"):
            return str(rng.randint(-2, 3))
        if word == "reduction":
            return rng.choice(("'mean'", "'sum'", "'none'"))
        return str(rng.choice((0, 1, 1, 2, 2, 3, -1)))
    if kind == "ScalarType":
        return f"torch.{rng.choice(FLOATS + INTS + ('bool', 'complex64', 'float32', 'float64'))}"
    if kind == "MemoryFormat":
        return rng.choice(
            ("torch.channels_last", "torch.contiguous_format", "torch.preserve_format")
        )
    if kind == "bool":
        return rng.choice(("True", "False"))
    if kind == "str":
        return rng.choice(WORDS.get(word, ("'mean'",)))
    if kind == "float":
        return rng.choice(("0.5", "1.0", "0.1", "2.0", "0", "1e-5"))
    if kind.startswith(("float[", "bool[")):
        n = rng.randint(1, 3)
        one = ("0.5", "0.1") if kind.startswith("f") else ("True", "False")
        return "[" + ", ".join(rng.choice(one) for _ in range(n)) + "]"
    return "None"  # layouts, devices, generators: their defaults


def drawn(rng: Random, s: Signature, scope: Scope, ref_name: str | None) -> tuple[str, list[str]]:
    """What a call is about (the text of its first tensor) and its other arguments as written."""
    ref = scope[ref_name] if ref_name else None
    first, words, position = "", list[str](), True
    for i, a in enumerate(s.arguments):
        if i == 0 and a.type == "Tensor" and ref_name:
            first = ref_name
            continue
        quiet = a.type.rstrip("?") in ("Layout", "Device", "Generator") or a.name == "pin_memory"
        if a.default is not None and (quiet or rng.random() < 0.55):
            position = False
            continue
        if a.default is None and a.type.endswith("?") and rng.random() < 0.3:
            words.append("None" if position else f"{a.name}=None")
            continue
        text = value(rng, a, s, scope, ref)
        if a.keyword_only or not position or rng.random() < 0.2:
            position = False
            name = a.name if rng.random() < 0.85 else ALIASES.get(a.name, a.name)
            words.append(f"{'input' if name == 'self' else name}={text}")
        else:
            words.append(text)
    return first, words
