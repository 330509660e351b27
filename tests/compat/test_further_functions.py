"""Functions and modules that few programs ask for, beside PyTorch's."""

from __future__ import annotations

import gc
import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, torch, tt

SIDES = (tt, torch)
if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)


def weights(m: Any, gates: int, layers: int = 1, ways: int = 1, biases: bool = True) -> list[Any]:
    rng, made = np.random.default_rng(0), []
    for layer in range(layers):
        for _ in range(ways):
            sizes = [(gates * 4, 3 if layer == 0 else 4 * ways), (gates * 4, 4)]
            sizes += [(gates * 4,)] * 2 * biases
            made += [m.tensor(rng.standard_normal(s), requires_grad=True) for s in sizes]
    return made


def drawn(m: Any, *size: int) -> Any:
    return m.tensor(np.random.default_rng(1).standard_normal(size), requires_grad=True)


GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("kind", GATES)
def test_cells(kind: str, biases: bool) -> None:
    def run(m: Any) -> list[Any]:
        x, h, w = drawn(m, 5, 3), drawn(m, 5, 4), weights(m, GATES[kind], biases=biases)
        made = getattr(m, f"{kind}_cell")(x, (h, h * 2) if kind == "lstm" else h, *w)
        parts = made if isinstance(made, tuple) else (made,)
        sum((p * p).sum() for p in parts).backward()
        return [t.detach().numpy() for t in (*parts, x.grad, h.grad, *(t.grad for t in w))]

    for ours, theirs in zip(run(tt), run(torch)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", ["plain", "batch first", "both ways", "packed", "no biases"])
@pytest.mark.parametrize("kind", GATES)
def test_networks(kind: str, way: str) -> None:
    def run(m: Any) -> list[Any]:
        ways, biases = 1 + (way == "both ways"), way != "no biases"
        w = weights(m, GATES[kind], 2, ways, biases)
        x = drawn(m, 5, 6, 3)
        h = drawn(m, 2 * ways, 5 if way == "batch first" else 6, 4)
        states = (h, h * 2) if kind == "lstm" else h
        rest = (biases, 2, 0.0, False, ways == 2)
        if way == "packed":
            sizes = m.tensor([6, 6, 4, 2, 1])
            made = getattr(m, kind)(x.view(30, 3)[:19], sizes, states, w, *rest)
        else:
            made = getattr(m, kind)(x, states, w, *rest, way == "batch first")
        sum((p * p).sum() for p in made).backward()
        return [t.detach().numpy() for t in (*made, x.grad, h.grad, *(t.grad for t in w))]

    for ours, theirs in zip(run(tt), run(torch)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


CALLS = """
m.native_channel_shuffle(m.arange(8.0).view(1, 4, 2), 2)
m.cond(m.tensor(False), m.sin, m.cos, (m.zeros(1),))
m.dequantize(m.ones(2))
m.ones(2).dequantize()
m.solve(m.eye(2), m.eye(2))
m.symeig(m.eye(2))
m.ones(2, 2).lstsq(m.ones(2))
m.ones(2).reinforce(1)
m.ones(2, 3).module_load(m.zeros(2, 3))
m.ones(2, 3).resize(3, 2)
m.ones(2, 3).resize_as(m.ones(6))
m.ones(2).const_data_ptr() > 0
m.crow_indices_copy(m.eye(2).to_sparse_csr())
m.autocast_increment_nesting() - m.autocast_decrement_nesting()
m.func.replace_all_batch_norm_modules_(m.nn.BatchNorm1d(2)).track_running_stats
m.func.functionalize(m.sin)(m.zeros(1))
m.functional.istft is m.istft
m.ones(2).to_padded_tensor(0.0)
m.ones(2).q_scale()
m._VF.relu(m.tensor([-1.0]))
"""


@pytest.mark.parametrize("text", CALLS.split("\n")[1:-1])
def test_calls(text: str) -> None:
    def run(m: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = eval(text, {"m": m})
        except Exception as e:
            return type(e).__name__
        return (
            [t.tolist() for t in found]
            if isinstance(found, tuple)
            else (found.tolist() if hasattr(found, "tolist") else found)
        )

    assert run(tt) == run(torch)


def test_named_results_have_classes() -> None:
    for name, call in {
        "topk": lambda m: m.topk(m.ones(3), 1),
        "max": lambda m: m.ones(2, 2).max(0),
        "sort": lambda m: m.ones(2).sort(),
        "aminmax": lambda m: m.aminmax(m.ones(2)),
        "frexp": lambda m: m.frexp(m.ones(2)),
        "mode": lambda m: m.ones(2).mode(),
        "svd": lambda m: m.svd(m.eye(2)),
    }.items():
        for m in SIDES:
            kinds = (
                m.return_types if m is torch else importlib.import_module("toytorch.return_types")
            )
            assert isinstance(call(m), getattr(kinds, name)), (m, name)


def test_dictionaries_by_identity() -> None:
    for m in SIDES:
        weak = importlib.import_module(f"{m.__name__}.utils.weak")
        x, y = m.ones(2), m.ones(2)
        d = weak.WeakTensorKeyDictionary()
        d[x], d[y] = 1, 2
        assert d[x] == 1 and d[y] == 2 and len(d) == 2 and x in d and m.ones(2) not in d
        del y
        gc.collect()
        assert list(d) == [x] or len(d) == 1


def test_module_tracker() -> None:
    def run(m: Any) -> list[Any]:
        tracked = importlib.import_module(f"{m.__name__}.utils.module_tracker").ModuleTracker
        net, seen = m.nn.Sequential(m.nn.Linear(1, 1), m.nn.Sequential(m.nn.ReLU())), []
        with tracked() as tracker:
            net[1][0].register_forward_hook(lambda *a: seen.append(sorted(tracker.parents)))
            net(m.ones(1, 1))
            seen.append(sorted(tracker.parents))
        return seen

    assert run(tt) == run(torch)


def test_builders_of_extensions_say_what_is_missing() -> None:
    cpp = importlib.import_module("toytorch.utils.cpp_extension")
    for name in cpp.__all__:
        with pytest.raises(RuntimeError, match=r"no C\+\+ interface"):
            getattr(cpp, name)("name", sources=[])
    assert (
        "Python version"
        in importlib.import_module("toytorch.utils.collect_env").get_pretty_env_info()
    )
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance"):
        tt.compiler.set_stance("nothing")
    assert tt.compiler.wrap_numpy(np.sin)(tt.zeros(1)).tolist() == [0.0]
