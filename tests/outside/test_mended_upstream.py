"""What PyTorch's own tests found, one short test a cause."""

from __future__ import annotations

import gc
import importlib
import math
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt


def told(what: Callable[[Any], Any], m: Any) -> Any:
    """What a program gives, or the class and the words of its refusal."""
    made, refused = attempt(lambda: what(m))
    if refused is not None:
        return type(refused).__name__, str(refused).replace("toytorch", "torch").strip()
    return made


def same(what: Callable[[Any], Any]) -> None:
    """That both sides give the same, or refuse it with the same words."""
    assert told(what, tt) == told(what, torch)


# -- detached in place -----------------------------------------------------------------------------


def leaf(m: Any) -> Any:
    return m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)


def detached_input(m: Any) -> None:
    a = leaf(m).clone()
    b = a.sin()
    a.detach_()
    b.sum().backward()


def detached_and_asked_again(m: Any) -> None:
    a = leaf(m).clone()
    b = a * a
    a.detach_()
    a.requires_grad_()
    b.sum().backward()


def detached_factor(m: Any) -> None:
    a = leaf(m).clone()
    b = m.ones(2, 2, dtype=m.float64, requires_grad=True) @ a
    a.detach_()
    b.sum().backward()


def detached_result(m: Any) -> Any:
    a = leaf(m)
    b = a.exp()
    c = b * 1
    b.detach_()
    c.sum().backward()
    return b._version, type(b._version).__name__, [round(x, 9) for x in a.grad.tolist()]


def detached_twice(m: Any) -> Any:
    a = leaf(m).clone()
    other = a.detach().requires_grad_() * 1
    a.detach_()
    w = leaf(m)
    kept = a * w
    other.detach_()
    kept.sum().backward()
    return w.grad.tolist(), (a.add_(1))._version


def detached_in_a_function(m: Any) -> Any:
    class Square(m.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(m)
    a = x.clone()
    b = Square.apply(a)
    a.detach_()
    b.sum().backward()
    return x.grad.tolist(), a.is_leaf


def shown_after_detaching(m: Any) -> Any:
    a = leaf(m).clone()
    b = a.cos()
    a.detach_()
    return b.grad_fn._saved_self.tolist()


def steps_in_time(m: Any) -> Any:
    x, h = leaf(m), m.zeros(2, dtype=m.float64)
    for _ in range(3):
        h = h * x + 1
        h.sum().backward()
        h.detach_()
    return x.grad.tolist()


@pytest.mark.parametrize(
    "what",
    [
        detached_input,
        detached_and_asked_again,
        detached_factor,
        detached_result,
        detached_twice,
        detached_in_a_function,
        shown_after_detaching,
        steps_in_time,
    ],
)
def test_a_saved_tensor_that_was_detached_in_place(what: Callable[[Any], Any]) -> None:
    same(what)


# -- values ----------------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
COMPLEX = [
    complex(-INF, INF), complex(-INF, 1), complex(-INF, NAN), 1.2 + 2.1j, complex(INF, 0),
    complex(INF, 1), complex(INF, INF), complex(NAN, 2), complex(1, NAN), 3 - 2j, 0j, 1e10 + 1e20j,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_logcumsumexp_of_complex_numbers_without_end(kind: str) -> None:
    def parts(m: Any, numbers: list[complex]) -> Any:
        made = m.logcumsumexp(m.tensor(numbers, dtype=getattr(m, kind)), 0).tolist()
        return [part for z in made for part in (z.real, z.imag)]

    for a in COMPLEX:
        for b in COMPLEX:
            numbers = [a, b, 0.5 + 0.25j, a]
            assert parts(tt, numbers) == pytest.approx(parts(torch, numbers), nan_ok=True, rel=1e-5)


def test_heaviside_asks_for_types_first() -> None:
    kinds = "float32", "float64", "complex64", "complex128"
    for a in kinds:
        for b in kinds:
            for c in kinds:

                def call(m: Any, a: str = a, b: str = b, c: str = c) -> Any:
                    x, y, z = (m.zeros(2, dtype=getattr(m, k)) for k in (a, b, c))
                    return m.heaviside(x, y, out=z).tolist()

                same(call)

            def write(m: Any, a: str = a, b: str = b) -> Any:
                x, y = (m.zeros(2, dtype=getattr(m, k)) for k in (a, b))
                return x.heaviside_(y).tolist()

            same(write)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sparse_entries_of_halves_are_summed_with_more_digits(kind: str) -> None:
    values = [1.0] + [2**-9] * 512
    for dense in (False, True):
        x = tt.sparse_coo_tensor(tt.zeros(1, 513, dtype=tt.int64), values, (2,)).to(
            getattr(tt, kind)
        )
        assert (x.to_dense() if dense else x.coalesce().to_dense()).tolist() == [2, 0]


def test_embedding_bag_sums_bfloat16_no_worse_than_pytorch() -> None:
    from toytorch.nn.functional import embedding

    indices = tt.randint(0, 5, (40, 10), generator=tt.Generator().manual_seed(1))
    weights = tt.rand(5, 3, generator=tt.Generator().manual_seed(2)).bfloat16()
    g = tt.randn(40, 3, generator=tt.Generator().manual_seed(3)).bfloat16()
    exact = torch.zeros(5, 3, dtype=torch.float64)
    rows = torch.from_numpy(g.double().numpy()).repeat_interleave(10, 0)
    exact.index_add_(0, torch.from_numpy(indices.numpy()).reshape(-1), rows)

    def error(grad: Any) -> float:
        assert grad is not None
        return float((torch.from_numpy(grad.to_dense().double().numpy()) - exact).abs().max())

    for sparse in (False, True):
        errors = []
        for m in (tt, torch):
            w = m.from_numpy(weights.float().numpy()).bfloat16().requires_grad_()
            given = m.from_numpy(indices.numpy())
            made = m.nn.functional.embedding_bag(given, w, mode="sum", sparse=sparse)
            made.backward(m.from_numpy(g.float().numpy()).bfloat16())
            errors.append(error(w.grad.float()))
        assert errors[0] <= errors[1]
    w = weights.clone().requires_grad_()
    embedding(indices, w).sum(1).backward(g)
    assert error(w.grad) < 0.5


@pytest.mark.parametrize("name", ["igamma", "igammac", "special.zeta"])
def test_words_where_there_is_no_derivative(name: str) -> None:
    def call(m: Any) -> None:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        function(leaf(m) + 2, leaf(m)).sum().backward()

    same(call)


# -- calls -----------------------------------------------------------------------------------------


def warned(what: Callable[[Any], Any], m: Any) -> tuple[Any, list[str]]:
    """What a program gives or how it is refused, and the first words of its warnings."""
    was = m.is_warn_always_enabled()
    m.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made = told(what, m)
    finally:
        m.set_warn_always(was)
    return made, [str(w.message)[:80] for w in seen if "TypedStorage" not in str(w.message)]


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

        same(call)


def test_functions_are_pickled_by_their_names() -> None:
    for name in ("tanh", "sort", "add", "where", "einsum", "nn.functional.relu"):
        function: Any = tt
        for part in name.split("."):
            function = getattr(function, part)
        assert pickle.loads(pickle.dumps(function)) is function


# -- modules ---------------------------------------------------------------------------------------


def hooks_as_given(m: Any) -> Any:
    def before(module: Any, args: Any) -> None: ...

    def after(module: Any, args: Any, kwargs: Any, out: Any) -> None: ...

    layer = m.nn.Linear(2, 2)
    layer.register_forward_pre_hook(before)
    layer.register_forward_hook(after, with_kwargs=True, always_call=True)
    layer(m.ones(2))
    return (
        next(iter(layer._forward_pre_hooks.values())) is before,
        list(layer._forward_hooks_with_kwargs.values()),
        list(layer._forward_hooks_always_called.values()),
    )


def base_last(m: Any) -> Any:
    class Mixin:
        def __init__(self, size: int = 1) -> None:
            self.size = size

    class Layer(m.nn.Module, Mixin):  # type: ignore[misc]
        call_super_init = True

    class Other(m.nn.Module, Mixin):  # type: ignore[misc]
        pass

    return Layer(size=3).size, hasattr(Other(), "size")


def hook_of_two_kinds(m: Any) -> None:
    def hook(module: Any, state: Any, prefix: str, metadata: Any) -> None: ...

    layer = m.nn.Linear(2, 2)
    layer.register_state_dict_post_hook(hook)
    layer._register_state_dict_hook(hook)


def pruned_twice(m: Any) -> Any:
    layer = m.nn.Linear(4, 4)
    prune = importlib.import_module(f"{m.__name__}.nn.utils.prune")
    prune.l1_unstructured(layer, "weight", amount=0.25)
    prune.l1_unstructured(layer, "weight", amount=0.5)
    (hook,) = layer._forward_pre_hooks.values()
    return type(hook).__name__, len(hook), int(layer.weight_mask.sum())


@pytest.mark.parametrize("what", [hooks_as_given, base_last, hook_of_two_kinds, pruned_twice])
def test_modules(what: Callable[[Any], Any]) -> None:
    same(what)


def test_loading_leaves_nothing_for_the_collector() -> None:
    net = tt.nn.Sequential(tt.nn.Linear(2, 2), tt.nn.LSTM(2, 2))
    state = net.state_dict()
    gc.collect()
    net.load_state_dict(state)
    assert gc.collect() == 0


@pytest.mark.parametrize("passed", [False, True])
def test_optimizers_that_divide_by_the_scale(passed: bool) -> None:
    def steps(m: Any) -> Any:
        seen: list[Any] = []

        class Plain(m.optim.Optimizer):  # type: ignore[misc]
            _step_supports_amp_scaling = True

            def step(self, closure: Any = None) -> None:
                seen.append((self.grad_scale.item(), self.found_inf.item()))

        class Told(Plain):
            def step(self, closure: Any = None, *, grad_scaler: Any = None) -> None:
                seen.append((type(grad_scaler).__name__, hasattr(self, "grad_scale")))

        layer = m.nn.Linear(2, 1)
        optimizer = (Told if passed else Plain)(layer.parameters(), {})
        scaler = m.amp.GradScaler("cpu", init_scale=2.0)
        scaler.scale(layer(m.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)
        if not passed:
            scaler.update()
        return (
            seen,
            scaler.get_scale(),
            layer.weight.grad.tolist(),
            vars(optimizer).get("found_inf"),
        )

    assert warned(steps, tt) == warned(steps, torch)


# -- scripts ---------------------------------------------------------------------------------------


def test_a_write_after_a_group_of_a_script() -> None:
    text = """
def foo(a, b):
    c = a + b
    e = 2 * a
    torch.add(c, b, out=e)
    return e
"""
    ours, theirs = tt.jit.CompilationUnit(text), torch.jit.CompilationUnit(text)
    for shape in ((3,), (3, 3), (3,)):
        for _ in range(2):
            made = ours.foo(tt.ones(shape), tt.ones(3)).tolist()
            assert made == theirs.foo(torch.ones(shape), torch.ones(3)).tolist()


# -- memory ----------------------------------------------------------------------------------------

LIKE = "zeros_like ones_like empty_like rand_like randn_like"


@pytest.mark.parametrize("name", [*LIKE.split(), "randint_like", "full_like"])
def test_tensors_alike_keep_the_steps_over_sizes_of_1(name: str) -> None:
    more = {"randint_like": (3,), "full_like": (2,)}.get(name, ())
    for shape, steps in {
        (1, 2, 1): (2, 1, 2), (10, 3, 1, 1): (3, 1, 3, 3), (2, 1): (1, 2), (1, 1): (5, 7),
        (3, 1, 2): (2, 9, 1), (2, 3): (3, 1), (1,): (4,),
    }.items():  # fmt: skip
        ours, theirs = (m.empty_strided(shape, steps) for m in (tt, torch))
        made = getattr(tt, name)(ours, *more)
        assert made.stride() == getattr(torch, name)(theirs, *more).stride(), (shape, steps)


@pytest.mark.filterwarnings("ignore:volatile was removed")
def test_names_that_a_tensor_lacks_are_not_listed() -> None:
    x = tt.ones(2, 2)
    assert all(hasattr(x, name) for name in dir(x) if name != "imag")
    assert dir(x) == sorted(set(dir(x)))


def test_detached_in_place_loses_its_tangent() -> None:
    def tangents(m: Any) -> Any:
        forward = m.autograd.forward_ad
        with forward.dual_level():
            dual = forward.make_dual(m.ones(2), m.ones(2)).clone()
            before = forward.unpack_dual(dual * 2).tangent.tolist()
            dual.detach_()
            return before, forward.unpack_dual(dual * 2).tangent

    same(tangents)


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
def test_sparse_gradients_of_two_leaves_are_two(kept: bool) -> None:
    def grads(m: Any) -> Any:
        class Both(m.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                return a + b

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                held.append(g) if kept else None
                return g, g

        held: list[Any] = []
        a, b = (m.ones(10, 3, requires_grad=True) for _ in "ab")
        rows = m.nn.functional.embedding(m.tensor([1, 2, 1]), Both.apply(a, b), sparse=True)
        rows.sum().backward()
        a.grad._values().mul_(5)
        return [t.to_dense().sum().item() for t in (a.grad, b.grad, *held)]

    same(grads)


SLOPES: dict[str, Callable[[Any, Any], Any]] = {
    "leaky_relu_": lambda m, x: m.nn.functional.leaky_relu_(x, -2),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x, -2, inplace=True),
    "leaky_relu, aside": lambda m, x: m.nn.functional.leaky_relu(x, -2),
    "LeakyReLU": lambda m, x: m.nn.LeakyReLU(-2, inplace=True)(x),
    "rrelu_": lambda m, x: m.nn.functional.rrelu_(x, -5.0, 1.0),
    "RReLU": lambda m, x: m.nn.RReLU(-5.0, 1.0, inplace=True).eval()(x),
    "elu": lambda m, x: m.nn.functional.elu(x, -2, inplace=True),
    "ELU": lambda m, x: m.nn.ELU(-2, inplace=True)(x),
    "celu": lambda m, x: m.nn.functional.celu(x, -2.0, inplace=True),
    "celu, above": lambda m, x: m.nn.functional.celu(x, 2.0, inplace=True),
}


@pytest.mark.parametrize("name", SLOPES)
def test_negative_slopes_in_place_are_refused_on_the_way_back(name: str) -> None:
    def gradient(m: Any) -> Any:
        x = m.tensor([-1.0, 1.0], dtype=m.float64, requires_grad=True)
        SLOPES[name](m, x.clone()).sum().backward()
        return [round(v, 9) for v in x.grad.tolist()]

    same(gradient)
