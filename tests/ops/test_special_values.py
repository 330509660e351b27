"""Special functions against values computed with 40 digits (mpmath), in every range of the kernels.

PyTorch's own approximations are some of them good to seven digits only, so that the comparison with
PyTorch stays where they are better.
"""

from __future__ import annotations

import pytest

from tests.ops.records import REGISTRY
from tests.oracle import SELFTEST, torch, tt
from toytorch.kernels import sequential

VALUES = {
    "bessel_j0": {
        0.3: 0.97762624653829609,
        5.01509: -0.17264103427864259,
        24.9: 0.083245968353015490,
        25.1: 0.10827567149994945,
        100.0: 0.019985850304223122,
    },
    "bessel_j1": {
        0.01: 0.0049999375002604162,
        5.01509: -0.32923205968272518,
        24.9: -0.13485569953140887,
        25.1: -0.11463478413442257,
    },
    "bessel_y0": {
        1e-05: -7.4031602837019701,
        0.5: -0.44451873350670656,
        5.02212: -0.31170551429277287,
        24.9: -0.13649918399676524,
        25.1: -0.11676770763803695,
    },
    "bessel_y1": {
        1e-05: -63661.977275365480,
        0.5: -1.4714723926702431,
        2.75682: 0.24846071569937587,
        24.9: -0.086002557595554252,
        25.1: -0.11062223322783099,
    },
    "modified_bessel_i0": {
        0.5: 1.0634833707413235,
        24.9: 5235629675.8044222,
        25.1: 6369018573.8035025,
    },
    "i1e": {
        0.5: 0.15642080318487170,
        24.9: 0.078728794882103129,
        25.1: 0.078424315178368414,
    },
    "modified_bessel_k0": {
        1e-05: 11.628856980944362,
        1.9: 0.12884597927604749,
        2.1: 0.10078374088996693,
        24.9: 3.8360965209894921e-12,
        25.1: 3.1283127143211171e-12,
    },
    "scaled_modified_bessel_k1": {
        1e-05: 100000.99994435512,
        1.9: 1.0674709298145700,
        2.1: 1.0023680527405791,
        24.9: 0.25490238558081709,
        25.1: 0.25385550089505651,
    },
    "airy_ai": {
        -10.1: -0.059726811133453806,
        -9.9: 0.13623502644797943,
        -2.09588: 0.16619394866534670,
        0.0: 0.35502805388781724,
        5.0: 0.00010834442813607442,
        9.9: 1.5181958141049102e-10,
        10.1: 8.0265047029096042e-11,
        30.0: 3.2082175915504956e-49,
    },
    "erfcx": {
        -3.0: 16205.988853999587,
        0.4: 0.67078778529476151,
        1.0: 0.42758357615580700,
        5.0: 0.11070463773306863,
        1000.0: 0.00056418930145338765,
    },
    "log_ndtr": {
        -30.0: -454.32124395634320,
        -1.5: -2.7059444008238898,
        0.5: -0.36894641528865639,
        6.0: -9.8658764552437573e-10,
    },
    "ndtri": {
        1e-30: -11.464024688443377,
        0.01: -2.3263478740408411,
        0.5: 0.0,
        0.9: 1.2815515655446006,
    },
}
UPPER_GAMMA = {
    (0.5, 0.3): 0.43857802608099986,
    (5.0, 9.0): 0.054963641495104904,
    (20.18115866, 20.8398279): 0.41326933442751925,
    (150.0, 140.0): 0.79045637608139293,
    (1000.0, 1200.0): 1.2881606086281433e-9,
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name: str) -> None:
    places = list(VALUES[name])
    got = getattr(tt.special, name)(tt.tensor(places, dtype=tt.float64)).tolist()
    assert got == pytest.approx(list(VALUES[name].values()), rel=5e-14, abs=1e-15)


def test_incomplete_gamma() -> None:
    a, x = (tt.tensor(v, dtype=tt.float64) for v in zip(*UPPER_GAMMA, strict=True))
    q = list(UPPER_GAMMA.values())
    assert tt.igammac(a, x).tolist() == pytest.approx(q, rel=1e-12)
    assert tt.igamma(a, x).tolist() == pytest.approx([1 - v for v in q], rel=1e-12)


INF, NAN = float("inf"), float("nan")
ENDS = {  # where no series says anything, PyTorch's choice
    "polygamma(1, x)": lambda m, x: m.polygamma(1, x),
    "igamma(x, 0)": lambda m, x: m.igamma(x, m.zeros(7)),
    "igamma(x, inf)": lambda m, x: m.igamma(x, m.full((7,), INF)),
    "igammac(x, 0)": lambda m, x: m.igammac(x, m.zeros(7)),
    "zeta(x, 0)": lambda m, x: m.special.zeta(x, 0.0),
    "zeta(x, 2)": lambda m, x: m.special.zeta(x, 2.0),
    "zeta(x, 0.5)": lambda m, x: m.special.zeta(x, 0.5),
    "zeta(1, x)": lambda m, x: m.special.zeta(1.0, x),
    "softplus": lambda m, x: m.nn.functional.softplus(m.ones(3), 2, NAN),
    "var of nothing": lambda m, x: m.var(m.ones(0), correction=-1),
    "fftfreq in halves": lambda m, x: m.fft.fftfreq(5, 1e-5, dtype=m.float16).float(),
}


@pytest.mark.parametrize("label", ENDS)
def test_at_the_ends(label: str) -> None:
    points = (INF, NAN, 0.0, 1.0, 1.5, 3.0, -1.0)
    theirs, ours = (ENDS[label](m, m.tensor(points)).tolist() for m in (torch, tt))
    assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True)


PLACES = (
    0.0,
    -0.0,
    INF,
    -INF,
    NAN,
    1.0,
    2.0,
    -1.0,
    -2.5,
    0.3,
    0.9,
    1e-40,
    7.1,
    25.5,
    99.0,
    130.0,
    300.0,
)


@pytest.mark.skipif(SELFTEST, reason="compares two kernels of toytorch")
@pytest.mark.parametrize(
    "name",
    [
        *("igamma", "igammac", "special_zeta", "special_airy_ai", "special_bessel_y0", "mvlgamma"),
        "polygamma",
        *("special_bessel_y1", "special_modified_bessel_k0", "special_scaled_modified_bessel_k1"),
        *(f"special_shifted_chebyshev_polynomial_{k}" for k in "tuvw"),
        *(f"special_hermite_polynomial_{k}" for k in ("h", "he")),
        *("special_laguerre_polynomial_l", "special_legendre_polynomial_p"),
    ],
)
def test_by_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled of single numbers is what Python makes of their text, of any shapes."""
    op = REGISTRY[name]
    points = tt.tensor(PLACES)
    pairs = [
        (points[:, None], points),
        (points, points[3]),
        (points[:0, None], points),
        (points[9:16:2],) * 2,
    ]
    given = (
        pairs
        if len(op.tensor_at) == 2
        else [(a, *[3] * (len(op.schema.args) - 1)) for a, _ in pairs]
    )
    compiled = [op.function(*args) for args in given]
    monkeypatch.setattr(sequential, "works", lambda: False)
    sequential.ready.cache_clear()
    for made, args in zip(compiled, given, strict=True):
        plain = op.function(*args)
        assert made.shape == plain.shape and made.stride() == plain.stride()
        assert made.flatten().tolist() == pytest.approx(
            plain.flatten().tolist(), rel=3e-7, abs=1e-38, nan_ok=True
        )
    sequential.ready.cache_clear()
