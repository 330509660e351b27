"""The tree of a source as it stands there: nothing has a type or a meaning yet."""

from __future__ import annotations

from dataclasses import field

from toytorch.cuda.emulator.errors import At
from toytorch.cuda.emulator.record import Record


class Node(Record):
    """A piece of the source, and where it begins (for an operator: where its sign stands)."""

    at: At


# types as they are written


class TypeName(Node):
    """`const float* __restrict__`: a name, what is const, and how many stars.

    stars  for each `*`, whether what it points to is const
    fixed  whether the pointer itself is const (`float* const p`)
    """

    name: str
    const: bool = False
    stars: tuple[bool, ...] = ()
    reference: bool = False
    fixed: bool = False

    @property
    def unchanging(self) -> bool:
        """Whether a variable of this type is const."""
        return self.fixed if self.stars else self.const


# expressions


class Number(Node):
    text: str


class Text(Node):
    """A string, as `printf` and `assert` have it."""

    value: str


class Name(Node):
    name: str
    arguments: list[TypeName | Expression] = field(default_factory=list)  # of a template


class Unary(Node):
    """`-x`, `!x`, `*p`, `&x`, `++x`; `x++` is "p++"."""

    sign: str
    operand: Expression


class Binary(Node):
    """Arithmetic, comparisons, `&&`, `||` and the comma."""

    sign: str
    left: Expression
    right: Expression


class Assign(Node):
    """`place = value`, or `place += value` with the sign "+"."""

    sign: str
    place: Expression
    value: Expression


class Conditional(Node):
    condition: Expression
    yes: Expression
    no: Expression


class Call(Node):
    function: Name
    arguments: list[Expression]


class Index(Node):
    base: Expression
    index: Expression


class Member(Node):
    """`v.x`, or `p->x`."""

    base: Expression
    name: str
    arrow: bool = False


class Cast(Node):
    type: TypeName
    operand: Expression


class SizeOf(Node):
    operand: TypeName | Expression


class Braces(Node):
    """`{1, 2, 3}`, which arrays are initialised with."""

    items: list[Expression]


Expression = (
    Number | Text | Name | Unary | Binary | Assign | Conditional | Call | Index | Member | Cast
    | SizeOf | Braces
)  # fmt: skip


# statements


class Declaration(Node):
    """One variable. `lengths` are the brackets behind its name; None is an empty one."""

    type: TypeName
    name: str
    lengths: list[Expression | None]
    value: Expression | None
    space: str = ""  # "shared", "constant", or ""
    extern: bool = False


class Declarations(Node):
    """`int i = 0, *p;`"""

    items: list[Declaration]


class Evaluate(Node):
    expression: Expression


class If(Node):
    condition: Expression
    yes: Statement
    no: Statement | None


class Loop(Node):
    """`for`, `while` and `do`; the last tests behind its first turn."""

    start: Statement | None
    condition: Expression | None
    step: Expression | None
    body: Statement
    test_first: bool = True


class Label(Node):
    """`case 3:`, or `default:` with None."""

    value: Expression | None


class Switch(Node):
    value: Expression
    items: list[Statement | Label]


class Jump(Node):
    """`break` or `continue`."""

    word: str


class Return(Node):
    value: Expression | None


class Block(Node):
    items: list[Statement]


Statement = Declarations | Evaluate | If | Loop | Switch | Jump | Return | Block


# the file


class Parameter(Node):
    type: TypeName
    name: str


class TemplateParameter(Node):
    """`typename T`, or `int N`, whose type is then given; a default may follow."""

    name: str
    type: TypeName | None
    default: TypeName | Expression | None = None


class Function(Node):
    name: str
    is_kernel: bool
    result: TypeName
    parameters: list[Parameter]
    body: Block | None  # None: only declared
    template: list[TemplateParameter] = field(default_factory=list)


class Alias(Node):
    """`typedef float real;` or `using real = float;`"""

    name: str
    type: TypeName


class File(Record):
    functions: list[Function]
    variables: list[Declaration]
    aliases: list[Alias]
