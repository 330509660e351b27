"""Calls of PyTorch's own tests, from indices that are masks to pickled functions."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.outside.alike import same_words, warned

# -- calls -----------------------------------------------------------------------------------------


def mask(m: Any) -> Any:
    return m.tensor([1, 0, 1], dtype=m.uint8)


def written(m: Any, index: Any, value: Any) -> Any:
    x = m.zeros(3, 3)
    x[index] = value
    return x.tolist()


def halved(m: Any, mantissa: str, exponent: str) -> Any:
    out = (m.empty(2, dtype=getattr(m, mantissa)), m.empty(2, dtype=getattr(m, exponent)))
    return [t.tolist() for t in m.frexp(m.ones(2), out=out)]


def modulus(m: Any, source: str, kind: str) -> Any:
    x = m.ones(2, dtype=getattr(m, source)) * 3
    return m.abs(x, out=m.empty(2, dtype=getattr(m, kind))).tolist()


def shared(m: Any) -> Any:
    s = m.FloatTensor([1, 2, 3]).storage()
    x, y = m.FloatTensor(s), m.ones(1).new(s)
    x[0] = 5
    return y.tolist(), x.data_ptr() == s.data_ptr() == y.data_ptr()


class Refusing:
    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> int:
        raise KeyError(i)


def derived(m: Any) -> Any:
    return type("Mine", (m.FloatTensor,), {})


CALLS: dict[str, Callable[[Any], Any]] = {
    "buckets of columns": lambda m: m.bucketize(
        m.arange(6.0).view(2, 3).t(), m.arange(3.0)
    ).tolist(),
    "bounds in columns": lambda m: m.searchsorted(
        m.arange(6.0).view(3, 2).t(), m.arange(6.0).view(2, 3)
    ).tolist(),
    "randint by keywords": lambda m: tuple(m.randint(high=10, size=(3,)).shape),
    "slices of nothing": lambda m: m.unique(m.ones(0, 3, 0), dim=1),
    "nothing of nothing": lambda m: m.unique(m.ones(0, 3, 0), dim=0),
    "nothing": lambda m: m.unique(m.ones(0, 3), dim=0).tolist(),
    "runs of nothing": lambda m: m.unique_consecutive(m.ones(0, 3, 0), dim=1),
    "strides missing": lambda m: m.empty_strided([1], []),
    "new strides missing": lambda m: m.ones(2).new_empty_strided([1], []),
    "strides, with a gradient": lambda m: [
        m.empty_strided(*at, requires_grad=True).requires_grad
        for at in (((2, 3), (1, 2)), ((2, 0), (1, 2)), ((2, 3), (0, 4)))
    ],
    "large truths": lambda m: m.tensor([2**70, 0, 1.5, -(2**63) - 1], dtype=m.bool).tolist(),
    "no truths": lambda m: m.tensor([1.0, None], dtype=m.bool),
    "items that are refused": lambda m: m.tensor(Refusing()),
    "abs, complex": lambda m: modulus(m, "complex64", "complex64"),
    "abs, wider": lambda m: modulus(m, "complex64", "complex128"),
    "abs, double": lambda m: modulus(m, "complex64", "float64"),
    "abs, whole": lambda m: modulus(m, "complex64", "int32"),
    "abs of real": lambda m: modulus(m, "float32", "float64"),
    "frexp": lambda m: halved(m, "float32", "int32"),
    "frexp, wider": lambda m: halved(m, "float64", "int32"),
    "frexp, long": lambda m: halved(m, "float32", "int64"),
    "cummax, short": lambda m: m.cummax(
        m.ones(2), 0, out=(m.empty(2, dtype=m.short), m.empty(2, dtype=m.long))
    ),
    "cummin, int": lambda m: m.cummin(m.ones(2), 0, out=(m.empty(2), m.empty(2, dtype=m.int))),
    "alpha by position": lambda m: m.add(m.tensor(1), m.tensor(2), 3).item(),
    "alpha of sub_": lambda m: m.tensor(1).sub_(m.tensor(2), 3).item(),
    "bytes accumulate": lambda m: (
        m.zeros(3).index_put_((mask(m),), m.ones(2), accumulate=True).tolist()
    ),
    "bytes get a number": lambda m: written(m, mask(m), 3.0),
    "bytes in a row": lambda m: written(m, (0, mask(m)), m.tensor([3.0])),
    "bytes get numbers": lambda m: written(m, (0, mask(m)), m.tensor([3.0, 4.0])),
    "bytes beside places": lambda m: written(m, (m.tensor([0, 1]), mask(m)), 2.0),
    "bytes to index_put": lambda m: m.zeros(3).index_put((mask(m),), m.tensor(2.0)),
    "over a storage": shared,
    "over another storage": lambda m: m.FloatTensor(m.DoubleTensor([1.0]).storage()),
    "many threads": lambda m: m.set_num_threads(2**31),
    "more threads": lambda m: m.set_num_threads(2**70),
    "two lists": lambda m: m.Tensor([1, 2], [3]),
    "a tuple and a number": lambda m: m.ones(2).new((1, 2), 3),
    "a word": lambda m: m.Tensor("a"),
    "a float": lambda m: m.Tensor(1.5),
    "a legacy class below": derived,
    "signs of quantized types": lambda m: m.quint8.is_signed,
    "signs": lambda m: (m.uint16.is_signed, m.complex32.is_signed, m.bool.is_signed),
    "size in memory": lambda m: (
        sys.getsizeof(m.empty(10).untyped_storage()) - sys.getsizeof(m.empty(0).untyped_storage())
    ),
    "slices by a rule": lambda m: (
        m.ones(2).index_reduce(0, m.tensor([1]), m.ones(1) * 3, "prod").tolist()
    ),
    "grid of one row": lambda m: m.nn.functional.affine_grid(
        m.eye(2, 3)[None], (1, 1, 2, 1), align_corners=True
    ).tolist(),
    "grid of nothing": lambda m: m.nn.functional.affine_grid(
        m.eye(2, 3)[None], (1, 1, 0, 1), align_corners=True
    ),
    "dropout2d of rows": lambda m: m.nn.functional.dropout2d(
        m.ones(2, 3, 4), training=False
    ).tolist(),
    "complex modules": lambda m: str(m.nn.Linear(2, 2).to(m.complex64).weight.dtype)[-9:],
    "weights for meta": lambda m: (
        m.nn.Linear(2, 3, device="meta")
        .load_state_dict(m.nn.Linear(2, 3).state_dict())
        .missing_keys
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    ours, theirs = warned(CALLS[name], tt), warned(CALLS[name], torch)
    assert ours == theirs


def test_check_tensor_all() -> None:
    for value in (2, [1.0], [True], [False]):

        def call(m: Any, value: Any = value) -> Any:
            return m._check_tensor_all(m.tensor(value) if isinstance(value, list) else value)

        same_words(call)


def test_functions_are_pickled_by_their_names() -> None:
    for name in ("tanh", "sort", "add", "where", "einsum", "nn.functional.relu"):
        function: Any = tt
        for part in name.split("."):
            function = getattr(function, part)
        assert pickle.loads(pickle.dumps(function)) is function


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:volatile was removed")
def test_names_that_a_tensor_lacks_are_not_listed() -> None:
    x = tt.ones(2, 2)
    assert all(hasattr(x, name) for name in dir(x) if name != "imag")
    assert dir(x) == sorted(set(dir(x)))
