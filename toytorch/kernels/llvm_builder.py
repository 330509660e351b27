"""What the kernels of convolution and pooling share: building a function, and keeping its code."""

from __future__ import annotations

import ctypes
import functools
import threading
from pathlib import Path
from typing import Any

from toytorch.loops.runtime import cache, jit

_lock = threading.Lock()
addresses: dict[str, int] = {}  # of the kernels in use


class Emitter:
    """An LLVM function run_NAME in a module of its own, and loops in it."""

    def __init__(self, ir: Any, name: str, kind: str, arguments: str) -> None:
        """arguments: for each a letter, "w" a word, "p" an address of numbers of the type, "i" an
        address of words, "b" one of bytes."""
        self.ir = ir
        self.real = ir.FloatType() if kind == "f" else ir.DoubleType()
        self.size, self.bytes = ir.IntType(64), 4 if kind == "f" else 8
        types = {
            "w": self.size,
            "p": self.real.as_pointer(),
            "i": self.size.as_pointer(),
            "b": ir.IntType(8).as_pointer(),
        }
        self.module = ir.Module(name)
        self.function = ir.Function(
            self.module,
            ir.FunctionType(ir.VoidType(), [types[a] for a in arguments]),
            f"run_{name}",
        )
        self.function.attributes.add("nounwind")
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))

    def loop(self, start: Any, end: Any, step: Any, body: Any, carried: Any = ()) -> list[Any]:
        """for i in range(start, end, step): carried = body(i, *carried)."""
        b, before = self.b, self.b.block
        head, turn, after = (self.function.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(self.size)
        i.add_incoming(start, before)
        phis = [b.phi(v.type) for v in carried]
        for phi, v in zip(phis, carried):
            phi.add_incoming(v, before)
        b.cbranch(b.icmp_signed("<", i, end), turn, after)
        b.position_at_end(turn)
        results = body(i, *phis) or []
        i.add_incoming(b.add(i, step, flags=["nsw"]), b.block)
        for phi, v in zip(phis, results):
            phi.add_incoming(v, b.block)
        b.branch(head)
        b.position_at_end(after)
        return phis

    def count(self, end: Any, body: Any, step: int = 1, carried: Any = ()) -> list[Any]:
        """for i in range(0, end, step): carried = body(i, *carried)."""
        return self.loop(self.size(0), end, self.size(step), body, carried)

    def smaller(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def at(self, place: Any, index: Any, kind: Any) -> Any:
        """The address of a value of a kind, `index` elements after a place."""
        return self.b.bitcast(self.b.gep(place, [index]), kind.as_pointer())

    def spread(self, number: Any, kind: Any) -> Any:
        """A number in all places of a vector."""
        b, ir = self.b, self.ir
        none = ir.Constant(kind, ir.Undefined)
        one = b.insert_element(none, number, ir.IntType(32)(0))
        return b.shuffle_vector(
            one, none, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
        )


def linked(what: str, build: Any, arguments: list[Any]) -> Any:
    """A ctypes function of run_NAME, from the cache of kernels or from build(name)'s LLVM text."""
    return ctypes.CFUNCTYPE(None, *arguments)(address(what, build, "run"))


def address(what: str, build: Any, part: str) -> int:
    """The address of PART_NAME in build(name)'s LLVM text, or in the code that is kept of it."""
    with _lock:
        if what not in addresses:
            target = jit.target()
            name = "c" + cache.digest(what, target.words, source_digest())
            code = cache.read(name)
            if code is None:
                code = target.compile(build(name))
                cache.write(name, code)
            addresses[what] = target.link(code, name, (part,))[part]
        return addresses[what]


@functools.cache
def source_digest() -> str:
    """A digest of the files that write these kernels: other code makes other kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return cache.digest(*(p.read_text("utf-8") for p in files))
