"""Values, flags and text of sparse tensors: every program prints the same on both sides."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, names, torch, tt
from tests.sparse.programs import Made, shown

BEYOND = pytest.mark.skipif(SELFTEST, reason="what PyTorch does not do, or does wrong")
CONSTRUCTED = {
    "lists": lambda m: m.coo([[0, 1], [1, 0]], [1, 2]),
    "tensors": lambda m: m.coo(m.root.tensor([[0, 2]]), m.root.tensor([1.0, 2.0])),
    "int32 indices": lambda m: m.coo(m.root.tensor([[0]], dtype=m.root.int32), [1], (3,)).indices(),
    "float indices": lambda m: m.coo(m.root.tensor([[0.0, 2.0]]), [1, 2], (3,)),
    "a dtype": lambda m: m.coo([[0, 2]], [1, 2], (3,), dtype=m.root.float64),
    "int32": lambda m: m.coo([[0, 2]], m.root.tensor([1, 2], dtype=m.root.int32)),
    "half": lambda m: m.coo([[0, 2]], m.root.tensor([1, 2.5], dtype=m.root.float16)),
    "complex": lambda m: m.coo([[0, 2]], [1j, 2 + 1j]),
    "bool": lambda m: m.coo([[0, 2]], [True, False]),
    "a size": lambda m: m.coo((2, 3)), "size=": lambda m: m.coo(size=(2, 3)),
    "no entries": lambda m: m.coo(m.root.zeros(2, 0), m.root.zeros(0)),
    "no dims": lambda m: m.coo(m.root.zeros(0, 3), m.root.tensor([1.0, 2.0, 3.0]), ()).coalesce(),
    "blocks": lambda m: m.hybrid(), "two at a place": lambda m: m.loose(),
    "grad": lambda m: m.loose(True),
    "of values with a graph": lambda m: m.coo([[0, 1]], m.dense(2, grad=True), (3,)),
    "one entry": lambda m: m.coo([[0]], [1], (3,)).is_coalesced(),
    "said to be loose": lambda m: m.coo([[0]], [1], (3,), is_coalesced=False).is_coalesced(),
    "checked": lambda m: m.coo([[0, 2]], [1, 2], (3,), check_invariants=True),
    "zeros": lambda m: m.root.zeros(2, 3, layout=m.root.sparse_coo),
    "zeros_like": lambda m: m.root.zeros_like(m.tidy()),
    "zeros_like dense": lambda m: m.root.zeros_like(m.dense(2), layout=m.root.sparse_coo),
    "zeros_like blocks": lambda m: m.root.zeros_like(m.hybrid()).to_dense(),
    "empty_like": lambda m: m.root.empty_like(m.tidy()),
    "new_zeros": lambda m: m.tidy().new_zeros(2, 2),
    "to_sparse": lambda m: m.dense(2, 2).to_sparse(),
    "to_sparse of holes": lambda m: m.root.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse(),
    "to_sparse blocks": lambda m: m.root.tensor([[0.0, 0.0], [2.0, 0.0]]).to_sparse(1),
    "to_sparse 0-d": lambda m: (m.root.tensor(2.0).to_sparse(), m.root.tensor(0.0).to_sparse()),
    "to_sparse layout": lambda m: m.dense(2).to_sparse(layout=m.root.sparse_coo),
    "to_sparse twice": lambda m: m.loose().to_sparse(),
    "to_sparse with a graph": lambda m: m.dense(2, grad=True).to_sparse(),
    "long": lambda m: m.root.eye(40).to_sparse(),
    "summarized": lambda m: m.root.ones(40, 40).to_sparse(),
    "spdiags": lambda m: m.root.sparse.spdiags(
        m.dense(2, 3), m.root.tensor([0, 1]), (3, 3)).coalesce(),
}  # fmt: skip
PARTS = {
    "flags": lambda m: [
        (x.layout, x.is_sparse, x.shape, x.ndim, x.numel(), x.dtype, x.device, x.is_leaf,
         x.requires_grad, len(x), x.stride(), x.storage_offset(), x.is_contiguous(), x._nnz(),
         x.sparse_dim(), x.dense_dim(), x.is_coalesced(), x.type(), x.element_size(), x._version)
        for x in (m.tidy(), m.loose(), m.hybrid())],
    "of dense": lambda m: (m.dense(2, 3).sparse_dim(), m.dense(2, 3).dense_dim(),
                           m.dense(2).layout, m.dense(2).is_sparse),
    "coalesce": lambda m: m.loose().coalesce(),
    "indices": lambda m: m.loose().coalesce().indices(),
    "values": lambda m: m.loose().coalesce().values(),
    "_indices": lambda m: m.loose()._indices(), "_values": lambda m: m.loose(True)._values(),
    "with a graph": lambda m: [m.loose(True).coalesce(), m.loose(True).coalesce().values(),
                               m.loose(True).to_dense()],
    "dense of dense": lambda m: (lambda x: x.to_dense() is x)(m.dense(2)),
    "detach": lambda m: m.loose(True).detach(), "data": lambda m: m.loose(True).data,
    "deepcopy": lambda m: copy.deepcopy(m.loose(True)),
    "item": lambda m: (m.coo([[0]], [2.0], (1,)).item(), bool(m.coo([[0]], [2.0], (1,)))),
    "isinstance": lambda m: isinstance(m.tidy(), m.root.Tensor),
    "Parameter": lambda m: m.root.nn.Parameter(m.loose()),
    "format": lambda m: f"{m.loose()}",
    "_coalesced_": lambda m: m.loose()._coalesced_(True).is_coalesced(),
    "resize": lambda m: m.loose().sparse_resize_((4, 5), 2, 0),
    "resize and clear": lambda m: m.loose().sparse_resize_and_clear_((4, 5), 1, 1),
    "mask": lambda m: m.dense(2, 3).sparse_mask(m.tidy()),
    "loose mask": lambda m: m.dense(2, 3).sparse_mask(m.loose()),
    "mask of sparse": lambda m: m.loose().sparse_mask(m.coo([[0, 1], [0, 2]], [1, 1], (2, 3))),
    "mask of blocks": lambda m: m.root.ones(3, 3, 2, 2).sparse_mask(m.hybrid()),
}  # fmt: skip
ARITHMETIC = {
    "add": lambda m: m.tidy() + m.tidy(),
    "add alpha": lambda m: m.tidy().add(m.tidy(), alpha=2),
    "add other places": lambda m: m.tidy() + m.coo([[0], [0]], [1.0], (2, 3)),
    "add loose": lambda m: (m.loose() + m.tidy()).to_dense(),
    "add int": lambda m: m.tidy() + m.root.ones(2, 3, dtype=m.root.int64).to_sparse(),
    "dense add": lambda m: m.dense(2, 3) + m.loose(),
    "dense add alpha": lambda m: m.root.add(m.dense(2, 3), m.tidy(), alpha=3),
    "dense add blocks": lambda m: m.root.ones(3, 3, 2, 2) + m.hybrid(),
    "sub": lambda m: m.tidy() - m.tidy(), "dense sub": lambda m: m.dense(2, 3) - m.loose(),
    "mul number": lambda m: (m.loose() * 2, 2 * m.tidy(), m.tidy() * m.root.tensor(2.0)),
    "mul int by float": lambda m: m.root.tensor([1, 0, 2]).to_sparse() * 2.5,
    "mul": lambda m: m.tidy() * m.tidy(), "mul mixed": lambda m: m.loose() * m.tidy(),
    "mul loose": lambda m: m.loose() * m.loose(),
    "mul other places": lambda m: m.tidy() * m.coo([[0, 1], [0, 2]], [1.0, 2.0], (2, 3)),
    "mul dense": lambda m: (m.tidy() * m.dense(2, 3), m.dense(2, 3) * m.loose()),
    "mul row": lambda m: m.tidy() * m.dense(3), "mul column": lambda m: m.tidy() * m.dense(2, 1),
    "mul wider": lambda m: m.tidy() * m.root.ones(4, 2, 3),
    "mul blocks": lambda m: m.hybrid() * m.dense(3, 3, 2, 2),
    "div": lambda m: (m.loose() / 2, m.tidy() / m.root.tensor(2.0)),
    "div int": lambda m: m.root.tensor([1, 0, 2]).to_sparse() / 2,
    "floor": lambda m: m.tidy().div(0.1, rounding_mode="floor"),
    "floor_divide": lambda m: m.tidy() // 0.2,
    "pow": lambda m: (m.loose() ** 2, m.tidy() ** -1, m.tidy().square()),
    "float_power": lambda m: m.tidy().float_power(2),
    "neg": lambda m: (-m.loose(), m.loose().clone()),
    "any": lambda m: (m.loose().any(), m.coo((2,)).any()), "norm": lambda m: m.loose().norm(),
    "to": lambda m: (m.loose().double(), m.loose().to("cpu", m.root.float64), m.loose().cpu()),
    "to int": lambda m: m.tidy().mul(10).long(),
    "complex": lambda m: m.coo([[0]], [1 + 2j], (2,)).conj().to_dense(),
    "abs of complex": lambda m: m.coo([[0]], [3 + 4j], (2,)).abs(),
}  # fmt: skip
for _name in names(
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf "
    "isposinf log1p nan_to_num rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc"
):
    ARITHMETIC[_name] = lambda m, name=_name: getattr(m.loose(), name)()  # type: ignore[misc]
ARITHMETIC["sin of int"] = lambda m: m.root.tensor([1, 0, 2]).to_sparse().sin()
WRITES = {
    "mul_": lambda m: m.loose().mul_(2), "neg_": lambda m: m.loose().neg_(),
    "mul_ dense": lambda m: m.tidy().mul_(m.dense(2, 3)), "sin_": lambda m: m.tidy().sin_(),
    "add_": lambda m: m.tidy().add_(m.tidy()), "sub_": lambda m: m.tidy().sub_(m.tidy()),
    "div_": lambda m: m.tidy().div_(2), "zero_": lambda m: m.loose().zero_(),
    "dense add_": lambda m: m.dense(2, 3).add_(m.loose(), alpha=2),
    "dense mul_": lambda m: m.dense(2, 3).mul_(m.tidy()),
    "copy_": lambda m: m.tidy().copy_(m.loose()), "t_": lambda m: m.loose().t_(),
    "version": lambda m: (lambda x: (x.mul_(2), x._version)[1])(m.tidy()),
}  # fmt: skip
LAYOUT = {
    "t": lambda m: (m.loose().t(), m.tidy().T, m.tidy().mT),
    "transpose": lambda m: m.loose().transpose(0, 1),
    "permute": lambda m: m.hybrid().permute(1, 0, 3, 2),
    "unsqueeze": lambda m: [m.hybrid().unsqueeze(d) for d in (0, 1, 2, 3, -1)],
    "None": lambda m: m.tidy()[None],
    "select": lambda m: (m.tidy()[1], m.loose()[0], m.loose()[-1]),
    "element": lambda m: (m.loose()[0, 2], m.loose()[0, 0]),
    "select blocks": lambda m: (m.hybrid().select(3, 1), m.hybrid().select(0, 2)),
    "unbind": lambda m: (m.tidy().unbind(), list(m.tidy())),
    "index_select": lambda m: m.tidy().index_select(0, m.root.tensor([1, 0, 1])).to_dense(),
    "index_select columns": lambda m: m.loose().index_select(1, m.root.tensor([2, 2])).to_dense(),
    "index_select blocks": lambda m: m.hybrid().index_select(2, m.root.tensor([1, 1])),
    "cat": lambda m: m.root.cat([m.loose(), m.tidy()]),
    "cat columns": lambda m: m.root.cat([m.loose(), m.tidy()], 1),
    "cat blocks": lambda m: m.root.cat([m.hybrid(), m.hybrid()], 2),
    "cat types": lambda m: m.root.cat([m.tidy(), m.tidy().double()]),
    "stack": lambda m: m.root.stack([m.tidy(), m.loose()]),
}  # fmt: skip
PRODUCTS = {
    "mm": lambda m: (m.loose().mm(m.dense(3, 2)), m.tidy() @ m.dense(3, 1)),
    "mm from the left": lambda m: m.dense(4, 2) @ m.loose(),
    "mm both": lambda m: (m.tidy() @ m.tidy().t(), m.loose() @ m.loose().t()),
    "mm int": lambda m: m.root.eye(2).long().to_sparse() @ m.root.ones(2, 2).long(),
    "mm empty": lambda m: m.coo((2, 3)) @ m.dense(3, 2),
    "mv": lambda m: (m.loose() @ m.dense(3), m.loose().mv(m.dense(3)), m.dense(2) @ m.tidy()),
    "bmm": lambda m: m.root.eye(2).expand(3, 2, 2).to_sparse().bmm(m.dense(3, 2, 4)),
    "addmm": lambda m: m.root.addmm(m.dense(2, 2), m.loose(), m.dense(3, 2), beta=2, alpha=3),
    "linear": lambda m: m.root.nn.functional.linear(m.tidy(), m.dense(4, 3), m.dense(4)),
    "sparse.mm": lambda m: (m.root.sparse.mm(m.loose(), m.dense(3, 2)),
                            m.root.sparse.mm(m.dense(4, 2), m.loose()),
                            m.root.sparse.mm(m.dense(4, 2), m.dense(2, 3))),
    "sparse.addmm": lambda m: (
        m.root.sparse.addmm(m.dense(2), m.loose(), m.dense(3, 2), beta=2, alpha=3),
        m.root.sparse.addmm(m.dense(2, 2), m.dense(2, 3), m.dense(3, 2))),
}  # fmt: skip
SUMS = {
    "sum": lambda m: (m.loose().sum(), m.tidy().sum(0), m.tidy().sum((0, 1)), m.hybrid().sum(-1)),
    "keepdim": lambda m: m.tidy().sum(0, keepdim=True),
    "sum of int": lambda m: m.root.tensor([1, 0, 2], dtype=m.root.int32).to_sparse().sum(),
    "sum of bool": lambda m: m.root.tensor([True, False]).to_sparse().sum(),
    "sparse.sum": lambda m: (m.root.sparse.sum(m.loose()), m.root.sparse.sum(m.loose(), 0),
                             m.root.sparse.sum(m.tidy(), dtype=m.root.float64)),
    "sparse.sum blocks": lambda m: [m.root.sparse.sum(m.hybrid(), d) for d in (
        0, 1, 2, (0, 1), (2, 3), (0, 2), (0, 1, 2, 3), -1)],
    "softmax": lambda m: [m.root.sparse.softmax(x, d)
                          for x in (m.tidy(), m.loose(), m.hybrid()) for d in (0, 1, -1)],
    "log_softmax": lambda m: [m.root.sparse.log_softmax(x, d)
                              for x in (m.tidy(), m.loose(), m.hybrid()) for d in (0, 1, -1)],
    "softmax type": lambda m: m.root.sparse.softmax(m.tidy(), 1, dtype=m.root.float64),
}  # fmt: skip


TABLES = CONSTRUCTED, PARTS, ARITHMETIC, WRITES, LAYOUT, PRODUCTS, SUMS


@pytest.mark.parametrize(
    "program", [pytest.param(p, id=name) for table in TABLES for name, p in table.items()]
)
def test_shown(program: Any) -> None:
    shown(program)


def test_values_share_memory() -> None:
    for root in (torch, tt):
        v = root.ones(2)
        s = root.sparse_coo_tensor([[0, 1]], v, (2,))
        v[0] = 5
        s._values()[1] = 7
        assert s.to_dense().tolist() == [5, 7]
        assert s.detach()._values().data_ptr() == v.data_ptr()


def test_coalesced_tensor_is_its_own() -> None:
    for root in (torch, tt):
        s = root.eye(3).to_sparse()
        assert s.coalesce() is s


def test_large_product() -> None:
    """The sum of scaled rows, and the dense product for a crowded matrix, against NumPy."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=(200, 7))
    for count in (300, 20_000):
        places = rng.integers(0, (150, 200), (count, 2)).T
        v = rng.normal(size=count)
        full = np.zeros((150, 200))
        np.add.at(full, tuple(places), v)
        s = tt.sparse_coo_tensor(places, v, (150, 200))
        for form in (s, s.coalesce()):
            np.testing.assert_allclose((form @ tt.from_numpy(b)).numpy(), full @ b, atol=1e-10)
            np.testing.assert_allclose(form.to_dense().numpy(), full, atol=1e-12)
        both = (s @ s.t()).to_dense().numpy()
        np.testing.assert_allclose(both, full @ full.T, atol=1e-9)


@BEYOND
def test_broadcasts_a_sparse_dimension() -> None:
    """PyTorch, which keeps one of the entries, is no oracle here; the dense product is."""
    m = Made(tt)
    for s, d in ((m.coo([[0, 0], [1, 2]], [2.0, 3.0], (1, 3)), m.dense(4, 3)),
                 (m.coo([[1, 0], [0, 0]], [2.0, 3.0], (2, 1)), m.dense(2, 3)),
                 (m.coo([[0], [0]], [2.0], (1, 1)), m.dense(3, 2, 3))):  # fmt: skip
        assert ((s * d).to_dense() == s.to_dense() * d).all()


@BEYOND
def test_resized_blocks_end_in_zeros() -> None:
    """The values stay in their order of memory, and what is new is zero."""
    s = Made(tt).hybrid().sparse_resize_((3, 4, 2, 3), 2, 2)
    assert s._values().flatten().tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0]


@BEYOND
def test_sampled_addmm() -> None:
    """PyTorch has it for another layout, whose values are in the same order."""
    theirs, ours = Made(torch), Made(tt)
    want = torch.sparse.sampled_addmm(
        theirs.tidy().to_sparse_csr(), theirs.dense(2, 4), theirs.dense(4, 3), beta=2, alpha=3
    )
    got = tt.sparse.sampled_addmm(ours.tidy(), ours.dense(2, 4), ours.dense(4, 3), beta=2, alpha=3)
    assert got.values().tolist() == pytest.approx(want.values().tolist())
