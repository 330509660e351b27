"""What PyTorch's own tests found on 26 November, one short test a cause; sums of half types stand
in test_mended_upstream_sums.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035  # as programs write them

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")


def told(what: Callable[[Any], Any], m: Any) -> Any:
    """What a program gives, or the class and the words of its refusal."""
    made, refused = attempt(lambda: what(m))
    if refused is not None:
        return type(refused).__name__, str(refused).replace("toytorch", "torch").strip()
    return made


def same(what: Callable[[Any], Any]) -> None:
    """That both sides give the same, or refuse it with the same words."""
    assert told(what, tt) == told(what, torch)


# -- batches of cotangents through compiled functions ----------------------------------------------

COMPILED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda m, a, b: a * b,
    "several": lambda m, a, b: ((a * b).sum(1), a.sin()),
    "matrices": lambda m, a, b: a @ b.T,
    "distance": lambda m, a, b: m.nn.functional.pairwise_distance(a, b),
}


def pulled(m: Any, name: str, way: str) -> Any:
    rng = np.random.default_rng(0)
    a, b = (
        m.tensor(rng.standard_normal((3, 4)).tolist(), dtype=m.float64, requires_grad=True)
        for _ in range(2)
    )

    def function(a: Any, b: Any) -> Any:
        return COMPILED[name](m, a, b)

    if way == "trace":
        function = m.jit.trace(function, (a, b))
    elif way == "compile" and m.__name__ == "toytorch":
        function = m.compile(function)
    for _ in range(3):  # the later calls of a compiled function are those that run its plan
        made = function(a, b)
    made = made if isinstance(made, tuple) else (made,)
    grads = [m.tensor(rng.standard_normal((2, *y.shape)).tolist(), dtype=m.float64) for y in made]
    found = []
    for more in (False, True):
        given = {"is_grads_batched": True, "retain_graph": True, "create_graph": more}
        found += m.autograd.grad(made, (a, b), grads, **given)
    found += m.autograd.grad(made[:1], (a, b), grads[:1], is_grads_batched=True, retain_graph=True)
    found += m.func.vmap(lambda *g: m.autograd.grad(made, (a, b), g, retain_graph=True))(*grads)
    forward = m.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(g[0], g[1]) for g in grads]
        for x in m.autograd.grad(made, (a, b), duals, retain_graph=True):
            found += [v.clone() for v in forward.unpack_dual(x)]
    return [v.detach().numpy() for v in found]


@pytest.mark.parametrize("way", ["trace", "compile"])
@pytest.mark.parametrize("name", COMPILED)
def test_batches_of_cotangents(name: str, way: str) -> None:
    for ours, theirs in zip(pulled(tt, name, way), pulled(torch, name, way), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# -- a bias of another type ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds", [("float64", "float16"), ("float32", "int64"), ("int64", "float32")]
)
@pytest.mark.parametrize("bias", [(5,), (1,), ()])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("turned", [False, True])
def test_bias_of_another_type(
    shape: tuple[int, ...], bias: tuple[int, ...], kinds: tuple[str, str], turned: bool
) -> None:
    def what(m: Any) -> Any:
        kind, other = (getattr(m, k) for k in kinds)
        x = m.ones(shape).to(kind)
        x = x.transpose(0, 1).contiguous().transpose(0, 1) if turned and x.ndim > 1 else x
        y = m.nn.functional.linear(x, m.ones(5, 4).to(kind), m.ones(bias).to(other))
        return str(y.dtype).rsplit(".", 1)[-1], y.tolist()

    same(what)


# -- refusals --------------------------------------------------------------------------------------

REFUSED: dict[str, Callable[[Any], Any]] = {
    "fold": lambda m: m.nn.Fold((4, 5), (2, 2), dilation=8)(m.randn(1, 12, 12)),
    "fold, nothing": lambda m: m.nn.Fold((1, 1), (2, 2))(m.randn(1, 4, 1)),
    "grid": lambda m: m.nn.functional.grid_sample(
        m.ones(1, 2, 2), m.ones(1, 1, 1, 2), align_corners=False
    ),
    "grid, empty": lambda m: m.nn.functional.grid_sample(
        m.ones(1, 1, 0, 2), m.ones(1, 1, 1, 2), align_corners=False
    ),
    "sorter": lambda m: m.searchsorted(m.arange(3.0), m.arange(3.0), sorter=m.zeros(3)),
    "histogram": lambda m: m.histogram(m.ones(3), m.arange(3.0, dtype=m.float64)),
    "histogram, weights": lambda m: m.histogram(m.ones(3), 3, weight=m.ones(3, dtype=m.float64)),
    "histogram, out": lambda m: m.histogram(
        m.ones(3), 3, out=(m.ones(3), m.ones(3, dtype=m.float64))
    ),
    "max, out": lambda m: m.max(m.ones(2, 2), 0, out=(m.ones(2).double(), m.ones(2).long())),
    "min, out": lambda m: m.min(m.ones(2, 2), 0, out=(m.ones(2).int(), m.ones(2).long())),
    "index_put": lambda m: m.rand([]).index_put([], m.tensor([1.0]), True),
    "assigned": lambda m: m.ones(3, dtype=m.int64).__setitem__(m.ones(3) > 0, m.tensor([])),
    "randperm": lambda m: m.randperm(129, dtype=m.int8),
    "complex for int": lambda m: m.tensor([1 + 0j], dtype=m.int64),
    "complex for float": lambda m: m.tensor([1 + 0j], dtype=m.float32),
    "packed": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.randn(0, 1, 2), [1]),
    "cummax": lambda m: m.cummax(m.tensor(1.0), 100),
    "cummin": lambda m: m.cummin(m.tensor(1.0), 2),
    "weights": lambda m: m.nn.functional.nll_loss(m.ones(2, 3), m.tensor([0, 1]), m.ones(1, 3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words(name: str) -> None:
    assert attempt(lambda: REFUSED[name](tt))[1] is not None
    same(REFUSED[name])


@pytest.mark.parametrize("lengths", [[30, 25, 20], [29, 0, -1], [29, 29]])
@pytest.mark.parametrize("steps", [[50, 50, 50], [50, 51, 2], [50, 50, -1]])
@pytest.mark.parametrize("flat", [False, True])
def test_lengths_of_texts(lengths: list[int], steps: list[int], flat: bool) -> None:
    def what(m: Any) -> Any:
        targets = m.ones(40 if flat else (3, 29), dtype=m.int64)
        return float(m.nn.functional.ctc_loss(m.zeros(50, 3, 15), targets, steps, lengths))

    same(what)


TOO_LARGE: dict[str, Callable[[Any], Any]] = {
    "empty": lambda m: m.empty([2, 4, 2**29, 2**29], dtype=m.float64),
    "no elements": lambda m: m.empty([0, 4, 2**61]),
    "ones": lambda m: m.ones(2**40, 2**40),
    "randn": lambda m: m.randn(2**62),
    "arange": lambda m: m.arange(2**62),
    "pad": lambda m: m.nn.functional.pad(m.ones(1, 1, 1), (2**61, 0)),
    "copy": lambda m: m.ones(1).expand(10**14).clone(),
    "sum": lambda m: m.ones(10**7, 1) + m.ones(1, 10**7),
    "product": lambda m: m.ones(10**7, 1) @ m.ones(1, 10**7),
    "function": lambda m: m.ones(1).expand(10**14).exp(),
    "memory": lambda m: m.zeros(10**14),
    "resized": lambda m: m.empty(0).resize_([0, 4, 2**61]),
    "pooled": lambda m: m.nn.AdaptiveAvgPool1d(2**62 - 1)(m.ones(2, 2, 2)),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large(name: str) -> None:
    ours, theirs = (attempt(lambda m=m: TOO_LARGE[name](m))[1] for m in (tt, torch))
    assert type(ours) is type(theirs) is RuntimeError
    for word in ("can't allocate memory", "Stride calculation"):
        assert (word in str(ours)) == (word in str(theirs))


# -- what is taken now -----------------------------------------------------------------------------

TAKEN: dict[str, Callable[[Any], Any]] = {
    "randperm": lambda m: m.randperm(2**8, out=m.empty(0, dtype=m.uint8)).sort()[0].tolist(),
    "truth": lambda m: m.tensor([1e-323, 0j, 1e-323j, 1 + 2j], dtype=m.bool).tolist(),
    "one truth": lambda m: m.tensor(1j, dtype=m.bool).tolist(),
    "tensordot": lambda m: m.tensordot(m.ones(2, 3), m.ones(3, 2), m.tensor([1])).tolist(),
    "coordinates": lambda m: m.eye(2).to_sparse_coo().indices().tolist(),
    "packed": lambda m: [
        str(getattr(m.nn.utils.rnn.pack_sequence([m.ones(2)]), c)().data.dtype)[-5:]
        for c in ("byte", "char", "short")
    ],
    "formats": lambda m: [
        f(net, like)[0].weight.stride()
        for f, net, like in (
            (
                m.nn.utils.convert_conv2d_weight_memory_format,
                m.nn.Sequential(m.nn.Conv2d(2, 3, 2)),
                m.channels_last,
            ),
            (
                m.nn.utils.convert_conv3d_weight_memory_format,
                m.nn.Sequential(m.nn.ConvTranspose3d(2, 3, 2)),
                m.channels_last_3d,
            ),
        )
    ],
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    assert attempt(lambda: TAKEN[name](tt))[1] is None
    same(TAKEN[name])


def test_prefixes_of_state_dicts() -> None:
    found = []
    for m in (tt, torch):
        net = m.nn.Sequential(m.nn.Sequential(m.nn.BatchNorm1d(2)))
        state = net.state_dict()
        m.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "0.")
        found.append((list(state), dict(state._metadata)))
    assert found[0] == found[1]


def test_tensors_of_files(tmp_path: Path) -> None:
    found = []
    for m in (tt, torch):
        file = str(tmp_path / m.__name__)
        a = m.from_file(file, True, 4, dtype=m.int16).fill_(3)
        b = m.from_file(file, shared=True, size=2, dtype=m.int16)
        b[0] = 5
        c = m.from_file(file, size=4, dtype=m.int16)
        c[1] = 7
        found.append((a.tolist(), b.tolist(), c.tolist(), Path(file).read_bytes()))
    assert found[0] == found[1]


def test_gradients_inside_a_checkpoint_that_does_not_stop_early() -> None:
    found = []
    for m in (tt, torch):
        x = m.tensor(0.3, requires_grad=True)

        def inner(x: Any, m: Any = m) -> Any:
            a = x.sin().exp()
            (g,) = m.autograd.grad(a, x, create_graph=True)
            return g * x.cos()

        with m.utils.checkpoint.set_checkpoint_early_stop(False):
            y = m.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)
            y.backward()
        found.append((float(y.detach()), float(x.grad)))
    assert found[0] == pytest.approx(found[1])


MODULES_LACK = """get_buffer get_parameter get_submodule set_submodule requires_grad_ to_empty
bfloat16 xpu register_forward_hook register_full_backward_hook"""

# -- compiled code ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES_LACK.split())
def test_what_compiled_modules_refuse(name: str) -> None:
    same(lambda m: getattr(m.jit.script(m.nn.Linear(2, 2)), name)("weight"))


def put(numbers: List[int], table: Dict[str, int]) -> int:  # noqa: UP006
    numbers.append(3)
    table["c"] = 3
    return len(numbers)


def inner_lists(numbers: List[List[int]]) -> int:  # noqa: UP006
    numbers[0].append(3)
    return len(numbers[0])


class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b

    def set_both(self, a: int, b: int) -> None:
        self.a, self.b = (a, b)


def of_pair(pair: Pair, a: int) -> int:
    pair.set_both(a, 4)
    return pair.a * 10 + pair.b


def no_type(x: List) -> List:  # noqa: UP006
    return x


def no_types(x: Dict) -> int:  # noqa: UP006
    return 1


def no_parts(x: Tuple) -> int:  # noqa: UP006
    return 1


def either(x: int) -> Optional[int]:  # noqa: UP045
    return None if x > 1 else x


def anything(x: int) -> Any:
    return "out" if x > 1 else x


def test_shared_containers() -> None:
    found = []
    for m in (tt, torch):
        numbers, table, plain = m.jit.script([1, 2]), m.jit.script({"a": 1}), [1]
        nested = m.jit.script([[1], [2]])
        counts = [
            m.jit.script(put)(numbers, table),
            m.jit.script(put)(plain, {}),
            m.jit.script(inner_lists)(nested),
        ]
        first = nested[0]
        found.append((counts, list(numbers), dict(table.items()), plain, list(first)))
    assert found[0] == found[1]


@pytest.mark.parametrize("function", [no_type, no_types, no_parts])
def test_annotations_without_elements(function: Any) -> None:
    ours, theirs = (attempt(lambda m=m: m.jit.script(function))[1] for m in (tt, torch))
    assert isinstance(ours, RuntimeError)
    assert str(ours).split("\n")[0].rstrip(":") == str(theirs).split("\n")[0].rstrip(":")


@pytest.mark.parametrize("function", [either, anything])
def test_ternaries_under_hints(function: Any) -> None:
    same(lambda m: [m.jit.script(function)(v) for v in (1, 2)])


def test_objects_that_only_init_describes() -> None:
    same(lambda m: m.jit.script(of_pair)(Pair(1, 2), 3))
