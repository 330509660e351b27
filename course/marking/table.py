"""Tables: what the lecturer hands in and takes away, as CSV.

Files may come from any spreadsheet: separated by commas, semicolons or tabs, with a byte order mark
or without. Those that are written hold no cell that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_FORMULA = tuple("=+-@＝＋－＠")


class BadTable(LookupError):
    """A table that cannot be used; the message names the file, the line, and what is wrong."""


class Row(dict[str, str]):
    """A line of a table that was read: its cells by the names of columns, and where it stands."""

    def __init__(self, cells: Mapping[str, str], place: str) -> None:
        super().__init__(cells)
        self.place = place


def read(path: Path, columns: Mapping[str, Sequence[str]], needed: Sequence[str]) -> list[Row]:
    """The lines of a table.

    Args:
        path: the file, whose first line names its columns.
        columns: the columns wanted, and under which other names they are known.
        needed: those that may not be missing. The others are then empty.

    Raises:
        BadTable: the file cannot be read, or lacks a column.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadTable(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadTable(f"{path} is not written in UTF-8: save it as “CSV UTF-8”") from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise BadTable(f"{path} cannot be read: {error}") from None
    header = [_squash(cell) for cell in lines[0]] if lines else []
    places = {}
    for column, others in columns.items():
        known = {_squash(name) for name in (column, *others)}
        place = next((n for n, name in enumerate(header) if name in known), None)
        if place is None and column in needed:
            names = ", ".join(lines[0]) if lines else "nothing"
            raise BadTable(f"{path} has no column {column!r}; its first line has: {names}")
        places[column] = place
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if any(cell.strip() for cell in line):
            cells = {
                column: plain(line[place].strip())
                if place is not None and place < len(line)
                else ""
                for column, place in places.items()
            }
            rows.append(Row(cells, f"{path}, line {number}"))
    return rows


def _squash(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(harmless(name) for name in header)
    writer.writerows([harmless(value) for value in row] for row in rows)
    return out.getvalue()


def harmless(value: Any) -> Any:
    """A cell as it is written: what a spreadsheet would take for a formula has ' in front."""
    if isinstance(value, str) and value.lstrip()[:1] in _FORMULA:
        return "'" + value
    return f"{value:g}" if isinstance(value, float) else value


def plain(text: str) -> str:
    """A cell as it was before :func:`harmless`."""
    inner = text[1:]
    return inner if text[:1] == "'" and inner.lstrip()[:1] in _FORMULA else text
