"""Memory shared with other libraries: DLPack and the array interfaces, against PyTorch."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, error_difference, names, torch, tt

ROOTS = [torch, tt]
KINDS = names("bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to", ROOTS, ids=["torch", "toytorch"])
def test_each_takes_the_others_memory(kind: str, to: Any) -> None:
    source = tt if to is torch else torch
    x = source.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(source, kind)).t()
    y = to.from_dlpack(x)
    assert y.dtype is getattr(to, kind)
    assert y.tolist() == x.tolist()
    assert y.stride() == x.stride()
    assert y.data_ptr() == x.data_ptr()
    y[2, 1] = 0
    assert x[2, 1].item() == 0
    x[0, 0] = 1
    assert y[0, 0].item() == 1


@pytest.mark.parametrize("root", ROOTS, ids=["torch", "toytorch"])
def test_numpy_and_back(root: Any) -> None:
    x = root.arange(6.0).view(2, 3)
    theirs = np.from_dlpack(x[:, 1:])
    theirs[0, 0] = 9
    assert x[0, 1].item() == 9
    mine = np.arange(4)
    y = root.from_dlpack(mine)
    y.add_(1)
    assert mine.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("root", ROOTS, ids=["torch", "toytorch"])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 0), (2, 1, 3)], ids=str)
def test_shapes(root: Any, shape: Any) -> None:
    x = root.ones(shape)
    assert np.from_dlpack(x).shape == shape
    assert tuple(root.from_dlpack(np.ones(shape)).shape) == shape


@pytest.mark.parametrize("root", ROOTS, ids=["torch", "toytorch"])
def test_capsules(root: Any) -> None:
    x = root.ones(2)
    for version in (None, (0, 8), (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert ("versioned" in repr(capsule)) == (version == (1, 0))
        y = root.from_dlpack(capsule)
        y[0] += 1
        with pytest.raises(RuntimeError, match="consumed only once"):
            root.from_dlpack(capsule)
    assert x.tolist() == [4, 1]
    z = root.utils.dlpack.from_dlpack(root.utils.dlpack.to_dlpack(x))
    z[1] = 7
    assert x.tolist() == [4, 7]


def test_memory_outlives_its_maker() -> None:
    y = tt.from_dlpack(torch.arange(1000.0) + 1)
    z = torch.from_dlpack(tt.arange(1000.0) + 1)
    w = tt.from_dlpack((torch.arange(1000.0) + 1).__dlpack__())
    gc.collect()
    junk = [np.full(1000, 5, np.float32) for _ in range(50)]
    for t in (y, z, w):
        assert t.sum().item() == 500500
    assert junk


@pytest.mark.parametrize("root", ROOTS, ids=["torch", "toytorch"])
def test_copies(root: Any) -> None:
    mine = np.zeros(2)
    root.from_dlpack(mine, copy=True)[0] = 1
    assert mine[0] == 0
    root.from_dlpack(mine, copy=False)[0] = 1
    root.from_dlpack(mine, device="cpu")[1] = 1
    assert mine.tolist() == [1, 1]


def test_read_only_memory_becomes_writable() -> None:
    """As in PyTorch, whose tensors are all writable."""
    for root in ROOTS:
        mine = np.zeros(2)
        mine.setflags(write=False)
        root.from_dlpack(mine)[0] = 1
        assert mine[0] == 1


def test_views_of_taken_memory() -> None:
    """Storages, offsets and writes through views work as on memory of our own."""
    theirs = torch.arange(12.0).view(3, 4)
    mine = tt.from_dlpack(theirs[1:, ::2])
    mine.t()[1].mul_(10)
    assert theirs.tolist() == [[0, 1, 2, 3], [4, 5, 60, 7], [8, 9, 100, 11]]
    x = mine.clone().requires_grad_()
    (x * mine).sum().backward()
    assert x.grad.tolist() == mine.tolist()


REFUSED = {
    "grad": lambda r: r.ones(2, requires_grad=True).__dlpack__(),
    "computed": lambda r: (r.ones(2, requires_grad=True) * 2).__dlpack__(),
    "Parameter": lambda r: r.nn.Parameter(r.ones(2)).__dlpack__(),
    "sparse": lambda r: r.eye(2).to_sparse().__dlpack__(),
    "stream": lambda r: r.ones(2).__dlpack__(stream=1),
    "stream of a type": lambda r: r.ones(2).__dlpack__(stream="x"),
    "no capsule": lambda r: r.from_dlpack(3),
    "device of a capsule": lambda r: r.from_dlpack(r.ones(2).__dlpack__(), device="cpu"),
    "byte order": lambda r: r.from_dlpack(np.arange(3, dtype=">i4")),
    "text": lambda r: r.from_dlpack(np.array(["a"])),
    "asarray of grad": lambda r: np.asarray(r.ones(2, requires_grad=True)),
    "asarray without a copy": lambda r: np.asarray(r.ones(2), dtype=np.float64, copy=False),
    "asarray of bfloat16": lambda r: np.asarray(r.ones(2).bfloat16()),
    "__array_interface__": lambda r: r.ones(2).__array_interface__,
    "__cuda_array_interface__": lambda r: r.ones(2).__cuda_array_interface__,
}  # fmt: skip


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED.keys())
def test_refused(program: Any) -> None:
    (_, refused), (_, failure) = attempt(program, torch), attempt(program, tt)
    assert refused is not None
    bad = error_difference(refused, failure)
    assert not bad, bad


SAME = {
    "device": lambda r: r.ones(2).__dlpack_device__(),
    "to_dlpack of grad": lambda r: r.from_dlpack(
        r.to_dlpack(r.ones(2, requires_grad=True))).requires_grad,
    "asarray": lambda r: np.asarray(r.ones(2)),
    "asarray of a type": lambda r: np.asarray(r.arange(3.0), dtype=np.int32),
    "__array__": lambda r: r.ones(2).__array__(np.float64),
    "priority": lambda r: r.ones(2).__array_priority__,
    "wrap": lambda r: r.ones(2).__array_wrap__(np.ones(3)),
    "wrap of bool": lambda r: r.ones(2).__array_wrap__(np.array([True])),
    "np.sin": lambda r: np.sin(r.arange(3.0)),
    "np.add": lambda r: np.add(r.arange(3.0), np.ones(3, np.float32)),
    "has cuda interface": lambda r: hasattr(r.ones(2), "__cuda_array_interface__"),
}  # fmt: skip


@pytest.mark.parametrize("program", SAME.values(), ids=SAME.keys())
def test_same(program: Any) -> None:
    assert repr(program(tt)) == repr(program(torch))


@pytest.mark.parametrize("kind", [None, "float64", "int64", "bool", "complex64"])
@pytest.mark.parametrize("data", [[1.0, None], [1, "a"], [True, {}], [[1.0], [None]]], ids=repr)
def test_data_that_are_no_numbers_are_named(data: Any, kind: str | None) -> None:
    errors = []
    for m in (torch, tt):
        with pytest.raises((TypeError, RuntimeError)) as found:
            m.tensor(data, dtype=None if kind is None else getattr(m, kind))
        errors.append((type(found.value), str(found.value)))
    assert errors[0] == errors[1]
