"""What a text must say, in which order: checks of printed graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One check: its kind, what is looked for, and how often ("count" only)."""

    kind: str
    text: str
    count: int = 1
    exactly: bool = False


class FileCheck:
    """A list of checks that a text is held against, one after the other, like `torch.testing.FileCheck`.

    Each check begins where the one before it ended. `run` raises RuntimeError where one fails.

    >>> FileCheck().check("mul").check_next("add").check_not("sub").run("x = mul\\ny = add\\n")
    >>> FileCheck().check("add").check("mul").run("mul\\nadd")
    Traceback (most recent call last):
    RuntimeError: Expected to find "mul" but did not find it
    Searched string:
    <BLANKLINE>
    From CHECK: mul
    """

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def _add(self, kind: str, text: str, count: int = 1, exactly: bool = False) -> FileCheck:
        self.rules.append(Rule(kind, text, count, exactly))
        return self

    def check(self, text: str) -> FileCheck:
        """The text comes somewhere after the last match."""
        return self._add("", text)

    def check_not(self, text: str) -> FileCheck:
        """The text does not come between the last match and the next one."""
        return self._add("-NOT", text)

    def check_same(self, text: str) -> FileCheck:
        """The text comes after the last match, on the same line."""
        return self._add("-SAME", text)

    def check_next(self, text: str) -> FileCheck:
        """The text comes on the line after the last match."""
        return self._add("-NEXT", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes so often after the last match, and, if `exactly`, not once more."""
        return self._add("-COUNT", text, count, exactly)

    def check_dag(self, text: str) -> FileCheck:
        """The text comes after the last match; checks of this kind side by side have no order."""
        return self._add("-DAG", text)

    def check_regex(self, text: str) -> FileCheck:
        """A match of a regular expression comes somewhere after the last match."""
        return self._add("-REGEX", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """The text comes with a line of marks (~~~) under the whole of it."""
        return self._add("-SOURCE-HIGHLIGHTED", text)

    def run(self, text: object) -> None:
        """Holds a text, or what prints as one, against the checks; RuntimeError where one fails."""
        if not self.rules:
            raise RuntimeError("No checks have been added to this instance of FileCheck!")
        Run(str(text)).run(self.rules)


class Run:
    """A text, and how far it has been matched."""

    def __init__(self, text: str) -> None:
        self.text, self.start, self.end = text, 0, 0  # of the last match

    def run(self, rules: list[Rule]) -> None:
        i = 0
        while i < len(rules):
            nots = []  # which wait for the next match, as they are about what lies before it
            while i < len(rules) and rules[i].kind == "-NOT":
                nots.append(rules[i])
                i += 1
            before = self.end
            if i == len(rules):
                self.refuse(nots, before, len(self.text))
                return
            if rules[i].kind == "-DAG":
                group = []
                while i < len(rules) and rules[i].kind == "-DAG":
                    group.append(rules[i])
                    i += 1
                self.in_any_order(group)
            else:
                self.match(rules[i])
                i += 1
            self.refuse(nots, before, self.start)

    def refuse(self, nots: list[Rule], start: int, end: int) -> None:
        """Raises where a text that must not come does."""
        for rule in nots:
            if self.text.find(rule.text, start, end) >= 0:
                raise self.error(rule, "not find", "found it", start)

    def in_any_order(self, group: list[Rule]) -> None:
        """Moves on behind the last of some texts, all of which come after the last match."""
        begin, places = self.end, dict[str, tuple[int, int]]()
        for rule in group:
            at = self.find(rule, places.get(rule.text, (begin, begin))[1])
            places[rule.text] = at, at + len(rule.text)
        self.start = min(start for start, _ in places.values())
        self.end = max(end for _, end in places.values())

    def match(self, rule: Rule) -> None:
        """Moves on behind what a check finds."""
        if rule.kind == "-COUNT":
            begin = self.end
            for i in range(rule.count):
                at = self.find(rule, self.end)
                self.start = at if i == 0 else self.start
                self.end = at + len(rule.text)
            if rule.exactly and self.text.find(rule.text, self.end) >= 0:
                raise self.error(rule, "not find", "found it", begin)
        elif rule.kind == "-REGEX":
            found = re.compile(rule.text).search(self.text, self.end)
            if found is None:
                wanted = f'regex "{rule.text}"'
                raise self.error(rule, "find", "did not find it", self.end, wanted)
            self.start, self.end = found.span()
        elif rule.kind == "-SOURCE-HIGHLIGHTED":
            self.highlighted(rule)
        else:
            at = self.find(rule, self.end)
            lines = self.text.count("\n", self.end, at)
            if rule.kind == "-NEXT" and not lines:
                raise self.error(rule, "find", "did not find it", self.end, r'"\n"')
            if rule.kind in ("-SAME", "-NEXT") and lines > (rule.kind == "-NEXT"):
                raise self.error(rule, "not find", "found it", self.end, r'"\n"')
            self.start, self.end = at, at + len(rule.text)

    def highlighted(self, rule: Rule) -> None:
        """Looks for a text with marks under it."""
        at = self.find(rule, self.end)
        while at >= 0:
            column = at - (self.text.rfind("\n", 0, at) + 1)
            below = self.text[at:].split("\n")[1:2]
            marks = below[0][column : column + len(rule.text)] if below else ""
            around = below[0][:column] if below else ""
            if set(marks) == {"~"} and len(marks) == len(rule.text) and not around.strip(" ~."):
                self.start, self.end = at, at + len(rule.text)
                return
            at = self.text.find(rule.text, at + 1)
        raise self.error(rule, "find", "it is not.", self.end, f'"{rule.text}"highlighted')

    def find(self, rule: Rule, start: int) -> int:
        """Where the text of a check comes next; raises where it does not."""
        at = self.text.find(rule.text, start)
        if at < 0:
            raise self.error(rule, "find", "did not find it", start)
        return at

    def error(
        self, rule: Rule, wanted: str, happened: str, start: int, what: str = ""
    ) -> RuntimeError:
        what = what or f'"{rule.text}"'
        return RuntimeError(
            f"Expected to {wanted} {what} but {happened}\nSearched string:\n"
            f"{self.text[start:]}\nFrom CHECK{rule.kind}: {rule.text}"
        )
