"""The words of PyTorch's own tests for wrong calls, and sizes beyond all memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any  # as programs write them

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import same_words

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")

# -- refusals --------------------------------------------------------------------------------------


FIXED = "shape device layout ndim T mT grad_fn is_leaf is_cuda _version requires_grad nbytes"
REFUSED: dict[str, Callable[[Any], Any]] = {
    "fold": lambda m: m.nn.Fold((4, 5), (2, 2), dilation=8)(m.randn(1, 12, 12)),
    "fold, nothing": lambda m: m.nn.Fold((1, 1), (2, 2))(m.randn(1, 4, 1)),
    "grid": lambda m: m.nn.functional.grid_sample(
        m.ones(1, 2, 2), m.ones(1, 1, 1, 2), align_corners=False
    ),
    "grid, empty": lambda m: m.nn.functional.grid_sample(
        m.ones(1, 1, 0, 2), m.ones(1, 1, 1, 2), align_corners=False
    ),
    "texts of three dimensions": lambda m: m.nn.functional.ctc_loss(
        m.zeros(5, 2, 3), m.ones(2, 2, 2, dtype=m.int64), (5, 5), (2, 2)
    ),
    "text without dimensions": lambda m: m.nn.functional.ctc_loss(
        m.zeros(5, 3), m.tensor(1), (5,), (2,)
    ),
    "sorter": lambda m: m.searchsorted(m.arange(3.0), m.arange(3.0), sorter=m.zeros(3)),
    "histogram": lambda m: m.histogram(m.ones(3), m.arange(3.0, dtype=m.float64)),
    "histogram, weights": lambda m: m.histogram(m.ones(3), 3, weight=m.ones(3, dtype=m.float64)),
    "histogram, out": lambda m: m.histogram(
        m.ones(3), 3, out=(m.ones(3), m.ones(3, dtype=m.float64))
    ),
    "max, out": lambda m: m.max(m.ones(2, 2), 0, out=(m.ones(2).double(), m.ones(2).long())),
    "min, out": lambda m: m.min(m.ones(2, 2), 0, out=(m.ones(2).int(), m.ones(2).long())),
    "index_put": lambda m: m.rand([]).index_put([], m.tensor([1.0]), True),
    "assigned": lambda m: m.ones(3, dtype=m.int64).__setitem__(m.ones(3) > 0, m.tensor([])),
    "randperm": lambda m: m.randperm(129, dtype=m.int8),
    "unknown word of a method": lambda m: m.ones(2, requires_grad=True).sum().backward(keep=1),
    "unknown word of a type": lambda m: m.ones(2).double(copy=True),
    **{
        f"write to {name}": lambda m, name=name: setattr(m.ones(2, 2), name, 3)
        for name in FIXED.split()
    },
    "complex for int": lambda m: m.tensor([1 + 0j], dtype=m.int64),
    "complex for float": lambda m: m.tensor([1 + 0j], dtype=m.float32),
    **{
        f"{how} {size} {steps}": lambda m, how=how, size=size, steps=steps: (
            (
                m.ones(4).as_strided(size, steps)
                if how == "as_strided"
                else m.ones(0).set_(m.ones(4).untyped_storage(), 0, size, steps)
            ).shape
        )
        for how in ("as_strided", "set_")
        for size, steps in (
            ((2**31, 2**31, 2**31), (0, 0, 0)),
            ((2, 2), (1,)),
            ((2,), (-1,)),
            ((-2,), (1,)),
        )
        if (how, size) != ("set_", (-2,))  # PyTorch says what it does to its own words
    },
    **{
        f"{name} of pivots {pivots}": lambda m, name=name, pivots=pivots: getattr(m, name)(
            *((m.ones(2, 1),) if name == "lu_solve" else ()),
            m.eye(2),
            m.tensor(pivots, dtype=m.int32),
        )
        for name in ("lu_solve", "lu_unpack")
        for pivots in ([9, 9], [0, 1], [-1, 2], [1, 3])
    },
    "states with gaps": lambda m: m.Generator().set_state(
        m.Generator().get_state().repeat_interleave(2)[::2]
    ),
    "packed": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.randn(0, 1, 2), [1]),
    "cummax": lambda m: m.cummax(m.tensor(1.0), 100),
    "cummin": lambda m: m.cummin(m.tensor(1.0), 2),
    "weights": lambda m: m.nn.functional.nll_loss(m.ones(2, 3), m.tensor([0, 1]), m.ones(1, 3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words(name: str) -> None:
    assert attempt(lambda: REFUSED[name](tt))[1] is not None
    same_words(REFUSED[name])


@pytest.mark.parametrize("lengths", [[30, 25, 20], [29, 0, -1], [29, 29]])
@pytest.mark.parametrize("steps", [[50, 50, 50], [50, 51, 2], [50, 50, -1]])
@pytest.mark.parametrize("flat", [False, True])
def test_lengths_of_texts(lengths: list[int], steps: list[int], flat: bool) -> None:
    def what(m: Any) -> Any:
        targets = m.ones(40 if flat else (3, 29), dtype=m.int64)
        return float(m.nn.functional.ctc_loss(m.zeros(50, 3, 15), targets, steps, lengths))

    same_words(what)


TOO_LARGE: dict[str, Callable[[Any], Any]] = {
    "empty": lambda m: m.empty([2, 4, 2**29, 2**29], dtype=m.float64),
    "no elements": lambda m: m.empty([0, 4, 2**61]),
    "ones": lambda m: m.ones(2**40, 2**40),
    "randn": lambda m: m.randn(2**62),
    "arange": lambda m: m.arange(2**62),
    "pad": lambda m: m.nn.functional.pad(m.ones(1, 1, 1), (2**61, 0)),
    "copy": lambda m: m.ones(1).expand(10**14).clone(),
    "sum": lambda m: m.ones(10**7, 1) + m.ones(1, 10**7),
    "product": lambda m: m.ones(10**7, 1) @ m.ones(1, 10**7),
    "function": lambda m: m.ones(1).expand(10**14).exp(),
    "memory": lambda m: m.zeros(10**14),
    "resized": lambda m: m.empty(0).resize_([0, 4, 2**61]),
    "pooled": lambda m: m.nn.AdaptiveAvgPool1d(2**62 - 1)(m.ones(2, 2, 2)),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large(name: str) -> None:
    ours, theirs = (attempt(lambda m=m: TOO_LARGE[name](m))[1] for m in (tt, torch))
    assert type(ours) is type(theirs) is RuntimeError
    for word in ("can't allocate memory", "Stride calculation"):
        assert (word in str(ours)) == (word in str(theirs))


# -- what is taken now -----------------------------------------------------------------------------


TAKEN: dict[str, Callable[[Any], Any]] = {
    "randperm": lambda m: m.randperm(2**8, out=m.empty(0, dtype=m.uint8)).sort()[0].tolist(),
    "truth": lambda m: m.tensor([1e-323, 0j, 1e-323j, 1 + 2j], dtype=m.bool).tolist(),
    "one truth": lambda m: m.tensor(1j, dtype=m.bool).tolist(),
    "tensordot": lambda m: m.tensordot(m.ones(2, 3), m.ones(3, 2), m.tensor([1])).tolist(),
    "coordinates": lambda m: m.eye(2).to_sparse_coo().indices().tolist(),
    "packed": lambda m: [
        str(getattr(m.nn.utils.rnn.pack_sequence([m.ones(2)]), c)().data.dtype)[-5:]
        for c in ("byte", "char", "short")
    ],
    "formats": lambda m: [
        f(net, like)[0].weight.stride()
        for f, net, like in (
            (
                m.nn.utils.convert_conv2d_weight_memory_format,
                m.nn.Sequential(m.nn.Conv2d(2, 3, 2)),
                m.channels_last,
            ),
            (
                m.nn.utils.convert_conv3d_weight_memory_format,
                m.nn.Sequential(m.nn.ConvTranspose3d(2, 3, 2)),
                m.channels_last_3d,
            ),
        )
    ],
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    assert attempt(lambda: TAKEN[name](tt))[1] is None
    same_words(TAKEN[name])


ODD = ("'a'", "1.5", "{}", "m.ones(2)", "None", "True")
WRITTEN = """
m.cumsum(x, V) | m.cumsum(x, dim=V) | x.cumsum(V) | x.cumsum(dim=V) | x.cumsum(axis=V) | m.triu(x, V) | x.triu(V)
x.transpose(V, 1) | m.transpose(x, V, 1) | x.transpose(0, V) | x.transpose(0, dim1=V) | x.transpose(dim0=V, dim1=1)
m.diagonal(x, V) | x.diagonal(V, 0, 1) | x.diagonal(0, dim1=V, dim2=0) | x.flatten(V) | m.flatten(x, 0, V)
m.flatten(x, end_dim=V) | x.addmm(V, x) | m.addmm(x, V, x) | m.addmm(x, mat1=V, mat2=x) | x.addmm(x, mat2=V)
x.atan2(V) | m.atan2(x, V) | m.atan2(x, other=V) | m.kron(x, other=V) | x.polygamma(V) | m.polygamma(V, x)
x.unsqueeze(V) | m.unsqueeze(x, dim=V) | x.index_select(V, i) | m.index_select(x, 0, V) | x.index_select(dim=V, index=i)
x.index_select(0, index=V) | m.linalg.cross(x, V) | m.linalg.cross(x, x, dim=V) | x.repeat_interleave(2, dim=V)
"""


@pytest.mark.parametrize(
    "text", [c.strip() for c in WRITTEN.replace("\n", "|").split("|") if c.strip()]
)
def test_positions_of_arguments(text: str) -> None:
    """Of what was given by position its place is said, which does not count a method's tensor."""
    for odd in ODD:

        def said(m: Any, call: str = text.replace("V", odd)) -> tuple[str, str]:
            names = {"m": m, "x": m.ones(3, 3), "i": m.tensor([0]), "__name__": "program"}
            refused = attempt(lambda: eval(call, names))[1]
            text = str(refused).replace("toytorch", "torch").split("\n")[0]
            return type(refused).__name__, text if " must be " in text else ""

        theirs, ours = said(torch), said(tt)
        if theirs[1] and ours[1]:
            assert ours == theirs
