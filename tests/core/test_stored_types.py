"""Types to store elements in: wide unsigned integers and floating-point numbers of 8 bits."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.oracle import attempt, names, torch, tt

pytest.importorskip("ml_dtypes")
UNSIGNED = names("uint16 uint32 uint64")
EIGHTS = names("float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz")
NUMBERS = [0.0, 1.5, -1.5, 17.3, -300.0, 300.0, 1e-3, 2e-5, 1e9, -1e9, float("inf"), float("nan")]
CALLS = [
    "a", "a.tolist()", "a[1].item()", "a.float()", "a.double()", "a.clone()", "a.view(torch.uint8)",
    "a.reshape(-1, 1).t()", "torch.cat([a, a])", "torch.stack([a, a])", "a.type()", "a.dtype.itemsize",
    "a.dtype.is_signed", "a.dtype.is_floating_point", "a.element_size()", "torch.zeros(2, dtype=a.dtype)",
    "torch.empty_like(a).shape", "torch.zeros_like(a)", "a.storage().dtype", "a[a.float() > 1]",
 "torch.promote_types(a.dtype, torch.int8)",
    "torch.promote_types(a.dtype, torch.float32)", "torch.promote_types(a.dtype, a.dtype)",
    "a.to(torch.bfloat16)", "a.unsqueeze(0).stride()", "copy.deepcopy(a)",
    "torch.equal(a.float(), a.clone().float())", "torch.full((2,), 3, dtype=a.dtype)",
]  # fmt: skip


def ask(text: str, T: Any, kind: str) -> Any:
    a = T.tensor([0, 1, 300]).to(getattr(T, kind)) if kind in UNSIGNED else T.tensor([0.5, 1, 300])
    return eval(text, {"torch": T, "a": a.to(getattr(T, kind)), "copy": copy})


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("kind", [*UNSIGNED, *EIGHTS])
def test_same_answers(kind: str, text: str) -> None:
    want, refused = attempt(ask, text, torch, kind)
    got, failed = attempt(ask, text, tt, kind)
    assert type(failed) is type(refused), (failed, refused)
    assert str(got) == str(want)


@pytest.mark.parametrize("source", names("float16 float32 float64 bfloat16"))
@pytest.mark.parametrize("kind", EIGHTS)
def test_rounding(kind: str, source: str) -> None:
    def cast(T: Any) -> list[str]:
        made = T.tensor(NUMBERS, dtype=getattr(T, source)).to(getattr(T, kind))
        return [str(v) for v in made.float().tolist()]

    assert cast(tt) == cast(torch)


@pytest.mark.parametrize("kind", UNSIGNED)
def test_whole_numbers(kind: str) -> None:
    def cast(T: Any) -> list[Any]:
        own = getattr(T, kind)
        return [
            T.tensor([-1, 70000, 3]).to(own).tolist(),
            T.tensor([0.7, 3.9, 200.0]).to(own).tolist(),
            T.tensor([5, 6], dtype=own).to(T.int8).tolist(),
            T.iinfo(own).max,
            T.arange(6).to(own).reshape(2, 3).sum().item(),
        ]

    assert cast(tt) == cast(torch)


@pytest.mark.parametrize(
    "kind",  # PyTorch takes e5m2fnuz's eps for 1/8: it is 1/4
    [*EIGHTS[:3], "float16", "bfloat16", "float32", "float64", "complex64", "complex128"],
)
def test_limits(kind: str) -> None:
    a, b = (T.finfo(getattr(T, kind)) for T in (torch, tt))
    for name in names("bits eps max min tiny smallest_normal resolution"):
        assert getattr(b, name) == getattr(a, name), name
    assert repr(b) == repr(a)
