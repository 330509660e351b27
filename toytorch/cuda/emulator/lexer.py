"""From text to tokens, each with its line and column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toytorch.cuda.emulator.errors import At, CompileError

OPERATORS = (
    *("<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"),
    *("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "##"),
    *"+-*/%&|^~!<>=?:;,.()[]{}#",
)

_TOKEN = re.compile(
    r"""
      (?P<space>  [ \t\r\f\v]+ | \\\r?\n | //[^\n]* | /\*.*?\*/ )
    | (?P<end>    \n )
    | (?P<number> (?: 0[xX][0-9a-fA-F]+ | 0[bB][01]+
                    | (?: \d+\.\d* | \.\d+ | \d+ ) (?: [eE][+-]?\d+ )? ) [uUlLfF]* )
    | (?P<name>   [A-Za-z_]\w* )
    | (?P<string> "(?: \\. | [^"\\\n] )*" )
    | (?P<char>   '(?: \\. | [^'\\\n] )' )
    | (?P<sign>   """
    + " | ".join(re.escape(sign) for sign in OPERATORS)
    + ")",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word of the source.

    kind  "name", "number", "string", "char", "sign", or "end" behind the last one
    row   the logical line it stands in: lines joined by a backslash are one row, as directives ask
    """

    kind: str
    text: str
    at: At
    row: int


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a source; CompileError where a character starts none.

    >>> [t.text for t in tokens_of("x += .5f; // half")]
    ['x', '+=', '.5f', ';', '']
    """
    line, start, row, position = 1, 0, 1, 0  # `start` is where the line begins in the text
    while position < len(text):
        found = _TOKEN.match(text, position)
        at = (line, position - start + 1)
        if found is None:
            raise CompileError(f"unexpected character {text[position]!r}", at)
        kind, word = str(found.lastgroup), found.group()
        if kind == "end":
            row += 1
        elif kind != "space":
            yield Token(kind, word, at, row)
        breaks = word.count("\n")
        if breaks:
            line += breaks
            start = position + word.rindex("\n") + 1
        position = found.end()
    yield Token("end", "", (line, position - start + 1), row + 1)
