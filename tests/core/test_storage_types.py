"""Types that programs store and convert: unsigned integers of 16 to 64 bits, floats of eight bits.

What PyTorch computes with them gives the same here; some of what it refuses works.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side

UNSIGNED = ("uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
WITH_UNSIGNED = """
x * 2
x.sum()
x == 2
x.float()
x.double() / 2
x[0]
x & 1
x.long()
torch.cat([x, x])
x.numpy()
x.clone()
x + 1.5
x + torch.tensor([1])
x + torch.tensor([1.0])
torch.zeros(3, dtype=x.dtype)
torch.ones(3, dtype=x.dtype)
x.sort()
x.to(torch.uint8)
x.equal(x)
x.view(torch.int8)
x.mean()
x.type()
x.is_signed()
x.dtype.itemsize
torch.promote_types(x.dtype, torch.uint8)
torch.promote_types(x.dtype, torch.float16)
torch.promote_types(x.dtype, torch.bool)
torch.result_type(x, 1)
x.fill_(4)
torch.full((2,), 3, dtype=x.dtype)
x.copy_(torch.ones(3))
x.unique()
x.any()
x.tolist()
x.item()
x[:1].item()
torch.iinfo(x.dtype).max
pickle.loads(pickle.dumps(x.dtype)) is x.dtype
"""
WITH_FLOAT8 = """
x
x.float()
x.to(torch.bfloat16)
x == x
x[0].item()
x.clone()
torch.ones(2, dtype=x.dtype)
torch.finfo(x.dtype).max
torch.finfo(x.dtype).bits
x.view(torch.uint8)
torch.cat([x, x])
x.tolist()
torch.promote_types(x.dtype, torch.float32)
torch.empty(2, dtype=x.dtype).dtype
x.numpy()
x.isnan()
torch.tensor([1.0, 2.0], dtype=x.dtype)
x.copy_(torch.ones(8))
x.type()
torch.full((2,), 1.0, dtype=x.dtype)
x.double().to(x.dtype)
x.reshape(2, 4).t()
x.dtype.is_signed
x.is_floating_point()
"""


def said(side: Side, line: str, name: str) -> str:
    """What an expression gives, or the error it raises."""
    torch = side.root
    values: Any = [0.1, 1, 300.0, 448, 460, 470, 1e5, 3]
    x = torch.tensor(values if name in FLOAT8 else [1, 2, 3])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = x.to(getattr(torch, name))
            got = eval(line, {"torch": torch, "x": x, "pickle": __import__("pickle")})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return str(got)


@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize("line", WITH_UNSIGNED.strip().splitlines())
def test_unsigned_integers(name: str, line: str) -> None:
    assert said(SUBJECT, line, name) == said(ORACLE, line, name)


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("line", WITH_FLOAT8.strip().splitlines())
def test_floats_of_eight_bits(name: str, line: str) -> None:
    pytest.importorskip("ml_dtypes", reason="the package with floats of eight bits")
    assert said(SUBJECT, line, name) == said(ORACLE, line, name)


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("line", ["x + 1", "x.sum()", "x.max()", "x @ x", "-x", "x.exp()"])
def test_nothing_is_computed_with_eight_bits(name: str, line: str) -> None:
    """Where PyTorch refuses, a number would be one of two digits."""
    pytest.importorskip("ml_dtypes", reason="the package with floats of eight bits")
    for side in (SUBJECT, ORACLE):
        assert said(side, line, name).startswith(("NotImplementedError", "RuntimeError"))


@pytest.mark.parametrize("name", ["complex32", "chalf", "quint8", "qint8", "qint32"])
def test_types_that_are_names(name: str) -> None:
    ours, theirs = getattr(SUBJECT.root, name), getattr(ORACLE.root, name)
    assert repr(ours) == repr(theirs) and ours.itemsize == theirs.itemsize
    with pytest.raises(RuntimeError, match=f"no tensors of the type {ours!r}"):
        SUBJECT.root.zeros(2, dtype=ours)
