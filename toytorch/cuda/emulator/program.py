"""A checked kernel: every expression has its type, every conversion stands there as a node."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from toytorch.cuda.emulator.errors import At
from toytorch.cuda.emulator.record import Record
from toytorch.cuda.emulator.types import Type


class Expr(Record):
    """An expression. `at` is the place in the source that reports name."""

    type: Type
    at: At


class Constant(Expr):
    value: Any  # a NumPy scalar of the type


class Text(Expr):
    value: str


class Special(Expr):
    """`threadIdx.x` and its kin: axis 0, 1 or 2."""

    name: str
    axis: int


class Read(Expr):
    """The value of a variable in a register."""

    slot: int
    name: str


class Base(Expr):
    """The address of a memory: of an array, or of a variable whose address is taken."""

    memory: int


class Offset(Expr):
    """An address plus a number of elements of `size` bytes each."""

    pointer: Expr
    index: Expr
    size: int


class Load(Expr):
    pointer: Expr


class Component(Expr):
    """`v.y` of a vector that is no place in memory."""

    vector: Expr
    index: int


class MakeVector(Expr):
    parts: list[Expr]


class Convert(Expr):
    value: Expr


class Unary(Expr):
    sign: str
    operand: Expr


class Binary(Expr):
    """Both sides have one type; of shifts, the left one has the result's."""

    sign: str
    left: Expr
    right: Expr


class Logic(Expr):
    """`&&` or `||`: the right side is for the threads that need it."""

    sign: str
    left: Expr
    right: Expr


class Select(Expr):
    """`condition ? yes : no`."""

    condition: Expr
    yes: Expr
    no: Expr


class Comma(Expr):
    first: Expr
    second: Expr


# places that can be written to


class Register(Record):
    slot: int
    type: Type
    part: int | None = None  # one member of a vector
    const: bool = False


class Cell(Record):
    pointer: Expr
    type: Type
    const: bool = False


Place = Register | Cell


class Assign(Expr):
    """`place = value`, or `place = place sign value` computed in the type `within`.

    gives_old  whether the value of the expression is what the place held before (`x++`)
    """

    place: Place
    value: Expr
    sign: str = ""
    within: Type | None = None
    gives_old: bool = False


# calls


class Invoke(Expr):
    """A call of a `__device__` function."""

    function: Function
    arguments: list[Expr]


class Math(Expr):
    """A function of numbers, by its name in `functions.TABLE`."""

    name: str
    arguments: list[Expr]


class Shuffle(Expr):
    kind: str  # "sync", "up", "down", "xor"
    mask: Expr
    value: Expr
    lane: Expr
    width: Expr


class Vote(Expr):
    kind: str  # "ballot", "any", "all", "active"
    mask: Expr | None
    predicate: Expr | None


class Atomic(Expr):
    """`used` says whether anyone reads the old value."""

    kind: str
    pointer: Expr
    arguments: list[Expr]
    used: bool = True


class Barrier(Expr):
    """`__syncthreads()`, or `__syncwarp(mask)`."""

    mask: Expr | None


class Print(Expr):
    format: str
    arguments: list[Expr]


class Assertion(Expr):
    condition: Expr


# statements


class Stmt(Record):
    at: At


class Declare(Stmt):
    """A variable in a register; without a value it holds nothing yet."""

    slot: int
    type: Type
    value: Expr | None


class Fresh(Stmt):
    """A local array or a variable in memory begins its life: what it held before is gone.

    values  (place, value) of its initialiser
    zeros   whether it has one: elements that it does not name are 0
    """

    memory: int
    values: list[tuple[Cell, Expr]]
    zeros: bool = False


class Evaluate(Stmt):
    value: Expr


class If(Stmt):
    condition: Expr
    yes: Stmt
    no: Stmt | None


class Loop(Stmt):
    start: Stmt | None
    condition: Expr | None
    step: Expr | None
    body: Stmt
    test_first: bool


class Switch(Stmt):
    """`items` are labels (a position in `cases`, or None for default) and statements in order."""

    value: Expr
    cases: list[Any]
    items: list[int | Stmt | None]


class Jump(Stmt):
    word: str


class Return(Stmt):
    value: Expr | None


class Block(Stmt):
    items: list[Stmt]


# what belongs to a kernel


class Memory(Record):
    """A variable in memory that the source declares.

    space   "shared", "local" or "constant"
    type    an array, or the type of a variable whose address is taken; an array of length 0 is
            `extern __shared__`, whose size the launch gives
    values  of constant memory
    """

    name: str
    space: str
    type: Type
    at: At
    values: list[Any] = field(default_factory=list)

    @property
    def dynamic(self) -> bool:
        """Whether the launch gives the size."""
        return self.type.size == 0


class Function(Record):
    """A function for one choice of its template's arguments."""

    name: str
    at: At
    result: Type
    parameters: list[tuple[str, Type]] = field(default_factory=list)
    slots: int = 0  # of variables in registers; the parameters have the first ones
    stored: list[tuple[int, int]] = field(default_factory=list)  # (slot, memory) of parameters
    body: Block | None = None


class Program(Record):
    """A kernel and what it needs."""

    kernel: Function
    memories: list[Memory]
