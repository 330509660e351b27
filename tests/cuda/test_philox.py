"""Philox: the authors' known answers, PyTorch's order of numbers, and the same on every device."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from tests.cuda import cupy_stand_in, raw_module
from tests.loops import nvrtc
from toytorch.backends.philox import KINDS, PhiloxGenerator, log_factorial, philox
from toytorch.backends.philox_cuda import SOURCES

# kat_vectors of Random123 (Salmon et al.): philox4x32 10 rounds, counter, key, result.
KNOWN = [
    ("00000000 " * 4, "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 4, "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN, ids=["zeros", "ones", "pi"])
def test_known_answers(counter: str, key: str, answer: str) -> None:
    words = [np.uint32(int(w, 16)) for w in counter.split()]
    low, high = (int(w, 16) for w in key.split())
    made = philox(np, words, low | high << 32)
    assert [f"{int(w):08x}" for w in made] == answer.split()


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN, ids=["zeros", "ones", "pi"])
def test_known_answers_of_the_kernel(counter: str, key: str, answer: str) -> None:
    """Thread 0 of the kernel cannot have such a counter: the function is called by itself."""
    numbers = [int(w, 16) for w in counter.split()]
    low, high = (int(w, 16) for w in key.split())
    source = SOURCES["bits32"].split("extern")[0] + (
        'extern "C" __global__ void kernel(unsigned int* y, unsigned long long turn, '
        "unsigned long long thread, unsigned long long seed) {\n"
        "    const Words made = philox(turn, thread, seed);\n"
        "    for (int k = 0; k < 4; ++k) y[k] = made.w[k];\n}"
    )
    made = np.zeros(4, np.uint32)
    args = [
        ctypes.c_void_p(made.ctypes.data),
        ctypes.c_ulonglong(numbers[0] | numbers[1] << 32),
        ctypes.c_ulonglong(numbers[2] | numbers[3] << 32),
        ctypes.c_ulonglong(low | high << 32),
    ]
    places = (ctypes.c_void_p * 4)(*(ctypes.addressof(a) for a in args))
    assert raw_module.compiled((source,))[0](places, 1, 0) == 0
    assert [f"{int(w):08x}" for w in made] == answer.split()


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("kind", SOURCES)
def test_it_compiles_for_gpus(kind: str, architecture: str) -> None:
    nvrtc.compiles_without_spills(SOURCES[kind], architecture)


@pytest.mark.parametrize("count", [1, 5, 256, 1000, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_card_draws_what_numpy_draws(kind: str, count: int) -> None:
    """The kernel, run on the CPU, and NumPy: the same bits, and normal numbers to rounding."""
    xp = cupy_stand_in.made()
    card, host = PhiloxGenerator(xp, 12345, 1024), PhiloxGenerator(np, 12345, 1024)
    for _ in range(2):  # the second draw goes on where the first ended
        a, b = card.draw(kind, count).get(), host.draw(kind, count)
        assert a.dtype == b.dtype and a.shape == (count,)
        if kind.startswith("normal"):
            np.testing.assert_allclose(a, b, rtol=1e-5 if kind == "normal32" else 1e-12, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)
    assert card.get_state() == host.get_state()


def test_elements_go_to_threads_as_in_pytorch() -> None:
    """Element li of thread i is word ii of the turn r where li = i + threads·(4r + ii)."""
    made = PhiloxGenerator(np, 7, 512).draw("bits32", 5000)
    for li in (0, 1, 511, 512, 1024, 1536, 2047, 2048, 4999):
        i, step = li % 512, li // 512
        words = philox(np, [np.uint32(w) for w in (step // 4, 0, i, 0)], 7)
        assert made[li] == words[step % 4]


@pytest.mark.parametrize(
    ("count", "kind", "moved"),
    [(1, "uniform32", 4), (270336, "normal32", 4), (270336 * 4 + 1, "uniform32", 8),
     (270336 * 2 + 1, "uniform64", 8)],
)  # fmt: skip
def test_the_offset_moves_on_as_in_pytorch(count: int, kind: str, moved: int) -> None:
    """((n - 1) / (256·grid·unroll) + 1)·4, of an H100's 132 multiprocessors."""
    rng = PhiloxGenerator(np, 0)
    rng.draw(kind, count)
    assert rng.offset == moved


def test_state_is_seed_and_offset() -> None:
    rng = PhiloxGenerator(np, 42)
    rng.random(10)
    state = rng.get_state()
    assert state == (42).to_bytes(8, "little") + (4).to_bytes(8, "little")
    a = rng.random(10)
    rng.set_state(state)
    assert (rng.random(10) == a).all()
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        rng.set_state(b"1")
    with pytest.raises(RuntimeError, match="multiple of 4"):
        rng.set_state(bytes(8) + (3).to_bytes(8, "little"))


N = 40_000
MOMENTS: dict[str, tuple[Any, float, float]] = {  # draws, mean, variance
    "random": (lambda g: g.random(N, np.float32), 1 / 2, 1 / 12),
    "random64": (lambda g: g.random(N), 1 / 2, 1 / 12),
    "normal": (lambda g: g.standard_normal(N, np.float32), 0, 1),
    "normal64": (lambda g: g.standard_normal(N), 0, 1),
    "integers": (lambda g: g.integers(-3, 5, N), 0.5, 63 / 12),
    "wide integers": (lambda g: g.integers(0, 1 << 40, N) / (1 << 40), 1 / 2, 1 / 12),
    "exponential": (lambda g: g.standard_exponential(N), 1, 1),
    "geometric": (lambda g: g.geometric(0.3, N), 1 / 0.3, 0.7 / 0.09),
    "poisson": (lambda g: g.poisson(np.full(N, 3.0)), 3, 3),
    "poisson of 50": (lambda g: g.poisson(np.full(N, 50.0)), 50, 50),
    "binomial": (lambda g: g.binomial(np.full(N, 10), np.full(N, 0.3)), 3, 2.1),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_distributions(name: str) -> None:
    draw, mean, variance = MOMENTS[name]
    made = draw(PhiloxGenerator(np, 5)).astype(np.float64)
    assert abs(made.mean() - mean) < 5 * math.sqrt(variance / N)
    assert abs(made.var() / variance - 1) < 0.05


def test_log_factorial() -> None:
    k = np.array([0.0, 1, 2, 5, 10, 100])
    wanted = [math.lgamma(n + 1) for n in k]
    np.testing.assert_allclose(log_factorial(np, k), wanted, rtol=1e-11, atol=1e-11)


def test_permutations() -> None:
    made = PhiloxGenerator(np, 1).permutation(1000)
    assert sorted(made) == list(range(1000)) and list(made) != list(range(1000))


@pytest.mark.usefixtures("device")
def test_generators_of_tensors() -> None:
    torch.manual_seed(3)
    state = torch.cuda.get_rng_state() if torch.cuda.is_available() else None
    a = torch.randn(20, device="cuda")
    torch.manual_seed(3)
    assert (torch.randn(20, device="cuda") == a).all()
    g = torch.Generator("cuda").manual_seed(9)
    place = g.get_state()
    assert place.dtype is torch.uint8 and bytes(place.numpy()) == (9).to_bytes(8, "little") + bytes(
        8
    )
    one = torch.rand(3, device="cuda", generator=g)
    g.set_state(place)
    assert (torch.rand(3, device="cuda", generator=g) == one).all()
    assert g.initial_seed() == 9
    host = PhiloxGenerator(np, 9)
    np.testing.assert_array_equal(one.cpu().numpy(), host.random(3, np.float32))
    assert state is None or len(state) == 16
