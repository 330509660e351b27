"""What PyTorch's own tests found in ops: values, types and refusals, beside PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, names, torch, tt

INF, NAN = float("inf"), float("nan")


def told(what: Callable[[Any], Any], m: Any) -> str:
    """What a program gives, or the class and the words of its refusal."""
    made, refused = attempt(lambda: what(m))
    if refused is not None:
        return f"{type(refused).__name__} {refused}".replace("toytorch", "torch")
    return repr(made)


def halves(m: Any, kind: str) -> Any:
    return m.tensor([1.0, -1.0, 0.0, INF, 0.5], dtype=getattr(m, kind))


def tangent(m: Any, name: str) -> Any:
    ad = m.autograd.forward_ad
    with ad.dual_level():
        a = m.tensor([1.0, 2.0, 3.0])
        dual = ad.make_dual(a, m.ones(3))
        return ad.unpack_dual(getattr(m, name)(dual, m.tensor([1.0, 1.0, 5.0]))).tangent


def shared(m: Any) -> Any:
    module = m.nn.Linear(2, 2)
    module.share_memory()
    t = m.ones(2)
    return module.weight.untyped_storage().is_shared(), t.untyped_storage().is_shared()


def without_gradients(m: Any) -> Any:
    x = m.ones(2, requires_grad=True)
    with m.no_grad():
        return x.numpy().tolist()


def kept_short(m: Any, look_up: Callable[..., Any], places: Any) -> Any:
    """A table that is a parameter, whose rows have a largest norm."""
    table = m.nn.Parameter(m.arange(12.0).reshape(4, 3))
    made = look_up(places, table, max_norm=1.0)
    made.sum().backward()
    return made.detach(), table.detach(), table.grad, table._version


def no_elements(m: Any) -> Any:
    table = m.nn.Embedding(0, 0, sparse=True)
    table(m.tensor([], dtype=m.int64)).sum().backward()
    return table.weight.grad.shape


def given_another_type(m: Any, before: bool, named: bool = False) -> Any:
    """The gradient of a leaf whose data got another type, used before or after that; the graph
    has nodes from before in any case."""
    x = (m.arange(4.0) * m.ones(4, requires_grad=True)) * 2
    w = m.nn.Parameter(m.tensor([0.1, 0.2, 0.3, 0.4]))
    old = x * w
    w.data = w.data.double()
    new = x * w
    (old if before else new).sum().backward(inputs=[w] if named else None)
    return w.grad, w.grad.dtype


def layer_given_another_type(m: Any, line: bool) -> Any:
    x = (m.arange(6.0).reshape(2, 3).double() * m.ones(3, requires_grad=True)).contiguous()
    layer = m.nn.LayerNorm(3).double() if line else m.nn.GroupNorm(1, 3).double()
    layer(x).sum().backward()
    return [p.grad for p in layer.parameters()]


def written(m: Any, what: Callable[[Any], Any]) -> Any:
    """A result that is no view, written to where no graph is recorded."""
    with m.no_grad():
        made = what(m)
        made.add_(1)
    return made, made._base is None, made.requires_grad_().sum().backward()


def square(m: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return m.arange(float(count)).reshape(shape)


WRITTEN: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda m: square(m, 2, 3).t().reshape(6),
    "matmul": lambda m: square(m, 2, 2, 3).transpose(0, 1) @ square(m, 2, 3).t(),
    "vector": lambda m: m.ones(2) @ square(m, 2, 3),
    "kron": lambda m: m.kron(square(m, 2, 2), square(m, 2, 1)),
    "linear": lambda m: m.nn.functional.linear(
        square(m, 2, 2, 3).double().transpose(0, 1), square(m, 2, 3).double(), m.ones(2).half()
    ),
}


def through_sparse(m: Any, how: str) -> Any:
    """A layer whose weight is sparse, of a vector."""
    layer = m.nn.Linear(3, 2)
    with m.no_grad():
        layer.bias.copy_(m.tensor([0.5, 1.0]))
    weight = m.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    layer.weight = m.nn.Parameter(getattr(weight, how)())
    x = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    made = layer(x)
    made.sum().backward()
    return made, x.grad, layer.weight.grad.to_dense()


def added_halves(m: Any, kind: str, dim: int, alpha: float) -> Any:
    """Many halves added at few places, where each step may be rounded."""
    shape = [2, 3, 4][: 3 if dim < 3 else 1]
    d = dim % 3 if dim < 3 else 0
    source = [7 if i == d else n for i, n in enumerate(shape)]
    values = (m.arange(float(math.prod(source))).reshape(source) * 1.37).cos().to(getattr(m, kind))
    a = m.full(shape, 2.7, dtype=getattr(m, kind))
    return a.index_add(d, m.tensor([0, 1, 1, 0, 1, 1, 0]), values, alpha=alpha).float()


def joined_halves(m: Any, kind: str) -> Any:
    """Entries of one place, added up."""
    values = (m.arange(24.0).reshape(12, 2) * 1.37).cos().to(getattr(m, kind))
    a = m.sparse_coo_tensor(m.arange(12)[None] % 3, values, (3, 2), check_invariants=False)
    return a.to_dense().float(), a.coalesce().values().float()


SAME: dict[str, Callable[[Any], Any]] = {
    "consecutive": lambda m: m.unique_consecutive(m.ones(0, 0, 3), return_inverse=True),
    "isclose of complex numbers": lambda m: m.isclose(
        m.tensor([complex(-(2**0.5), 2**0.5), 2 + 4j], dtype=m.complex128),
        m.tensor([complex(-(0.5**0.5), 0.5**0.5), 1 + 8.8523607j], dtype=m.complex128),
        rtol=0.5,
        atol=0.5,
    ),
    "trapezoid of places and distances": lambda m: m.trapezoid(m.ones(3), m.ones(3), dx=2),
    "cumulative trapezoid of both": lambda m: m.cumulative_trapezoid(m.ones(3), m.ones(3), dx=2),
    "trapezoid of distances": lambda m: (m.trapezoid(m.ones(3), dx=2), m.trapz(m.ones(3), dx=0.5)),
    "generator of no accelerator": lambda m: m.Generator("opengl"),
    "generator of meta": lambda m: m.Generator("meta"),
    "draws on meta": lambda m: m.rand(2, device="meta").normal_(),
    "rows kept short": lambda m: kept_short(m, m.nn.functional.embedding, m.tensor([1, 2])),
    "bags kept short": lambda m: kept_short(m, m.nn.functional.embedding_bag, m.tensor([[1, 2]])),
    "rows of no elements": lambda m: no_elements(m),
    **{
        f"repeated by one number, dim={dim}, {count}": (
            lambda m, dim=dim, count=count: m.repeat_interleave(
                m.arange(4).reshape(2, 2), m.tensor([count]), dim=dim
            )
        )
        for dim in (None, 0, 1)
        for count in (0, 2, 20_000)
    },
    "leaf before another type": lambda m: given_another_type(m, True),
    "leaf of another type": lambda m: given_another_type(m, False),
    "leaf of another type, named": lambda m: given_another_type(m, False, True),
    **{
        f"layer of another type, {line}": lambda m, line=line: layer_given_another_type(m, line)
        for line in (False, True)
    },
    **{f"written, {k}": lambda m, what=what: written(m, what) for k, what in WRITTEN.items()},
    **{
        f"linear {how}": lambda m, how=how: through_sparse(m, how)
        for how in names("to_sparse to_sparse_csr to_sparse_csc")
    },
    **{
        f"index_add {kind} {dim} {alpha}": (
            lambda m, kind=kind, dim=dim, alpha=alpha: added_halves(m, kind, dim, alpha)
        )
        for kind in ("float16", "bfloat16")
        for dim in range(4)
        for alpha in (1, 2)
    },
    "joined float16": lambda m: joined_halves(m, "float16"),
    "joined bfloat16": lambda m: joined_halves(m, "bfloat16"),
    "vander": lambda m: m.vander(m.tensor([1 + 1j, 0, 2j]), 4),
    "vander ints": lambda m: m.vander(m.tensor([0, 2, 3], dtype=m.int8), increasing=True),
    "vander bools": lambda m: m.vander(m.tensor([True, False]), 1),
    "vander none": lambda m: m.vander(m.tensor([1.5, 2.0]), 0).shape,
    "hardshrink": lambda m: m.nn.functional.hardshrink(
        m.tensor([0.5, 0.30078125, -0.3, 0.29], dtype=m.float16), 0.3
    ),
    "nextafter": lambda m: [
        m.nextafter(halves(m, k), halves(m, k).flip(0)).float() for k in ("bfloat16", "float16")
    ][:1],
    "maximum": lambda m: tangent(m, "maximum"),
    "minimum": lambda m: tangent(m, "minimum"),
    "shared": shared,
    "numpy": without_gradients,
    "numpy refused": lambda m: m.ones(2, requires_grad=True).numpy(),
    "cat": lambda m: m.cat([m.empty(0), m.empty(0)], dim=1),
    "sorter": lambda m: m.searchsorted(m.ones(3), m.ones(1), sorter=m.tensor([0, 1])),
    "buffer": lambda m: m.nn.Module().register_buffer(3, None),
    "module": lambda m: m.nn.Module().add_module(3, None),
    "parameter": lambda m: m.nn.Module().register_parameter(3, None),
}


@pytest.mark.parametrize("name", SAME)
def test_same(name: str) -> None:
    assert told(SAME[name], tt) == told(SAME[name], torch)


ROUNDED = names("elu selu celu gelu silu mish softplus hardswish hardsigmoid sigmoid tanh")


KINDS = [
    (n, k) for n in ROUNDED for k in ("float16", "bfloat16") if (n, k) != ("sigmoid", "float16")
]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_gradients_of_half_types_are_rounded_once(name: str, kind: str) -> None:
    found = []
    for m in (tt, torch):
        x = (m.arange(24.0).view(2, 3, 4) / 5 - 1.7).to(getattr(m, kind)).requires_grad_()
        made = getattr(m.nn.functional, name)(x)
        made.backward((m.arange(24.0).view(2, 3, 4) * 0.37).cos().to(x.dtype))
        found.append(x.grad.float().tolist())
    assert found[0] == found[1]


def test_the_rounded_gradient_is_differentiable() -> None:
    found = []
    for m in (tt, torch):
        x = m.tensor([0.5, -1.0, 2.0], dtype=m.bfloat16, requires_grad=True)
        (slope,) = m.autograd.grad(m.nn.functional.silu(x).sum(), x, create_graph=True)
        slope.sum().backward()
        found.append(x.grad.float())
    assert found[0].tolist() == pytest.approx(found[1].tolist(), rel=2e-2, abs=1e-2)
