"""Results lie in memory as PyTorch's do, whatever order their inputs lie in.

A later `.view` works or fails by that. Each sample runs with its tensors as they are, with the
order of memory reversed, with the last two dimensions exchanged, and (of four) channels last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.ops.records import TESTED, report
from tests.oracle import ORACLE, SELFTEST, SUBJECT, attempt, leaves, names, steps, torch

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)


def reversed_order(t: Any) -> Any:
    order = tuple(reversed(range(t.ndim)))
    return t.permute(order).contiguous().permute(order)


def last_two(t: Any) -> Any:
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.ndim > 1 else t


def channels_last(t: Any) -> Any:
    return t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t


ORDERS: dict[str, Callable[[Any], Any]] = {
    "given": lambda t: t, "reversed": reversed_order, "last two": last_two,
    "channels last": channels_last}  # fmt: skip
FEW = 10
# What lies otherwise than in PyTorch, though never where PyTorch's result is in rows and `.view` of
# it works: the fft's last dimension first, the order of the first of several operands that disagree
# (NumPy takes rows), channels last where PyTorch's kernels make them.
FREE = set(
    names(
        "_fft_c2c add addcdiv addcmul addr arctan2 as_strided_scatter atan2 channel_shuffle complex "
        "conj conv1d conv_transpose1d convolution copysign diagonal_scatter div divide dropout eq "
        "fft.fft fft.fft2 fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft "
        "fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn "
        "float_power floor_divide fmax fmin fmod ge greater greater_equal gt heaviside "
        "hinge_embedding_loss hypot igamma igammac isfinite isinf isnan isneginf isposinf kron ldexp "
        "le lerp less less_equal local_response_norm logaddexp logaddexp2 logical_and logical_or "
        "logical_xor lt masked.normalize max_unpool2d maximum minimum mul multiply ne nextafter "
        "nn.functional.normalize not_equal pixel_shuffle pixel_unshuffle pow put remainder rsub "
        "select_scatter sgn sign slice_scatter special.gammainc special.gammaincc sub subtract "
        "true_divide unravel_index where xlogy adaptive_max_pool1d adaptive_max_pool2d"
    )
)
# LAPACK's factors lie in columns in PyTorch. Here some are in rows and some are transposed views.
COLUMNS = set(
    names(
        "cholesky cholesky_inverse cholesky_solve geqrf inverse linalg.cholesky linalg.cholesky_ex "
        "linalg.eigh linalg.householder_product linalg.inv linalg.inv_ex linalg.ldl_factor "
        "linalg.ldl_factor_ex linalg.ldl_solve linalg.lstsq linalg.lu linalg.lu_factor "
        "linalg.lu_factor_ex linalg.lu_solve linalg.matrix_power linalg.qr linalg.solve "
        "linalg.solve_ex linalg.solve_triangular linalg.svd linalg.tensorinv linalg_cholesky_upper lu "
        "lu_solve matrix_power ormqr pca_lowrank qr svd svd_lowrank triangular_solve"
    )
)
assert {*FREE, *COLUMNS} <= set(TESTED)


def laid(x: Any, order: Callable[[Any], Any]) -> Any:
    """A nested value whose tensors lie in another order."""
    if isinstance(x, torch.Tensor):
        return order(x.detach()) if x.layout is torch.strided else x
    if isinstance(x, (list, tuple)):
        return type(x)(laid(v, order) for v in x) if type(x) in (list, tuple) else x
    return x


def described(x: Any, side: Any) -> list[tuple[Any, ...]]:
    """Shape and strides of each tensor in a result that has several orders."""
    return [
        (tuple(t.shape), steps(t))
        for t in leaves(x)
        if isinstance(t, side.Tensor) and str(t.layout) == "torch.strided" and t.numel() > 1
    ]


def in_rows(description: tuple[Any, ...]) -> bool:
    shape, strides = description
    return bool(strides == steps(torch.empty(shape)))


@pytest.mark.parametrize("name", [name for name in TESTED if name not in COLUMNS])
def test_results_lie_as_in_pytorch(name: str) -> None:
    entry = TESTED[name]
    ours, theirs = entry.function(SUBJECT), entry.function(ORACLE)
    failures, tried = [], 0
    samples = [
        s
        for s in entry.samples()
        if any(isinstance(t, torch.Tensor) and t.ndim > 1 for t in leaves(list(s.args)))
    ]
    for sample, (word, order) in itertools.product(samples[:FEW], ORDERS.items()):
        args = laid(sample.args, order)
        want, refused = attempt(lambda: theirs(*ORACLE.carry(args), **ORACLE.carry(sample.kwargs)))  # noqa: B023  # called in this turn
        got, failed = attempt(lambda: ours(*SUBJECT.carry(args), **SUBJECT.carry(sample.kwargs)))  # noqa: B023  # called in this turn
        if refused or failed:
            continue  # the other suites compare these
        tried += 1
        wants, gots = described(want, ORACLE), described(got, SUBJECT)
        if name in FREE:
            wants = [w if in_rows(w) else g for w, g in zip(wants, gots)]
        if wants != gots:
            failures.append(f"{word} {sample}: {gots[:2]}, in PyTorch {wants[:2]}")
    report(failures, tried)


REDUCING = names(
    "sum mean prod amax amin std var all any logsumexp norm softmax log_softmax "
    "cumsum cumprod argmax argmin median max min sort nansum count_nonzero roll flip"
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", REDUCING)
def test_dimensions_of_images(name: str, order: str) -> None:
    """Every dimension of four, which the samples above do not all have."""
    x = ORDERS[order](torch.arange(120.0).reshape(2, 3, 4, 5) / 7)
    for args in [(), *((d,) for d in range(4)), *((d, True) for d in range(4))]:
        want, refused = attempt(lambda: getattr(torch, name)(x, *args))  # noqa: B023  # called in this turn
        if refused:
            continue
        got = getattr(SUBJECT.root, name)(SUBJECT.carry(x), *args)
        assert described(got, SUBJECT) == described(want, ORACLE), args


@pytest.mark.parametrize("last", [0, 1, 2])
def test_joined_images(last: int) -> None:
    """Channels stay last where all images have them last; stacks are in rows."""
    images = [torch.ones(2, 3, 4, 5) for _ in range(2)]
    images[:last] = [channels_last(x) for x in images[:last]]
    ours = SUBJECT.carry(images)
    for d in range(4):
        for join in ("cat", "stack"):
            if join == "stack" and last == 2:
                continue  # five dimensions, of which PyTorch has an order of its own
            got, want = (
                getattr(m.root, join)(v, d) for m, v in ((SUBJECT, ours), (ORACLE, images))
            )
            assert steps(got) == steps(want), (join, d)
    whole = channels_last(torch.rand(2, 3, 5, 6))
    for parts in (
        [whole[:, :, :2], whole[:, :, 1:]],
        [whole[..., :4], whole[..., 2:]],
        [whole[:, :1], whole[:, 1:]],
        [whole[:1], whole[1:]],
    ):
        for d in range(4):
            want, refused = attempt(torch.cat, parts, d)
            if not refused:
                got = SUBJECT.root.cat([SUBJECT.carry(x) for x in parts], d)
                assert steps(got) == steps(want), d
    turned = [torch.ones(4, 5, 3).permute(2, 0, 1) for _ in range(2)]  # H, W, C shown as C, H, W
    batch = SUBJECT.root.utils.data.default_collate(SUBJECT.carry(turned))
    assert batch.is_contiguous()
    batch.view(-1)


CONVERSIONS = """
x.t().float(memory_format=torch.contiguous_format)
x.t().double(memory_format=torch.contiguous_format)
x.t().cfloat(memory_format=torch.contiguous_format)
x.t().double(memory_format=torch.preserve_format)
x.t().to(torch.float32, copy=True, memory_format=torch.contiguous_format)
x.t().to(torch.float32, copy=True)
x.t().to(torch.float64, memory_format=torch.contiguous_format)
i.to(memory_format=torch.channels_last)
i.to(torch.float64, memory_format=torch.channels_last)
i.to(memory_format=torch.channels_last).to(torch.float64, memory_format=torch.contiguous_format)
i.to(memory_format=torch.channels_last).to(torch.float64)
"""


@pytest.mark.parametrize("text", CONVERSIONS.strip().splitlines())
def test_conversions_to_a_format(text: str) -> None:
    def ask(m: Any) -> tuple[Any, ...]:
        made = eval(text, {"torch": m, "x": m.zeros(2, 3), "i": m.zeros(2, 3, 4, 5)})
        return tuple(made.shape), made.stride(), made.is_contiguous()

    assert ask(SUBJECT.root) == ask(torch)


@pytest.mark.parametrize("shape", [(0, 5), (2, 0, 3), (0,)])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_places_of_no_elements(name: str, shape: tuple[int, ...]) -> None:
    def ask(m: Any) -> list[tuple[Any, ...]]:
        made = getattr(m, name)(m.zeros(shape), return_inverse=True, return_counts=True)
        return [(tuple(t.shape), t.stride()) for t in made]

    assert ask(SUBJECT.root) == ask(torch)
