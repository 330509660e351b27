"""Calls that a learner gets wrong: the class of the error and its words are PyTorch's."""

from __future__ import annotations

import copy
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toytorch

torch = pytest.importorskip("torch")
CALLS = Path(__file__).with_name("learners_calls.txt").read_text().splitlines()


def outcome(package: Any, call: str) -> str:
    """What a call says; it is made of statements, and sees a few tensors and modules."""
    package.manual_seed(0)
    nn, optim, data = package.nn, package.optim, package.utils.data
    seen = {"torch": package, "nn": nn, "F": nn.functional, "opt": optim, "data": data, "io": io}
    seen |= {"DL": data.DataLoader, "TD": data.TensorDataset, "copy": copy, "np": np}
    seen |= {"x": package.randn(2, 3), "v": package.randn(3), "m": package.randn(4, 5)}
    seen |= {"i": package.tensor([0, 1, 2]), "w": package.randn(3, requires_grad=True)}
    seen["lin"] = nn.Linear(3, 4)
    try:
        for part in call.split(" ;; "):
            exec(part, seen)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("toytorch", "torch")
    return "nothing"


def test_calls() -> None:
    checked = torch.distributions.Distribution.set_default_validate_args
    checked(True)  # PyTorch's `torch.compile` turns the checks off for the whole process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [(call, outcome(torch, call), outcome(toytorch, call)) for call in CALLS]
    assert not [pair for pair in pairs if pair[1] != pair[2] or pair[1] == "nothing"]
