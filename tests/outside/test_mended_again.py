"""What single statements of the second generator found, many of each function; one test a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, told, torch, tt
from tests.outside.test_mended_lately import whats

INF, NAN = float("inf"), float("nan")


def seen(made: Any) -> Any:
    """What can be compared of results: elements, types, sizes and strides."""
    if isinstance(made, (torch.Tensor, tt.Tensor)):
        dtype = str(made.dtype).rpartition(".")[2]
        return repr(made.detach().tolist()), dtype, tuple(made.shape), tuple(made.stride())
    if isinstance(made, (tuple, list)):
        return [seen(m) for m in made]
    return made


def alike(what: Callable[[Any], Any], words: bool = False) -> None:
    """That both sides give the same, or refuse it with the same class of error (and words)."""
    theirs, ours = (attempt(what, m) for m in (torch, tt))
    if theirs[1] is None or ours[1] is None:
        assert told(ours[1]) == told(theirs[1])
    elif words:
        assert told(ours[1]).replace("toytorch", "torch") == told(theirs[1])
    assert type(ours[1]).__name__ == type(theirs[1]).__name__
    assert seen(ours[0]) == seen(theirs[0])


# -- out= ------------------------------------------------------------------------------------------

ONE = whats(
    lambda m, a, out: m.abs(a, out=out),
    lambda m, a, out: m.maximum(a, a, out=out),
    lambda m, a, out: m.amax(a, 0, out=out),
    lambda m, a, out: m.clamp(a, 0, out=out),
    lambda m, a, out: m.cat([a], out=out),
    lambda m, a, out: m.stack([a], out=out),
    lambda m, a, out: m.linalg.inv(a, out=out),
    lambda m, a, out: m.linalg.det(a, out=out),
    lambda m, a, out: m.fft.fft(a, out=out),
    lambda m, a, out: m.diag(a, out=out),
    lambda m, a, out: m.argsort(a, stable=True, out=out),
    lambda m, a, out: m.linalg.matrix_power(a, 2, out=out),
    lambda m, a, out: m.zeros(3, 3, out=out),
    lambda m, a, out: m.special.ndtr(a, out=out),
)
SEVERAL = whats(
    lambda m, a, out: m.sort(a, out=out),
    lambda m, a, out: m.max(a, 0, out=out),
    lambda m, a, out: m.linalg.eigh(a, out=out),
    lambda m, a, out: m.linalg.slogdet(a, out=out),
    lambda m, a, out: m.linalg.svd(a, out=out),
    lambda m, a, out: m.aminmax(a, out=out),
    lambda m, a, out: m.unbind_copy(a, out=out),
    lambda m, a, out: m.split_with_sizes_copy(a, (1, 2), out=out),
    lambda m, a, out: m.split_with_sizes_copy(a, (1, 1), out=out),
)
NO_OUT: dict[str, Callable[[Any], Any]] = {
    "a number": lambda m: 1,
    "a tensor": lambda m: m.empty(0),
    "one in a tuple": lambda m: (m.empty(0),),
    "a list": lambda m: [m.empty(0)],
    "None in a tuple": lambda m: (m.empty(0), None),
    "many": lambda m: tuple(m.empty(0) for _ in range(5)),
}


@pytest.mark.parametrize("given", [k for k in NO_OUT if k != "a tensor"])
@pytest.mark.parametrize("what", ONE)
def test_an_out_that_is_no_tensor(what: Any, given: str) -> None:
    alike(lambda m: what(m, m.eye(3), NO_OUT[given](m)))


@pytest.mark.parametrize("given", [k for k in NO_OUT if k != "many"])
@pytest.mark.parametrize("what", SEVERAL)
def test_an_out_that_is_not_as_many_tensors(what: Any, given: str) -> None:
    alike(lambda m: type(what(m, m.eye(3), NO_OUT[given](m))).__name__)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.abs(m.ones(3, 3), out=m.zeros(1).expand(3)),
        lambda m: m.add(m.ones(3), 1, out=m.zeros(1, 1).expand(3, 3)),
        lambda m: m.gcd(m.ones(3, dtype=m.int64), m.tensor(2), out=m.zeros(1).long().expand(3)),
        lambda m: m.threshold(m.ones(3, 3), 0, 1, out=m.zeros(1).expand(3)),
        lambda m: m.nan_to_num(m.ones(3, 3).long(), out=m.zeros(1).long().expand(3)),
        lambda m: m.zeros(2, 3, out=m.zeros(1, 1).expand(2, 3)),
        lambda m: m.full((2, 3), 4, out=m.zeros(1, 1).expand(2, 3)),
        lambda m: m.hstack([m.ones(2, 2)], out=m.zeros(1).expand(3)),
        lambda m: m.cat([m.ones(3)], out=m.zeros(1).expand(3)),
        lambda m: m.stack([m.ones(3)], out=m.zeros(1).expand(3)),
    ),
)
def test_an_out_that_overlaps_itself(what: Any) -> None:
    alike(what)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.bitwise_and(1, m.tensor([3]), out=m.tensor([0])),
        lambda m: m.bitwise_left_shift(1, m.tensor([3]), out=m.tensor([0])),
        lambda m: m.remainder(7, m.tensor([3]), out=m.tensor([0])),
        lambda m: m.pow(2, m.tensor([3.0]), out=m.tensor([0.0])),
        lambda m: m.prod(m.tensor([3.0]), out=m.tensor([0.0])),
        lambda m: m.prod(m.tensor([3.0]), 0, out=m.tensor(0.0)),
        lambda m: m.cat([m.ones(2)], out=m.ones(2, dtype=m.int64)),
        lambda m: m.stack([m.ones(2)], out=m.ones(2, dtype=m.int64)),
        lambda m: m.argsort(m.ones(2), stable=True, out=m.empty(0)),
        lambda m: m.fft.irfft(m.arange(9).reshape(3, 3), dim=-2, out=m.empty(0)),
        lambda m: m.linalg.matrix_power(m.eye(3) * 2, -1, out=m.empty(0)),
        lambda m: m.linalg.tensorinv(m.eye(3) * 2, 1, out=m.empty(0)),
        lambda m: m.fft.fftfreq(1, 0.5, out=m.zeros(1, 1)),
        lambda m: m.histc(m.tensor([3]), out=m.tensor([0.0])),
        lambda m: m.nansum(m.tensor([True])[:0], (), True, out=m.tensor([True])[:0]),
    ),
)
def test_what_out_needs_and_how_it_lies(what: Any) -> None:
    alike(what)


def resized_inverse(m: Any, x: Any, y: Any) -> Any:
    made = y.double() * 1
    m.linalg.inv(x, out=made)
    return made


def resized_copy(m: Any, x: Any, y: Any) -> Any:
    made = y.to(m.float64)
    m.alias_copy(x, out=made)
    return made


@pytest.mark.filterwarnings("ignore:An output with one")
@pytest.mark.parametrize("how", ["compile", "trace"])
@pytest.mark.parametrize("what", [resized_inverse, resized_copy])
def test_an_out_of_another_shape_inside_a_compiled_function(what: Any, how: str) -> None:
    """It had the elements of the first call for ever after."""

    def results(m: Any) -> Any:
        def f(x: Any, y: Any) -> Any:
            return what(m, x, y)

        y = m.tensor(1.0)
        if m is tt:
            x = m.eye(2, dtype=m.float64)
            f = m.compile(f) if how == "compile" else m.jit.trace(f, (x, y), check_trace=False)
        made = [f(m.eye(2, dtype=m.float64) * k, y) for k in (1, 2, 4)]
        return [t.tolist() for t in made]

    assert results(tt) == results(torch)


# -- names of arguments ----------------------------------------------------------------------------


FIRST = [
    "det",
    "inverse",
    "slogdet",
    "matrix_power",
    "linalg.det",
    "linalg.inv",
    "linalg.slogdet",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.cond",
    "linalg.norm",
    "linalg.cholesky",
    "linalg.pinv",
    "linalg.matrix_rank",
    "linalg.tensorinv",
    "linalg.svdvals",
    "linalg.lstsq",
    "linalg.matrix_norm",
    "abs_",
    "detach",
    "detach_",
    "zero_",
    "nn.functional.one_hot",
    "lu_solve",
    "split",
    "cosine_embedding_loss",
    "triplet_margin_loss",
    "hinge_embedding_loss",
    "cdist",
    "pairwise_distance",
    "linalg.vander",
    "linalg.vecdot",
]


@pytest.mark.parametrize("word", ["input", "self", "x", "a", "x1", "A"])
@pytest.mark.parametrize("name", FIRST)
def test_the_name_of_the_first_argument(name: str, word: str) -> None:
    more: dict[str, Any] = {
        "matrix_power": {"n": 1}, "linalg.tensorinv": {"ind": 1}, "split": {"dim": 0},
    }.get(name, {})  # fmt: skip

    def call(m: Any) -> Any:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        x = m.tensor([1, 2]) if name.endswith("one_hot") else m.eye(2)
        return type(function(**{word: x}, **more)).__name__

    alike(call)


def test_split_is_the_split_of_what_it_is_given() -> None:
    alike(lambda m: m.split("a-b", "-"))
    alike(lambda m: m.split(m.arange(4), 2))
    alike(lambda m: m.split(m.arange(4), split_size=2))


# -- numbers beside tensors of few bits ------------------------------------------------------------


@pytest.mark.parametrize("number", [-1, 300, -300, 40000, NAN, INF])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64"])
@pytest.mark.parametrize(
    "what",
    whats(
        lambda m, x, n: m.add(x, x, alpha=n),
        lambda m, x, n: m.addcmul(x, x, x, value=n),
        lambda m, x, n: m.threshold(x, 0, n),
        lambda m, x, n: m.addmm(x[None], x[None], x[:, None], beta=n),
        lambda m, x, n: m.addmm(x[None], x[None], x[:, None], alpha=n),
        lambda m, x, n: m.baddbmm(x[None, None], x[None, None], x[None, None], beta=n),
        lambda m, x, n: m.full((1,), n, dtype=x.dtype),
        lambda m, x, n: x.new_full((1,), n),
    ),
)
def test_a_number_that_does_not_fit(what: Any, dtype: str, number: Any) -> None:
    alike(lambda m: what(m, m.tensor([3], dtype=getattr(m, dtype)), number), words=True)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.add(m.tensor([1, 2]), 3, 0.5),
        lambda m: m.add(m.tensor([1, 2]), 0.5, 3),
        lambda m: m.sub(m.tensor([1, 2]), 3, 0.5),
        lambda m: m.tensor([True]).add(3, 0.0),
        lambda m: m.tensor([1.5]).add_(2, 3),
        lambda m: m.rsub(m.tensor(-2), 2.0, 2.5),
    ),
)
def test_two_numbers_by_position(what: Any) -> None:
    alike(what)


# -- single functions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.fft.fft(m.tensor(1.0)),
        lambda m: m.fft.fftfreq(3, dtype=m.int64),
        lambda m: m.linspace(2, NAN, 1, dtype=m.int64),
        lambda m: m.linspace(INF, 0, 0, dtype=m.int64),
        lambda m: m.linspace(INF, 0, 3, dtype=m.int64),
        lambda m: m.linspace(2.0, 1, 1, dtype=m.bool),
        lambda m: m.linspace(2.0, 1, 2, dtype=m.bool),
        lambda m: m.logspace(2.0, 1, 0, dtype=m.bool),
        lambda m: m.kaiser_window(2, dtype=m.complex64),
        lambda m: m.hann_window(1, dtype=m.complex64),
        lambda m: m.tril_indices(2, 2, 0, dtype=m.int8),
        lambda m: m.repeat_interleave(m.tensor([1.0, 2]), m.tensor([2])),
        lambda m: m.repeat_interleave(m.tensor([2, 4]), 0, output_size=2),
        lambda m: m.repeat_interleave(m.ones(2)),
        lambda m: m.tile(m.zeros(0), (-1,)),
        lambda m: m.ones(2).tile(-1),
        lambda m: m.zeros(0, 2).repeat(-1, 2),
        lambda m: m.triplet_margin_loss(m.ones(2), m.ones(2), m.ones(2), 0),
        lambda m: m.nn.functional.triplet_margin_loss(m.ones(2), m.ones(2), m.ones(2), 0),
        lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(2), "mean", 0),
        lambda m: m.svd(m.ones(2, 2, 3), compute_uv=False)[2],
        lambda m: m.take_along_dim(m.zeros(2, 0), m.zeros(2, 0)),
        lambda m: m.native_layer_norm(m.zeros(2, 0), (0,), None, None, 2.0),
        lambda m: m.median(m.zeros(0, dtype=m.bool)),
        lambda m: m.nanmedian(m.tensor([True, False])),
        lambda m: m.nanmedian(m.zeros(0, dtype=m.bfloat16)),
        lambda m: m.ones(24).as_strided((2, 4, 3), (1, 2, 0)).flip(1),
        lambda m: m.group_norm(m.ones(3), 1),
        lambda m: m.group_norm(m.tensor(1.0), 1),
        lambda m: m.nn.functional.group_norm(m.ones(3), 1),
        lambda m: m.instance_norm(m.ones(4), None, None, None, None, True, 0.1, 1e-5, False),
        lambda m: m.linalg.cond(m.zeros(0, 3), 1),
        lambda m: m.linalg.tensorinv(m.ones(1)),
        lambda m: m.linalg.tensorsolve(m.tensor(0.5), m.tensor(0.5), (0,)),
        lambda m: m.cumprod(m.tensor([complex(0.5, -INF), 1 + 0j]), 0),
        lambda m: m.linalg.vector_norm(m.tensor([[0.5], [2.0]]), 1e-5, dim=1),
        lambda m: m.special.zeta(m.tensor([1e30, 2.0]).double(), m.tensor([2.0, 1e30]).double()),
        lambda m: m.slice_scatter(m.arange(4)[2:], m.tensor([2, 5]), -1).storage_offset(),
        lambda m: m.linalg.ldl_factor_ex(m.eye(2).requires_grad_())[0].requires_grad,
        lambda m: m.linalg.ldl_factor(m.eye(2).requires_grad_())[0].sum().backward(),
        lambda m: m.linalg.cond(m.eye(2).expand(2, 3, 2, 2).transpose(0, 1)),
        lambda m: m.cummin(m.zeros(1, 0, 2), 3)[0],
        lambda m: m.igamma(m.tensor([1e30, 1e20]), m.tensor([1e30, 1e20])),
        lambda m: m.igammac(m.tensor([1e30, 1e20]), m.tensor([1e30, 1e20])),
        lambda m: m.linalg.pinv(m.ones(2, 2), rtol=m.tensor(1j)),
        lambda m: m.zeros(1, 0, 2).scatter_(2, m.zeros(1, 0, 2, dtype=m.int64), 1 + 2j),
        lambda m: m.std(m.tensor([1e30, 1.0, 2.0]), 0).item() < 1e30,
        lambda m: m.adaptive_avg_pool1d(m.zeros(1, 0, 2), 2),
        lambda m: m.nn.functional.adaptive_avg_pool2d(m.zeros(1, 0, 2, 2), 2),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), dim=(0, 1, 2)),
        lambda m: m.round(m.tensor(3), decimals=2),
        lambda m: m.polygamma(2, m.tensor([1j])),
        lambda m: m.kthvalue(m.tensor([1j, 2]), 1),
        lambda m: m.tensor([1.0, 2]).nanmean(dtype=m.uint8),
        lambda m: m.meshgrid(tensors=(m.ones(2),)),
        lambda m: m.isin(True, m.tensor([1])),
        lambda m: m.linalg.vecdot(m.ones(3), m.ones(3).double()),
        lambda m: m.tensor([[1.0, 2]]).bincount(),
        lambda m: m.gcd_(m.ones(1, 3), m.ones(2, 3).double()),
        lambda m: m.histc(m.tensor([3], dtype=m.uint8), min=1),
        lambda m: m.grid_sampler(m.tensor(3.0), m.tensor(3.0), 0, 0, False),
        lambda m: m.addcmul(m.tensor([1]), m.tensor([1]), m.tensor([1]), value=NAN),
    ),
)
def test_results_and_refusals(what: Any) -> None:
    alike(what)


def test_a_leaf_that_is_detached_in_place_may_be_written_to() -> None:
    def f(x: Any) -> Any:
        x.detach_()
        x.pow_(2)
        return x * 1

    def leaf(m: Any) -> Any:
        return m.tensor([2.0, 3.0], requires_grad=True)

    traced = tt.jit.trace(f, (leaf(tt),), check_trace=False)
    for ours in (tt.compile(f), traced):
        a, b = leaf(torch), leaf(tt)
        assert seen(f(a)) == seen(ours(b))
        assert seen(a) == seen(b)
        assert a.requires_grad == b.requires_grad
