"""Formulas: one text, read as a function of arrays, as compiled loops, as tensors' functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toytorch as tt
from toytorch.core.op import Op, registry
from toytorch.facts.schema import REQUIRED
from toytorch.loops.formula import Formula, OnePass
from toytorch.loops.runtime import jit

STATED = sorted(n for n, op in registry.items() if op.formula is not None)
LOOPED = [n for n in STATED if registry[n].formula.known]
NUMBERS = {"threshold": 0.1, "value": 2.0, "eps": 0.2}  # of arguments without a default
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def operands(name: str, op: Op, dtype: str = "float64") -> list[Any]:
    """Arrays of 6,000 elements, with NaN, infinities, zeros and ties, and usual numbers."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for a in op.schema.args:
        if a.is_tensor and (a.default is REQUIRED or a.type == "Operand?"):
            x = rng.normal(0, 2, 6000).astype(dtype)
            x[: 8 + len(made)] = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5, *x[: len(made)]]
            made.append(x > 0 if a.name == "condition" else x)
        else:
            made.append(NUMBERS.get(a.name, a.default) if a.default is REQUIRED else a.default)
    return made


@pytest.mark.parametrize("name", STATED)
def test_a_record_states_its_formula_once(name: str) -> None:
    op = registry[name]
    own = {a.name for a in op.schema.args}
    assert set(op.formula.names) <= own, f"{op.formula} names what is no argument"
    # The slopes of one are drawn before; the other takes an operand for its history alone.
    if op.name not in ("rrelu_with_noise", "straight"):
        assert own - {"self"} - set(op.formula.names) == set(), "an argument that changes nothing"
    assert isinstance(op.kernel, str) or op.kernel.formula is op.formula


@pytest.mark.parametrize("name", LOOPED)
def test_loops_do_what_arrays_do(name: str) -> None:
    op = registry[name]
    if op.schema.returns != ("Tensor",) or name == "where" or not jit.works():
        pytest.skip("masks are made or read" if jit.works() else "nothing is compiled here")
    given = operands(name, op)
    if not OnePass.serves(op.formula):
        pytest.skip("NumPy's function is as fast")
    params = [a.name for a in op.schema.args]
    loop = OnePass(op.formula, params)
    loop.smallest = 0
    ours = loop(
        *[np.ascontiguousarray(np.tile(a, 12)) if hasattr(a, "dtype") else a for a in given]
    )
    wanted = op.formula.function("plain", params)(
        *[np.tile(a, 12) if hasattr(a, "dtype") else a for a in given]
    )
    assert ours is not None
    np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(n for n in STATED if registry[n].formulas))
def test_derivatives_of_arrays_are_those_of_tensors(name: str) -> None:
    op = registry[name]
    given = dict(zip([a.name for a in op.schema.args], operands(name, op)))
    g = np.random.default_rng(1).normal(size=6000)
    result = op.on_cpu(*given.values())
    for argument, derivative in op.formulas.items():
        known = {"g": g, "result": result, **given}
        plain = [known[p] for p in derivative.params]
        tensors = [tt.from_numpy(v) if hasattr(v, "dtype") else v for v in plain]
        with tt.no_grad():
            wanted = derivative.of_tensors(*tensors).numpy()
        made = derivative.of_arrays()(*plain)
        np.testing.assert_allclose(made, wanted, rtol=1e-10, atol=1e-12, err_msg=argument)


def test_a_record_states_a_formula_or_a_kernel() -> None:
    from toytorch.ops.define import pointwise  # it must not stand among the names of this module

    with pytest.raises(ValueError, match="its kernel follows from its formula"):
        _ = pointwise("twice_stated(Tensor self) -> Tensor", "negative", formula="-self").kernel
    registry.pop("twice_stated", None)


def test_other_types_after_real_numbers() -> None:
    """What was found for one type is not used for another: 0-dimensional operands look alike."""
    for kind in (tt.float64, tt.complex128, tt.float16, tt.int64, tt.float64):
        x = tt.ones(100, 100, dtype=kind)
        assert (
            tt.add(x, tt.tensor(2, dtype=kind), alpha=1 if kind is tt.int64 else 1.0).sum() == 3e4
        )
        assert (x + 2).sum().item() == 3e4


def test_refusals() -> None:
    with pytest.raises(SyntaxError, match="ends with an expression"):
        Formula("x = self", ("self",))
    with pytest.raises(SyntaxError, match="name = expression"):
        Formula("self[0] = 1\nself", ("self",))


# -- random formulas ------------------------------------------------------------------------------

LEAVES = st.sampled_from(["x", "y", "k", "0.5", "2", "-1.5"])
TEXTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(st.sampled_from(["tanh", "abs", "sign", "floor"]), inner).map(
            lambda t: f"{t[0]}({t[1]} + x)"
        ),
        st.tuples(st.sampled_from(["maximum", "minimum"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]} + x, {t[2]})"
        ),
        st.tuples(inner, inner, inner, inner).map(
            lambda t: f"({t[0]} if x + {t[1]} > {t[2]} else {t[3]})"
        ),
        st.tuples(inner, inner).map(lambda t: f"({t[0]} if mode == 'a' else {t[1]})"),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, mode=st.sampled_from(["a", "b"]), scale=st.sampled_from([1.0, -0.25]))
def test_random_formulas(text: str, mode: str, scale: float) -> None:
    """NumPy, the compiled loop and Python, one element after the other, agree."""
    formula = Formula(f"z = {text}\nx * 0.5 + z", ("x", "y"))
    params = ("x", "y", "k", "mode")
    rng = np.random.default_rng(2)
    x, y = (np.round(rng.normal(0, 2, 5000), 1) for _ in range(2))
    wanted = formula.function("f", params)(x, y, scale, mode)
    loop = OnePass(formula, params)
    if jit.works():
        np.testing.assert_allclose(loop(x, y, scale, mode), wanted, rtol=1e-12, atol=1e-12)
    words = {
        "tanh": np.tanh, "abs": abs, "sign": np.sign, "floor": np.floor,
        "maximum": max, "minimum": min,
    }  # fmt: skip
    for i in range(40):
        own = {"x": float(x[i]), "y": float(y[i]), "k": scale, "mode": mode}
        one = own["x"] * 0.5 + eval(text, words, own)
        assert one == pytest.approx(wanted[i], rel=1e-12, abs=1e-12)
