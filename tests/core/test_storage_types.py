"""Types that programs store and convert: unsigned integers of 16 to 64 bits, floats of eight bits,
complex numbers of half precision.

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
WITH_COMPLEX32 = """
x
x + x, x - x, x * x, -x, x.conj(), x.sgn(), x.abs()
x + 2, x * 2.5, x * 1j, x + x.real, x * x.real.bfloat16(), x + torch.ones(3), x + torch.tensor(1.0)
x.real, x.imag, torch.view_as_real(x), x.real.stride()
torch.view_as_real(x[:, None].expand(3, 2)).stride(), x.expand(2, 3).T
torch.view_as_real(x[:0, None]).stride(), x[::2], x.unfold(0, 2, 1), x.diag()
torch.view_as_complex(torch.ones(2, 2).half()), torch.complex(x.real, x.imag)
torch.ones(2).half() * 1j, torch.ones(2).bfloat16() * 1j, torch.ones(2).half() * torch.tensor(1j)
x == x, x != x[0], x.isnan(), x.isfinite(), x.any(), (x * 0 + 1j).all(), x.count_nonzero(), x.nonzero()
x.bool(), x.half(), x.float(), x.to(torch.complex64), x.to(torch.complex128), x.real.to(x.dtype), x.int().chalf()
x.sort()
torch.cat([x, x.real]), torch.stack([x, x]), x[[0, 2]], x[1:], x.masked_fill(x == x[0], 1j)
torch.where(x == x[0], x, 2 * x), x.index_add(0, torch.tensor([0]), x[:1]), torch.addcmul(x, x, x)
x.fill_(2j), x.zero_(), x.copy_(torch.ones(3)), x.mul_(2)
x.fill_(complex(1, 1e5))
x.imag.fill_(3), x
torch.manual_seed(0); torch.rand(20, dtype=x.dtype), torch.randn(20, dtype=x.dtype), torch.randn_like(x), x.uniform_()
torch.tensor([1j, 2], dtype=x.dtype), torch.full((2,), 1 + 2j, dtype=x.dtype), torch.zeros(2, dtype=x.dtype)
x.tolist(), x[0].item(), bool(x[0])
x.numpy()
x.type(), x.is_complex(), x.element_size(), torch.finfo(x.dtype), x.dtype.to_real(), torch.half.to_complex()
[torch.promote_types(x.dtype, getattr(torch, d)) for d in "float16 bfloat16 float32 float64 int64 complex64".split()]
x.view(torch.half), x.view(torch.int32), x.real.new_ones(2).view(x.dtype)
torch.empty(2, 3, dtype=x.dtype, device="meta").t() + 1
y = x.requires_grad_() * x; torch.autograd.grad(y.real.float().sum(), x)
torch.set_default_dtype(torch.half); d = [v.dtype for v in (torch.tensor(1j), torch.full((1,), 1j), x.int() * 1j)]; d
"""


def said(side: Side, line: str, name: str) -> str:
    """What an expression gives, or the error it raises."""
    torch = side.root
    values: Any = [0.1, 1, 300.0, 448, 460, 470, 1e5, 3]
    values = [1 + 2j, 0.5j, 3] if name == "complex32" else values if name in FLOAT8 else [1, 2, 3]
    x = torch.tensor(values)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = x.to(getattr(torch, name))
            names = {"torch": torch, "x": x, "pickle": __import__("pickle")}
            first, _, last = line.rpartition("; ")
            exec(first, names)
            got = eval(last, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        torch.set_default_dtype(torch.float32)
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


@pytest.mark.parametrize("line", WITH_COMPLEX32.strip().splitlines())
def test_complex_numbers_of_half_precision(line: str) -> None:
    package = pytest.importorskip("ml_dtypes", reason="the package with complex32")
    if not hasattr(package, "complex32"):
        pytest.skip("ml_dtypes has complex32 from version 0.6 on")
    ours, theirs = (said(side, line, "complex32") for side in (SUBJECT, ORACLE))
    assert ours.replace("toytorch", "torch") == theirs


@pytest.mark.parametrize(
    "line", ["x / x", "x**2", "x.sin()", "x.sum()", "x.mean()", "x @ x", "x.prod()"]
)
def test_little_is_computed_with_them(line: str) -> None:
    for side in (SUBJECT, ORACLE):
        assert said(side, line, "complex32").startswith("NotImplementedError")


@pytest.mark.parametrize("name", ["quint8", "qint8", "qint32"])
def test_types_that_are_names(name: str) -> None:
    ours, theirs = getattr(SUBJECT.root, name), getattr(ORACLE.root, name)
    assert repr(ours) == repr(theirs) and ours.itemsize == theirs.itemsize
    with pytest.raises(RuntimeError, match=f"no tensors of the type {ours!r}"):
        SUBJECT.root.zeros(2, dtype=ours)
