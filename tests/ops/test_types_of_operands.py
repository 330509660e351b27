"""Operands of two types, where nothing is promoted: refused by both, in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

CALLS = [
    "f(2, 3, dtype=k) @ f(3, 2)", "f(2, 3) @ f(3, 2, dtype=k)", "f(3, dtype=k) @ f(3)",
    "f(2, 3, dtype=k) @ f(3)", "f(2, 3, 4, dtype=k) @ f(4, 2)", "f(2, 3, 4, dtype=k) @ f(2, 4, 2)",
    "torch.addmm(f(2), f(2, 3, dtype=k), f(3, 2))", "torch.addmm(f(2, dtype=k), f(2, 3), f(3, 2))",
    "torch.addmv(f(2), f(2, 3, dtype=k), f(3))", "torch.addmv(f(2, dtype=k), f(2, 3), f(3))",
    "torch.baddbmm(f(2, 2, 2), f(2, 2, 3, dtype=k), f(2, 3, 2))",
    "torch.baddbmm(f(2, 2, 2, dtype=k), f(2, 2, 3), f(2, 3, 2))",
    "F.linear(f(2, 3, dtype=k), f(2, 3))", "F.linear(f(2, 3, dtype=k), f(2, 3), f(2))",
    "F.linear(f(3, dtype=k), f(2, 3), f(2))", "F.linear(f(2, 2, 3, dtype=k), f(2, 3), f(2))",
    "F.linear(f(2, 2, 3), f(2, 3, dtype=k), f(2))", "F.linear(f(2, 3), f(2, 3), f(2, dtype=k))",
    "F.linear(f(3), f(2, 3), f(2, dtype=k))", "F.linear(f(2, 4, 2, 3), f(2, 3), f(2, dtype=k))",
    "F.bilinear(f(2, 3, dtype=k), f(2, 3), f(2, 3, 3), f(2))",
    "torch.einsum('ij,jk', f(2, 3, dtype=k), f(3, 2))",
    "F.conv2d(f(1, 1, 3, 3, dtype=k), f(1, 1, 2, 2))",
    "F.conv2d(f(1, 1, 3, 3, dtype=k), f(1, 1, 2, 2), f(1))",
    "F.conv2d(f(1, 1, 3, 3), f(1, 1, 2, 2, dtype=k), f(1))",
    "F.conv2d(f(1, 1, 3, 3, dtype=k), f(1, 1, 2, 2, dtype=k), f(1))",
    "F.conv_transpose2d(f(1, 1, 3, 3, dtype=k), f(1, 1, 2, 2), f(1))",
    "nn.LSTMCell(3, 4)(f(2, 3, dtype=k))", "nn.MultiheadAttention(4, 2)(*[f(2, 3, 4, dtype=k)] * 3)",
    "F.scaled_dot_product_attention(f(1, 2, 3, dtype=k), f(1, 2, 3), f(1, 2, 3))",
    "nn.PReLU()(f(3, dtype=k))", "F.binary_cross_entropy(f(3) * 0.5, f(3, dtype=k))",
    "f(3).index_add(0, torch.tensor([0]), f(1, dtype=k))",
    "f(3).index_copy(0, torch.tensor([0]), f(1, dtype=k))", "f(3).lerp(f(3, dtype=k), 0.5)",
    "torch.cdist(f(2, 3), f(2, 3, dtype=k))",
    "F.grid_sample(f(1, 1, 2, 2), f(1, 2, 2, 2, dtype=k), align_corners=False)",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16", "int64"])
@pytest.mark.parametrize("call", CALLS)
def test_two_types_are_refused_as_by_pytorch(call: str, kind: str) -> None:
    def said(m: Any) -> str:
        names = {"torch": m, "nn": m.nn, "F": m.nn.functional, "f": m.ones, "k": getattr(m, kind)}
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            eval(call, names)
        return f"{caught.type.__name__}: {caught.value}".split("\n")[0]

    assert said(tt) == said(torch)
