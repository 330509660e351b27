"""More of what the second generator found, one short test a cause."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.test_mended import LAYOUTS, same, steps

EXPRESSIONS = Callable[[Any], Any]


def said(what: EXPRESSIONS) -> None:
    """That both sides give the same, or refuse it with the same class of error."""

    def told(m: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made, refused = attempt(lambda: what(m))
        return made if refused is None else type(refused).__name__

    theirs, ours = told(torch), told(tt)
    assert ours == theirs


def forms(*functions: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Functions, of a type that is known."""
    return functions


def node(x: Any) -> Any:
    return type(x.grad_fn).__name__ if x.grad_fn is not None else None


# -- memory ----------------------------------------------------------------------------------------


def test_memory_that_grows_through_a_view_is_everybodys() -> None:
    def seen(m: Any) -> Any:
        x = m.arange(6.0).reshape(2, 3)
        part, other, nothing = x[1, 1:], x.detach(), x[:, 5:]
        with pytest.warns(UserWarning, match="resized"):
            m.mul(m.ones(7), 2, out=part)
        other[0, 0] = 9
        return x.tolist(), part.tolist(), steps(part), steps(nothing), x._version

    same(seen)


def test_memory_of_nothing_grows_for_its_views() -> None:
    def seen(m: Any) -> Any:
        x = m.zeros(0)
        turned = x.view(0)
        m.linspace(0, 2, 3, out=turned)
        return x._version, x.untyped_storage().data_ptr() == turned.untyped_storage().data_ptr()

    same(seen)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(x > 0, x),
        lambda x: x[:1].__setitem__(x[:1] > 0, x[:1]),
        lambda x: x.__setitem__([0, 1], x),
        lambda x: x.__setitem__(x > 0, x[:]),
        lambda x: x[::2].__setitem__(x[::2] > 0, x[::2].T),
        lambda x: x.expand(3, 4).__setitem__(True, x.expand(3, 4)),
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[:3:2].add_(x[1:3]),
        lambda x: x.reshape(2, 2).add_(x.reshape(2, 2).t()),
        lambda x: x.expand(2, 4).conj_physical_(),
    ],
)
def test_writes_to_memory_that_is_read(write: EXPRESSIONS) -> None:
    def result(m: Any) -> Any:
        x = m.tensor([1.0, 2.0, 3.0, 4.0])
        write(x)
        return x.tolist()

    said(result)


def test_threshold_may_write_where_places_are_shared() -> None:
    same(lambda m: m.threshold_(m.arange(3.0).as_strided((2, 2), (1, 0)), 0.5, -1).tolist())


def test_shuffles_make_memory_of_their_own() -> None:
    for shuffle in forms(
        lambda m, x: m.nn.functional.pixel_shuffle(x, 1),
        lambda m, x: m.nn.functional.pixel_unshuffle(x, 1),
        lambda m, x: m.nn.functional.channel_shuffle(x, 1),
        lambda m, x: m.nn.functional.channel_shuffle(x, 2),
    ):
        for layout in forms(
            lambda m: m.arange(48.0).reshape(2, 4, 2, 3),
            lambda m: m.arange(48.0).reshape(3, 2, 4, 2).permute(3, 2, 1, 0),
            lambda m: (m.arange(48.0).reshape(2, 4, 2, 3)).contiguous(
                memory_format=m.channels_last
            ),
        ):
            same(lambda m: (steps(shuffle(m, layout(m))), shuffle(m, layout(m))._base is None))  # noqa: B023  # called in this turn
    same(lambda m: tuple(m.nn.functional.pixel_unshuffle(m.zeros(1, 0, 2), 2).shape))


def test_unravelled_indices_are_views() -> None:
    same(lambda m: [steps(x) for x in m.unravel_index(m.tensor([[1, 0, 3]]), (5, 8))])


# -- histories -------------------------------------------------------------------------------------


def test_a_tensor_copied_to_itself_has_a_copys_node() -> None:
    for write in forms(lambda x: x.copy_(x), lambda x: x.__setitem__(slice(None), x)):
        same(lambda m: [x := m.ones(2, requires_grad=True) * 2, write(x), node(x)][2])  # noqa: B023  # called in this turn
    said(lambda m: [x := m.ones(2, requires_grad=True), x.copy_(x)][0] is None)


def test_slices_of_everything_are_no_step() -> None:
    for index in forms(
        lambda x: x[0, 0:2],
        lambda x: x[0, :5],
        lambda x: x[0, 0:],
        lambda x: x[0, -2:2],
        lambda x: x[0:3],
        lambda x: x[:0][None, 0:0],
    ):
        same(lambda m: node(index(m.ones(3, 2, requires_grad=True))))  # noqa: B023  # called in this turn


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_leaves_with_gaps_lie_in_rows(layout: str) -> None:
    def strides(m: Any) -> Any:
        x = LAYOUTS[layout](m)
        if not x.is_floating_point():
            return None
        x = x.detach().requires_grad_()
        (x * x).abs().sum().backward()
        return [s for s, n in zip(x.grad.stride(), x.shape) if n > 1] if x.numel() else None

    same(strides)


def test_a_leaf_that_wants_no_gradient_any_more_gets_none() -> None:
    def grad(m: Any) -> Any:
        x = m.ones(2, requires_grad=True)
        y = x * 2
        x.requires_grad_(False)
        y.sum().backward()
        return x.grad

    same(grad)


def test_integers_that_are_written_to_have_a_history() -> None:
    for write in forms(
        lambda b, y: b.fill_(y[0]),
        lambda b, y: b.gt_(y),
        lambda b, y: b.copy_(y),
        lambda b, y: b.logical_and_(y),
    ):
        same(
            lambda m: (
                write(  # noqa: B023  # called in this turn
                    m.zeros(2, dtype=m.uint8), m.ones(2, requires_grad=True)
                ).requires_grad
            )
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda m, y, out: m.t_copy(y, out=out),
        lambda m, y, out: m.diag(y, out=out),
        lambda m, y, out: m.heaviside(y, y.detach(), out=out),
        lambda m, y, out: m.floor_divide(y, 2, out=out),
        lambda m, y, out: m.detach_copy(y),
        lambda m, y, out: m.eye(2, out=y * 1),
        lambda m, y, out: m.eye(2, out=y),
        lambda m, y, out: m.arange(4, out=y),
        lambda m, y, out: m.fft.hfft(y, out=out),
        lambda m, y, out: m.gt(y, 1, out=out),
        lambda m, y, out: 2 % y,
    ],
)
def test_what_has_no_derivative_says_so(call: Callable[..., Any]) -> None:
    def made(m: Any) -> Any:
        x = call(m, m.ones(2, 2, requires_grad=True), m.zeros(2, 2))
        return x.requires_grad, node(x)

    said(made)


def test_what_inference_tensors_show_may_be_written() -> None:
    def written(m: Any) -> Any:
        with m.inference_mode():
            z = m.ones(3) + 1
        z.data.mul_(2)
        z.detach().add_(1)
        kinds = [z.data, z.detach(), z.view(m.int32), z.view(3)]
        return z.tolist(), [k.is_inference() for k in kinds], z.detach()._version

    same(written)


# -- types and numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["binary_cross_entropy_with_logits", "soft_margin_loss", "huber_loss", "kl_div"]
)
def test_types_of_losses(name: str) -> None:
    kinds = ("float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64")
    for a in kinds:
        for b in kinds:
            said(
                lambda m: str(
                    getattr(m.nn.functional, name)(
                        m.tensor([1.5, -0.5]).to(getattr(m, a)),  # noqa: B023  # called in this turn
                        m.tensor([1.0, 0.0]).to(getattr(m, b)),  # noqa: B023  # called in this turn
                        reduction="none",
                    ).dtype
                ).rpartition(".")[2]
            )


def test_complex_numbers_as_truth_values() -> None:
    z = [0j, 1j, 1 + 0j, complex(0, float("nan")), complex(-0.0, 1)]
    for turn in forms(
        lambda m, x: x.bool(),
        lambda m, x: m.zeros(5, dtype=m.bool).copy_(x),
        lambda m, x: m.asarray(x, dtype=m.bool),
    ):
        same(lambda m: turn(m, m.tensor(z)).tolist())  # noqa: B023  # called in this turn


UNARY = (
    "special.airy_ai special.bessel_j0 special.entr special.erfcx special.i0e special.log_ndtr digamma erf "
    "erfinv frac lgamma round signbit special.ndtri bitwise_not special.modified_bessel_k0"
)
BINARY = (
    "hypot igamma logaddexp logaddexp2 remainder fmod bitwise_left_shift xlogy special.zeta "
    "special.hermite_polynomial_h special.xlog1py"
)


@pytest.mark.parametrize("name", (UNARY + " " + BINARY).split())
def test_kernels_have_the_types_that_pytorchs_have(name: str) -> None:
    for kind in ("float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"):

        def made(m: Any) -> Any:
            f, x = m, m.ones(2).to(getattr(m, kind))  # noqa: B023  # called in this turn
            for part in name.split("."):
                f = getattr(f, part)
            return str(f(*[x] * (1 + (name in BINARY.split()))).dtype).rpartition(".")[2]

        said(made)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.div(-1, 4).tolist(),
        lambda m: str(m.result_type(scalar=2.5, tensor=m.ones(1).half())),
        lambda m: m.fft.rfftfreq(-1).tolist(),
        lambda m: m.fft.fftfreq(-1).tolist(),
        lambda m: m.zeros(0, dtype=m.uint8).floor_divide_(0).tolist(),
        lambda m: m.cumulative_trapezoid(m.zeros(0)).tolist(),
        lambda m: str(m.trapezoid(m.tensor([-float("inf"), 2.0, 1e30]), dx=0.1)),
        lambda m: str(m.polygamma(2, m.tensor([float("inf"), -float("inf"), 1e20]))),
        lambda m: m.nn.functional.elu_(m.tensor([-1.0, 1]), 2.0, 2).tolist(),
        lambda m: m.nn.functional.hardtanh_(m.tensor([-3.0, 0, 3]), 2.0).tolist(),
        lambda m: m.from_dlpack(m.ones(3, dtype=m.bfloat16)[::2]).tolist(),
        lambda m: m.zeros(0).is_set_to(m.zeros(0)),
        lambda m: m.prod(m.tensor([1.6, 2.7]), 0, out=m.zeros((), dtype=m.int32)).tolist(),
        lambda m: m.sum(m.tensor([1.6, 2.7]), 0, out=m.zeros((), dtype=m.int32)).tolist(),
        lambda m: m.zeros(9, 2).fill_diagonal_(1, wrap=True).tolist(),
        lambda m: m.linalg.cholesky_ex(m.tensor([[1.0, 2], [2, 1]])).L.tolist(),
        lambda m: node(
            m.nn.functional.cross_entropy(m.zeros(0, 3, requires_grad=True), m.zeros(0, 3))
        ),
        lambda m: m.nn.functional.avg_pool2d(m.ones(2), 2),
        lambda m: m.nn.functional.unfold(m.ones(2), 2),
    ],
)
def test_calls(call: EXPRESSIONS) -> None:
    said(call)


# -- functions -------------------------------------------------------------------------------------


def test_traced_functions_lay_their_inputs_anew() -> None:
    def squeezed(x: Any) -> Any:
        x.squeeze_()
        return x + 1

    def cleared(x: Any) -> Any:
        return tt.zeros(4, out=x)

    made = tt.jit.trace(squeezed, (tt.ones(1, 3),), check_trace=False)
    for shape in ((1, 3), (2, 1), (1, 3)):
        x, y = tt.ones(shape), torch.ones(shape)
        made(x), squeezed(y)
        assert tuple(x.shape) == tuple(y.shape)
    made = tt.jit.trace(cleared, (tt.ones(2),), check_trace=False)
    x = tt.ones(2)
    assert made(x) is x and x.tolist() == [0] * 4


def test_a_trace_is_made_anew_for_another_layout() -> None:
    made = tt.jit.trace(lambda x: x.contiguous(), (tt.ones(2, 3),), check_trace=False)
    x = tt.ones(3, 2).t()
    assert made(x) is not x and made(x).is_contiguous()


def test_results_of_plans_lie_as_the_function_lays_them() -> None:
    def power(x: Any) -> Any:
        y = x.unfold(0, 2, 2)
        return y**y / 2

    compiled, x = tt.compile(power), tt.arange(6.0).reshape(2, 3)
    for _ in range(3):
        assert compiled(x).stride() == power(x).stride()


def test_plans_of_losses_in_bfloat16() -> None:
    def loss(x: Any) -> Any:
        return tt.nn.functional.hinge_embedding_loss(x, x)

    compiled, x = tt.compile(loss), tt.tensor([1.0, 2, -1], dtype=tt.bfloat16, requires_grad=True)
    wanted = tt.autograd.grad(loss(x), x)[0].tolist()
    for _ in range(3):
        assert tt.autograd.grad(compiled(x), x)[0].tolist() == wanted
