"""Draws random programs.

A program is written line by line, and each line run in PyTorch as it is, so that dims, sizes and
indices fit (mostly). What depends on the order of memory accesses, or on which PyTorch contradicts
itself, is not drawn; the comments say what and why.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np

from tests.autograd.program_steps import FAMILIES, POINTWISE, VIEWS, WRITES
from tests.autograd.programs import LACKING, Line, Run, execute
from tests.oracle import ORACLE, attempt, dtype_name, torch

# Of half types, whole sums are rounded differently.
DTYPES = ["float64"] * 9 + ["float32"] * 3 + ["complex128"] * 2 + ["int64"] * 3 + [
    "bool", "int32", "uint8", "complex64"]  # fmt: skip
LEAF_SHAPES = [(2, 3), (3,), (2, 1), (), (1, 3), (3, 3), (2, 3, 2), (0, 3), (1,), (2, 2, 2), (4,)]
RELAID = [s for s in WRITES if re.search("(t|squeeze|transpose)_\\(", s)]
LIMIT = 100.0  # no value of a program is larger
SIZE = 96  # nor has a tensor more elements


class Draw:
    """Writes a program: `env` holds PyTorch's tensors so far, `of` the tensor drawn last."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.run = Run(ORACLE)
        self.lines: list[Line] = []
        self.count = 0

    # -- tokens ---------------------------------------------------------------------------

    def pick(self, wanted: Any = lambda x: True) -> str:
        """The name of a tensor, the younger the likelier."""
        pool = self.run.tensors()
        names = [k for k, v in pool.items() if wanted(v)]
        if not names:
            raise LookupError
        back = min(int(self.rng.expovariate(0.35)), len(names) - 1)
        return names[-1 - back]

    def token(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self.memo:
            self.memo[name] = getattr(self, "_" + name)()
        return self.memo[name]

    def _tensor(self, wanted: Any = lambda x: True) -> str:
        name = self.pick(wanted)
        self.of, self.of_name = self.run.names[name], name
        return name

    def _a(self) -> str:
        real = self.rng.random() < 0.7
        try:
            return self._tensor(lambda x: not (real and x.is_complex()))
        except LookupError:
            return self._tensor()

    def _f(self) -> str:
        return self._tensor(lambda x: x.is_floating_point())

    def _n(self) -> str:
        return self._tensor(lambda x: not x.is_floating_point() and not x.is_complex())

    def _square(self) -> str:
        return self._tensor(
            lambda x: x.ndim > 1 and x.shape[-1] == x.shape[-2] and x.is_floating_point()
        )

    def _regular(self) -> str:
        """Whether a singular matrix is refused is decided by rounding."""
        name = self.memo.get("square") or self._square()
        self.memo["square"] = name
        return f"({name} + 3 * torch.eye({name}.shape[-1], dtype={self.of.dtype}))"

    def _C(self) -> str:
        return "memory_format=torch.contiguous_format"

    def _b(self) -> str:
        shape = self.of.shape
        any_ = self.rng.random() > 0.95
        return self.pick(
            lambda x: any_ or attempt(torch.broadcast_shapes, shape, x.shape)[1] is None
        )

    _c = _b

    def _B(self) -> str:
        """Something to write into <a>: what lies in its memory is copied first."""
        any_ = self.rng.random() > 0.95

        def fits(x: Any) -> bool:
            exact = not (self.of.dtype.is_floating_point or self.of.is_complex())
            if x.requires_grad and (exact or x.is_complex() > self.of.is_complex()):
                return False  # a tensor that holds no gradients would ask for them
            if any_:
                return True
            shape, refused = attempt(torch.broadcast_shapes, self.of.shape, x.shape)
            return refused is None and shape == self.of.shape

        name = self.pick(fits)
        return name + ".clone()" if self.together(self.run.names[name]) else name

    def _out(self) -> str:
        """Where a result goes: a fresh tensor, or one of the result's shape.

        PyTorch discourages all others (they are resized, and read memory that is not theirs).
        """
        call = re.sub(r"<(\w+)>", self.token, self.step.replace(", out=<out>", ""))
        value = attempt(eval, call, self.run.names)[0]
        value = self.of if value is None else value
        other = self.step.startswith(("torch.add", "torch.mul", "torch.sin", "torch.where"))
        free = [
            k
            for k, v in self.run.tensors().items()
            if v.shape == value.shape
            and (other or v.dtype is value.dtype)
            and not self.among(v, call)
        ]
        if free and self.rng.random() < 0.7:
            return self.rng.choice(free)
        return f"torch.empty(0, dtype={value.dtype})"

    def _d(self) -> str:
        n = max(self.of.ndim, 1)
        if self.rng.random() < 0.02 and self.of.numel():  # PyTorch looks at no dims of nothing
            return str(self.rng.choice([n, -n - 1]))
        self.dim = self.rng.randrange(n)
        return str(self.dim - n * self.rng.choice([0, 1]))

    def _e(self) -> str:
        n, here = max(self.of.ndim, 1), self.dim
        other = self.rng.choice([i for i in range(n) if i != here] or [0])
        return str(other - n * self.rng.choice([0, 1]))

    def _ds(self) -> str:
        n = self.of.ndim
        if self.rng.random() < 0.15:
            return self._d()
        dims = self.rng.sample(range(n), self.rng.randint(min(n, 1), n))
        return str(tuple(d - n * self.rng.choice([0, 1]) for d in dims))

    def _order(self) -> str:
        dims = list(range(self.of.ndim))
        self.rng.shuffle(dims)
        return str(tuple(dims))

    def size(self) -> int:
        return int(self.of.shape[self.dim]) if self.of.ndim else 1

    def _k(self) -> str:
        return str(self.rng.random() < 0.5)

    def _i(self) -> str:
        n = self.size() if "d" in self.memo else int(self.of.shape[0]) if self.of.ndim else 1
        return str(self.rng.randint(-n, n if self.rng.random() < 0.03 else max(n - 1, -n)))

    def _part(self) -> str:
        return str(self.rng.randint(min(1, self.size()), max(1, self.size())))

    def _sizes(self) -> str:
        first = self.rng.randint(0, self.size())
        return str([first, self.size() - first])

    def _num(self) -> str:
        return self.rng.choice(["2", "-1", "0.5", "-1.5", "True", "0", "3", "1j"] + ["0.25"] * 5)

    def _num1(self) -> str:
        return f"torch.tensor({self.rng.choice(['0.5', '2.0', '-1.0'])}, dtype={self.of.dtype})"

    def _t(self) -> str:
        return f"torch.{self.rng.choice(DTYPES)}"

    def _tf(self) -> str:
        return f"torch.{self.rng.choice(['float32', 'float64'])}"

    def _apart(self) -> str:
        steps = np.arange(self.of.numel()).reshape(tuple(self.of.shape))
        return self.literal(steps / 1e4, "float64")

    def indices(self, n: int, shape: tuple[int, ...]) -> Any:
        draw = np.array([self.rng.randrange(max(n, 1)) for _ in range(int(np.prod(shape)))], int)
        return draw.reshape(shape)

    def literal(self, values: Any, dtype: str = "") -> str:
        if not values.size:
            return f"torch.zeros({tuple(values.shape)}, dtype=torch.{dtype or 'int64'})"
        return f"torch.tensor({values.tolist()}{f', dtype=torch.{dtype}' if dtype else ''})"

    def _rows(self) -> str:
        n = self.size() if "d" in self.memo else int(self.of.shape[0]) if self.of.ndim else 1
        return self.literal(self.indices(n, (self.rng.randint(1, 3),)))

    def _rows1(self) -> str:
        n = self.size()
        return self.literal(np.array(self.rng.sample(range(n), min(n, 2)), int))

    def _ids(self) -> str:
        return self.literal(self.indices(self.size(), tuple(self.of.shape)))

    def _perm(self) -> str:
        ids = np.zeros(tuple(self.of.shape), int)
        if self.of.ndim and ids.size:
            order = list(range(self.size()))
            self.rng.shuffle(order)
            ids += np.expand_dims(order, [i for i in range(ids.ndim) if i != self.dim])
        return self.literal(ids)

    def _flat(self) -> str:
        return self.literal(self.indices(self.of.numel(), (2, 1)))

    def _flat1(self) -> str:
        n = self.of.numel()
        return self.literal(np.array(self.rng.sample(range(n), min(n, 2)), int))

    def _mask(self) -> str:
        shape = tuple(self.of.shape)
        bits = self.indices(2, shape[-1:] if self.rng.random() < 0.15 else shape).astype(bool)
        return self.literal(bits, "" if bits.size else "bool")

    def _like(self) -> str:
        return self.literal(self.values(tuple(self.of.shape)), "float64")

    def values(self, shape: tuple[int, ...]) -> Any:
        n = int(np.prod(shape))
        return np.array([(self.rng.randint(-150, 150) or 7) / 100 for _ in range(n)]).reshape(shape)

    def _shape(self) -> str:
        n, sizes = self.of.numel(), []
        while n > 1 and len(sizes) < 2 and self.rng.random() < 0.6:
            sizes.append(self.rng.choice([k for k in range(1, n + 1) if n % k == 0]))
            n //= sizes[-1]
        sizes.append(n if n == 0 or self.rng.random() < 0.5 else -1)
        self.rng.shuffle(sizes)
        return str(tuple(sizes))

    def _wide(self) -> str:
        sizes = [
            self.rng.choice([-1, 2]) if n == 1 else self.rng.choice([-1, n]) for n in self.of.shape
        ]
        return str(tuple([2] * (self.rng.random() < 0.4) + sizes))

    def _sum(self) -> str:
        return str(tuple(self.rng.choice([1, n]) for n in self.of.shape))

    def _reps(self) -> str:
        return str(tuple(self.rng.choice([1, 2]) for _ in self.of.shape))

    def _right(self) -> str:
        x = self.of
        inner = x.shape[-1] if x.ndim else 1
        fits = [
            k
            for k, v in self.run.tensors().items()
            if v.ndim and v.shape[max(v.ndim - 2, 0)] == inner and v.dtype is x.dtype
        ]
        name = self.rng.choice(fits) if fits else f"{self.of_name}.mT"
        own = fits and self.together(self.run.names[name])
        return name + ".clone()" if own else name

    def among(self, x: Any, text: str) -> bool:
        """Whether a tensor lies in the memory of one that a text names."""
        used = [self.run.names[n] for n in set(re.findall(r"\bv\d+\b", text))]
        home = x.untyped_storage().data_ptr()
        return any(t.untyped_storage().data_ptr() == home for t in used)

    def together(self, other: Any) -> bool:
        """Whether a tensor lies in the memory of the one drawn last."""
        return bool(other.untyped_storage().data_ptr() == self.of.untyped_storage().data_ptr())

    def _key(self) -> str:
        return self.key(advanced=True)

    def _basic(self) -> str:
        return self.key(advanced=False)

    def key(self, advanced: bool) -> str:
        """What may stand in brackets: numbers, slices, None, ..., lists, masks and tensors."""
        rng, parts, dims = self.rng, [], list(self.of.shape)
        dots = False
        length = 1 + int(rng.expovariate(0.9))
        for _ in range(min(length, len(dims) + 1)):
            more = ["list", "tensor", "matrix", "mask", "zero"]
            kind = rng.choice(["number", "slice", "slice", "none", "dots"] + more * advanced)
            if kind == "none":
                parts.append("None")
            elif kind == "dots" and not dots:
                parts.append("...")
                dots = True
                if dims:
                    del dims[: rng.randint(0, len(dims) - 1)]
            elif dims:
                n = dims.pop(0)
                parts.append(self.part_of_key(kind, n))
        return ", ".join(parts) or "..."

    def part_of_key(self, kind: str, n: int) -> str:
        rng = self.rng
        if kind == "number" and n:
            return str(rng.randint(-n, n - 1))
        if kind == "list" and n:
            return str([rng.randint(-n, n - 1) for _ in range(rng.choice([1, 2, 2]))])
        if kind == "tensor" and n:
            return self.literal(self.indices(n, (2,)))
        if kind == "matrix" and n:
            return self.literal(self.indices(n, (2, 1)))
        if kind == "zero" and n:
            return f"torch.tensor({rng.randrange(n)})"
        if kind == "mask" and n:
            return self.literal(self.indices(2, (n,)).astype(bool))
        return rng.choice([":", "1:", ":1", "::2", "-1:", ":-1", "0:2"])

    # -- lines ----------------------------------------------------------------------------

    def name(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def leaf(self, kind: str) -> None:
        rng, name = self.rng, self.name()
        values = self.values(rng.choice(LEAF_SHAPES))
        if "complex" in kind:
            values = values + 1j * self.values(values.shape)
        elif not kind.startswith(("float", "bfloat")):
            values = np.rint(values * 2) if kind != "uint8" else np.rint(abs(values) * 2)
            values = values.astype(bool if kind == "bool" else int)
        grad = ("float" in kind or "complex" in kind) and rng.random() < 0.8
        text = self.literal(values, kind)
        self.add(Line(f"{name} = {text}{'.requires_grad_()' * grad}", "leaf", (name,)))

    def add(self, line: Line) -> None:
        self.run.step(line)
        self.lines.append(line)

    def undo(self) -> None:
        self.lines.pop()
        self.run = execute(self.lines, ORACLE)

    def one(self) -> None:
        """Draws one more line, which stays if nothing speaks against it."""
        rng = self.rng
        family = rng.choices([f for f, _ in FAMILIES], [w for _, w in FAMILIES])[0]
        step = self.step = rng.choice(family)
        self.memo: dict[str, str] = {}
        self.dim = 0
        first = re.search(r"<([afn]|square|regular)>", step)
        self.first = first[1] if first else "b"
        self.memo[self.first] = getattr(self, "_" + (first[1] if first else "a"))()
        if "<d>" in step:
            self.memo["d"] = self._d()
        text = re.sub(r"<(\w+)>", self.token, step)
        if "index_fill" in step and not self.of.numel():
            return  # of nothing, PyTorch checks the index for some shapes only
        if "block_diag" in step and not all(
            self.run.names[n].numel() for n in re.findall(r"\bv\d+\b", text)
        ):
            return  # after an empty block, PyTorch takes gradients from a row too high
        off = "with torch.no_grad(): " * (rng.random() < (0.35 if "out=" in text else 0.08))
        if family is WRITES:
            self.write(Line(off + text, step))
        else:
            self.read(off, text, step, family)

    def write(self, line: Line) -> None:
        if len(self.run.tensors()) < 3 and line.text.startswith("del"):
            return
        a = self.memo.get("out") if "out=" in line.text else self.memo[self.first]
        target = self.run.names.get(a or "")
        target = target if isinstance(target, torch.Tensor) else None
        leaf = target is not None and attempt(lambda: target.is_leaf and target.requires_grad)[0]
        if leaf and "no_grad" not in line.text and self.rng.random() < 0.7:
            return  # the refusal to write into leaves would end most programs' writes
        if line.step in RELAID and (leaf or "no_grad" in line.text):
            return  # its gradient would have a shape that the graph does not know
        if "requires_grad_" in line.step and self.seen_elsewhere(target):
            return  # views that exist already notice it late, if at all
        shared = target is not None and overlapping(target)
        if shared and "put_" in line.step:
            return
        self.add(line)
        if self.lacking() or not self.sane() or (shared and not self.run.fates[-1]):
            self.undo()  # a write to a place that is several elements depends on the order

    def loose(self, text: str, pointwise: bool) -> bool:
        """Whether the layout of a fresh result is PyTorch's secret.

        Pointwise ops keep the layout of operands that are all alike; what a reduction or a sort
        makes of transposed operands differs from kernel to kernel.
        """
        used = [self.run.names[n] for n in set(re.findall(r"\bv\d+\b", text))]
        if all(x.stride() == torch.empty(x.shape).stride() for x in used):
            return False
        alike = len({(x.shape, x.stride()) for x in used}) == 1
        wide = all(x.dtype.is_floating_point and x.itemsize > 2 for x in used)
        return not (pointwise and alike and wide and not overlapping(used[0]))

    def seen_elsewhere(self, x: Any) -> bool:
        """Whether another tensor of the program lies in the memory of x."""
        home = x.untyped_storage().data_ptr()
        pool = self.run.tensors().values()
        return sum(t.untyped_storage().data_ptr() == home for t in pool) > 1

    def read(self, off: str, text: str, step: str, family: list[str]) -> None:
        value, failure = attempt(eval, text, self.run.names)
        parts = list(value) if isinstance(value, (tuple, list)) else [value]
        if failure is None and not all(isinstance(p, torch.Tensor) for p in parts):
            return
        if failure is not None and self.rng.random() < 0.6:
            return  # most refusals say little
        keep = parts[:3]
        if failure is None and not (keep and all(sane(p) for p in keep)):
            return
        names = tuple(self.name() for _ in keep) if failure is None else ("_",)
        cut = f"[:{len(keep)}]" if len(parts) > len(keep) else ""
        comma = "," if isinstance(value, (tuple, list)) and len(keep) == 1 and not cut else ""
        fresh = failure is None and family is not VIEWS and all(p._base is None for p in parts)
        if fresh and self.loose(text, family is POINTWISE):
            if len(parts) > 1:
                return
            text = f"({text}).contiguous()"
        if len(parts) > len(keep):
            text = f"({text}){cut}"
        self.add(Line(f"{off}{', '.join(names)}{comma} = {text}", step, names))
        if self.lacking():
            self.undo()

    def lacking(self) -> bool:
        """Whether PyTorch merely lacks a kernel for the last line."""
        return any(words in str(self.run.errors[-1]) for words in LACKING)

    def sane(self) -> bool:
        return all(sane(x) for x in self.run.tensors().values())


def overlapping(x: Any) -> bool:
    """Whether two elements of x may be one place in memory."""
    if not x.numel():
        return False
    order = sorted((s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1)
    reach = 0
    for stride, n in order:
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def sane(x: Any) -> bool:
    """Small, finite, of a type that both sides have."""
    if x.numel() > SIZE or x.ndim > 5 or dtype_name(x.dtype) in ("complex32", "float16"):
        return False
    if not x.numel():
        return True
    wide = x.detach().to(torch.complex128 if x.is_complex() else torch.float64)
    return bool(wide.abs().max() < LIMIT)


def draw(seed: int) -> list[Line]:
    """The program of a seed: two to four leaves, three to twelve steps."""
    d = Draw(seed)
    for i in range(d.rng.randint(2, 4)):
        d.leaf(d.rng.choice(DTYPES) if i else "float64")
    length = len(d.lines) + d.rng.randint(3, 12)
    for _ in range(60):
        if len(d.lines) >= length:
            break
        try:
            d.one()
        except LookupError:
            continue  # there is no tensor of the kind that the step asks for
    return d.lines
