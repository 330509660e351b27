"""Compressed sparse tensors: values, text, errors and gradients, the same on both sides."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.sparse.programs import shown

ROWS = [[0, 2.0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 5], [0, 0, 1, 0]]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():  # PyTorch says once that these layouts are new
        warnings.simplefilter("ignore")
        yield


def x(m: Any, grad: bool = False) -> Any:
    """A matrix with zeros."""
    return m.root.tensor(ROWS, requires_grad=grad)


def csr(m: Any) -> Any:
    return x(m).to_sparse_csr()


def csc(m: Any) -> Any:
    return x(m).to_sparse_csc()


def bsr(m: Any) -> Any:
    return x(m).to_sparse_bsr((2, 2))


def batch(m: Any) -> Any:
    return m.root.stack([x(m), x(m) * 2])


def made(m: Any, *parts: Any, **options: Any) -> Any:
    """A CSR tensor whose indices are looked at."""
    return m.root.sparse_csr_tensor(*parts, check_invariants=True, **options)


FOUR = [1.0, 2, 3, 4]
SHOWN = {
    "csr": csr, "csc": csc, "bsr": bsr, "bsc": lambda m: x(m).to_sparse_bsc((2, 2)),
    "batches": lambda m: batch(m).to_sparse_csr(),
    "batches of blocks": lambda m: batch(m).to_sparse_bsr((2, 2)),
    "dense parts": lambda m: batch(m).to_sparse_csr(dense_dim=1),
    "grad": lambda m: csr(m).requires_grad_(),
    "of lists": lambda m: m.root.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], [1, 2, 3, 4]),
    "a dtype": lambda m: made(m, [0, 2, 4], [0, 1, 0, 1], FOUR, (2, 2), dtype=m.root.float64),
    "csc of lists": lambda m: m.root.sparse_csc_tensor([0, 2, 4], [0, 1, 0, 1], FOUR),
    "bsr of lists": lambda m: m.root.sparse_bsr_tensor([0, 1, 2], [0, 1], m.dense(2, 2, 3)),
    "bsc of lists": lambda m: m.root.sparse_bsc_tensor([0, 1, 2], [0, 1], m.dense(2, 2, 3)),
    "a layout": lambda m: m.root.sparse_compressed_tensor(
        [0, 2, 4], [0, 1, 0, 1], FOUR, layout=m.root.sparse_csr),
    "no entries": lambda m: m.root.sparse_csr_tensor([0, 0, 0], [], [], (2, 2)),
    "int32": lambda m: m.root.sparse_csr_tensor(
        m.root.tensor([0, 1, 2], dtype=m.root.int32),
        m.root.tensor([0, 1], dtype=m.root.int32), m.dense(2)).crow_indices(),
    "hybrid": lambda m: m.root.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], m.dense(4, 2)),
    "parts": lambda m: (csr(m).crow_indices(), csr(m).col_indices(), csc(m).ccol_indices(),
                        csc(m).row_indices(), csr(m).values()),
    "flags": lambda m: (csr(m).is_sparse, csr(m).is_sparse_csr, csc(m).is_sparse_csr,
                        csr(m).layout, bsr(m).layout, csr(m).is_leaf),
    "dims": lambda m: (csr(m).sparse_dim(), csr(m).dense_dim(), csr(m)._nnz(), csr(m).numel(),
                       batch(m).to_sparse_csr().dense_dim()),
    "to_sparse(layout=)": lambda m: x(m).to_sparse(layout=m.root.sparse_csr),
    "strided": lambda m: csr(m).to_sparse(layout=m.root.strided),
    "to coo": lambda m: csr(m).to_sparse(), "csc to coo": lambda m: csc(m).to_sparse(),
    "bsr to coo": lambda m: bsr(m).to_sparse(),
    "batches to coo": lambda m: batch(m).to_sparse_csr().to_sparse(),
    "coo to csr": lambda m: x(m).to_sparse().to_sparse_csr(),
    "coo to bsr": lambda m: x(m).to_sparse().to_sparse_bsr((2, 2)),
    "csr to csc": lambda m: csr(m).to_sparse_csc(), "csc to csr": lambda m: csc(m).to_sparse_csr(),
    "csr to bsr": lambda m: csr(m).to_sparse_bsr((2, 2)),
    "bsr to bsc": lambda m: bsr(m).to_sparse_bsc((2, 2)),
    "to_dense": lambda m: (csr(m).to_dense(), csc(m).to_dense(), bsr(m).to_dense()),
    "batches to dense": lambda m: batch(m).to_sparse_bsr((2, 2)).to_dense(),
    "hybrid to dense": lambda m: batch(m).to_sparse_csr(dense_dim=1).to_dense(),
    "t": lambda m: csr(m).t(), "blocks turned": lambda m: bsr(m).transpose(0, 1),
    "batches turned": lambda m: batch(m).to_sparse_csr().transpose(-1, -2),
    "a row": lambda m: csr(m)[1], "a column": lambda m: csr(m).select(1, 2),
    "an element": lambda m: csr(m)[0, 1], "one of a batch": lambda m: batch(m).to_sparse_csr()[1],
    "+": lambda m: csr(m) + csr(m), "other places": lambda m: csr(m) + x(m).t().to_sparse_csr(),
    "+ dense": lambda m: csr(m) + x(m), "dense +": lambda m: x(m) + csr(m),
    "* number": lambda m: csr(m) * 2, "* tensor": lambda m: csr(m) * m.root.tensor(2.0),
    "*": lambda m: csr(m) * csr(m), "* other": lambda m: csr(m) * x(m).t().to_sparse_csr(),
    "* dense": lambda m: csr(m) * x(m), "dense *": lambda m: x(m) * csr(m),
    "-": lambda m: -csr(m), "sin": lambda m: csr(m).sin(), "abs": lambda m: csr(m).abs(),
    "isnan": lambda m: csr(m).isnan(), "double": lambda m: csr(m).double(),
    "sum": lambda m: csr(m).sum(), "sum of rows": lambda m: csr(m).sum(1, keepdim=True),
    "sum of columns": lambda m: csr(m).sum(0, keepdim=True),
    "@": lambda m: csr(m) @ x(m), "dense @": lambda m: x(m) @ csr(m), "@ @": lambda m: csr(m) @ csr(m),
    "csc @": lambda m: csc(m) @ x(m), "csc @ csc": lambda m: csc(m) @ csc(m),
    "csc @ csr": lambda m: csc(m) @ csr(m), "bsr @": lambda m: bsr(m) @ x(m),
    "@ vector": lambda m: (csr(m) @ x(m)[0], csc(m) @ x(m)[0], bsr(m) @ x(m)[0]),
    "addmm": lambda m: m.root.addmm(x(m), csr(m), x(m), beta=2, alpha=3),
    "addmm of sparse": lambda m: m.root.addmm(csr(m), csr(m), csr(m)),
    "addmv": lambda m: m.root.addmv(x(m)[0], csr(m), x(m)[1], beta=2, alpha=3),
    "sparse.mm": lambda m: (m.root.sparse.mm(csr(m), x(m)), m.root.sparse.mm(csr(m), csr(m))),
    "sampled_addmm": lambda m: m.root.sparse.sampled_addmm(csr(m), x(m), x(m)),
    "sparse_mask": lambda m: x(m).t().contiguous().sparse_mask(csr(m)),
    "spdiags": lambda m: m.root.sparse.spdiags(
        m.root.tensor([[1, 2, 3]]), m.root.tensor([1]), (3, 3), layout=m.root.sparse_csc),
    "zeros": lambda m: m.root.zeros(2, 3, 4, layout=m.root.sparse_csr),
    "zeros_like": lambda m: m.root.zeros_like(bsr(m)),
    "zeros_like dense": lambda m: m.root.zeros_like(x(m), layout=m.root.sparse_csr),
    "ones_like": lambda m: m.root.ones_like(csr(m)), "full_like": lambda m: m.root.full_like(csr(m), 7),
    "zero_": lambda m: csr(m).zero_(), "fill_": lambda m: csr(m).fill_(3), "mul_": lambda m: csr(m).mul_(2),
    "copy_": lambda m: csr(m).copy_(csr(m) * 3),
    "meta": lambda m: m.root.sparse_compressed_tensor(
        [0, 2], [0, 1], [1.0, 2], (1, 2), layout=m.root.sparse_csr, device="meta"),
}  # fmt: skip
REFUSED = {
    "starts at 1": lambda m: made(m, [1, 2, 4], [0, 1, 0, 1], FOUR, (2, 2)),
    "ends early": lambda m: made(m, [0, 2, 3], [0, 1, 0, 1], FOUR, (2, 2)),
    "falls": lambda m: made(m, [0, 5, 4], [0, 1, 0, 1], FOUR, (2, 2)),
    "more than fit": lambda m: made(m, [0, 4, 4], [0, 1, 0, 1], FOUR, (2, 2)),
    "out of order": lambda m: made(m, [0, 2, 4], [1, 0, 0, 1], FOUR, (2, 2)),
    "outside": lambda m: made(m, [0, 2, 4], [0, 1, 0, 5], FOUR, (2, 2)),
    "negative": lambda m: made(m, [0, 2, 4], [0, 1, -1, 1], FOUR, (2, 2)),
    "too few places": lambda m: made(m, [0, 2, 4], [0, 1, 0], FOUR, (2, 2)),
    "too few ends": lambda m: made(m, [0, 2], [0, 1, 0, 1], FOUR, (2, 2)),
    "one size": lambda m: made(m, [0, 2, 4], [0, 1, 0, 1], FOUR, (2,)),
    "three sizes": lambda m: made(m, [0, 2, 4], [0, 1, 0, 1], FOUR, (2, 2, 2)),
    "batch of ends": lambda m: made(m, [[0, 2, 4]], [0, 1, 0, 1], FOUR, (2, 2)),
    "a number for ends": lambda m: made(m, 0, [0, 1, 0, 1], FOUR, (2, 2)),
    "a number for values": lambda m: made(m, [0, 2, 4], [0, 1, 0, 1], 1.0, (2, 2)),
    "float ends": lambda m: made(m, m.root.tensor([0, 2, 4.0]), m.root.tensor([0, 1, 0, 1.0]),
                                 m.dense(4), (2, 2)),
    "no size": lambda m: m.root.sparse_csr_tensor(m.dense(3), m.dense(4), m.dense(4)),
    "block size": lambda m: m.root.sparse_bsr_tensor(
        [0, 1, 2], [0, 1], m.dense(2, 2, 3), (5, 6), check_invariants=True),
    "no layout": lambda m: m.root.sparse_compressed_tensor([0, 2, 4], [0, 1, 0, 1], FOUR),
    "coo": lambda m: m.root.sparse_compressed_tensor(
        [0, 2, 4], [0, 1, 0, 1], FOUR, layout=m.root.sparse_coo),
    "uneven batches": lambda m: m.root.stack([x(m), m.dense(4, 4)]).to_sparse_csr(),
    "blocks of 3": lambda m: x(m).to_sparse_bsr((3, 2)), "blocks of 0": lambda m: x(m).to_sparse_bsr((0, 2)),
    "one blocksize": lambda m: x(m).to_sparse_bsr((2,)), "text": lambda m: x(m).to_sparse_bsr("a"),
    "no blocksize": lambda m: x(m).to_sparse(layout=m.root.sparse_bsr),
    "a blocksize": lambda m: x(m).to_sparse(layout=m.root.sparse_csr, blocksize=(2, 2)),
    "dense_dim": lambda m: x(m).to_sparse_csr(dense_dim=1),
    "coo of one dim": lambda m: x(m).to_sparse(1).to_sparse_csr(),
    "bsr to csr": lambda m: bsr(m).to_sparse_csr(),
    "other blocks": lambda m: bsr(m).to_sparse_bsr((1, 1)),
    "to_sparse(1)": lambda m: csr(m).to_sparse(1),
    "batch with row": lambda m: batch(m).to_sparse_csr().transpose(0, 1),
    "strides": lambda m: csr(m).stride(), "contiguous": lambda m: csr(m).is_contiguous(),
    "numpy": lambda m: csr(m).numpy(), "storage": lambda m: csr(m).untyped_storage(),
    "data_ptr": lambda m: csr(m).data_ptr(), "coalesce": lambda m: csr(m).coalesce(),
    "indices": lambda m: csr(m).indices(), "_values": lambda m: csr(m)._values(),
    "ccol_indices": lambda m: csr(m).ccol_indices(), "crow of csc": lambda m: csc(m).crow_indices(),
    "crow of dense": lambda m: x(m).crow_indices(), "row of coo": lambda m: x(m).to_sparse().row_indices(),
    "exp": lambda m: csr(m).exp(), "==": lambda m: csr(m) == csr(m), "pow": lambda m: csr(m).pow(2),
    "sub": lambda m: csr(m) - csr(m), "sum(0)": lambda m: csr(m).sum(0),
    "max": lambda m: csr(m).max(), "view": lambda m: csr(m).view(16), "reshape": lambda m: csr(m).reshape(16),
    "shapes": lambda m: csr(m) @ x(m)[:2], "types": lambda m: csr(m) @ x(m).double(),
    "vector": lambda m: csr(m) @ x(m)[0, :2], "integers": lambda m: csr(m).long() @ x(m).long(),
    "@ coo": lambda m: csr(m) @ x(m).to_sparse(), "dense @ blocks": lambda m: x(m) @ bsr(m),
    "expand": lambda m: csr(m).expand(2, 4, 4), "rand_like": lambda m: m.root.rand_like(csr(m)),
    "empty of blocks": lambda m: m.root.empty(2, 4, layout=m.root.sparse_bsr),
    "full": lambda m: m.root.full((2, 4), 1.0, layout=m.root.sparse_coo),
    "other layout": lambda m: m.root.zeros_like(csr(m), layout=m.root.strided),
    "mask in coordinates": lambda m: csr(m).sparse_mask(x(m).to_sparse()),
    "item": lambda m: csr(m).item(), "diagonals": lambda m: m.root.sparse.spdiags(
        m.dense(1, 3), m.root.tensor([1]), (3, 3), layout=m.root.sparse_bsr),
}  # fmt: skip


def through(op: Any, of: Any = csr) -> Any:
    """A program: the gradients of a sparse operand and a dense one, and the node."""

    def run(m: Any) -> Any:
        a, d = of(m).requires_grad_(), m.dense(4, 4, grad=True)
        y = op(m, a, d)
        (y if y.layout is m.root.strided else y.to_dense()).sum().backward()
        return type(y.grad_fn).__name__, a.grad, d.grad

    return run


GRADIENTS = {
    "@": through(lambda m, a, d: a @ d), "dense @": through(lambda m, a, d: d @ a),
    "sparse.mm": through(lambda m, a, d: m.root.sparse.mm(a, d)),
    "@ vector": through(lambda m, a, d: a @ d[0]), "@ @": through(lambda m, a, d: a @ a),
    "addmm": through(lambda m, a, d: m.root.addmm(d, a, d)),
    "to_dense": through(lambda m, a, d: a.to_dense()),
    "unmasked": through(lambda m, a, d: a.to_dense(masked_grad=False)),
    "values": through(lambda m, a, d: a.values()), "* 2": through(lambda m, a, d: a * 2),
    "+": through(lambda m, a, d: a + a), "t": through(lambda m, a, d: a.t()),
    "sum": through(lambda m, a, d: a.sum()), "clone": through(lambda m, a, d: a.clone()),
    "to csc": through(lambda m, a, d: a.to_sparse_csc()), "to coo": through(lambda m, a, d: a.to_sparse()),
    "of dense": through(lambda m, a, d: d.to_sparse_csr()),
    "values of dense": through(lambda m, a, d: d.to_sparse_csr().values()),
    "blocks of dense": through(lambda m, a, d: d.to_sparse_bsr((2, 2))),
    "constructed": through(lambda m, a, d: m.root.sparse_csr_tensor(
        a.crow_indices(), a.col_indices(), d.reshape(16)[:5], (4, 4))),
    "csc @": through(lambda m, a, d: a @ d, csc),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SHOWN))
def test_shown(name: str) -> None:
    shown(SHOWN[name])


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(name: str) -> None:
    shown(REFUSED[name])


@pytest.mark.parametrize("name", list(GRADIENTS))
def test_gradients(name: str) -> None:
    shown(GRADIENTS[name])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_coo"])
def test_gradcheck(layout: str, fast: bool, masked: bool) -> None:
    dense = tt.tensor(ROWS, dtype=tt.float64)
    size = (2, 2) if layout == "sparse_bsr" else None
    a = dense.to_sparse(layout=getattr(tt, layout), blocksize=size).requires_grad_()
    d = tt.rand(4, 3, dtype=tt.float64, requires_grad=True)
    product = tt.sparse.mm if masked else tt.mm
    assert tt.autograd.gradcheck(product, (a, d), masked=masked, fast_mode=fast)
    wrong = a.detach().requires_grad_()
    with pytest.raises(RuntimeError, match="mismatch"):
        tt.autograd.gradcheck(lambda a: a.to_dense() * a.detach().to_dense(), wrong, masked=masked,
                              fast_mode=fast)  # fmt: skip
    with pytest.raises(ValueError, match="Sparse output is not supported"):
        tt.autograd.gradcheck(lambda a: a * 2, (a,), masked=masked, fast_mode=fast)


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_copies_and_files(layout: str) -> None:
    def same(a: Any, b: Any) -> None:
        assert a.layout is b.layout and a.dtype is b.dtype and a.shape == b.shape
        tt.testing.assert_close(a, b)

    size = (2, 2) if layout[-3] == "b" else None
    a = tt.tensor(ROWS).to_sparse(layout=getattr(tt, layout), blocksize=size)
    for b in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a)), a.clone()):
        same(a, b)
    file = io.BytesIO()
    tt.save({"a": a}, file)
    file.seek(0)
    same(a, tt.load(file)["a"])
    file.seek(0)
    theirs = torch.load(file)["a"]
    assert str(theirs) == str(a)
    theirs_file = io.BytesIO()
    torch.save(theirs, theirs_file)
    theirs_file.seek(0)
    same(a, tt.load(theirs_file))


def test_sums_of_blocks() -> None:
    """PyTorch asks MKL, which fails for some."""
    b = tt.tensor(ROWS).to_sparse_bsr((2, 2))
    assert (b + b).layout is tt.sparse_bsr and (b + b).to_dense().tolist() == (
        2 * tt.tensor(ROWS)
    ).tolist()


def test_close() -> None:
    """What assert_close says of tensors that differ."""
    for change in (lambda c: c * 2, lambda c: c.t().t(), lambda c: c.to_dense()):
        told = []
        for root in (torch, tt):
            c = root.tensor(ROWS).to_sparse_csr()
            try:
                root.testing.assert_close(change(c), c)
                told.append("")
            except AssertionError as error:
                told.append(str(error).replace("toytorch", "torch"))
        assert told[0] == told[1]


def test_compiled_and_traced() -> None:
    """A product with a compressed matrix, as an argument and as a constant of a graph."""
    a, w = tt.tensor(ROWS).to_sparse_csr(), tt.ones(4, 2)
    want = (a @ w).tolist()
    assert tt.compile(lambda x, y: x @ y)(a, w).tolist() == want
    assert tt.jit.trace(lambda y: a @ y, (w,))(w).tolist() == want
