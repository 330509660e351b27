"""Storage, strides, offsets and versions; memory shared with NumPy both ways."""

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
    agree,
    attempt,
    both,
    error_difference,
    names,
    steps,
    torch,
    tt,
)

NUMPY = names("bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128")


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_shares_both_ways(name: str) -> None:
    array = np.arange(6).astype(name).reshape(2, 3)
    x = tt.from_numpy(array)
    assert str(x.dtype).endswith(name)
    array[0, 0] = 1
    assert x[0, 0].item() == array[0, 0]
    x[1, 2] = 0
    assert array[1, 2] == 0
    back = x.numpy()
    assert np.shares_memory(back, array)
    back[0, 1] = 1
    assert x[0, 1].item() == array[0, 1]
    assert np.asarray(x).dtype == np.dtype(name)


def test_numpy_layouts_are_kept() -> None:
    base = np.arange(24.0).reshape(2, 3, 4)
    for array in (
        base.T,
        base[:, 1],
        base[..., ::2],
        base[1:],
        np.broadcast_to(base[0, 0], (5, 4)),
    ):
        with np.errstate(all="ignore"):
            x, _ = attempt(tt.from_numpy, array)
        want, _ = attempt(torch.from_numpy, array)
        assert tuple(x.stride()) == want.stride()
        assert tuple(x.shape) == tuple(want.shape)
        assert np.shares_memory(x.numpy(), array)
        x_back, want_back = x.numpy(), want.numpy()
        assert x_back.strides == want_back.strides


def test_numpy_views_of_tensor_views() -> None:
    x = tt.arange(12.0).reshape(3, 4)
    column = x[:, 1].numpy()
    column[:] = -1.0
    assert x[:, 1].tolist() == [-1.0, -1.0, -1.0]
    assert x.t().numpy().strides == (4, 16)


NUMPY_ERRORS: dict[str, Any] = {
    "negative strides": lambda m: m.from_numpy(np.arange(3)[::-1]),
    "strings": lambda m: m.from_numpy(np.array(["a"])),
    "objects": lambda m: m.from_numpy(np.array([object()])),
    "a list": lambda m: m.from_numpy([1, 2]),
    "requires grad": lambda m: m.ones(2, requires_grad=True).numpy(),
}


@pytest.mark.parametrize("label", NUMPY_ERRORS)
def test_numpy_errors(label: str) -> None:
    want, got = attempt(NUMPY_ERRORS[label], torch)[1], attempt(NUMPY_ERRORS[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


def test_tensor_and_as_tensor_of_arrays() -> None:
    array = np.arange(3.0)
    copy, shared = tt.tensor(array), tt.as_tensor(array)
    array[0] = 9.0
    assert copy[0].item() == 0.0
    assert shared[0].item() == 9.0
    assert tt.as_tensor(shared) is shared


def test_numpy_on_either_side_of_an_operator() -> None:
    both(lambda m: m.ones(3) + np.ones(3, np.float32))
    both(lambda m: m.ones(3) * np.float64(2))
    both(lambda m: m.tensor([1, 2]) * np.float64(2.5))
    both(lambda m: m.tensor([1, 2]) + np.int64(2))
    assert isinstance(np.sum(tt.ones(3).numpy()), np.floating)


def layout(x: Any) -> list[Any]:
    """What PyTorch lets one see of a tensor's place in memory."""
    return [
        tuple(x.shape), tuple(x.stride()), x.storage_offset(), x.numel(), x.dim(), x.ndim,
        x.element_size(), x.itemsize,
        x.nbytes, x.is_contiguous(), x.untyped_storage().nbytes(), len(x.storage()),
        x.stride(0) if x.ndim else 0,
        x.size(-1) if x.ndim else 0,
        (x.data_ptr() - x.untyped_storage().data_ptr()) if x.numel() else 0,
    ]  # fmt: skip


LAYOUTS: dict[str, Any] = {
    "dense": lambda m: m.arange(24.0).reshape(2, 3, 4),
    "0-d": lambda m: m.tensor(1.0),
    "empty": lambda m: m.zeros(0, 3),
    "transposed": lambda m: m.arange(24.0).reshape(2, 3, 4).transpose(0, 2),
    "sliced": lambda m: m.arange(24.0).reshape(2, 3, 4)[1:, ::2, 1:3],
    "selected": lambda m: m.arange(24.0).reshape(2, 3, 4)[1, 2],
    "element": lambda m: m.arange(24.0).reshape(2, 3, 4)[1, 2, 3],
    "expanded": lambda m: m.arange(3.0).expand(2, 3),
    "unsqueezed": lambda m: m.arange(6).reshape(2, 3).t().unsqueeze(1),
    "as_strided": lambda m: m.arange(24).as_strided((3, 2), (5, 2), 4),
    "unfold": lambda m: m.arange(6).unfold(0, 3, 2),
    "diagonal": lambda m: m.arange(9).reshape(3, 3).diagonal(1),
    "narrow": lambda m: m.arange(9).reshape(3, 3).narrow(1, 1, 2),
    "chunk": lambda m: m.arange(10).chunk(3)[1],
    "bool": lambda m: m.ones(3, dtype=m.bool)[1:],
    "complex": lambda m: m.ones(3, dtype=m.complex64)[1:],
    "real part": lambda m: m.ones(3, dtype=m.complex64).real,
    "imaginary part": lambda m: m.ones(3, dtype=m.complex64).imag,
    "clone of a transposed": lambda m: m.arange(6.0).reshape(2, 3).t().clone(),
    "contiguous of a transposed": lambda m: m.arange(6.0).reshape(2, 3).t().contiguous(),
    "contiguous of a dense": lambda m: m.arange(6.0).reshape(2, 3).contiguous(),
    "sum of a transposed": lambda m: m.arange(6.0).reshape(2, 3).t() + 1,
    "dims of one": lambda m: m.zeros(1, 1, 3).transpose(0, 1),
    "view of a slice": lambda m: m.arange(12).reshape(3, 4)[1:].view(-1),
}


@pytest.mark.parametrize("label", LAYOUTS)
def test_layout(label: str) -> None:
    want, got = (layout(LAYOUTS[label](m)) for m in (torch, tt))
    assert got == want


@st.composite
def chains(draw: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """A few view ops in a row."""
    ops = [
        ("t", ()), ("unsqueeze", (0,)), ("unsqueeze", (-1,)), ("squeeze", ()),
        ("narrow", (0, 1, 1)),
        ("narrow", (-1, 0, 2)), ("select", (0, 0)), ("select", (-1, 1)), ("transpose", (0, -1)),
        ("view", (-1,)),
        ("reshape", ((2, -1),)), ("flatten", ()), ("diagonal", ()), ("expand", (2, -1, -1)),
        ("unfold", (-1, 2, 2)),
        ("movedim", (0, -1)), ("view", (3, -1)), ("__getitem__", (slice(0, None, 2),)),
    ]  # fmt: skip
    return draw(st.lists(st.sampled_from(ops), min_size=1, max_size=5))


@settings(max_examples=250)
@given(chains())
def test_chains_of_views(chain: list[tuple[str, tuple[Any, ...]]]) -> None:
    """Each view lies where PyTorch's lies, and a write through the last one shows in the base."""

    def run(side: Side) -> Any:
        base = side.root.arange(24.0).reshape(4, 6)
        x, seen = base, []
        for name, args in chain:
            y, failure = attempt(lambda x=x, name=name, args=args: getattr(x, name)(*args))
            seen.append(
                type(failure).__name__
                if failure
                else (tuple(y.shape), steps(y), y.storage_offset())
            )
            x = x if failure else y
        _, failure = attempt(lambda: x.mul_(-1))
        return seen, failure is None, base

    want, got = run(ORACLE), run(SUBJECT)
    assert got[0] == want[0]
    assert got[1] == want[1]
    agree(want[2], got[2], exact=True)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")  # said once a process
def test_storage_reads_and_writes() -> None:
    x = tt.arange(6.0).reshape(2, 3)
    s = x.storage()
    assert list(s) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(s) == 6
    assert s[4] == 4.0
    s[4] = 40.0
    assert x[1, 1].item() == 40.0
    assert s.data_ptr() == x.t().storage().data_ptr()
    assert x.untyped_storage().size() == torch.arange(6.0).untyped_storage().size()
    with pytest.raises(IndexError):
        s[6]


def test_versions() -> None:
    """One counter per memory: shared by views and detach(), not by copies."""

    def run(m: Any) -> list[int]:
        x = m.zeros(2, 3)
        seen = [x._version]
        v, d, c = x[0], x.detach(), x.clone()
        for write in (
            lambda: x.add_(1), lambda: v.mul_(2), lambda: d.zero_(), lambda: c.add_(1),
            lambda: x.__setitem__(0, 5.0), lambda: x.t().fill_(1.0), lambda: x.copy_(m.ones(3)),
            lambda: x + 1,
            lambda: m.add(x, 1, out=x), lambda: x.data.add_(1), lambda: x.unsqueeze_(0),
            lambda: x.uniform_(),
            lambda: m.relu_(x), lambda: x.requires_grad_(True), lambda: x.requires_grad_(False),
        ):  # fmt: skip
            write()
            seen += [x._version, v._version, d._version, c._version]
        return seen

    assert run(tt) == run(torch)


def test_identity_of_views() -> None:
    """Which of these are the tensor itself, and which views know their base."""

    def run(m: Any) -> list[Any]:
        x = m.zeros(2, 3)
        y = [x.contiguous() is x, x.to(m.float32) is x, x.float() is x, x.reshape(2, 3) is x,
            x.view(2, 3) is x,
             x.expand(2, 3) is x, x.squeeze() is x, x.cpu() is x, x.flatten() is x,
             m.zeros(3).flatten() is x,
             x.detach()._base is None, x[0]._base is x, x[0].t()._base is x, x._base is None,
             x.t().t()._base is x,
             x.clone()._base is None, x.add_(1) is x, x.requires_grad_() is x,
             x.type(m.float32) is x]  # fmt: skip
        return y

    assert run(tt) == run(torch)


def test_data_and_set_data() -> None:
    def run(m: Any) -> Any:
        x = m.ones(3, requires_grad=True)
        x.data.mul_(3)
        x.data = x.data * 2
        return x.detach(), x.data.requires_grad, x._version, x.is_leaf

    both(run)


def test_resize_and_set() -> None:
    both(lambda m: m.arange(6.0).resize_(2, 3))
    both(lambda m: tuple(m.zeros(2, 3).resize_(3, 4).shape))


@pytest.mark.parametrize("value", [0, 1, -3, 2.5, True, 1 + 2j, float("inf")])
def test_python_conversions(value: Any) -> None:
    def run(m: Any) -> list[Any]:
        x = m.tensor(value)
        out = [x.item(), x.tolist(), bool(x)]
        if not isinstance(value, complex):
            out += [float(x)]
            out += [int(x)] if abs(value) < 1e9 else []
        return [*out, complex(x)]

    assert run(tt) == run(torch)


def test_size_behaves_as_a_tuple() -> None:
    def run(m: Any) -> list[Any]:
        s = m.zeros(2, 3, 4).shape
        return [
            repr(s), s == (2, 3, 4), s[0], repr(s[1:]), len(s), s.numel(), (*s, 1),
            list(s), hash(s) == hash((2, 3, 4)),
            repr(m.Size([1, 2])), isinstance(s, tuple), s.index(3), 3 in s, repr(s * 2),
        ]  # fmt: skip

    assert run(tt) == run(torch)


def test_device_objects() -> None:
    def run(m: Any) -> list[Any]:
        a, b = m.device("cpu"), m.device("cuda:1")
        return [
            a.type, a.index, b.type, b.index, a == m.device("cpu"), a != b, repr(a), str(b),
            hash(a) == hash(m.device("cpu")),
            m.device(b) == b, m.device("cuda", 1) == b, m.zeros(1).device == a,
            m.device(type="cpu") == a,
        ]  # fmt: skip

    assert run(tt) == run(torch)
    for wrong in ("gpu", "cuda:x", "cpu:-2", ""):
        want, got = attempt(torch.device, wrong)[1], attempt(tt.device, wrong)[1]
        assert type(got) is type(want), wrong


def test_no_cuda_says_so() -> None:
    if tt.cuda.is_available():
        pytest.skip("there is a GPU")
    assert tt.cuda.is_available() is False
    for call in (
        lambda m: m.ones(2).cuda(),
        lambda m: m.ones(2, device="cuda"),
        lambda m: m.ones(2).to("cuda"),
    ):
        failure = attempt(call, tt)[1]
        assert isinstance(failure, (RuntimeError, AssertionError)), failure
        assert len(str(failure)) > 20


def test_deepcopy_and_hash() -> None:
    import copy

    x = tt.ones(3, requires_grad=True)
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y is not x
    assert y.tolist() == x.tolist()
    assert y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    assert len({x, y, x}) == 2
    want, got = (attempt(copy.deepcopy, m.ones(3, requires_grad=True) * 2)[1] for m in (torch, tt))
    assert type(got) is type(want)


HELD = """
torch.from_numpy(np.zeros(0, np.float32)).resize_(3)
torch.from_numpy(np.zeros(4, np.float32)).resize_(3)
torch.from_numpy(np.zeros(4, np.float32)[1:]).resize_(9)
torch.as_tensor(np.zeros(4, np.float32)).resize_(8)
torch.asarray(np.zeros(4, np.float32)).resize_(8)
torch.from_dlpack(np.zeros(4, np.float32)).resize_(8)
torch.frombuffer(bytearray(8), dtype=torch.float32).resize_(5)
torch.tensor(np.zeros(4, np.float32)).resize_(8).shape
torch.cat([x, x], out=torch.from_numpy(np.zeros(0, np.float32)))
torch.add(x, x, out=torch.from_numpy(np.zeros(0, np.float32)))
torch.add(x, x, out=torch.from_numpy(np.zeros(8, np.float32))[:0])
torch.from_numpy(np.zeros(4, np.float32)).untyped_storage().resizable()
torch.from_numpy(np.zeros(4, np.float32)).untyped_storage().resize_(0)
torch.zeros(4).untyped_storage().resizable()
(x, x.numpy(), x.resize_(9))
(x, x.numpy(), x.untyped_storage().resizable())
(x, x.numpy(), x.clone().resize_(5).shape)
"""


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("text", HELD.strip().splitlines())
def test_memory_of_others_does_not_grow(text: str) -> None:
    def ask(m: Any) -> str:
        return repr(eval(text, {"torch": m, "np": np, "x": m.arange(4.0)}))

    (want, refused), (got, failed) = attempt(ask, torch), attempt(ask, tt)
    assert (type(failed), str(failed)) == (type(refused), str(refused))
    assert got is None or got.replace("toytorch", "torch") == want
