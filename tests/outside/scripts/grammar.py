"""Texts drawn from alternatives: `⟨a|b⟩` is one of its parts, `$NAME` one of the rule NAME, or a word that is given."""

from __future__ import annotations

import random
import re
from pathlib import Path

HERE = Path(__file__).parent


def rules_of(text: str) -> dict[str, list[str]]:
    """The alternatives of each `= NAME`: lines, or paragraphs where an empty line follows the name."""
    rules = {}
    for part in re.split(r"^= ", text, flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        paragraphs = body.startswith("\n")
        rules[name] = body.strip("\n").split("\n\n" if paragraphs else "\n")
    return rules


RULES: dict[str, list[str]] = {}
for _file in ("layers", "losses", "steps", "free"):
    RULES.update(rules_of((HERE / f"{_file}.txt").read_text()))


class Draw(random.Random):
    """A generator of random texts."""

    def of(self, rule: str, **words: object) -> str:
        """One alternative of the rule, drawn out."""
        return self.out(self.choice(RULES[rule]), **words)

    def out(self, text: str, **words: object) -> str:
        """The text with every choice made."""
        while "⟨" in text:  # the innermost brackets first
            text = re.sub(r"⟨([^⟨⟩]*)⟩", lambda m: self.choice(m[1].split("|")), text)
        names = re.compile(r"\$([A-Z0-9]+)")
        return names.sub(
            lambda m: str(words[m[1]]) if m[1] in words else self.of(m[1], **words), text
        )
