"""Operands of other types and other shapes at once: what is refused first."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = ("float32", "bfloat16", "int64", "complex64", "bool")
SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (3,),
    (2,),
    (0,),
    (2, 3),
    (3, 3),
    (2, 2, 3),
    (2, 3, 3),
    (0, 3),
)
TWO = (
    "mm mv dot vdot bmm linalg.cross cross nn.functional.linear linalg.vecdot linalg.solve cdist searchsorted"
    " nn.functional.embedding nn.functional.conv1d nn.functional.conv_transpose1d nn.functional.mse_loss"
    " nn.functional.multi_margin_loss nn.functional.prelu nn.functional.binary_cross_entropy take ldexp"
)
FEW: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (2, 2, 3), (2, 3, 3))
THREE = "addmm addmv baddbmm addbmm addr"


def named(m: Any, name: str) -> Any:
    for part in name.split("."):
        m = getattr(m, part)
    return m


def agree(name: str, *given: Any) -> None:
    def told(m: Any) -> Any:
        try:
            made = named(m, name)(*(m.ones(s, dtype=getattr(m, k)) for s, k in given))
        except Exception as e:
            return type(e).__name__
        return tuple(made.shape), str(made.dtype).rpartition(".")[2]

    assert told(tt) == told(torch), given


@pytest.mark.parametrize("name", TWO.split())
def test_two(name: str) -> None:
    for a, b in itertools.product(itertools.product(SHAPES, KINDS), repeat=2):
        agree(name, a, b)


@pytest.mark.parametrize("name", THREE.split())
def test_three(name: str) -> None:
    for a, b, c in itertools.product(itertools.product(FEW, KINDS[:3]), repeat=3):
        agree(name, a, b, c)
