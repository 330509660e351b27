"""The preprocessor: `#define`, `#if`, and what may be passed over."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator.errors import At, CompileError
from toytorch.cuda.emulator.lexer import Token, tokens_of
from toytorch.cuda.emulator.parse_expressions import ExpressionParser

# What these declare is built in here.
HEADERS = {
    "cuda_fp16.h", "cuda_runtime.h", "math.h", "cmath", "stdio.h", "cstdio", "assert.h", "cassert",
    "stdint.h", "cstdint", "float.h", "cfloat", "math_constants.h", "limits.h",
}  # fmt: skip

SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "&": operator.and_,
    "|": operator.or_, "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Macro:
    """A name and what stands for it. `parameters` is None for a macro without parentheses."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


def expanded(text: str, defines: Mapping[str, str] | None = None) -> list[Token]:
    """The tokens of a source after its directives; expanded tokens stand where the macro was used.

    >>> print(*(t.text for t in expanded("#define SQ(x) ((x) * (x))\\nSQ(a + 1)")))
    ( ( a + 1 ) * ( a + 1 ) )
    """
    return list(_Preprocessor(defines or {}).run(list(tokens_of(text))))


class _Preprocessor:
    def __init__(self, defines: Mapping[str, str]) -> None:
        self.macros = {
            name: Macro(name, None, tuple(tokens_of(value))[:-1]) for name, value in defines.items()
        }
        # for each `#if` around: whether it is taken, whether any part of it was, and where it is
        self.open: list[tuple[bool, bool, At]] = []

    def run(self, tokens: list[Token]) -> Iterator[Token]:
        at, row, pending = 0, 0, list[Token]()
        while at < len(tokens):
            token = tokens[at]
            if token.text == "#" and token.row != row:  # the first of its row: a directive
                yield from self.expand(pending)
                pending = []
                end = at
                while tokens[end].kind != "end" and tokens[end].row == token.row:
                    end += 1
                self.directive(token, tokens[at + 1 : end])
                at = end
                continue
            row = token.row
            if token.kind == "end" and self.open:
                raise CompileError("this has no #endif", self.open[-1][2])
            if self.live:
                pending.append(token)
            at += 1
        yield from self.expand(pending)

    @property
    def live(self) -> bool:
        """Whether what comes now is compiled."""
        return all(taken for taken, _, _ in self.open)

    # directives

    def directive(self, sign: Token, words: list[Token]) -> None:
        if not words:
            return
        what, rest = words[0].text, words[1:]
        if what in ("if", "ifdef", "ifndef"):
            if what == "if":
                taken = self.live and self.holds(words[0], rest)
            else:
                taken = (self.name_in(words[0], rest) in self.macros) == (what == "ifdef")
            self.open.append((taken, taken, sign.at))
        elif what in ("elif", "else", "endif"):
            if not self.open:
                raise CompileError(f"#{what} without #if", sign.at)
            _, before, at = self.open.pop()
            if what == "else":
                self.open.append((not before, True, at))
            elif what == "elif":
                taken = not before and self.live and self.holds(words[0], rest)
                self.open.append((taken, before or taken, at))
        elif not self.live:
            return
        elif what == "define":
            self.define(words[0], rest)
        elif what == "undef":
            self.macros.pop(self.name_in(words[0], rest), None)
        elif what == "include":
            header = "".join(word.text for word in rest).strip('<>"')
            if header not in HEADERS:
                raise CompileError(f"cannot include {header!r}: there are no files here", sign.at)
        elif what != "pragma":  # `#pragma unroll` changes speed, not results
            raise CompileError(f"#{what} is not supported", sign.at)

    def holds(self, what: Token, words: list[Token]) -> bool:
        """Whether the condition of an `#if` is other than 0."""
        known: list[Token] = []
        at = 0
        while at < len(words):  # `defined(NAME)` is asked before macros are replaced
            word = words[at]
            at += 1
            if word.text == "defined":
                behind = [w for w in words[at : at + 3] if w.text not in "()"][:1]
                at += 3 if words[at : at + 1] and words[at].text == "(" else 1
                truth = bool(behind) and behind[0].text in self.macros
                word = replace(word, kind="number", text=str(int(truth)))
            known.append(word)
        tokens = [*self.expand(known), Token("end", "", what.at, 0)]
        parser = ExpressionParser(tokens)
        tree = parser.conditional()
        if parser.token.kind != "end":
            raise CompileError("this is no condition", parser.token.at)
        return constant(tree) != 0

    def name_in(self, what: Token, rest: list[Token]) -> str:
        if not rest or rest[0].kind != "name":
            raise CompileError(f"#{what.text} needs a name", what.at)
        return rest[0].text

    def define(self, what: Token, rest: list[Token]) -> None:
        name, body = self.name_in(what, rest), rest[1:]
        parameters = None
        glued = body and body[0].text == "(" and body[0].at[1] == rest[0].at[1] + len(name)
        if glued:
            close = next((i for i, word in enumerate(body) if word.text == ")"), None)
            if close is None:
                raise CompileError("the parameters of this macro have no ')'", body[0].at)
            parameters = tuple(word.text for word in body[1:close] if word.text != ",")
            body = body[close + 1 :]
        for word in body:
            if word.text in ("#", "##"):
                raise CompileError(f"{word.text!r} in macros is not supported", word.at)
        self.macros[name] = Macro(name, parameters, tuple(body))

    # uses

    def expand(self, tokens: list[Token], inside: frozenset[str] = frozenset()) -> Iterator[Token]:
        """Replaces macros; a macro is not expanded inside its own expansion."""
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if macro is None or macro.name in inside:
                yield token
                continue
            body: Iterable[Token] = macro.body
            if macro.parameters is not None:
                if at >= len(tokens) or tokens[at].text != "(":
                    yield token  # the name alone is no use of a macro with parameters
                    continue
                given, at = arguments(tokens, at)
                if macro.parameters == () and given == [[]]:
                    given = []
                if len(given) != len(macro.parameters):
                    raise CompileError(
                        f"macro {macro.name!r} takes {len(macro.parameters)} arguments, "
                        f"and got {len(given)}",
                        token.at,
                    )
                values = {
                    name: list(self.expand(words, inside))
                    for name, words in zip(macro.parameters, given)
                }
                body = [w for word in macro.body for w in values.get(word.text, [word])]
            placed = [replace(word, at=token.at, row=token.row) for word in body]
            yield from self.expand(placed, inside | {macro.name})


def constant(node: s.Expression) -> int:
    """The value of a condition; names that are no macros are 0."""
    if isinstance(node, s.Number) and node.text.rstrip("uUlL").isdigit():
        return int(node.text.rstrip("uUlL"))
    if isinstance(node, s.Name):
        return 0
    if isinstance(node, s.Unary) and node.sign in "!-+~":
        value = constant(node.operand)
        return {"!": int(not value), "-": -value, "+": value, "~": ~value}[node.sign]
    if isinstance(node, s.Binary) and node.sign in SIGNS:
        return int(SIGNS[node.sign](constant(node.left), constant(node.right)))
    raise CompileError("a condition of #if is made of whole numbers", node.at)


def arguments(tokens: list[Token], at: int) -> tuple[list[list[Token]], int]:
    """The arguments in parentheses that open at `at`, and the position behind them."""
    depth, found, opening = 0, [list[Token]()], tokens[at]
    while at < len(tokens) and tokens[at].kind != "end":
        token = tokens[at]
        at += 1
        if token.text in "([{":
            depth += 1
            if depth == 1:
                continue
        elif token.text in ")]}":
            depth -= 1
            if depth == 0:
                return found, at
        if token.text == "," and depth == 1:
            found.append([])
        else:
            found[-1].append(token)
    raise CompileError("this '(' is never closed", opening.at)
