"""Indexing and assignment in every mix of ints, slices, None, ..., lists, masks and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import (
    ORACLE,
    SUBJECT,
    Side,
    attempt,
    brief,
    differences,
    error_difference,
    told,
    torch,
    tt,
)  # fmt: skip

SHAPES = [(), (3,), (2, 3), (3, 4), (2, 3, 4), (1, 3), (3, 1, 2), (0, 3), (2, 2, 2, 2)]
LAYOUTS = ["contiguous", "transposed", "strided", "expanded"]
edge = st.one_of(st.none(), st.integers(-4, 4))
slices = st.builds(slice, edge, edge, st.one_of(st.none(), st.integers(1, 3)))


@st.composite
def element(draw: Any, size: int, rest: tuple[int, ...]) -> tuple[Any, int]:
    """(a part of a key, how many dimensions it takes) for a dimension of this size."""
    kind = draw(
        st.sampled_from(
            ["int", "slice", "slice", "none", "list", "tensor", "mask", "0-d", "bool", "np"]
        )
    )
    inside = st.integers(-size, size - 1) if size else st.integers(-1, 0)
    wild = st.one_of(inside, inside, inside, inside, st.integers(-5, 5))
    if kind == "int":
        return draw(wild), 1
    if kind == "slice":
        return draw(slices), 1
    if kind == "none":
        return None, 0
    if kind == "list":
        return draw(st.lists(wild, min_size=1, max_size=3)), 1
    if kind == "0-d":
        return torch.tensor(draw(wild)), 1
    if kind == "np":
        return np.array(draw(st.lists(inside, min_size=2, max_size=2))), 1
    if kind == "bool":
        return draw(st.booleans()), 0
    if kind == "mask":
        dims = draw(st.integers(1, 1 + min(1, len(rest))))
        shape = (size, *rest)[:dims]
        n = int(np.prod(shape))
        values = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        return torch.tensor(values, dtype=torch.bool).reshape(shape), dims
    shape = draw(st.sampled_from([(2,), (2, 1), (1, 2), (1,), (2, 2)]))
    n = int(np.prod(shape))
    values = draw(st.lists(inside, min_size=n, max_size=n))
    return torch.tensor(values, dtype=draw(st.sampled_from([torch.int64, torch.int32]))).reshape(
        shape
    ), 1


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """A key for this shape: right mostly, sometimes too long or out of range."""
    parts: list[Any] = []
    dim, ellipsis = 0, False
    for _ in range(draw(st.integers(1, len(shape) + 2))):
        if not ellipsis and draw(st.integers(0, 5)) == 0:
            parts.append(Ellipsis)
            ellipsis = True
            dim += draw(st.integers(0, max(0, len(shape) - dim)))
            continue
        size = shape[dim] if dim < len(shape) else 2
        if dim >= len(shape) and draw(st.integers(0, 6)):
            break
        part, taken = draw(element(size, shape[dim + 1 :]))
        parts.append(part)
        dim += taken
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@st.composite
def reads(draw: Any) -> tuple[Any, Any]:
    shape = draw(st.sampled_from(SHAPES))
    return laid_out(shape, draw(st.sampled_from(LAYOUTS))), draw(keys(shape))


def laid_out(shape: tuple[int, ...], layout: str, dtype: Any = torch.float64) -> Any:
    """Numbers 0, 1, 2, … in the asked layout."""
    n = int(np.prod(shape))
    if layout == "transposed" and len(shape) > 1:
        return torch.arange(n, dtype=dtype).reshape(shape[::-1]).permute(*range(len(shape))[::-1])
    if layout == "strided" and shape:
        wide = (*shape[:-1], 2 * shape[-1] + 1)
        return torch.arange(int(np.prod(wide)), dtype=dtype).reshape(wide)[..., 1::2]
    if layout == "expanded" and shape and shape[0]:
        return torch.arange(n // shape[0], dtype=dtype).reshape((1, *shape[1:])).expand(shape)
    return torch.arange(n, dtype=dtype).reshape(shape)


@settings(max_examples=600)
@given(reads())
def test_reading(case: tuple[Any, Any]) -> None:
    """Values, shape, dtype, strides of views and sharing of memory; errors where PyTorch errs."""
    x, key = case
    (want, refused), (got, failure) = (attempt(read, side, x, key) for side in (ORACLE, SUBJECT))
    say = f"{brief(x)}[{show(key)}]: "
    if refused is None and isinstance(failure, IndexError) and not want[1].numel():
        return  # PyTorch looks at no index where there is nothing to pick
    if refused or failure:
        # PyTorch counts None and ... as dimensions in its texts.
        parts = key if isinstance(key, tuple) else (key,)
        plain = all(type(p) in (int, slice) for p in parts)
        bad = error_difference(refused, failure, text=isinstance(refused, IndexError) and plain)
        assert not bad, say + bad
        return
    shares = [
        r[1].untyped_storage().data_ptr() == r[0].untyped_storage().data_ptr() for r in (want, got)
    ]
    bad_values = differences(want[1], got[1], exact=True, strides=shares[0])
    assert not bad_values, say + "; ".join(bad_values)
    if want[1].numel():
        assert shares[1] == shares[0], f"{say}shares memory {shares[1]}, PyTorch {shares[0]}"


def read(side: Side, x: Any, key: Any) -> tuple[Any, Any]:
    x = side.carry(x)
    return x, x[side.carry(key)]


def show(key: Any) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return ", ".join(
        f"{p.start}:{p.stop}:{p.step}" if isinstance(p, slice)
        else f"tensor({p.tolist()})" if isinstance(p, torch.Tensor) else repr(p)
        for p in parts
    )  # fmt: skip


@st.composite
def writes(draw: Any) -> tuple[Any, Any, Any, Any]:
    shape = draw(st.sampled_from(SHAPES))
    dtype = draw(st.sampled_from([torch.float64, torch.float64, torch.int64, torch.float32]))
    x = laid_out(shape, draw(st.sampled_from(LAYOUTS[:3])), dtype)
    key = draw(keys(shape))
    region, refused = attempt(lambda: x[key])
    kind = draw(st.sampled_from(["number", "0-d", "full", "row", "wrong", "other dtype"]))
    value: Any = draw(st.sampled_from([7, -2.5, True]))
    if refused is None and kind != "number":
        target = tuple(region.shape)
        target = {"0-d": (), "row": target[1:], "wrong": (*target, 5)}.get(kind, target)
        value = torch.arange(100, 100 + int(np.prod(target)), dtype=dtype).reshape(target)
        value = value.float() if kind == "other dtype" else value
    return x, key, value, refused


@settings(max_examples=500)
@given(writes())
def test_assigning(case: tuple[Any, Any, Any, Any]) -> None:
    """x[key] = value writes what PyTorch writes and bumps the version, or is refused alike."""
    x, key, value, _ = case
    if isinstance(value, torch.Tensor) and value.numel() > 1 and _repeats(x, key):
        value = value.reshape(-1)[0]  # which of several writes to one place wins is not defined
    (want, refused), (got, failure) = (attempt(write, s, x, key, value) for s in (ORACLE, SUBJECT))
    say = f"{brief(x)}[{show(key)}] = {brief(value)}: "
    region, _ = attempt(lambda: x[key])
    if (refused or failure) and region is not None and not region.numel():
        return  # nothing is written, whatever the value's shape
    if refused or failure:
        bad = error_difference(refused, failure, text=False)
        assert not bad, say + bad
        return
    bad_values = differences(want, got, exact=True)
    assert not bad_values, say + "; ".join(bad_values)
    if region.numel():
        assert got._version == want._version, say + "version"


def _repeats(x: Any, key: Any) -> bool:
    places = torch.arange(x.numel()).reshape(x.shape)
    hit, refused = attempt(lambda: places[key])
    return refused is None and hit.numel() != hit.unique().numel()


def write(side: Side, x: Any, key: Any, value: Any) -> Any:
    x, key, value = side.carry((x, key, value))
    x[key] = value
    return x


@settings(max_examples=200)
@given(reads())
def test_gradient_of_reading(case: tuple[Any, Any]) -> None:
    """Elements read twice get their gradient twice."""
    x, key = case

    def gradient(side: Side) -> Any:
        leaf, k = side.carry(x, grad=True), side.carry(key)
        y = leaf[k]
        return y, side.root.autograd.grad(y, leaf, side.cotangent(y))

    (want, refused), (got, failure) = attempt(gradient, ORACLE), attempt(gradient, SUBJECT)
    if refused is None and want[0].numel():
        assert failure is None, f"{brief(x)}[{show(key)}]: {told(failure)}"
        bad = differences(want, got)
        assert not bad, f"{brief(x)}[{show(key)}]: {bad}"


@settings(max_examples=200)
@given(writes())
def test_gradient_of_assigning(case: tuple[Any, Any, Any, Any]) -> None:
    """Overwritten elements get no gradient; the value gets theirs."""
    x, key, value, _ = case
    if x.dtype is not torch.float64 or _repeats(x, key):
        return

    def gradient(side: Side) -> Any:
        leaf, v, k = side.carry(x, grad=True), side.carry(value, grad=True), side.carry(key)
        y = leaf * 2
        y[k] = v * 3 if isinstance(v, side.Tensor) else v
        inputs = [leaf] + ([v] if isinstance(v, side.Tensor) and v.requires_grad else [])
        return y, side.root.autograd.grad(y, inputs, side.cotangent(y), allow_unused=True)

    (want, refused), (got, failure) = attempt(gradient, ORACLE), attempt(gradient, SUBJECT)
    if refused is None:
        say = f"{brief(x)}[{show(key)}] = {brief(value)}: "
        assert failure is None, say + told(failure)
        bad = differences(want, got)
        assert not bad, say + "; ".join(bad)


WRONG: dict[str, Any] = {
    "too many": lambda m: m.ones(2, 3)[0, 0, 0],
    "out of range": lambda m: m.ones(2, 3)[:, 3],
    "negative out of range": lambda m: m.ones(2, 3)[-3],
    "0-d": lambda m: m.tensor(1.0)[0],
    "negative step": lambda m: m.ones(3)[::-1],
    "zero step": lambda m: m.ones(3)[::0],
    "float": lambda m: m.ones(3)[1.0],
    "string": lambda m: m.ones(3)["a"],
    "float tensor": lambda m: m.ones(3)[m.tensor([0.5])],
    "mask of another length": lambda m: m.ones(3)[m.tensor([True, False])],
    "mask of another shape": lambda m: m.ones(3, 4)[m.ones(3, 3) > 0],
    "shapes of indices": lambda m: m.ones(3, 4)[[0, 1], [0, 1, 2]],
    "index out of range in a list": lambda m: m.ones(3)[[0, 3]],
    "assign wrong shape": lambda m: m.ones(3, 4).__setitem__(0, m.ones(3)),
    "assign wrong shape to a list": lambda m: m.ones(3, 4).__setitem__([0, 1], m.ones(3)),
    "assign a list": lambda m: m.ones(3).__setitem__(0, [1, 2]),
    "assign a string": lambda m: m.ones(3).__setitem__(0, "a"),
    "assign to a leaf": lambda m: m.ones(3, requires_grad=True).__setitem__(0, 1.0),
    "delete": lambda m: m.ones(3).__delitem__(0),
}


@pytest.mark.parametrize("label", WRONG)
def test_wrong_key(label: str) -> None:
    want, got = attempt(WRONG[label], torch)[1], attempt(WRONG[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


def test_iteration_and_membership() -> None:
    x = tt.arange(6.0).reshape(2, 3)
    assert [row.tolist() for row in x] == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert len(x) == 2
    assert 4.0 in x
    assert 9.0 not in x
    a, b = x
    assert a.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert b.storage_offset() == 3
    assert [10, 20, 30][tt.tensor(1)] == 20
    x[0] += 1
    assert x[0].tolist() == [1.0, 2.0, 3.0]
