"""Functions with several results give what PyTorch's give: a tuple, a list, or a named tuple."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import toytorch

torch = pytest.importorskip("torch")


def image(t: Any) -> Any:
    return t.arange(24.0).reshape(1, 1, 4, 6)


def square(t: Any) -> Any:
    return t.arange(9.0).reshape(3, 3) + t.eye(3) * 5


def pool(t: Any, name: str, dims: int, *args: Any, **kwargs: Any) -> Any:
    x = {1: image(t)[0], 2: image(t), 3: image(t)[None]}[dims]
    return getattr(t.nn.functional, f"{name}{dims}d")(x, *args, return_indices=True, **kwargs)


CALLS: dict[str, Callable[[Any], Any]] = {
    "aminmax": lambda t: t.aminmax(image(t)),
    "atleast_2d": lambda t: t.atleast_2d(image(t), image(t)),
    "broadcast_tensors": lambda t: t.broadcast_tensors(image(t), image(t)),
    "chunk": lambda t: t.chunk(image(t), 2, -1),
    "cummax": lambda t: t.cummax(image(t), 0),
    "frexp": lambda t: t.frexp(image(t)),
    "gradient": lambda t: t.gradient(square(t)),
    "histogram": lambda t: t.histogram(image(t), 4),
    "kthvalue": lambda t: t.kthvalue(image(t), 2),
    "max": lambda t: t.max(image(t), 0),
    "meshgrid": lambda t: t.meshgrid(t.ones(2), t.ones(3), indexing="ij"),
    "nonzero": lambda t: t.nonzero(image(t), as_tuple=True),
    "where": lambda t: t.where(image(t) > 1),
    "sort": lambda t: t.sort(image(t)),
    "topk": lambda t: t.topk(image(t), 2),
    "split": lambda t: t.split(image(t), 2),
    "split_with_sizes": lambda t: t.split_with_sizes(image(t), [2, 4], -1),
    "tensor_split": lambda t: t.tensor_split(image(t), 2, -1),
    "unbind": lambda t: t.unbind(image(t), 2),
    "unique": lambda t: t.unique(image(t), return_counts=True),
    "var_mean": lambda t: t.var_mean(image(t)),
    "linalg.eigh": lambda t: t.linalg.eigh(square(t)),
    "linalg.inv_ex": lambda t: t.linalg.inv_ex(square(t)),
    "linalg.lstsq": lambda t: t.linalg.lstsq(square(t), square(t)),
    "linalg.lu": lambda t: t.linalg.lu(square(t)),
    "linalg.qr": lambda t: t.linalg.qr(square(t)),
    "linalg.slogdet": lambda t: t.linalg.slogdet(square(t)),
    "linalg.svd": lambda t: t.linalg.svd(square(t)),
    "_foreach_add": lambda t: t._foreach_add([square(t)], 1),
    "_foreach_add_": lambda t: t._foreach_add_([square(t)], 1),
    "_foreach_norm": lambda t: t._foreach_norm([square(t)]),
    "max_pool1d": lambda t: pool(t, "max_pool", 1, 2),
    "max_pool2d": lambda t: pool(t, "max_pool", 2, 2),
    "max_pool3d": lambda t: pool(t, "max_pool", 3, 1),
    "adaptive_max_pool1d": lambda t: pool(t, "adaptive_max_pool", 1, 2),
    "adaptive_max_pool2d": lambda t: pool(t, "adaptive_max_pool", 2, 2),
    "adaptive_max_pool3d": lambda t: pool(t, "adaptive_max_pool", 3, 1),
    "fractional_max_pool2d": lambda t: pool(t, "fractional_max_pool", 2, 2, output_size=2),
    "LSTM": lambda t: t.nn.LSTM(6, 3)(image(t)[0, 0]),
    "GRU": lambda t: t.nn.GRU(6, 3)(image(t)[0, 0]),
    "MultiheadAttention": lambda t: t.nn.MultiheadAttention(6, 2)(*[image(t)[0]] * 3),
    "functional.jacobian": lambda t: t.autograd.functional.jacobian(t.mul, (t.ones(2), t.ones(2))),
    "func.vjp": lambda t: t.func.vjp(t.exp, t.ones(2)),
    "size": lambda t: image(t).size(),
    "stride": lambda t: image(t).stride(),
}


def kind(value: Any) -> Any:
    """The name of a type, and of the types inside a list or tuple."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [kind(v) for v in value]
    return type(value).__name__


@pytest.mark.parametrize("name", CALLS)
def test_kinds_are_pytorchs(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pointers to arrays that PyTorch does not know
        assert kind(CALLS[name](toytorch)) == kind(CALLS[name](torch))
