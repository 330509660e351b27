"""Products of matrices as cuBLAS is asked for them, and attention, which is made of them.

cuBLAS itself needs a card. Without one a function of NumPy stands for it, which reads the matrices
where the pointers say, column by column, as cuBLAS does.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuda.test_images_on_cupy import agree, numbers
from tests.oracle import GPU, SELFTEST, tt
from toytorch.backends import base, cupy_products

pytestmark = [
    pytest.mark.usefixtures("compiling_device"),
    pytest.mark.skipif(SELFTEST, reason="PyTorch has its own CUDA"),
]
NAMES = {0: "float32", 1: "float64", 2: "float16"}


class Columns:
    """`cupy_backends.cuda.libs.cublas`, as far as it is used."""

    calls = 0

    @staticmethod
    def matrix(ptr: int, kind: int, shape: tuple[int, int, int], step: int, jump: int) -> Any:
        """A stack of matrices whose columns lie `step` apart."""
        n, rows, columns = shape
        type = np.dtype(NAMES[kind])
        count = (n - 1) * jump + (columns - 1) * step + rows
        memory = (ctypes.c_char * (count * type.itemsize)).from_address(ptr)
        strides = tuple(s * type.itemsize for s in (jump, 1, step))
        return np.ndarray(shape, type, memory, 0, strides)

    @classmethod
    def gemmStridedBatchedEx(
        cls, handle: Any, way: int, other: int, m: int, n: int, k: int, alpha: int, a: int,
        kind: int, lda: int, jump_a: int, b: int, kind_b: int, ldb: int, jump_b: int, beta: int,
        c: int, kind_c: int, ldc: int, jump_c: int, count: int, sums: int, algorithm: int,
    ) -> None:  # fmt: skip
        cls.calls += 1
        assert handle == "handle" and kind == kind_b == kind_c and algorithm == -1
        assert lda >= (k if way else m) and ldb >= (n if other else k) and ldc >= m
        sizes = [(count, k, m) if way else (count, m, k), (count, n, k) if other else (count, k, n)]
        x = cls.matrix(a, kind, sizes[0], lda, jump_a)
        y = cls.matrix(b, kind, sizes[1], ldb, jump_b)
        x, y = (x.swapaxes(1, 2) if way else x), (y.swapaxes(1, 2) if other else y)
        wide = np.float64 if kind == 1 else np.float32
        cls.matrix(c, kind, (count, m, n), ldc, jump_c)[...] = x.astype(wide) @ y.astype(wide)


@pytest.fixture
def columns(compiling_device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if GPU:
        return None
    xp = base.of_kind("cuda").xp
    monkeypatch.setattr(cupy_products, "library", lambda xp: Columns)
    device = type("device", (), {"get_cublas_handle": staticmethod(lambda: "handle")})
    monkeypatch.setattr(xp.cuda, "device", device, raising=False)
    Columns.calls = 0
    return Columns


@st.composite
def laid(draw: st.DrawFn, shape: tuple[int, ...], kind: str) -> Any:
    """A tensor of a shape on the device, whose dimensions lie in any order, with gaps or without."""
    order = draw(st.permutations(range(len(shape))))
    gaps = [draw(st.sampled_from([1, 1, 2])) for _ in shape]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    stored = rng.standard_normal([shape[d] * gaps[d] for d in order]).astype(kind)
    back = sorted(range(len(shape)), key=lambda d: order[d])
    x = tt.from_numpy(stored).cuda().permute(back)
    return x[tuple(slice(None, None, gaps[d]) for d in range(len(shape)))]


@settings(max_examples=120, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["float32", "float64", "float16"]))
def test_any_layout(columns: Any, data: Any, kind: str) -> None:
    sizes = st.integers(1, 4)
    m, k, n, batch = (data.draw(sizes) for _ in range(4))
    lead = data.draw(st.sampled_from([(), (batch,), (batch, 3)]))
    a, b = (data.draw(laid((*lead, *s), kind)) for s in ((m, k), (k, n)))
    want = a.cpu().double().numpy() @ b.cpu().double().numpy()
    before = columns and columns.calls
    got = a @ b
    assert got.is_contiguous() and got.dtype is a.dtype
    near = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-2}[kind]
    assert np.allclose(got.cpu().double().numpy(), want, near, near)
    assert columns is None or columns.calls == before + 1


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_layers(columns: Any, kind: str) -> None:
    agree(
        lambda m, x, w, b: m.nn.functional.linear(x, w, b),
        numbers(kind, (5, 3), (4, 3), (4,)),
        launches=0,
    )
    agree(lambda m, x, w, b: m.addmm(b, x, w.t()), numbers(kind, (5, 3), (4, 3), (4,)), launches=0)
    agree(
        lambda m, x, w: m.einsum("bij,bjk->bik", x, w),
        numbers(kind, (2, 5, 3), (2, 3, 4)),
        launches=0,
    )


def test_half_types_are_not_widened(columns: Any) -> None:
    x, w, b = (tt.from_numpy(a).cuda() for a in numbers("float16", (5, 3), (4, 3), (4,)))
    for got, want in (
        (x @ w.t(), x.float() @ w.float().t()),
        (
            tt.nn.functional.linear(x, w, b),
            tt.nn.functional.linear(*(v.float() for v in (x, w, b))),
        ),
        (tt.bmm(x[None], w.t()[None]), (x.float() @ w.float().t())[None]),
    ):
        assert got.dtype is tt.float16
        assert np.allclose(got.cpu().float().numpy(), want.cpu().numpy(), 2e-3, 2e-3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        x @ w
    with pytest.raises(RuntimeError, match="dtype"):
        x @ w.t().float()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 2, 5, 4), (1, 2, 40, 8)], ids=str)
def test_attention(columns: Any, shape: tuple[int, ...], is_causal: bool) -> None:
    def call(m: Any, q: Any, k: Any, v: Any) -> Any:
        f = m.nn.functional.scaled_dot_product_attention
        return f(q, k, v, is_causal=is_causal) + f(q.transpose(0, 1), k, v, scale=0.3)[:1, :1]

    agree(call, numbers("float64", *[(2, *shape[1:])] * 3))
