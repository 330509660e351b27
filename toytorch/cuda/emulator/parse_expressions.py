"""Expressions and the names of types: one method for each level of precedence, the lowest first."""

from __future__ import annotations

from dataclasses import replace

from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator.errors import CompileError
from toytorch.cuda.emulator.lexer import Token
from toytorch.cuda.emulator.types import NAMES

# Binary operators, each level binding tighter than the one before.
LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
SHIFT = 7  # the level from which on `>` may close a template's arguments
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")
BUILT_OF_WORDS = {"unsigned", "signed", "long", "short", "int", "char", "double"}
QUALIFIERS = {
    "static", "extern", "constexpr", "inline", "__inline__", "__forceinline__", "__noinline__",
    "__device__", "__global__", "__host__", "__shared__", "__constant__", "__launch_bounds__",
    "__align__", "alignas",
}  # fmt: skip
RESTRICT = ("__restrict__", "__restrict", "restrict")
CASTS = ("static_cast", "reinterpret_cast")
# `unsigned long long int` and its kin: the words in any order, without `int`.
WORDS = {
    ("char",): "char", ("char", "signed"): "char", ("char", "unsigned"): "unsigned char",
    ("short",): "short", ("short", "signed"): "short", ("short", "unsigned"): "unsigned short",
    (): "int", ("signed",): "int", ("unsigned",): "unsigned int",
    ("long",): "long", ("long", "signed"): "long", ("long", "unsigned"): "unsigned long",
    ("long", "long"): "long long", ("long", "long", "signed"): "long long",
    ("long", "long", "unsigned"): "unsigned long long", ("double",): "double",
}  # fmt: skip


class ExpressionParser:
    """A position in the tokens, and what stands there."""

    def __init__(self, tokens: list[Token], type_names: set[str] | None = None) -> None:
        self.tokens, self.at = tokens, 0
        self.type_names = type_names if type_names is not None else set(NAMES)

    # tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int) -> Token:
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def advance(self, count: int = 1) -> Token:
        token = self.token
        self.at = min(self.at + count, len(self.tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        """Steps over a sign or word if it stands here."""
        if self.token.text != text or self.token.kind in ("string", "char", "end"):
            return False
        self.advance()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            # A missing ';' is seen at the next line: say it behind the last word instead.
            at, before = self.token.at, self.tokens[max(self.at - 1, 0)]
            if self.at and before.at[0] < at[0]:
                at = (before.at[0], before.at[1] + len(before.text))
            found = repr(self.token.text) if self.token.kind != "end" else "the end of the source"
            raise CompileError(f"expected {text!r} before {found}", at)

    def name(self, what: str) -> str:
        if self.token.kind != "name":
            found = repr(self.token.text) if self.token.kind != "end" else "the end of the source"
            raise CompileError(f"expected {what}, not {found}", self.token.at)
        return self.advance().text

    # types

    def begins_type(self, token: Token | None = None) -> bool:
        token = token or self.token
        return token.kind == "name" and (
            token.text in self.type_names
            or token.text in BUILT_OF_WORDS
            or token.text in ("const", "volatile")
        )

    def begins_declaration(self) -> bool:
        if self.token.kind == "name" and self.token.text in QUALIFIERS | {"auto"}:
            return True
        # `float(x);` is an expression
        return self.begins_type() and self.ahead(1).text != "("

    def qualifiers(self) -> set[str]:
        """Words around a type that say where it lives and how a function is compiled."""
        found = set()
        while self.token.kind == "name" and self.token.text in QUALIFIERS:
            word = self.advance().text
            found.add(word)
            if word in ("__launch_bounds__", "__align__", "alignas"):
                self.expect("(")
                while not self.accept(")"):  # for the compiler's registers: no effect here
                    self.advance()
        return found

    def type_name(self) -> s.TypeName:
        """`const unsigned int* __restrict__`."""
        at, const, words = self.token.at, False, list[str]()
        name = ""
        while self.token.kind == "name":
            word = self.token.text
            if word in ("const", "volatile", "typename"):
                const = const or word == "const"
            elif word in BUILT_OF_WORDS and not name:
                words.append(word)
            elif not name and not words and (word in self.type_names or word == "auto"):
                name = word
            else:
                break
            self.advance()
        if words:
            key = tuple(sorted(word for word in words if word != "int"))
            if key not in WORDS:
                raise CompileError(f"{' '.join(words)!r} is no type", at)
            name = WORDS[key]
        if not name:
            raise CompileError(f"expected a type, not {self.token.text!r}", self.token.at)
        return self.stars(s.TypeName(at, name, const))

    def stars(self, type: s.TypeName) -> s.TypeName:
        """The `*`, `&` and `__restrict__` behind a type."""
        stars, pointee = list[bool](), type.const
        while self.accept("*"):
            stars.append(pointee)
            pointee = False
            while self.token.text in (*RESTRICT, "const", "volatile"):
                pointee = pointee or self.token.text == "const"
                self.advance()
        reference = self.accept("&")
        while self.token.text in RESTRICT:
            self.advance()
        fixed = bool(stars) and pointee
        return replace(type, stars=tuple(stars), reference=reference, fixed=fixed)

    # expressions

    def expression(self) -> s.Expression:
        left = self.assignment()
        while self.token.text == ",":
            at = self.advance().at
            left = s.Binary(at, ",", left, self.assignment())
        return left

    def assignment(self) -> s.Expression:
        left = self.conditional()
        if self.token.text in ASSIGNMENTS and self.token.kind == "sign":
            token = self.advance()
            return s.Assign(token.at, token.text[:-1], left, self.assignment())
        return left

    def conditional(self) -> s.Expression:
        condition = self.binary(0)
        if self.token.text != "?":
            return condition
        at = self.advance().at
        yes = self.expression()
        self.expect(":")
        return s.Conditional(at, condition, yes, self.assignment())

    def additive(self) -> s.Expression:
        """What may stand between `<` and `>` without parentheses."""
        return self.binary(SHIFT + 1)

    def binary(self, level: int) -> s.Expression:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.token.kind == "sign" and self.token.text in LEVELS[level]:
            token = self.advance()
            left = s.Binary(token.at, token.text, left, self.binary(level + 1))
        return left

    def unary(self) -> s.Expression:
        token = self.token
        if token.kind == "sign":
            if token.text in ("-", "+", "!", "~", "*", "&", "++", "--"):
                self.advance()
                return s.Unary(token.at, token.text, self.unary())
            if token.text == "(" and self.begins_type(self.ahead(1)):
                self.advance()
                type = self.type_name()
                self.expect(")")
                return s.Cast(token.at, type, self.unary())
        if token.kind == "name" and token.text == "sizeof":
            self.advance()
            if self.token.text == "(" and self.begins_type(self.ahead(1)):
                self.advance()
                type = self.type_name()
                self.expect(")")
                return s.SizeOf(token.at, type)
            return s.SizeOf(token.at, self.unary())
        return self.postfix()

    def postfix(self) -> s.Expression:
        value = self.primary()
        while self.token.kind == "sign":
            token = self.token
            if self.accept("["):
                value = s.Index(token.at, value, self.expression())
                self.expect("]")
            elif self.accept(".") or self.accept("->"):
                value = s.Member(token.at, value, self.name("a member"), token.text == "->")
            elif token.text in ("++", "--"):
                self.advance()
                value = s.Unary(token.at, f"p{token.text}", value)
            elif token.text == "(":
                raise CompileError("this is no function: it cannot be called", value.at)
            else:
                break
        return value

    def primary(self) -> s.Expression:
        token = self.token
        if token.kind in ("number", "char"):
            self.advance()
            return s.Number(token.at, token.text)
        if token.kind == "string":
            text = ""
            while self.token.kind == "string":  # neighbours are one string
                text += self.advance().text[1:-1]
            return s.Text(token.at, text)
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if token.text in CASTS:
            self.advance()
            self.expect("<")
            type = self.type_name()
            self.expect(">")
            self.expect("(")
            inner = self.expression()
            self.expect(")")
            return s.Cast(token.at, type, inner)
        if self.begins_type():  # float(x)
            type = self.type_name()
            if self.token.text not in ("(", "{"):
                raise CompileError(f"a type, {token.text!r}, where a value is expected", token.at)
            close = ")" if self.advance().text == "(" else "}"
            if self.accept(close):
                return s.Cast(token.at, type, s.Number(token.at, "0"))
            inner = self.assignment()
            self.expect(close)
            return s.Cast(token.at, type, inner)
        if token.kind != "name":
            found = repr(token.text) if token.kind != "end" else "the end of the source"
            raise CompileError(f"expected an expression before {found}", token.at)
        return self.named()

    def named(self) -> s.Expression:
        """A name, perhaps with a template's arguments, perhaps called."""
        token = self.advance()
        name = s.Name(token.at, token.text)
        while self.token.text == "::":  # std::max
            raise CompileError("names in namespaces are not supported", self.token.at)
        if self.token.text == "<" and self.closes_template():
            self.advance()
            while not self.accept(">"):
                if name.arguments:
                    self.expect(",")
                name.arguments.append(self.type_name() if self.begins_type() else self.additive())
        if self.token.text != "(":
            return name
        self.advance()
        arguments: list[s.Expression] = []
        while not self.accept(")"):
            if arguments:
                self.expect(",")
            arguments.append(self.assignment())
        return s.Call(token.at, name, arguments)

    def closes_template(self) -> bool:
        """Whether a `<` opens a template's arguments: `> (` follows, and only simple words between."""
        at = self.at + 1
        while at < len(self.tokens) and (
            self.tokens[at].kind in ("name", "number") or self.tokens[at].text in (",", "*")
        ):
            at += 1
        return self.tokens[at].text == ">" and self.ahead(at - self.at + 1).text == "("
