"""What dense drivers beside PyTorch found: functions and their families with many shapes, types,
layouts and places to write to."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")


def seen(m: Any, made: Any) -> Any:
    """What a program sees of results: types, shapes, strides, elements to four digits."""
    if isinstance(made, (tuple, list)):
        return [seen(m, v) for v in made]
    if not isinstance(made, m.Tensor):
        return str(made) if isinstance(made, m.dtype) else made
    x = made.detach()
    x = m.view_as_real(x.clone().resolve_conj()) if x.is_complex() else x
    values = [f"{round(v, 5) + 0.0:.4g}" for v in x.reshape(-1).double().tolist()]
    steps = [s for s, n in zip(made.stride(), made.shape) if n > 1] if made.numel() else []
    return str(made.dtype).rpartition(".")[2], tuple(made.shape), steps, values, made.requires_grad


def told(m: Any, what: Callable[[Any], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, refused = attempt(lambda: what(m))
    return type(refused).__name__ if refused is not None else seen(m, made)


def alike(what: Callable[[Any], Any], *about: Any) -> None:
    """That both sides give the same, or refuse it with the same class of error."""
    assert told(tt, what) == told(torch, what), about


def alike_for(what: Callable[..., Any], *given: Any) -> None:
    """`alike` for a function that is given these values too."""
    alike(lambda m: what(m, *given), *given)


def numbers(m: Any, shape: tuple[int, ...], dtype: str, step: int = 3) -> Any:
    count = math.prod(shape)
    return ((m.arange(count) * step % 5) - 1).reshape(shape).to(getattr(m, dtype))


# -- conjugates are views --------------------------------------------------------------------------

LYING: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[:6].reshape(2, 3).clone(),
    "columns": lambda x: x[:6].reshape(3, 2).clone().t(),
    "gaps": lambda x: x.reshape(2, 6)[:, ::2],
    "part": lambda x: x[2:8].reshape(2, 3),
    "large": lambda x: x.repeat(400).reshape(-1, 3)[7:9],
}
SHOWN: dict[str, Callable[[Any], Any]] = {
    "conj": lambda x: x.conj(),
    "H": lambda x: x.H,
    "adjoint": lambda x: x.adjoint(),
    "twice": lambda x: x.conj().conj(),
    "a row of it": lambda x: x.conj()[1],
    "of a row": lambda x: x[1].conj(),
    "imag": lambda x: x.conj().imag,
    "real": lambda x: x.conj().real,
    "resolved": lambda x: x.conj().resolve_conj(),
    "detached": lambda x: x.detach().conj(),
    "of one of several": lambda x: x.unbind(0)[0].conj(),
}
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "nothing": lambda m, x, v: None,
    "to the source": lambda m, x, v: x.mul_(2j),
    "to the view": lambda m, x, v: v.mul_(2),
    "to a part": lambda m, x, v: x.__setitem__((0, slice(0, 2)), 3),
    "to a part of the view": lambda m, x, v: v.__setitem__(0, 5),
    "out=": lambda m, x, v: m.neg(x.clone(), out=x),
    "out= the view": lambda m, x, v: m.neg(v.clone(), out=v),
    "to data": lambda m, x, v: x.data.mul_(3),
    "to what was detached": lambda m, x, v: x.detach().mul_(3),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("show", SHOWN)
def test_conjugates_stay_in_step(show: str, write: str) -> None:
    for lie, wanted in itertools.product(LYING, (False, True)):

        def what(m: Any, lie: str = lie, wanted: bool = wanted) -> Any:
            x = LYING[lie](m.arange(12).to(m.complex64) * (1 + 2j))
            leaf = x.detach().clone().requires_grad_() if wanted else None
            x = leaf * 1 if leaf is not None else x
            view, other = SHOWN[show](x), x.conj()
            WRITES[write](m, x, view)
            found = [x, view, other, view._version, view._is_view(), view.storage_offset()]
            if leaf is not None:
                count = m.arange(view.numel()).reshape(view.shape)
                total = (view * count).abs().pow(2).sum() + (x * x).abs().sum()
                (total + (other.imag * 3).sum()).backward()
                found.append(leaf.grad)
            return found

        alike(what, lie, wanted)


def test_conjugates_of_memory_that_moves() -> None:
    def what(m: Any) -> Any:
        x = m.arange(3).to(m.complex64) * 1j
        y, z = x.conj(), x.conj()
        del z
        x.mul_(2)
        w = y.clone()
        x.resize_(40).fill_(1)
        del y
        x.add_(1)
        return [w, x[:4], x.conj()[:2].as_strided((2,), (1,), 3)]

    alike(what)


# -- what is refused first -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["batch_norm", "native_batch_norm", "instance_norm"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_statistics_that_do_not_fit(name: str, dtype: str) -> None:
    vectors = (None, (3, dtype), (2, "float32"), (3, "float64"))
    for shape, running, weight, training in itertools.product(
        ((2, 3), (1, 3), (0, 3), (2, 3, 2)), vectors, vectors[:3], (True, False)
    ):
        for variance in (running, None) if name == "batch_norm" else (running,):
            if name != "batch_norm" and (
                (running is None and not training) or (2, "float32") in (running, weight)
            ):
                continue  # PyTorch reads memory that is not theirs
            if name == "instance_norm" and running is not None and running[1] != dtype:
                continue  # of which types it is taken depends on strides

            def what(m: Any, case: Any = (shape, running, variance, weight, training)) -> Any:
                size, mean, var, scale, train = case
                given = [
                    None if v is None else (m.arange(v[0]) + 1).to(getattr(m, v[1]))
                    for v in (scale, None, mean, var)
                ]
                more = (True,) * (name != "native_batch_norm")
                made = getattr(m, name)(numbers(m, size, dtype, 7), *given, train, 0.1, 0.5, *more)
                return [made, given[2:]]

            alike(what, shape, running, variance, weight, training)


FAMILIES = [
    "abs",
    "ceil",
    "floor",
    "trunc",
    "round",
    "sign",
    "sgn",
    "neg",
    "exp",
    "square",
    "amax",
    "amin",
    "clamp_min",
    "bitwise_not",
    "cumsum",
    "logical_not",
    "frac",
    "rsqrt",
    "diff",
    "nonzero",
    "argmax",
    "signbit",
]
KINDS = ("bool", "int64", "float16", "float32", "complex64")


@pytest.mark.parametrize("name", FAMILIES)
def test_places_to_write_to(name: str) -> None:
    more = {"amax": (0,), "amin": (0,), "clamp_min": (2,), "cumsum": (0,)}.get(name, ())
    for dtype, other in itertools.product(KINDS, KINDS):
        for lie in ("plain", "expanded"):
            if name == "nonzero" and lie == "expanded":
                continue  # of another shape, which PyTorch resizes before it looks

            def what(m: Any, case: Any = (dtype, other, lie)) -> Any:
                kind = getattr(m, case[1])
                out = m.zeros(2, 3, dtype=kind)
                out = m.zeros(3, dtype=kind).expand(2, 3) if case[2] == "expanded" else out
                return getattr(m, name)(numbers(m, (2, 3), case[0]), *more, out=out).dtype

            alike(what, dtype, other, lie)


@pytest.mark.parametrize("name", ["clamp", "clamp_min", "clamp_max"])
def test_limits_and_places_of_other_types(name: str) -> None:
    for dtype, other, limit in itertools.product(KINDS, KINDS, (2, 1.5, True, "tensor")):

        def what(m: Any, case: Any = (dtype, other, limit)) -> Any:
            end = m.tensor(1) if case[2] == "tensor" else case[2]
            out = m.zeros(2, 3, dtype=getattr(m, case[1]))
            return getattr(m, name)(numbers(m, (2, 3), case[0]), end, out=out)

        alike(what, dtype, other, limit)


REDUCTIONS = [
    "kthvalue",
    "median",
    "nanmedian",
    "mode",
    "topk",
    "cummax",
    "max",
    "min",
    "amax",
    "amin",
    "aminmax",
    "unique",
    "unique_consecutive",
    "nansum",
    "bincount",
    "searchsorted",
    "sort",
    "argsort",
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_few_elements(name: str) -> None:
    for shape, dtype, more in itertools.product(
        ((), (1,), (0,), (3,), (2, 0), (2, 1)), KINDS, ((), (0,), (1,), (-1,), (1, 0), (2,))
    ):

        def what(m: Any, case: Any = (shape, dtype, more)) -> Any:
            return getattr(m, name)(numbers(m, case[0], case[1]), *case[2])

        if told(torch, what) != "TypeError":
            alike(what, shape, dtype, more)


def test_which_of_equal_elements_is_the_kth() -> None:
    rng = random.Random(0)
    for _ in range(200):
        n = rng.randint(1, 14)
        few: list[float] = rng.choice(([0, 1], [0, 1, 2], [0.0, math.nan, 1.0]))
        rows = [[float(rng.choice(few)) for _ in range(n)] for _ in range(2)]
        k = rng.randint(1, n)
        alike_for(lambda m, rows, k: m.tensor(rows).kthvalue(k), rows, k)


PRODUCTS = (
    ((2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3, 2)), ((3,), (3,)), ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)), ((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 2)), ((2, 1, 2, 3), (3,)),
)  # fmt: skip


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products_of_every_two_types(shapes: tuple[tuple[int, ...], ...]) -> None:
    for a, b in itertools.product(KINDS, KINDS):
        if "float16" in (a, b) and a != b and 0 in (*shapes[0], *shapes[1]):
            continue  # of nothing PyTorch makes the second's type, of halves here the first's
        alike_for(lambda m, a, b: numbers(m, shapes[0], a) @ numbers(m, shapes[1], b), a, b)


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products_are_no_views(shapes: tuple[tuple[int, ...], ...]) -> None:
    def what(m: Any) -> Any:
        a = numbers(m, shapes[0], "float32").requires_grad_()
        made = a @ numbers(m, shapes[1], "float32")
        view, kept = made._is_view(), (made * 1).sum()
        kept.backward()
        return [view, made.detach_(), a.grad]

    alike(what)


def test_distances_linear_layers_and_ranks_of_other_types() -> None:
    for a, b in itertools.product(("float16", "float32", "float64"), repeat=2):
        for s, t in (((2, 3), (4, 3)), ((0, 3), (4, 3)), ((2, 0), (4, 0))):
            alike_for(lambda m, a, b, s, t: m.cdist(numbers(m, s, a), numbers(m, t, b)), a, b, s, t)
        alike_for(
            lambda m, a, b: m.nn.functional.linear(
                numbers(m, (2, 2, 3), a), numbers(m, (4, 3), a), numbers(m, (8,), b)[::2]
            ),
            a,
            b,
        )
        alike_for(
            lambda m, a, b: m.linalg.matrix_rank(numbers(m, (3, 3), a), numbers(m, (1, 1), b)),
            a,
            b,
        )


# -- layouts ---------------------------------------------------------------------------------------

LAYERS = [
    ((2, 3, 2), (6, 2, 1)), ((2, 3, 2), (1, 2, 6)), ((1, 3, 2), (12, 2, 1)), ((2, 1, 3), (0, 2, 2)),
    ((3, 2, 1, 3), (3, 9, 7, 1)), ((2, 2, 3, 3), (18, 1, 6, 2)), ((2, 3, 3), (0, 2, 6)),
    ((1, 1, 3), (1, 3, 1)), ((2, 1, 3), (0, 1, 1)),
]  # fmt: skip
LAID: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view_as(x),
    "diagonal of a view": lambda x: x.view_as(x).diagonal(0),
    "sort": lambda x: x.sort(-1)[0],
    "roll": lambda x: x.roll(1, 0),
    "index_fill": lambda x: x.index_fill(0, x.new_zeros(1).long(), 1.0),
    "halves and truth values": lambda x: x.half() + (x > 0),
    "truth values and halves": lambda x: (x.as_strided(x.shape, x.stride()) > 0) + x.half(),
}


@pytest.mark.parametrize("how", LAID)
def test_where_results_lie(how: str) -> None:
    for shape, strides in LAYERS:
        alike_for(
            lambda m, shape, strides: LAID[how](m.arange(60.0).as_strided(shape, strides)),
            shape,
            strides,
        )


# -- gradients -------------------------------------------------------------------------------------

LINEAR: dict[str, Callable[[Any, Any], Any]] = {
    "reflection": lambda m, x: m.nn.functional.pad(x, (1, 1), "reflect"),
    "replication": lambda m, x: m.nn.functional.pad(x, (1, 1), "replicate"),
    "average": lambda m, x: m.nn.functional.avg_pool1d(x, 2),
    "average of images": lambda m, x: m.nn.functional.avg_pool2d(x, 1),
    "even averages": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 2),
    "even maxima": lambda m, x: m.nn.functional.adaptive_max_pool2d(x, 1),
    "norm of order 0": lambda m, x: m.linalg.vector_norm(x, 0),
}


@pytest.mark.parametrize("how", LINEAR)
def test_gradients_of_linear_maps_depend_on_their_input(how: str) -> None:
    def what(m: Any) -> Any:
        x = numbers(m, (2, 3, 4), "float64").requires_grad_()
        made = LINEAR[how](m, x)
        made.backward(m.ones_like(made), create_graph=True)
        if x.grad is None:
            return None
        return [x.grad, m.autograd.grad(x.grad.sum(), x)]

    alike(what)


@pytest.mark.parametrize("name", ["asinh_", "acosh_", "atanh_", "sinh_", "rsqrt_"])
def test_forms_in_place_without_a_derivative(name: str) -> None:
    def what(m: Any) -> Any:
        x = m.full((2,), 0.5, requires_grad=True)
        y = x.clone()
        getattr(y, name)()
        y.sum().backward()
        return x.grad

    alike(what)


def test_an_out_that_is_written_to_gives_its_views_new_histories() -> None:
    for op in ("greater", "less_equal"):

        def what(m: Any, op: str = op) -> Any:
            x = m.ones(2, 3, requires_grad=True)
            v = x[...]
            w = v[0]
            getattr(m, op)(w, -1, out=w)
            (g,) = m.autograd.grad(w, v, m.ones(3), allow_unused=True)
            return g is None

        alike(what)


def test_inference_tensors_are_refused_after_the_write() -> None:
    for write in (
        lambda m, x: x.add_(1),
        lambda m, x: x.add_(m.ones(2)),
        lambda m, x: x[0:1].add_(5),
        lambda m, x: m.exp(m.ones(3), out=x),
        lambda m, x: x.long().lerp_(x.long(), 0.5),
    ):

        def what(m: Any, write: Callable[[Any, Any], Any]) -> Any:
            with m.inference_mode():
                x = m.ones(3)
            _, refused = attempt(lambda: write(m, x))
            return [type(refused).__name__, x]

        alike_for(what, write)


# -- values ----------------------------------------------------------------------------------------


def test_least_squares_leave_out_columns_by_pivots() -> None:
    a = [
        [3.0, 1.0],
        [0.0, 0.25],
        [4.0, 0.5],
    ]  # the larger column is the first: no pivots are needed
    for rcond in (1.0, 0.5, 0.1, 0.01):
        alike_for(
            lambda m, r: m.linalg.lstsq(m.tensor(a), m.tensor([[1.0], [2.0], [3.0]]), r)[::2],
            rcond,
        )


def test_means_of_complex_infinities() -> None:
    rng, parts = random.Random(0), (0.0, 1.0, -1.5, math.inf, -math.inf, math.nan)
    for dim in (None, 0, 1):
        for _ in range(30):
            v = [complex(rng.choice(parts), rng.choice(parts)) for _ in range(6)]
            alike_for(lambda m, v, d: m.std_mean(m.tensor(v).reshape(2, 3), d)[1], v, dim)


def test_small_things() -> None:
    wrong = (2, 3, 1)
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda m: m.nn.functional.cross_entropy(m.ones(4, 1), m.ones(1).double()),
        lambda m: m.nn.functional.cross_entropy(m.ones(4), m.ones(4, 3)),
        lambda m: m.nn.functional.cross_entropy(m.ones(4, 2, 3), m.ones(4, 3).byte()),
        lambda m: m.stack([m.tensor(1.0), m.ones(wrong)], 1),
        lambda m: m.cat([m.ones(2, 3), m.ones(wrong).double()], out=m.ones(2).long()),
        lambda m: m.tensor(-2).lerp(m.tensor(3), m.tensor(1.5).bfloat16()),
        lambda m: m.full((2,), -2).lerp(m.full((2,), 3), m.tensor(2)),
        lambda m: m.embedding_renorm_(
            m.tensor([[math.nan, 1.5]]).half(), m.tensor([0, 0]), 0.0, 0.1
        ),
        lambda m: m.stft(m.ones(10), 7, center=False, return_complex=True).detach_(),
        lambda m: m.nonzero_static(x := m.tensor(4), size=1, out=x),
        lambda m: m.ones(3).as_strided((2, 1), (1, 2), -1),
        lambda m: m.ones(2, dtype=m.complex64).expand(3, 2).sign_(),
        lambda m: m.diff(m.ones(3), 0, 5),
        lambda m: m.searchsorted(m.ones(2), 1.0, sorter=m.ones(2)),
        lambda m: m.from_dlpack(m.ones(4).bfloat16()[1:]).storage_offset(),
        lambda m: m.diff(m.ones(1, 3).expand(2, 3), out=m.ones(1).expand(2, 2)),
        lambda m: m.diff(
            m.tensor([True, False, True]), out=m.zeros(2, requires_grad=True)
        ).tolist(),
        lambda m: (
            m.log_softmax(m.ones(5, requires_grad=True), 0, out=(o := m.zeros(5, 1))[:, 0])
            .detach()
            .tolist()
            + [o.requires_grad]
        ),
        lambda m: type(
            m.nn.functional.elu_(m.ones(2, requires_grad=True) * 1, -1.5).grad_fn
        ).__name__.rstrip("01"),
    )
    for what in calls:
        alike(what)
