"""The builder through which all LLVM text is written: one function of a module, and loops in it.

    >>> f = Builder("twice", "word", ["word"])
    >>> _ = f.b.ret(f.b.shl(f.function.args[0], f.word(1)))
    >>> print(str(f.module).splitlines()[4])
    define i64 @"twice"(i64 %".1") nounwind

Types are named: "word" is 64 bits, "half" 32, "byte", "float", "double" and "void"; "float*" is an
address of floats. What follows from a name's type is a method: `get` and `put` read and write
words of a table, `load` and `store` values of any type at any alignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache as once
from typing import TYPE_CHECKING, Any

from toytorch.facts.hints import Fn

if TYPE_CHECKING:
    from llvmlite.ir import Module, Type, Value


BLOCK = 8  # rows and columns of a block that is transposed in registers


@once
def ir() -> Any:
    """The module llvmlite.ir, for whoever writes code.

    It is imported here and nowhere else, when the first kernel is written: it takes 40 ms, and may
    not be installed.
    """
    import llvmlite.ir  # an optional package

    return llvmlite.ir


class Builder:
    """A function of a module, with a place where instructions are added (`b`, an IRBuilder).

    symbol     its name
    result     the type of what it returns
    arguments  the types of its arguments
    module     where it goes; without one, into a module of its own
    """

    def __init__(
        self,
        symbol: str,
        result: Type | str,
        arguments: Sequence[Any],
        module: Module | None = None,
    ) -> None:
        self.ir = ir()
        self.word, self.half = self.ir.IntType(64), self.ir.IntType(32)
        self.module = self.ir.Module(symbol) if module is None else module
        types = [self.type(a) for a in arguments]
        signature = self.ir.FunctionType(self.type(result), types)
        self.function = self.ir.Function(self.module, signature, symbol)
        self.function.attributes.add("nounwind")
        self.b = self.ir.IRBuilder(self.block("entry"))

    # -- types and blocks -------------------------------------------------------------------------

    def type(self, name: Type | str) -> Any:
        """The LLVM type of a name; a type stays as it is."""
        if not isinstance(name, str):
            return name
        if name.endswith("*"):
            return self.type(name[:-1]).as_pointer()
        made = {"float": self.ir.FloatType, "double": self.ir.DoubleType, "void": self.ir.VoidType}
        if name in made:
            return made[name]()
        return self.ir.IntType({"word": 64, "half": 32, "byte": 8, "bit": 1}[name])

    def block(self, name: str = "") -> Any:
        """A new basic block of the function."""
        return self.function.append_basic_block(name)

    def alloca(self, type: Type | str, count: int | None = None) -> Any:
        """Memory of the call's own, reserved once at its beginning wherever this is written."""
        with self.b.goto_block(self.function.entry_basic_block):
            return self.b.alloca(self.type(type), size=count)

    def var(self, value: int | Value) -> Any:
        """A variable word with a first value; `b.load` and `b.store` read and write it."""
        place = self.alloca(self.word)
        self.b.store(self.index(value), place)
        return place

    # -- words of tables --------------------------------------------------------------------------

    def index(self, k: int | Value) -> Any:
        """A Python number as a word; a word stays as it is."""
        return self.word(k) if isinstance(k, int) else k

    def get(self, base: Value, k: int | Value) -> Any:
        """base[k]"""
        return self.b.load(self.b.gep(base, [self.index(k)]))

    def put(self, base: Value, k: int | Value, value: Value) -> None:
        """base[k] = value"""
        self.b.store(value, self.b.gep(base, [self.index(k)]))

    def pointer(self, address: Value, type: Type | str = "word") -> Any:
        """A word that is an address, as a pointer."""
        return self.b.inttoptr(address, self.type(type).as_pointer())

    def at(self, address: Value, k: int, type: Type | str = "word") -> Any:
        """The k-th value in memory that begins at an address in a word."""
        return self.get(self.pointer(address, type), k)

    def call(self, address: Value, result: Type | str, *args: Value) -> Any:
        """Calls the function at an address in a word."""
        type = self.ir.FunctionType(self.type(result), [a.type for a in args])
        return self.b.call(self.pointer(address, type), args)

    # -- values of any type in memory -------------------------------------------------------------

    def place(self, base: Value, index: int | Value, type: Type | str) -> Any:
        """The address of a value of a type, `index` elements after a pointer."""
        return self.b.bitcast(self.b.gep(base, [self.index(index)]), self.type(type).as_pointer())

    def load(self, base: Value, index: int | Value, type: Type | str, align: int) -> Any:
        """The value of a type, `index` elements after a pointer."""
        return self.b.load(self.place(base, index, type), align=align)

    def store(self, value: Value, base: Value, index: int | Value, align: int) -> None:
        """Writes a value `index` elements after a pointer."""
        self.b.store(value, self.place(base, index, value.type), align=align)

    def smaller(self, x: Value, y: Value) -> Any:
        """The smaller of two words."""
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def spread(self, value: Value, vector: Any) -> Any:
        """A value in all places of a vector."""
        none = self.ir.Constant(vector, self.ir.Undefined)
        one = self.b.insert_element(none, value, self.half(0))
        places = self.ir.VectorType(self.half, vector.count)
        return self.b.shuffle_vector(one, none, self.ir.Constant(places, [0] * vector.count))

    def transposed(self, rows: list[Any]) -> list[Any]:
        """The columns of a square block of values, from the vectors of its rows, 2ᵏ of them.

        k rounds of exchanges: each swaps the parts off the diagonal of blocks of 2, 4, 8 …
        """
        rows, size = list(rows), len(rows)
        mask = self.ir.VectorType(self.half, size)
        step = 1
        while step < size:
            for k in range(size):
                if not k & step:
                    x, y = rows[k], rows[k + step]
                    first = [n if not n & step else n - step + size for n in range(size)]
                    second = [n + step if not n & step else n + size for n in range(size)]
                    rows[k] = self.b.shuffle_vector(x, y, mask(first))
                    rows[k + step] = self.b.shuffle_vector(x, y, mask(second))
            step *= 2
        return rows

    # -- loops ------------------------------------------------------------------------------------

    def loop(
        self,
        start: int | Value,
        end: Value,
        step: int | Value,
        body: Fn,
        loop_carried: Sequence[Any] = (),
    ) -> list[Any]:
        """for i in range(start, end, step): loop_carried = body(i, *loop_carried).

        Loop-carried values are those that one iteration hands to the next; the last ones are returned.
        """
        b = self.b
        start, step, before = self.index(start), self.index(step), b.block
        head, inside, after = (self.block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(self.word)
        i.add_incoming(start, before)
        phis = [b.phi(v.type) for v in loop_carried]
        for phi, v in zip(phis, loop_carried):
            phi.add_incoming(v, before)
        b.cbranch(b.icmp_signed("<", i, self.index(end)), inside, after)
        b.position_at_end(inside)
        results = body(i, *phis) or []
        i.add_incoming(b.add(i, step, flags=["nsw"]), b.block)
        for phi, v in zip(phis, results):
            phi.add_incoming(v, b.block)
        b.branch(head)
        b.position_at_end(after)
        return phis

    def count(
        self, end: Value, body: Fn, step: int = 1, loop_carried: Sequence[Any] = ()
    ) -> list[Any]:
        """for i in range(0, end, step): loop_carried = body(i, *loop_carried)."""
        return self.loop(0, end, step, body, loop_carried)

    @contextmanager
    def counting(self, end: Value) -> Iterator[Any]:
        """for i in range(end), whose body is the `with` statement's."""
        b, before = self.b, self.b.block
        head, inside, after = (self.block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(self.word)
        i.add_incoming(self.word(0), before)
        b.cbranch(b.icmp_signed("<", i, end), inside, after)
        b.position_at_end(inside)
        yield i
        i.add_incoming(b.add(i, self.word(1), flags=["nsw"]), b.block)
        b.branch(head)
        b.position_at_end(after)
