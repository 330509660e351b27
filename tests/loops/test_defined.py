"""Functions that the language states in its own words: every generator makes the same of the text."""

from __future__ import annotations

import numpy as np
import pytest

import toytorch as tt
from toytorch.loops import Program, run
from toytorch.loops.generators.cuda_words import device_functions
from toytorch.loops.language.defined import DEFINED
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.loops.language.parse import steps_of
from toytorch.loops.language.primitives import PRIMITIVES, STATED
from toytorch.loops.runtime.jit import works

EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -2.0, -2.5, 1e-310, 1e300, -1e300]


def values(type: str) -> np.ndarray:
    rng = np.random.default_rng(11)
    parts = [
        EDGES,
        rng.uniform(-1, 1, 2000),
        rng.uniform(-30, 30, 2000),
        10.0 ** rng.uniform(-9, 5, 500),
    ]
    with np.errstate(over="ignore"):
        return np.concatenate(parts).astype(type)


@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("name", DEFINED)
def test_a_loop_and_numpy_agree(name: str, type: str) -> None:
    reads = DEFINED[name].reads
    x = values(type)
    given = [x, np.concatenate([x[:14], np.roll(x[:14], 5), np.flip(x[28:])])][: len(reads)]
    made = np.empty_like(x)
    inputs = ", ".join(f"{n}[i] {type}" for n in reads)
    text = f"{inputs} -> y[i] {type}\n y = {name}({', '.join(reads)})"
    run(Program.parse(text, type), made, *given)
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](*given)
    assert wanted.dtype == x.dtype
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    zero = (made == 0) & (wanted == 0)
    assert (np.signbit(made) == np.signbit(wanted))[zero].all()
    tolerance = 2e-6 if type == "float32" else 1e-12  # near zeros, and e^{x²} of large x
    near = 1e-6 if type == "float32" else 1e-13
    np.testing.assert_allclose(made, wanted, rtol=tolerance, atol=near)


@pytest.mark.parametrize("name", DEFINED)
def test_a_text_assigns_its_value_last(name: str) -> None:
    for type in ("float32", "float64"):
        steps = steps_of(name, type)
        assert steps[-1].type == type
        assert PRIMITIVES[name].arity == len(DEFINED[name].reads)
        source = device_functions(f"of_{name}(x)")
        assert f"__device__ {'float' if type == 'float32' else 'double'} of_{name}(" in source


def test_every_function_that_has_a_cost_has_a_text() -> None:
    assert list(DEFINED) == list(STATED)


def test_a_kernel_brings_what_its_functions_call() -> None:
    source = device_functions("of_log_ndtr(x)")
    assert source.index("float of_erfcx(") < source.index("float of_log_ndtr(")
    assert device_functions("expf(x)") == ""


@pytest.mark.skipif(
    not works(), reason="compares compiled functions with NumPy's, and needs llvmlite"
)
def test_waves_of_large_angles_are_as_exact_as_of_few() -> None:
    x = tt.tensor([3e6, -1.5e7, 1e9, 2.0], dtype=tt.float64)
    for function in (tt.special.bessel_j0, tt.special.bessel_j1):
        few = function(x)
        many = function(x.repeat(20000))[:4]
        assert tt.allclose(few, many, rtol=1e-12, atol=1e-18)


def test_they_are_steps_of_fused_kernels() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        return (tt.erfinv(x * 0.5) + tt.lgamma(x + 3)) * tt.i0(x)

    x = tt.rand(5000) * 2 - 1
    x.requires_grad_(True)
    fused = tt.compile(f)
    for _ in range(2):
        (made,) = tt.autograd.grad(fused(x).sum(), x)
    (wanted,) = tt.autograd.grad(f(x).sum(), x)
    assert tt.allclose(fused(x), f(x), rtol=1e-5, atol=1e-6)
    assert tt.allclose(made, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("type", [tt.float16, tt.bfloat16])
def test_half_numbers(type: tt.dtype) -> None:
    x = tt.linspace(-0.9, 0.9, 5000)
    half = x.to(type)
    for function in (tt.erfinv, tt.lgamma, tt.i0, tt.digamma):
        made = function(half)
        assert made.dtype == type
        assert tt.equal(made, function(half.float()).to(type))
