"""Who is in the class, and under which names their folders and files come.

A learning platform names what it packs for a lecturer in its own way: ``Ada Lovelace_4711_assign…``
(Moodle), ``lovelaceada_12_345_04_autograd.ipynb`` (Canvas). A roster finds the student in these,
by identifier, e-mail address or name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from course.marking import table
from course.marking.submissions import Submission

_COLUMNS = {
    "id": ("student", "student id", "id number", "matriculation number", "SIS User ID", "username"),
    "name": ("full name", "student name"),
    "e-mail": ("email address", "mail"),
}
# what Moodle and Canvas put behind a name: numbers of the student and of the submission
_PACKED = re.compile(r"^(?P<name>.+?)(_LATE)?_\d+_(\d+|assignsubmission_\w+)(_.*)?$")


@dataclass(frozen=True)
class Person:
    """A student on the roster."""

    id: str
    name: str = ""
    email: str = ""


class Roster:
    """The class."""

    def __init__(self, people: Iterable[Person]) -> None:
        self.people = {person.id: person for person in people}
        words = [(word, p) for p in self.people.values() for word in _words(p)]
        often = Counter(word for word, _ in words)
        self._by_word = {word: person for word, person in words if often[word] == 1}

    @classmethod
    def read(cls, path: Path) -> Roster:
        """A roster from a table with the columns id, name, e-mail.

        Raises:
            BadTable: it cannot be read, or an identifier is missing or there twice.
        """
        people: dict[str, Person] = {}
        for row in table.read(path, _COLUMNS, ["id"]):
            if not row["id"]:
                raise table.BadTable(f"{row.place}: the identifier is missing")
            if row["id"] in people:
                raise table.BadTable(f"{row.place}: {row['id']} is there twice")
            people[row["id"]] = Person(row["id"], row["name"], row["e-mail"])
        return cls(people.values())

    def find(self, name: str) -> Person | None:
        """Who is meant by the name of a folder or file; None if that is nobody, or not sure."""
        if name in self.people:
            return self.people[name]
        packed = _PACKED.match(name)
        tries = [name, packed["name"]] if packed else [name]
        found = (self._by_word.get(_squash(one)) for one in tries)
        return next((person for person in found if person), None)

    def named(self, found: Iterable[Submission]) -> list[Submission]:
        """Submissions under the identifiers of those who handed them in."""
        result = []
        for one in found:
            person = self.find(one.student)
            result.append(replace(one, student=person.id) if person else one)
        return result


def _words(person: Person) -> set[str]:
    """What a student may be called, without spaces and signs."""
    own = [person.id, person.email, person.email.partition("@")[0], person.name]
    parts = person.name.replace(",", " ").split()
    own.append(" ".join(parts[-1:] + parts[:-1]))  # family name first
    own.append(" ".join(parts[1:] + parts[:1]))  # or, where it stood first, last
    return {_squash(word) for word in own} - {""}


def _squash(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in plain if c.isalnum())
