"""Statements, declarations and functions: a recursive-descent parser for a subset of CUDA C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator.errors import CompileError
from toytorch.cuda.emulator.macros import expanded
from toytorch.cuda.emulator.parse_expressions import ExpressionParser

SPACES = {"__shared__": "shared", "__constant__": "constant"}
REFUSED = {
    "goto": "goto is not supported: the emulator runs structured loops only",
    "struct": "structs are not supported: use arrays, or float4 and its kin",
    "class": "classes are not supported",
    "union": "unions are not supported",
    "enum": "enums are not supported: use `const int`",
    "namespace": "namespaces are not supported",
    "asm": "PTX in `asm` is not supported",
    "try": "device code has no exceptions",
    "throw": "device code has no exceptions",
    "new": "memory on the heap is not supported",
    "delete": "memory on the heap is not supported",
}


def parse(text: str, defines: Mapping[str, str] | None = None) -> s.File:
    """The tree of a source file; CompileError where it is not in the subset.

    >>> file = parse("__global__ void f(float* x) { x[threadIdx.x] *= 2; }")
    >>> file.functions[0].name, file.functions[0].is_kernel
    ('f', True)
    """
    return Parser(expanded(text, defines)).file()


class Parser(ExpressionParser):
    """Adds to expressions what stands around them."""

    def file(self) -> s.File:
        found = s.File([], [], [])
        while self.token.kind != "end":
            if self.accept(";"):
                continue
            if self.token.text in ("typedef", "using"):
                found.aliases.append(self.alias())
                continue
            linkage = False
            if self.token.text == "extern" and self.ahead(1).kind == "string":
                self.advance(2)
                linkage = self.accept("{")
            if linkage:
                inner = Parser(self.tokens[self.at :], set(self.type_names))
                raise_at = self.token.at
                part = inner.until_brace()
                self.at += inner.at
                if self.tokens[self.at - 1].text != "}":
                    raise CompileError("this '{' of extern \"C\" is never closed", raise_at)
                found.functions += part.functions
                found.variables += part.variables
                found.aliases += part.aliases
                self.type_names |= inner.type_names
            else:
                self.top_level(found)
        return found

    def until_brace(self) -> s.File:
        """What stands in the braces of `extern "C" { … }`."""
        found = s.File([], [], [])
        while self.token.kind != "end" and not self.accept("}"):
            self.top_level(found)
        return found

    def alias(self) -> s.Alias:
        at, word = self.token.at, self.advance()
        if word.text == "using":
            name = self.name("a name for the type")
            self.expect("=")
            type = self.type_name()
        else:
            type = self.type_name()
            name = self.name("a name for the type")
        self.expect(";")
        self.type_names.add(name)
        return s.Alias(at, name, type)

    def top_level(self, found: s.File) -> None:
        """A function, or variables in constant memory."""
        outer = set(self.type_names)
        template = self.template() if self.token.text == "template" else []
        words, type = self.specifiers()
        name_at = self.token.at
        name = self.name("the name of a function or variable")
        if self.token.text == "(":
            kernel = "__global__" in words
            if not kernel and "__device__" not in words:
                raise CompileError(
                    f"{name!r} is host code: say __global__ for a kernel or __device__ for a "
                    "function that kernels call",
                    name_at,
                )
            parameters = self.parameters()
            body = None if self.accept(";") else self.block()
            found.functions.append(
                s.Function(name_at, name, kernel, type, parameters, body, template)
            )
        else:
            if "__device__" in words or ("__constant__" not in words and not type.const):
                raise CompileError(
                    "variables outside functions are `__constant__` or `const`", name_at
                )
            found.variables += self.declarators(words, type, name, name_at)
        self.type_names = outer

    def template(self) -> list[s.TemplateParameter]:
        self.expect("template")
        self.expect("<")
        found: list[s.TemplateParameter] = []
        while not self.accept(">"):
            if found:
                self.expect(",")
            at = self.token.at
            if self.token.text in ("typename", "class"):
                self.advance()
                name = self.name("the name of a type")
                self.type_names.add(name)
                found.append(s.TemplateParameter(at, name, None))
                if self.accept("="):
                    found[-1].default = self.type_name()
            else:
                type = self.type_name()
                found.append(s.TemplateParameter(at, self.name("a name"), type))
                if self.accept("="):
                    found[-1].default = self.additive()
        return found

    def parameters(self) -> list[s.Parameter]:
        self.expect("(")
        found: list[s.Parameter] = []
        if self.token.text == "void" and self.ahead(1).text == ")":
            self.advance()
        while not self.accept(")"):
            if found:
                self.expect(",")
            at = self.token.at
            type = self.type_name()
            name = self.name("the name of a parameter") if self.token.kind == "name" else ""
            if self.accept("["):  # `float x[]` is `float* x`
                if self.token.text != "]":
                    self.conditional()
                self.expect("]")
                type = replace(type, stars=(*type.stars, type.const))
            found.append(s.Parameter(at, type, name))
        return found

    # declarations

    def specifiers(self) -> tuple[set[str], s.TypeName]:
        """The words before a type and the type; words may stand behind it, too."""
        words = self.qualifiers()
        type = self.type_name()
        words |= self.qualifiers()
        if "constexpr" in words:
            type = replace(type, const=True)
        return words, type

    def declarators(
        self, words: set[str], type: s.TypeName, name: str, name_at: tuple[int, int]
    ) -> list[s.Declaration]:
        """`a = 1, b[4], *c;` from behind the first name."""
        space = next((SPACES[word] for word in words if word in SPACES), "")
        base = replace(type, stars=(), reference=False, fixed=False)
        found: list[s.Declaration] = []
        while True:
            lengths: list[s.Expression | None] = []
            while self.accept("["):
                lengths.append(None if self.token.text == "]" else self.conditional())
                self.expect("]")
            value: s.Expression | None = None
            if self.accept("=") or self.token.text == "{":
                value = self.initialiser()
            elif self.token.text == "(":  # float x(0)
                self.advance()
                value = self.assignment()
                self.expect(")")
            found.append(
                s.Declaration(name_at, type, name, lengths, value, space, "extern" in words)
            )
            if self.accept(";"):
                return found
            self.expect(",")
            type = self.stars(base)
            name_at = self.token.at
            name = self.name("the name of a variable")

    def initialiser(self) -> s.Expression:
        if self.token.text != "{":
            return self.assignment()
        at, items = self.advance().at, list[s.Expression]()
        while not self.accept("}"):
            if items:
                self.expect(",")
                if self.accept("}"):
                    break
            items.append(self.initialiser())
        return s.Braces(at, items)

    # statements

    def block(self) -> s.Block:
        at, outer = self.token.at, set(self.type_names)
        self.expect("{")
        items: list[s.Statement] = []
        while not self.accept("}"):
            if self.token.kind == "end":
                raise CompileError("this '{' is never closed", at)
            items.append(self.statement())
        self.type_names = outer
        return s.Block(at, items)

    def statement(self) -> s.Statement:
        token = self.token
        if token.text in REFUSED:
            raise CompileError(REFUSED[token.text], token.at)
        rules: dict[str, Callable[[], s.Statement]] = {
            "{": self.block, "if": self.if_, "for": self.for_, "while": self.while_, "do": self.do,
            "switch": self.switch, "return": self.return_,
        }  # fmt: skip
        if token.text in rules and token.kind != "string":
            return rules[token.text]()
        if token.text in ("break", "continue"):
            self.advance()
            self.expect(";")
            return s.Jump(token.at, token.text)
        if self.accept(";"):
            return s.Block(token.at, [])
        if self.begins_declaration():
            return self.declaration()
        expression = self.expression()
        self.expect(";")
        return s.Evaluate(token.at, expression)

    def declaration(self) -> s.Declarations:
        at = self.token.at
        words, type = self.specifiers()
        name_at = self.token.at
        name = self.name("the name of a variable")
        return s.Declarations(at, self.declarators(words, type, name, name_at))

    def if_(self) -> s.If:
        at = self.advance().at
        self.accept("constexpr")
        condition = self.parenthesised()
        yes = self.statement()
        no = self.statement() if self.accept("else") else None
        return s.If(at, condition, yes, no)

    def for_(self) -> s.Loop:
        at = self.advance().at
        self.expect("(")
        start: s.Statement | None = None
        if self.begins_declaration():
            start = self.declaration()
        elif not self.accept(";"):
            start = s.Evaluate(self.token.at, self.expression())
            self.expect(";")
        condition = None if self.token.text == ";" else self.expression()
        self.expect(";")
        step = None if self.token.text == ")" else self.expression()
        self.expect(")")
        return s.Loop(at, start, condition, step, self.statement())

    def while_(self) -> s.Loop:
        at = self.advance().at
        condition = self.parenthesised()
        return s.Loop(at, None, condition, None, self.statement())

    def do(self) -> s.Loop:
        at = self.advance().at
        body = self.statement()
        self.expect("while")
        condition = self.parenthesised()
        self.expect(";")
        return s.Loop(at, None, condition, None, body, test_first=False)

    def switch(self) -> s.Switch:
        at = self.advance().at
        value = self.parenthesised()
        self.expect("{")
        items: list[s.Statement | s.Label] = []
        while not self.accept("}"):
            token = self.token
            if self.accept("case"):
                items.append(s.Label(token.at, self.conditional()))
                self.expect(":")
            elif self.accept("default"):
                items.append(s.Label(token.at, None))
                self.expect(":")
            else:
                items.append(self.statement())
        return s.Switch(at, value, items)

    def return_(self) -> s.Return:
        at = self.advance().at
        value = None if self.token.text == ";" else self.expression()
        self.expect(";")
        return s.Return(at, value)

    def parenthesised(self) -> s.Expression:
        self.expect("(")
        inner = self.expression()
        self.expect(")")
        return inner
