"""The type of a tensor's elements is read, not written: PyTorch is asked what it says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

TENSORS = {
    "plain": lambda m: m.ones(2),
    "view": lambda m: m.ones(2, 2)[0],
    "gradient": lambda m: m.ones(2, requires_grad=True) * 2,
    "parameter": lambda m: m.nn.Parameter(m.ones(2)),
    "subclass": lambda m: m.ones(2).as_subclass(type("Own", (m.Tensor,), {})),
    "meta": lambda m: m.ones(2, device="meta"),
}


def refused(m: Any, make: Any, act: Any) -> tuple[str, Any, Any]:
    """What a write says, and the type before and after."""
    x = make(m)
    before = x.dtype
    with pytest.raises(AttributeError) as caught:
        act(m, x)
    return str(caught.value), str(before), str(x.dtype)


@pytest.mark.parametrize("name", TENSORS)
def test_no_tensor_takes_another_type(name: str) -> None:
    def write(m: Any, x: Any) -> None:
        x.dtype = m.float64

    def delete(m: Any, x: Any) -> None:
        del x.dtype

    want = refused(torch, TENSORS[name], write)
    assert refused(tt, TENSORS[name], write) == want
    refused(tt, TENSORS[name], delete), refused(torch, TENSORS[name], delete)


def test_a_subclass_may_state_its_own_type() -> None:
    def seen(m: Any) -> Any:
        own = type("Own", (m.Tensor,), {"dtype": property(lambda self: m.float16)})
        x = m.ones(2).as_subclass(own)
        return x.dtype is m.float16, (x + 1).dtype is m.float16, x.double().tolist()

    assert seen(tt) == seen(torch)
