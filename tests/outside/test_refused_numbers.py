"""Numbers and options that PyTorch refuses where NumPy would take them."""

from __future__ import annotations

import pytest

from tests.outside.alike import What, same_or_refused, whats


@pytest.mark.parametrize(
    "what",
    whats(
        *(
            lambda m, kind=kind, low=low, high=high: (
                m.ones(2).to(getattr(m, kind)).clamp(low, high).tolist()
            )
            for kind in ("uint8", "int8", "int16", "int32", "int64", "bool", "float32")
            for low, high in ((None, 300), (-300, None), (-1, 2), (0, 255), (-1, 2**40), (None, 2**31))
        ),
        lambda m: m.clamp_max(m.ones(2, dtype=m.uint8), 300),
        lambda m: m.ones(2, dtype=m.uint8).clamp_min(256),
        lambda m: m.ones(2, dtype=m.uint8).clamp_(0, 300),
        lambda m: m.ones(2, dtype=m.uint8).clamp(max=m.tensor(300)).tolist(),
        lambda m: m.mvlgamma(m.ones(2), 2**40),
        lambda m: m.nan_to_num(m.ones(2), nan=1j),
        lambda m: m.nan_to_num(m.ones(2), 1j),
        lambda m: m.nan_to_num(m.ones(2), nan=2**70).tolist(),
        lambda m: m.ones(2).nan_to_num_(nan=2**70).tolist(),
        lambda m: m.ones(2).index_copy(m.tensor(1), m.tensor([0]), m.ones(1)),
        lambda m: m.ones(2).index_copy(m.tensor(0), m.tensor([0]), m.ones(1)).tolist(),
        lambda m: m.arange(None, 3),
        lambda m: m.arange(None),
        lambda m: m.arange(1, None),
        lambda m: m.arange(1, 3, None),
        lambda m: m.arange(start=0, end=3).tolist(),
        lambda m: m.arange(end=3).tolist(),
        lambda m: m.randint(3, 3, (2,)),
        lambda m: m.randint(2**63, (2,)),
        lambda m: m.randint(m.tensor([3]), (2,)).shape == (2,),
        lambda m: m.randint(1.5, (2,)),
        *(
            lambda m, name=name, args=args, pinned=pinned: (
                getattr(m, name)(*args, pin_memory=pinned).dtype.itemsize
            )
            for name, args in (
                ("ones", (2,)), ("full", ((2,), 1)), ("tensor", ([1],)), ("rand", (2,)), ("arange", (3,)),
                ("randint", (3, (2,))), ("randperm", (3,)), ("hann_window", (3,)), ("empty", (2,)),
            )
            for pinned in (True, False)
        ),
    ),
)  # fmt: skip
def test_calls(what: What) -> None:
    same_or_refused(what)
