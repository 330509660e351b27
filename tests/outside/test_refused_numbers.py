"""Numbers and options that PyTorch refuses where NumPy would take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.outside.alike import What, same_or_refused, whats

SECOND = ("", "y, ", "i, ", "o, ", "f, ", "1, ", "None, ", "[1], ", "np.int64(1), ")
FURTHER = """
 | True | keepdim=True | keepdim=False | dim=1 | dim=i | dim=y | dim=o | dim=f | axis=i | other=y | other=i | other=1
dim=None | other=None | dim=i, keepdim=True | axis=1, keepdims=True | dim=1, other=y | x2=y | other=y, keepdim=False
"""


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("second", SECOND)
def test_overloads_told_by_names(name: str, second: str) -> None:
    """What is given for `dim` is no other operand, though it is a tensor."""
    for further in FURTHER.replace("\n", "|").split("|"):
        for call in (f"x.{name}({second}{further})", f"m.{name}(x, {second}{further})"):

            def told(m: Any, call: str = call) -> Any:
                x, y = m.arange(12.0).reshape(2, 3, 2) % 5, m.ones(2, 3, 2)
                one = {"i": m.tensor(1), "o": m.tensor([1]), "f": m.tensor(1.0)}
                made = eval(call, {"m": m, "np": np, "x": x, "y": y, **one})
                parts = made if isinstance(made, tuple) else (made,)
                return [p.tolist() for p in parts]

            same_or_refused(told)


@pytest.mark.parametrize(
    "what",
    whats(
        *(
            lambda m, call=call: len(eval(call, {"m": m, "x": m.ones(1, 3, 4), "B": 2**70}))
            for call in (
                "x.tensor_split(B)", "m.tensor_split(x, 2**63)", "x.tensor_split(2, B)", "x.chunk(B)", "x.split(B)",
                "m.unsafe_chunk(x, B)", "m.unsafe_split(x, B)", "x.hsplit(B)", "x.std((B,))",
                "m.hsplit(x, m.tensor([1]))", "m.hsplit(x, m.tensor(True))", "x.hsplit(m.tensor(1))",
            )
        ),
        *(
            lambda m, name=name, n=n, size=size: (
                getattr(m.nn.functional, f"adaptive_{name}_pool{n}d")(m.ones(1, 2, 3, 4, 5)[:1, :, :, 0, 0][
                    (...,) + (None,) * (n - 1)], size).shape == ()
            )
            for name in ("avg", "max")
            for n in (1, 2, 3)
            for size in (True, [True] * n, 2**70, 1.5, [1.5] * n, None, [None] * n)
        ),
        lambda m: m.eye(2, None),
        lambda m: m.eye(2, m=None),
        lambda m: m.eye(2, m=3).tolist(),
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
