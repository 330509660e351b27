"""Tensors that carry a mask, beside PyTorch's."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import alike, torch, tt

SIDES = (tt, torch)
CASES = """
x + 1 | 2 * x | x * x | x - y | y / x | x / y | -x | abs(x) | x.exp() | m.sin(x) | x.clamp(0, 1) | x ** 2 | x.sqrt()
x > 0 | x < 0 | x <= y | x == x | x.sum() | x.sum(0) | x.sum(1, keepdim=True) | x.mean() | x.mean(1) | x.prod(1)
x.amax() | x.amax(1) | x.amin(0) | x.argmax(1) | x.argmin(0) | x.var(1) | x.std(0) | (x > 0).all()
m.sum(x, 1) | m.mean(x) | x.softmax(1) | m.softmax(x, 0) | m.where(x.get_data() > 0, x, y) | x.clone() | x.detach()
x.transpose(0, 1) | x[0] | x[:, 1:] | x.view(12) | x.reshape(4, 3) | x.unsqueeze(0) | x.float() | x.to(m.float32)
x.get_data() | x.get_mask() | x.to_tensor(9.0) | x.t() | x.to_sparse().to_dense()
x.shape, x.dim(), x.dtype, x.layout, x.requires_grad, x.is_leaf, len(x) | M.is_masked_tensor(x) | x.expand(2, 3, 4)
M.as_masked_tensor(d * 2, mask) | m.ones_like(x) | x.add_(1) if not x.requires_grad else 0 | m.maximum(x, x)
repr(x) | repr(x.sum()) | repr(x > 0) | repr(x[0]) | repr(x.argmax(1)) | x.select(0, 1) | x.split(2)
m.cat([x, y]) | m.cat((x, y), dim=1) | m.stack([x, y]) | m.vstack([x, x]) | m.hstack([x, y])
"""
REFUSED = """
M.masked_tensor(3, mask) | M.masked_tensor(d, 3) | M.masked_tensor(d, mask.float()) | M.masked_tensor(d, mask[0])
M.masked_tensor(d, mask[:, :2]) | M.masked_tensor(d + 0j, mask) | x + other | M.masked_tensor(x, mask)
"""


def inputs(m: Any, grad: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    d, e = (m.tensor(rng.standard_normal((3, 4))) for _ in range(2))
    mask = m.tensor(rng.random((3, 4)) > 0.4)
    mask[2] = False
    make = m.masked.masked_tensor
    return {
        "m": m, "M": m.masked, "d": d, "mask": mask, "x": make(d, mask, requires_grad=grad),
        "y": make(e, mask), "other": make(e, ~mask),
    }  # fmt: skip


def seen(value: Any) -> Any:
    if type(value).__name__ == "MaskedTensor":
        mask = value.get_mask()
        return (
            str(value.dtype),
            mask.tolist(),
            value.detach().get_data().masked_fill(~mask, 0).tolist(),
        )
    if isinstance(value, (tt.Tensor, torch.Tensor)):
        return str(value.dtype), value.detach().tolist()
    if isinstance(value, (tuple, list)) and not isinstance(value, (tt.Size, torch.Size)):
        return [seen(v) for v in value]
    return str(value)


def outcome(m: Any, text: str, grad: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space = inputs(m, grad)
        try:
            found = eval(text, space)
        except Exception as e:
            return "raises", type(e).__name__
        results = [seen(found)]
        if grad and getattr(found, "requires_grad", False) and found.grad_fn is not None:
            try:
                total = found.sum() if hasattr(found, "get_mask") else (found * found).sum()
                total.backward()
            except Exception as e:
                return [*results, f"no gradient: {e}"]
            results.append(seen(space["x"].grad)[2])  # of views, PyTorch masks out what they leave
        return results


def cases(text: str) -> list[str]:
    return [c.strip() for line in text.strip().splitlines() for c in line.split(" | ")]


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "gradient"])
@pytest.mark.parametrize("text", cases(CASES))
def test_as_pytorch(text: str, grad: bool) -> None:
    ours, theirs = (outcome(m, text, grad) for m in SIDES)
    assert theirs[0] != "raises", theirs
    if len(theirs) > 1 and str(theirs[1]).startswith("no gradient"):
        ours, theirs = ours[:1], theirs[:1]
    assert alike(ours, theirs), f"{ours}\n{theirs}"


@pytest.mark.parametrize("text", cases(REFUSED))
def test_refused(text: str) -> None:
    ours, theirs = (outcome(m, text, False) for m in SIDES)
    assert ours == theirs
    assert ours[0] == "raises"


def test_copies() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = inputs(tt, False)["x"]
    assert seen(copy.deepcopy(x)) == seen(copy.copy(x)) == seen(x)


SPARSE = """
s.get_data().to_dense() | s.get_mask().to_dense() | (s * s).get_data().to_dense() | m.sin(s).get_data().to_dense()
s.sum() | (s + s).to_dense() | s.to_tensor(7.0).to_dense() if s.layout is m.strided else 0 | s.mean() | (-s).to_dense()
"""


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
@pytest.mark.parametrize(
    "text", [t.strip() for t in SPARSE.replace("\n", "|").strip("|").split("|")]
)
def test_functions_of_sparse_data(text: str, layout: str) -> None:
    def found(m: Any) -> Any:
        data = m.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
        s = m.masked.masked_tensor(getattr(data, layout)(), getattr(data != 0, layout)())
        return seen(eval(text, {"m": m, "s": s}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alike(found(tt), found(torch))


def test_gradients_that_are_asked_for_have_the_mask_of_their_input() -> None:
    def found(m: Any) -> Any:
        make = m.masked.masked_tensor
        x = make(m.arange(3.0), m.tensor([True, False, True]), requires_grad=True)
        w = m.tensor(2.0, requires_grad=True)
        first = m.autograd.grad((m.exp(x) * w).sum(), (x, w))
        second = m.autograd.grad(m.exp(x), x, make(m.ones(3), x.get_mask()), retain_graph=True)
        return [seen(g) for g in (*first, *second)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for got, want in zip(found(tt), found(torch), strict=True):
            alike(got, want)
