"""The stand-in is in step with CuPy's wheel, and refuses what CuPy refuses."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import numpy as np
import pytest

from tests.cuda import cupy_stand_in, signatures
from tests.cuda.cupy_stand_in import Refused

cp: Any = cupy_stand_in.made()
a = cp.asarray(np.arange(6.0).reshape(2, 3))
WRONG = {  # calls that NumPy takes and CuPy does not
    "a NumPy operand": lambda: a + np.ones(3),
    "a NumPy operand on the left": lambda: np.ones(3) + a,
    "conversion": lambda: np.asarray(a),
    "conversion by a list": lambda: np.array([a, a]),
    "where= of a ufunc": lambda: cp.add(a, a, where=a > 1),
    "where= of a sum": lambda: cp.sum(a, where=a > 1),
    "initial= of a maximum": lambda: a.max(initial=0.0),
    "initial= by NumPy's name": lambda: np.max(a, initial=0.0),
    "out of a NumPy array": lambda: cp.add(a, a, out=np.empty((2, 3))),
    "an unknown function": lambda: cp.apply_nothing(a),
    "a function CuPy lacks": lambda: np.block([[a]]),
    "a list as a ufunc's operand": lambda: cp.add([1, 2], a),
    "a number for an array": lambda: cp.sum(3.0),
    "accumulate of a maximum": lambda: np.maximum.accumulate(a),
    "reduce of a maximum": lambda: np.maximum.reduce(a),
    "at of a product": lambda: np.multiply.at(a, cp.asarray([0]), 2.0),
    "at of bytes": lambda: cp.add.at(cp.zeros(3, "int8"), cp.asarray([0]), 1),
    "logic of complex numbers": lambda: cp.logical_not(a.astype("complex64")),
    "float16 in linalg": lambda: cp.linalg.inv(cp.eye(2, dtype="float16")),
    "strings": lambda: cp.asarray(np.array(["a"])),
    "objects": lambda: cp.zeros(2, object),
    "another sort": lambda: cp.argsort(a, kind="mergesort") and a.sort(kind="heapsort"),
    "assigning a NumPy array": lambda: a.__setitem__(slice(None), np.ones((2, 3))),
    "an unsafe cast into out": lambda: cp.add(a, a, out=cp.zeros((2, 3), "int32")),
    "flags of writing": lambda: a.flags.writeable,
    "ctypes": lambda: a.ctypes,
}


@pytest.mark.parametrize("name", [n for n in WRONG if n != "another sort"])
def test_it_refuses(name: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError, NotImplementedError)):
        WRONG[name]()


def test_it_refuses_another_sort() -> None:
    with pytest.raises(ValueError, match="stable"):
        a.copy().sort(kind="heapsort")


def test_differences_from_numpy() -> None:
    """Those of CuPy's page "Differences between CuPy and NumPy"."""
    assert type(a.sum()) is cp.ndarray and type(a[0, 0]) is cp.ndarray and a.sum().shape == ()
    assert cp.arange(3)[cp.asarray([1, 3])].get().tolist() == [1, 0]  # wraps around
    assert cp.take(cp.arange(3), cp.asarray([4])).get().tolist() == [1]
    assert cp.add(a.astype("uint8"), 1).dtype == "uint8"
    assert isinstance(np.exp(a), cp.ndarray) and isinstance(np.concatenate([a, a]), cp.ndarray)
    assert a[:, 1].base is not None and cp.lib.stride_tricks.as_strided(a, (2,), (8,)).base is None
    with pytest.raises(AttributeError):
        cp.ndarray.setflags  # noqa: B018 - that it is not there


def test_types_of_loops() -> None:
    """The first loop of CuPy's list that takes the operands."""
    assert cp.sqrt(cp.arange(3, dtype="int8")).dtype == "float16"
    assert cp.exp(cp.arange(3, dtype="int32")).dtype == "float64"
    assert (cp.arange(3, dtype="int32") + 1.5).dtype == "float64"
    assert (cp.ones(3, "float32") + 1.5).dtype == "float32"
    assert cp.where(a > 1, a.astype("float16"), 0.0).dtype == "float16"


def test_decompositions_are_silent() -> None:
    singular = cp.zeros((2, 2))
    assert np.isfinite(cp.linalg.inv(singular).get()).all()
    with cp.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        cp.linalg.inv(singular)


def test_the_table_is_in_step_with_the_wheel() -> None:
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("the wheel of CuPy is not installed: pip install cupy-cuda12x==14.2.0")
    import cupy

    table = json.loads(signatures.TABLE.read_text())
    if cupy.__version__ != table["version"]:
        pytest.skip(f"the wheel is {cupy.__version__}, the table that of {table['version']}")
    assert signatures.text(signatures.collected()) == signatures.TABLE.read_text()


def test_refusals_say_the_signature() -> None:
    with pytest.raises(Refused, match=r"cupy\.sum\(a, axis=None, dtype=None"):
        cp.sum(a, where=a > 1)
