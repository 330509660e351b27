"""What sparse tensors refuse, with PyTorch's class of error and the sizes it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sparse.programs import shown

REFUSED = {
    "indices of loose": lambda m: m.loose().indices(),
    "values of loose": lambda m: m.loose().values(),
    "outside": lambda m: m.coo([[0, 3]], [1, 2], (3,), check_invariants=True),
    "outside, unchecked": lambda m: m.coo([[0, 3]], [1, 2], (3,))._nnz(),
    "negative, checked": lambda m: m.coo([[0, -1]], [1, 2], (3,), check_invariants=True),
    "too many dims": lambda m: m.coo([[0, 2]], [1, 2], (3, 3)),
    "other nnz": lambda m: m.coo([[0, 2, 1]], [1, 2], (3,)),
    "a number for values": lambda m: m.coo([[0, 1], [1, 0]], 1.5),
    "block size": lambda m: m.coo([[0, 2]], m.dense(2, 3), (3, 2)),
    "negative size": lambda m: m.coo([[0]], [1], (-3,)),
    "wrong promise": lambda m: m.coo([[1, 0]], [1, 2], (3,), is_coalesced=True,
                                     check_invariants=True),
    "indices of dense": lambda m: m.dense(2).indices(),
    "values of dense": lambda m: m.dense(2).values(),
    "_nnz of dense": lambda m: m.dense(2)._nnz(),
    "_indices of dense": lambda m: m.dense(2)._indices(),
    "coalesce of dense": lambda m: m.dense(2).coalesce(),
    "is_coalesced of dense": lambda m: m.dense(2).is_coalesced(),
    "to_sparse(0)": lambda m: m.dense(2, 3).to_sparse(0),
    "to_sparse(3)": lambda m: m.dense(2, 3).to_sparse(3),
    "to_sparse(-1)": lambda m: m.dense(2, 3).to_sparse(-1),
    "to_dense(dtype)": lambda m: m.tidy().to_dense(m.root.float64),
    "shrink": lambda m: m.loose().sparse_resize_((1, 3), 2, 0),
    "resize dims": lambda m: m.loose().sparse_resize_((4, 5), 1, 1),
    "resize more dims": lambda m: m.loose().sparse_resize_((4, 5), 2, 1),
    "resize blocks": lambda m: m.loose().sparse_resize_((4, 5, 6), 2, 1),
    "mask size": lambda m: m.dense(3, 2).sparse_mask(m.tidy()),
    "dense mask": lambda m: m.dense(2, 3).sparse_mask(m.dense(2, 3)),
    "add number": lambda m: m.tidy() + 1, "add dense": lambda m: m.tidy() + m.dense(2, 3),
    "add_ dense": lambda m: m.tidy().add_(m.dense(2, 3)),
    "add sizes": lambda m: m.tidy() + m.tidy().t(),
    "add densities": lambda m: m.dense(2, 2).to_sparse() + m.dense(2, 2).to_sparse(1),
    "dense add sizes": lambda m: m.dense(3, 2) + m.tidy(),
    "dense add row": lambda m: m.dense(3) + m.tidy(),
    "mul sizes": lambda m: m.tidy() * m.tidy().t(),
    "div dense": lambda m: m.tidy() / m.dense(2, 3), "div sparse": lambda m: m.tidy() / m.tidy(),
    "number div": lambda m: 1 / m.tidy(), "pow 0": lambda m: m.tidy() ** 0,
    "pow of tensors": lambda m: m.tidy() ** m.dense(2, 3),
    "t of blocks": lambda m: m.hybrid().t(), "t of 3": lambda m: m.dense(2, 2, 2).to_sparse().t(),
    "transpose of both kinds": lambda m: m.hybrid().transpose(0, 2),
    "permute of both kinds": lambda m: m.hybrid().permute(2, 0, 1, 3),
    "select": lambda m: m.hybrid().select(0, 5), "expand": lambda m: m.tidy().expand(2, 2, 3),
    "cat with dense": lambda m: m.root.cat([m.tidy(), m.dense(2, 3)]),
    "cat sizes": lambda m: m.root.cat([m.tidy(), m.tidy().t()]),
    "cat densities": lambda m: m.root.cat([m.dense(2, 2).to_sparse(), m.dense(2, 2).to_sparse(1)]),
    "mm sizes": lambda m: m.tidy().mm(m.dense(2, 2)),
    "mm types": lambda m: m.tidy().mm(m.dense(3, 2).double()),
    "mm vector": lambda m: m.tidy().mm(m.dense(3)), "mm both sizes": lambda m: m.tidy() @ m.tidy(),
    "mv sizes": lambda m: m.tidy().mv(m.dense(2)),
    "sparse.mm blocks": lambda m: m.root.sparse.mm(m.dense(2, 2).to_sparse(1), m.dense(2, 2)),
    "sparse.mm reduce": lambda m: m.root.sparse.mm(m.tidy(), m.dense(3, 2), "sum"),
    "sparse.sum of dense": lambda m: m.root.sparse.sum(m.dense(2, 2), 0),
    "softmax of dense": lambda m: m.root.sparse.softmax(m.dense(2, 2), 0),
    "softmax of int": lambda m: m.root.sparse.softmax(m.root.tensor([1, 0]).to_sparse(), 0),
    "softmax dim": lambda m: m.root.sparse.softmax(m.tidy(), 2),
    "norm of dims": lambda m: m.tidy().norm(2, 0),
    "copy of dense": lambda m: m.tidy().copy_(m.dense(2, 3)),
    "copy into dense": lambda m: m.dense(2, 3).copy_(m.tidy()),
    "numpy": lambda m: m.tidy().numpy(), "asarray": lambda m: np.asarray(m.tidy()),
    "tolist": lambda m: m.tidy().tolist(), "storage": lambda m: m.tidy().untyped_storage(),
    "nbytes": lambda m: m.tidy().nbytes, "data_ptr": lambda m: m.tidy().data_ptr(),
    "contiguous": lambda m: m.tidy().contiguous(), "reshape": lambda m: m.tidy().reshape(3, 2),
    "ones": lambda m: m.root.ones(2, layout=m.root.sparse_coo),
    "ones_like": lambda m: m.root.ones_like(m.tidy()),
    "full_like": lambda m: m.root.full_like(m.tidy(), 2.0),
    "fill_": lambda m: m.tidy().fill_(1), "leaf": lambda m: m.tidy(True).mul_(2),
}  # fmt: skip
# Ops without a sparse kernel, in each family of records.
MISSING = {
    "exp": lambda m: m.tidy().exp(), "cos": lambda m: m.tidy().cos(),
    "sigmoid": lambda m: m.tidy().sigmoid(), "clamp": lambda m: m.tidy().clamp(0),
    "eq": lambda m: m.tidy() == m.tidy(), "gt": lambda m: m.tidy() > 0,
    "maximum": lambda m: m.root.maximum(m.tidy(), m.tidy()),
    "where": lambda m: m.root.where(m.dense(2, 3) > 0, m.tidy(), m.tidy()),
    "mean": lambda m: m.tidy().mean(), "max": lambda m: m.tidy().max(),
    "all": lambda m: m.tidy().all(), "prod": lambda m: m.tidy().prod(),
    "softmax": lambda m: m.tidy().softmax(1), "cumsum": lambda m: m.tidy().cumsum(0),
    "sort": lambda m: m.tidy().sort(), "view": lambda m: m.tidy().view(3, 2),
    "slice": lambda m: m.tidy()[0:1], "squeeze": lambda m: m.tidy().squeeze(),
    "split": lambda m: m.tidy().split(1), "narrow": lambda m: m.tidy().narrow(0, 0, 1),
    "gather": lambda m: m.tidy().gather(0, m.root.zeros(1, 1).long()),
    "index": lambda m: m.tidy()[m.root.tensor([0])],
    "mask": lambda m: m.tidy()[m.root.tensor([True, False])],
    "dot": lambda m: m.dense(3).to_sparse() @ m.dense(3), "flip": lambda m: m.tidy().flip(0),
    "allclose": lambda m: m.root.allclose(m.tidy(), m.tidy()),
    "tril": lambda m: m.tidy().tril(), "gradient of tanh": lambda m: m.tidy(True).tanh().backward(
        m.tidy()),
}  # fmt: skip


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED.keys())
def test_refused(program: Any) -> None:
    shown(program)


@pytest.mark.parametrize("program", MISSING.values(), ids=MISSING.keys())
def test_missing(program: Any) -> None:
    """NotImplementedError, as PyTorch says it."""
    shown(program)
