"""Data sets small enough to travel inside the package: nothing is downloaded.

Pictures (`digits`, `Digits`), a table (`penguins`), a text (`text`), and generators of as many
points or signals as are wanted (`spirals`, `moons`, `signals`).
"""

from toytorch.facts.package import show as _show
from toytorch.vision.datasets.digits import TRAIN, Digits, digits, everything
from toytorch.vision.datasets.generators import moons, signals, spirals
from toytorch.vision.datasets.penguins import (
    PENGUIN_FEATURES,
    PENGUIN_SPECIES,
    penguin_table,
    penguins,
)
from toytorch.vision.datasets.story import text

_show(globals(), "PENGUIN_FEATURES", "PENGUIN_SPECIES", "TRAIN")
