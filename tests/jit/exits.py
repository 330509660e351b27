"""Random programs of control flow: loops, branches and every way out of them.

A program counts its turns down (`fuel`), so it ends as Python; where it goes is kept in a list. Its
names are defined before use for the most part, so that a compiler has little to refuse.
"""

from __future__ import annotations

import random
from typing import Any

NAMES = ("a", "b", "c")
RESULTS = {
    "int": "len(log) * 1000 + a * 100 + b",
    "Tensor": "t * a + b + len(log)",
    "Tuple[int, Tensor]": "(b + len(log), t + a)",
    "Optional[int]": "",
    "None": "",
}


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.result = self.rng.choice(list(RESULTS))
        self.declared = self.result == "Optional[int]" or self.rng.random() < 0.5
        self.left = self.rng.randint(5, 16)  # statements that may still be written
        self.marks = 0
        self.depth = 0

    def program(self) -> str:
        """The whole text."""
        lines = ["a, b, c, fuel = 1, 2, 3, 40", *self.block(0, None, top=True)]
        if self.result != "None":
            lines.append(self.leave())
        arrow = f" -> {self.result}" if self.declared else ""
        head = f"def f(n: int, xs: List[int], t: Tensor, log: List[int]){arrow}:"
        return "\n".join([head, *("    " + line for line in lines)]) + "\n"

    # -- parts -------------------------------------------------------------------------------------

    def leave(self) -> str:
        """A return."""
        if self.result == "None":
            return "return"
        if self.result == "Optional[int]":
            return self.rng.choice(["return None", "return a", "return len(log) * 100 + b"])
        return "return " + RESULTS[self.result]

    def number(self) -> str:
        """A number."""
        rng = self.rng
        return rng.choice(
            [
                "n",
                "len(log)",
                "len(xs)",
                "fuel",
                str(rng.randint(0, 5)),
                *NAMES,
                f"{rng.choice(NAMES)} + {rng.randint(1, 3)}",
                f"{rng.choice(NAMES)} % {rng.randint(2, 4)}",
            ]
        )

    def test(self) -> str:
        """A condition."""
        rng = self.rng
        plain = f"{self.number()} {rng.choice(['<', '>', '==', '!=', '<=', '>='])} {self.number()}"
        kind = rng.random()
        if kind < 0.1:
            return f"{plain} {rng.choice(['and', 'or'])} {self.number()} % 2 == 0"
        if kind < 0.15:
            return "bool(t.sum() > a)"
        return (
            f"({self.number()} + {rng.randint(0, 3)}) % {rng.randint(2, 3)} == 0"
            if (kind < 0.5)
            else plain
        )

    def block(self, depth: int, loop: str | None, top: bool = False) -> list[str]:
        """Some statements; at least one."""
        lines: list[str] = []
        for _ in range(self.rng.randint(2, 5) if top else self.rng.randint(1, 3)):
            if self.left > 0:
                lines += self.statement(depth, loop)
        if not top and self.rng.random() < 0.35:
            lines += self.exit(loop)
        return lines or ["pass"]

    def exit(self, loop: str | None) -> list[str]:
        """A way out."""
        ways = [self.leave()]
        if loop == "open":
            ways += ["break", "continue"] * 2
        return [self.rng.choice(ways)]

    def statement(self, depth: int, loop: str | None) -> list[str]:
        """One statement with what belongs to it."""
        self.left -= 1
        rng, kind = self.rng, self.rng.random()
        if depth < 4 and kind < 0.3:
            return self.branch(depth, loop)
        if depth < 4 and kind < 0.55:
            return self.loop(depth)
        if kind < 0.62:
            return [f"if {self.test()}:", *indented(self.exit(loop))]
        if kind < 0.66:
            return [f"t = t + {rng.choice(NAMES)}"]
        if kind < 0.8:
            self.marks += 1
            return [f"log.append({self.marks})"]
        if kind < 0.83:
            return [f"a, b = b, {self.number()}"]
        if kind < 0.86:
            return [f"{rng.choice(NAMES)} = {self.number()} if {self.test()} else {self.number()}"]
        return [f"{rng.choice(NAMES)} {rng.choice(['=', '+=', '='])} {self.number()}"]

    def branch(self, depth: int, loop: str | None) -> list[str]:
        """if, elif, else."""
        lines = [f"if {self.test()}:", *indented(self.block(depth + 1, loop))]
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            lines += [f"elif {self.test()}:", *indented(self.block(depth + 1, loop))]
        if self.rng.random() < 0.6:
            lines += ["else:", *indented(self.block(depth + 1, loop))]
        return lines

    def loop(self, depth: int) -> list[str]:
        """for or while."""
        rng = self.rng
        i = f"i{depth}"
        kind = rng.random()
        if kind < 0.1:  # written out: break and continue are not supported in it
            return [
                f"for {i} in (1, 2, 3):",
                *indented([f"a += {i}", *self.block(depth + 1, "written out")]),
            ]
        if kind < 0.55:
            over = rng.choice(
                [
                    "range(n)",
                    "range(3)",
                    "range(1, n + 2, 2)",
                    "range(4, 0, -1)",
                    "xs",
                    "t",
                    "range(0)",
                    f"range({self.number()} % 5)",
                ]
            )
            use = f"int({i}.sum())" if over == "t" else i
            first = [f"{rng.choice(NAMES)} = {use}"] if rng.random() < 0.6 else []
            if over == "t":
                first = []
            return [
                f"for {i} in {over}:",
                *indented(
                    [
                        *first,
                        "fuel -= 1",
                        "if fuel < 0:",
                        "    break",
                        *self.block(depth + 1, "open"),
                    ]
                ),
            ]
        out = rng.choice(["break", self.leave()])
        return [
            f"while {rng.choice(['True', 'fuel > 0', self.test(), self.test()])}:",
            *indented(["fuel -= 1", "if fuel < 0:", f"    {out}", *self.block(depth + 1, "open")]),
        ]


def indented(lines: list[str]) -> list[str]:
    """The lines of a block."""
    return ["    " + line for line in lines]


def program(seed: int) -> str:
    """A program's text; the same for the same seed."""
    return Writer(seed).program()


def arguments(m: Any, number: int) -> tuple[Any, ...]:
    """What a program is called with."""
    n = number % 5
    return n, [3, 1, 4, 1, 5][: (number * 2) % 6], m.arange(3.0) * n, []
