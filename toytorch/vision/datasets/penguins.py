"""The Palmer penguins: 344 birds of three species, measured; a table with gaps, as tables have."""

from __future__ import annotations

import csv
import functools
from importlib.resources import files

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import float32
from toytorch.ops.creation.from_data import tensor

PENGUIN_SPECIES = ("Adelie", "Chinstrap", "Gentoo")
PENGUIN_FEATURES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
_WORDS = ("species", "island", "sex")  # columns of words; the others hold numbers


def penguins() -> tuple[Tensor, Tensor]:
    """The 342 penguins with no measurement missing: (measurements, species).

    Measurements are float32 of shape (342, 4), the columns `PENGUIN_FEATURES` in millimetres and
    grams; species are int64 of shape (342,), places in `PENGUIN_SPECIES`. Data of K. Gorman, in
    the form of A. Horst, A. Hill and K. Gorman, *palmerpenguins* (2020), CC0; `data/README.md`
    has the details.

    >>> measurements, species = penguins()
    >>> measurements.shape, species.bincount()
    (torch.Size([342, 4]), tensor([151,  68, 123]))
    """
    rows, species = [], []
    for bird in penguin_table():
        row = [bird[name] for name in PENGUIN_FEATURES]
        if None not in row:
            rows.append(row)
            species.append(PENGUIN_SPECIES.index(str(bird["species"])))
    return tensor(rows, dtype=float32), tensor(species)


def penguin_table() -> list[dict[str, str | float | None]]:
    """All 344 birds as the file has them: words, numbers, and None where nothing was noted.

    >>> penguin_table()[3]
    {'species': 'Adelie', 'island': 'Torgersen', 'bill_length_mm': None, 'bill_depth_mm': None,
    'flipper_length_mm': None, 'body_mass_g': None, 'sex': None, 'year': 2007.0}
    """
    return [dict(bird) for bird in _read()]


@functools.cache
def _read() -> tuple[dict[str, str | float | None], ...]:
    source = files("toytorch.vision") / "data" / "penguins.csv"
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return tuple({name: _value(name, text) for name, text in row.items()} for row in rows)


def _value(column: str, text: str) -> str | float | None:
    if text == "NA":
        return None
    return text if column in _WORDS else float(text)
