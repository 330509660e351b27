"""`out=` of other types than the result, for whole families of functions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import alike, alike_for, alike_rounded, numbers

pytest.importorskip("expecttest", reason="samples come from PyTorch's database")
pytestmark = pytest.mark.filterwarnings("ignore")

# -- out= of other types ---------------------------------------------------------------------------


SEVERAL = (
    "geqrf linalg.qr linalg.eigh linalg.svd linalg.lu linalg.lu_factor linalg.lu_factor_ex"
    " linalg.ldl_factor linalg.ldl_factor_ex linalg.slogdet linalg.inv_ex linalg.cholesky_ex sort topk"
    " kthvalue mode cummax aminmax svd linalg.inv linalg.cholesky cholesky linalg.matrix_power"
    " logcumsumexp nanmean"
)


@pytest.mark.parametrize("name", SEVERAL.split())
def test_types_of_places_to_write_to(name: str) -> None:
    more = {"topk": (1,), "kthvalue": (1,), "cummax": (0,), "linalg.matrix_power": (2,)}
    args = more.get(name, (0,) if name == "logcumsumexp" else ())
    kinds = ("bool", "int64", "float16", "float32", "complex64")
    for dtype, other, count in itertools.product((*kinds, "bfloat16"), kinds, (1, 2, 3)):
        if dtype == "int64" and "lu_" in name:
            continue  # 64 bits are too many for the numbers of rows, which we ask after the kernel

        def what(m: Any, dtype: str, other: str, count: int) -> Any:
            f = m
            for part in name.split("."):
                f = getattr(f, part)
            x = m.eye(2).add(m.tensor([[1.0, 0.5], [0.5, 0.0]])).to(getattr(m, dtype))
            out = tuple(m.zeros(0, dtype=getattr(m, other)) for _ in range(count))
            f(x, *args, out=out if count > 1 else out[0])
            return [tuple(o.shape) for o in out]

        alike_for(what, dtype, other, count)


def test_out_of_factors_is_written_to() -> None:
    for name in ("lu_factor", "ldl_factor"):

        def what(m: Any, name: str) -> Any:
            out = m.zeros(0), m.zeros(0, dtype=m.int32)
            getattr(m.linalg, name)(m.tensor([[2.0, 1.0], [1.0, 3.0]]), out=out)
            return out

        alike_for(what, name)


# -- what is refused first -------------------------------------------------------------------------


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


ALONG = (
    "all any amax amin logcumsumexp cummax cummin mode median nanmedian nanmean var std sum prod max min"
    " cumsum argmax sort softmax count_nonzero mean"
)  # the rest of a call: a dimension
OPERANDS = (
    ((2, 3), "float32"), ((2, 3), "complex64"), ((2, 3), "int64"), ((2, 3), "uint8"),
    ((4, 1), "bfloat16"), ((2, 0), "float32"),
)  # fmt: skip


@pytest.mark.parametrize("name", ALONG.split())
def test_types_and_dimensions(name: str) -> None:
    """Which comes first, where both are wrong; and that a wrong type alone is refused."""
    pair = name in ("cummax", "cummin", "mode", "median", "nanmedian", "max", "min", "sort")
    kinds = ("bool", "int32", "float64", "complex64", "bfloat16")
    for given, kind, dim in itertools.product(OPERANDS, kinds, (5, -1)):

        def what(m: Any, case: Any = (given, kind, dim)) -> Any:
            (shape, dtype), kind, dim = case
            out = m.zeros(0, dtype=getattr(m, kind))
            both: Any = (out, m.zeros(0, dtype=m.int64)) if pair else out
            getattr(m, name)(m.ones(shape, dtype=getattr(m, dtype)), dim, out=both)
            return out

        alike(what, given, kind, dim)


def test_types_of_places_named_by_words() -> None:
    for name, rest in (("kthvalue", (1, -1)), ("index_select", (-1,))):
        for kind, dtype in itertools.product(("bool", "int32", "float64"), ("float32", "int64")):

            def what(m: Any, case: Any = (name, rest, kind, dtype)) -> Any:
                name, rest, kind, dtype = case
                out = m.zeros(0, dtype=getattr(m, kind))
                places = m.zeros(1, dtype=m.int64)
                x = m.ones(2, 3, dtype=getattr(m, dtype))
                if name == "kthvalue":
                    return m.kthvalue(x, *rest, out=(out, places))[0]
                return m.index_select(x, *rest, places, out=out)

            alike_rounded(what)


@pytest.mark.parametrize("name", ["stack", "cat", "hstack", "column_stack"])
def test_what_cannot_be_joined_into_a_place(name: str) -> None:
    def what(m: Any, place: str, left: Any, right: Any) -> Any:
        out = {
            "fixed": lambda: m.from_dlpack(m.zeros(1, dtype=m.int64)),
            "fixed, large": lambda: m.from_dlpack(m.zeros(4, dtype=m.int64)),
            "small": lambda: m.zeros(1, dtype=m.int64),
        }[place]()
        found = attempt(getattr(m, name), [m.ones(left), m.ones(right) * 1j], out=out)[1]
        return type(found).__name__, str(found)

    for case in itertools.product(("fixed", "fixed, large", "small"), ((), (2,)), ((), (2,), (3,))):
        assert what(tt, *case) == what(torch, *case), case
