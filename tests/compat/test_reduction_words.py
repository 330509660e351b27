"""`torch.nn._reduction`, which copies of PyTorch's losses import."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from tests.oracle import attempt, torch
from toytorch.nn import _reduction as ours

theirs = torch.nn._reduction


def told(function: Any, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        made, refused = attempt(function, *args)
    return made, str(refused), [str(w.message) for w in warned]


def test_words_and_numbers() -> None:
    for word in ("none", "mean", "sum", "elementwise_mean", "median"):
        assert told(ours.get_enum, word) == told(theirs.get_enum, word)
    for given in itertools.product((None, True, False), (None, True, False), (True, False)):
        for name in ("legacy_get_string", "legacy_get_enum"):
            assert told(getattr(ours, name), *given) == told(getattr(theirs, name), *given)
