"""Ops whose kernels for GPUs are written by hand, or are programs of the CPU's, against PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cuda import raw_module
from tests.cuda import test_training_on_cupy as training
from tests.cuda.test_images_on_cupy import agree, numbers
from tests.loops import nvrtc
from tests.oracle import GPU, ORACLE, SELFTEST, tt
from toytorch.backends import cupy_images, cupy_index, cupy_numbers, cupy_scan, cupy_sort
from toytorch.backends.cupy_hand import Each, typed
from toytorch.ops.special import of_numbers

pytestmark = [
    pytest.mark.usefixtures("compiling_device"),
    pytest.mark.skipif(SELFTEST, reason="PyTorch has its own CUDA"),
]
PLACES = np.array([[2, 0, 3], [1, 1, 4], [0, 4, 4], [3, 2, 0]])
F = Callable[[Any, Any], Any]


def at(m: Any, x: Any, places: np.ndarray = PLACES) -> Any:
    return m.from_numpy(places).to(x.device)


INDEXED: dict[str, F] = {
    "gather": lambda m, x: x.gather(0, at(m, x)),
    "gather along the last": lambda m, x: x.gather(1, at(m, x, PLACES[:, :2].repeat(2, 0)[:5] % 3)),
    "index_select": lambda m, x: x.index_select(1, at(m, x, np.array([2, 0, 0]))),
    "index": lambda m, x: x[at(m, x, np.array([4, -1, 0]))],
    "scatter": lambda m, x: m.zeros_like(x).scatter(0, at(m, x, np.array([[4, 3, 2]])), x[:1]),
    "scatter_add": lambda m, x: m.zeros_like(x).scatter_add(0, at(m, x), x[:4]),
    "index_add": lambda m, x: (x * 2).index_add(0, at(m, x, np.array([1, 1, 4])), x[:3]),
    "embedding": lambda m, x: m.nn.functional.embedding(at(m, x), x),
    "getitem": lambda m, x: x[[4, 0, -1]],
    "one place": lambda m, x: x[[3]],
    "cross_entropy, some ignored": lambda m, x: m.nn.functional.cross_entropy(
        x, at(m, x, np.array([2, -100, 1, -100, 0]))
    ),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(
        x, at(m, x, np.array([2, 0, 1, 1, 0]))
    ),
}
BY_ROW: dict[str, F] = {
    "var": lambda m, x: x.var(1),
    "std": lambda m, x: x.std(1, keepdim=True),
    "norm": lambda m, x: x.norm(dim=1),
    "logsumexp": lambda m, x: x.logsumexp(1),
    "cumsum": lambda m, x: x.cumsum(1),
    "cumprod": lambda m, x: x.cumprod(1),
}
REDUCED: dict[str, F] = {
    "sum of columns": lambda m, x: x.sum(0),
    "mean of columns": lambda m, x: x.mean(0),
    "mse": lambda m, x: m.nn.functional.mse_loss(x, x * x),
}
SORTED: dict[str, F] = {
    "sort": lambda m, x: x.sort(1).values,
    "sort, descending": lambda m, x: x.sort(0, descending=True).values,
    "topk": lambda m, x: x.topk(3, 1).values,
    "topk of the smallest": lambda m, x: x.topk(2, 0, largest=False).values,
    "median": lambda m, x: x.median(1).values,
    "kthvalue": lambda m, x: x.kthvalue(2, 1).values,
}
NORMED: dict[str, F] = {
    "batch_norm": lambda m, x: m.nn.functional.batch_norm(x, None, None, None, None, True),
    "batch_norm, evaluation": lambda m, x: m.nn.functional.batch_norm(
        x, x.detach()[0, :, 0, 0], x.detach()[1, :, 0, 0] ** 2
    ),
    "group_norm": lambda m, x: m.nn.functional.group_norm(x, 2),
    "instance_norm": lambda m, x: m.nn.functional.instance_norm(x),
}


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", INDEXED)
def test_by_index(name: str, kind: str) -> None:
    agree(INDEXED[name], numbers(kind, (5, 3)), launches=1)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 8])
def test_slices_of_any_width(kind: str, columns: int) -> None:
    """What is moved at once follows from the bytes of a slice, and from where it lies."""
    x = np.arange(20 * columns).reshape(5, 4, columns).astype(kind)
    places = np.array([3, 0, 3])
    for part in (slice(None), slice(1, None)):
        mine = tt.from_numpy(x).cuda()[part].index_select(1, tt.from_numpy(places).cuda())
        assert np.array_equal(mine.cpu().numpy(), x[part][:, places])


@pytest.mark.parametrize("shape", [(3, 5), (40, 7), (40, 20)], ids=str)
@pytest.mark.parametrize("name", BY_ROW)
def test_reductions_of_rows(name: str, shape: tuple[int, int]) -> None:
    """A row is a block of threads, however many there are: few are run sooner here."""
    agree(BY_ROW[name], numbers("float64", shape), launches=shape[0] >= cupy_scan.FEWEST)


@pytest.mark.parametrize("shape", [(3, 5), (300, 7), (1024, 20)], ids=str)
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str, shape: tuple[int, int]) -> None:
    agree(REDUCED[name], numbers("float64", shape), launches=shape[0] > 1000)


@pytest.mark.parametrize("shape", [(3, 5), (4, 70)], ids=str)
@pytest.mark.parametrize("name", SORTED)
def test_sorted(name: str, shape: tuple[int, int]) -> None:
    agree(SORTED[name], numbers("float32", shape), launches=1)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
def test_the_order_of_equal_ones_and_nan(kind: str, descending: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, (7, 33)).astype(kind)
    if kind.startswith("float"):
        x[:, ::4], x[:, 1::7] = np.nan, -np.inf
    found = []
    for m, device in ((tt, "cuda"), (ORACLE.root, "cpu")):
        made = m.sort(m.from_numpy(x).to(device), dim=1, descending=descending, stable=True)
        found.append([v.cpu().numpy() for v in made])
    for mine, theirs in zip(*found):
        assert np.array_equal(mine, theirs, equal_nan=kind.startswith("float"))


@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
@pytest.mark.parametrize("name", NORMED)
def test_norms(name: str, last: bool) -> None:
    agree(NORMED[name], numbers("float64", (3, 4, 5, 6)), last)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"])
def test_totals_by_parts(name: str) -> None:
    """More elements than one block of threads adds up: 64 parts of 1031."""
    for reduction in ("mean", "sum"):
        agree(
            lambda m, x, y, r=reduction: getattr(m.nn.functional, name)(
                x, y.sigmoid(), reduction=r
            ),
            numbers("float32", (64, 1031), (64, 1031)),
        )


NUMBERS = np.array(
    [0.0, 1e-310, 1e-6, 0.3, 0.9, 1.0, 2.5, 7.1, 12.0, 25.5, 99.0, 300.0, -1.0, -2.5, -40.0, np.inf]
    + [np.nan, 0.895]
)
OF_NUMBERS: dict[str, F] = {
    "airy_ai": lambda m, x: m.special.airy_ai(x),
    "bessel_y0": lambda m, x: m.special.bessel_y0(x),
    "bessel_y1": lambda m, x: m.special.bessel_y1(x),
    "modified_bessel_k0": lambda m, x: m.special.modified_bessel_k0(x),
    "scaled_modified_bessel_k1": lambda m, x: m.special.scaled_modified_bessel_k1(x),
    "igamma": lambda m, x: m.igamma(x[:, None], x),
    "igammac": lambda m, x: m.igammac(x[:, None], x),
    "zeta": lambda m, x: m.special.zeta(x[:, None], x),
    "hermite_polynomial_h": lambda m, x: m.special.hermite_polynomial_h(x, x[:, None]),
    "legendre_polynomial_p": lambda m, x: m.special.legendre_polynomial_p(x[:, None], 5.0),
    "mvlgamma": lambda m, x: m.mvlgamma(x, 3),
    "polygamma": lambda m, x: m.polygamma(3, x),
}


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_functions_of_numbers(name: str, kind: str) -> None:
    """The text that processors have compiled is one kernel, which makes what it makes there."""
    x, f = tt.tensor(NUMBERS.astype(kind)), OF_NUMBERS[name]
    before = len(raw_module.launched)
    made = f(tt, x.cuda()).cpu()
    assert GPU or len(raw_module.launched) == before + 1
    near = 3e-7 if kind == "float32" else 1e-12
    assert np.allclose(made.numpy(), f(tt, x).numpy(), near, 1e-38, equal_nan=True)


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize(
    "name", [n for n in vars(of_numbers) if inspect.isfunction(getattr(of_numbers, n))]
)
def test_functions_of_numbers_compile_for_gpus(name: str, architecture: str) -> None:
    count = len(inspect.signature(getattr(of_numbers, name)).parameters)
    kernel = cupy_numbers.kernel_of(of_numbers, name, (), count)
    for type in ("float32", "float64"):
        nvrtc.compiles_without_spills(kernel.source(type, True), architecture, most=64)


def test_norms_with_weights_and_running_statistics() -> None:
    def call(m: Any, x: Any, w: Any, b: Any) -> Any:
        mean, variance = (m.ones(4, dtype=x.dtype, device=x.device) for _ in range(2))
        y = m.nn.functional.batch_norm(x, mean, variance, w, b, True, 0.3)
        return y + mean.reshape(4, 1, 1) * variance.reshape(4, 1, 1)

    agree(call, numbers("float32", (3, 4, 5, 6), (4,), (4,)))


@pytest.mark.parametrize("bad", [5, -6])
def test_what_is_outside_is_refused(bad: int) -> None:
    for m, device in ((tt, "cuda"), (ORACLE.root, "cpu")):
        x, i = m.ones(5, 3, device=device), m.tensor([[bad, 0, 1]], device=device)
        for call in (
            lambda x=x, i=i: x.gather(0, i),
            lambda x=x, i=i: x.scatter_add(0, i, x[:1]),
            lambda x=x, i=i: x.index_select(0, i[0]),
            lambda m=m, x=x, i=i: m.nn.functional.embedding(i, x),
            lambda m=m, x=x, i=i: m.nn.functional.cross_entropy(x[:, :2], i[0].repeat(2)[:5]),
        ):
            with pytest.raises((IndexError, RuntimeError)):
                call()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_step_of_an_optimizer_is_a_launch_for_each_parameter(name: str) -> None:
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(s).astype("float32") for s in ((3, 4), (5,))]
    made = []
    for m, device in ((tt, "cuda"), (ORACLE.root, "cpu")):
        leaves = [m.from_numpy(a.copy()).to(device).requires_grad_() for a in given]
        optimizer = getattr(m.optim, name)(leaves, 0.1)
        for _ in range(3):
            sum((p * p).sum() for p in leaves).backward()
            before = len(raw_module.launched)
            optimizer.step()
            most = 4 if name == "AdamW" else 2  # whose decay is a launch of its own
            assert GPU or m is not tt or len(raw_module.launched) == before + most
            optimizer.zero_grad()
        made.append([p.detach().cpu().numpy() for p in leaves])
    for a, b in zip(*made):
        assert np.allclose(a, b, 1e-5, 1e-6)


def test_half_types_are_widened_and_rounded_once() -> None:
    x = np.linspace(-3, 3, 70).reshape(7, 10)
    for type in ("float16", "bfloat16"):
        made = []
        for m, device in ((tt, "cuda"), (ORACLE.root, "cpu")):
            a = m.tensor(x).to(getattr(m, type)).to(device)
            y = m.nn.functional.gelu(a) * a.sigmoid() + a
            a.add_(a, alpha=3)
            made.append([v.cpu().double().numpy() for v in (y, a, (a > 0).int())])
        for mine, theirs in zip(*made):
            assert np.allclose(mine, theirs, 2e-2 if type == "bfloat16" else 2e-3, 1e-6)


BY_HAND = {
    f"{module.__name__.rpartition('.')[2]}.{name}": kernel
    for module in (cupy_images, cupy_index)
    for name, kernel in vars(module).items()
    if isinstance(kernel, Each)
}


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("name", [*BY_HAND, "scan", "sort"])
def test_they_compile_for_gpus(name: str, architecture: str) -> None:
    if name == "scan":
        sources = [typed(cupy_scan.SOURCE.replace("START", "0").replace("OP", "+"), "float64")]
    elif name == "sort":
        words = ("SIZE", "64"), ("BEFORE", "<"), ("NAN_LAST", "true")
        sources = [cupy_sort.SOURCE]
        for word, value in words:
            sources = [s.replace(word, value) for s in sources]
        sources = [typed(s, type) for s in sources for type in ("float32", "int64", "bool")]
    else:
        # Indices of 64 bits are for tensors of a gigabyte and more; divisions of them may spill.
        sources = [BY_HAND[name].source(type, True) for type in ("float32", "float64")]
        if name == "cupy_index.SELECT":
            sources.append(BY_HAND[name].source("complex128", True))
    for source in sources:
        # Divisions, of which those that spread columns have eight, take many registers for a moment.
        nvrtc.compiles_without_spills(source, architecture, most=64)


@pytest.mark.parametrize("network", training.NETWORKS)
def test_networks(network: str) -> None:
    """Two steps of training, each kernel in its place."""
    made = (training.trained(network, "SGD", device, 2) for device in ("cuda", "cpu"))
    for mine, theirs in zip(*made):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
