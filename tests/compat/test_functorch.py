"""`functorch` and the parts of `torch._functorch` and `torch._C._functorch`, beside PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import alike, torch, tt

SIDES = (tt, torch)


def part(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.{name}")


def plain(value: Any) -> Any:
    return value.detach().numpy().tolist() if hasattr(value, "detach") else value


def network(t: Any, norm: bool = False) -> Any:
    made = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4) if norm else t.nn.Tanh())
    with t.no_grad():
        for k, p in enumerate(made.parameters()):
            p.copy_(t.arange(p.numel()).reshape(p.shape) / (k + 5) - 0.5)
    return made


def functional(t: Any) -> Any:
    f, p = part(t, "_functorch.make_functional").make_functional(network(t))
    x = t.arange(15.0).reshape(5, 3) / 7

    def loss(p: Any, x: Any) -> Any:
        return f(p, x).pow(2).mean()

    each = t.vmap(t.func.grad(loss), (None, 0))(p, x)
    f(p, x).sum().backward()
    shared = t.nn.Linear(3, 3)
    twice = part(t, "_functorch.make_functional").make_functional(t.nn.Sequential(shared, shared))
    return [plain(v) for v in (f(p, x), *each, *(q.grad for q in p))], len(twice[1])


def untracked(t: Any) -> Any:
    f, p = part(t, "_functorch.make_functional").make_functional(network(t), True)
    return [q.requires_grad for q in p], [str(q.device) for q in f.parameters()]


def buffers(t: Any) -> Any:
    f, p, b = part(t, "_functorch.make_functional").make_functional_with_buffers(network(t, True))
    x = t.arange(15.0).reshape(5, 3) / 7
    return [plain(v) for v in (f(p, b, x), *b)], [v.requires_grad for v in (*p, *b)], f.param_names


def ensemble(t: Any) -> Any:
    combine = part(t, "_functorch.make_functional").combine_state_for_ensemble
    f, p, b = combine([network(t), network(t)])
    x = t.arange(15.0).reshape(5, 3) / 7
    return plain(t.vmap(f, (0, 0, None))(p, b, x)), [v.requires_grad for v in p], b


def steps(t: Any) -> Any:
    c = part(t, "_C._functorch") if t is tt else t._C._functorch
    x = t.arange(6.0).reshape(3, 2)
    level = c._vmap_increment_nesting(3, "error")
    seen = c._add_batch_dim(x, 0, level)
    found = [
        level, tuple(seen.shape), c.is_batchedtensor(seen), c.is_batchedtensor(x), c.maybe_get_bdim(seen),
        c.maybe_get_level(seen) == level, c.maybe_get_level(x), tuple(c.get_unwrapped(seen).shape),
        plain(c._remove_batch_dim(seen.sum() * 2, level, 3, 0)),
        plain(c._remove_batch_dim(t.ones(2), level, 3, 0)),
        part(t, "_functorch.vmap")._maybe_remove_batch_dim("f", t.ones(1), level, 3, None).tolist(),
    ]  # fmt: skip
    with pytest.raises(ValueError) as error:
        part(t, "_functorch.vmap")._maybe_remove_batch_dim("f", seen, level, 3, None)
    return [*found, str(error.value), c._vmap_decrement_nesting()]


@pytest.mark.parametrize("program", [functional, untracked, buffers, ensemble, steps])
def test_same_results(program: Callable[[Any], Any]) -> None:
    alike(program(tt), program(torch))


def test_same_refusals_and_warnings() -> None:
    def said(t: Any) -> list[str]:
        made = part(t, "_functorch.make_functional")
        one = t.nn.Linear(1, 1)
        calls = [
            lambda: made.make_functional(network(t, True)),
            lambda: made.combine_state_for_ensemble([]),
            lambda: made.combine_state_for_ensemble([one, t.nn.ReLU()]),
            lambda: made.combine_state_for_ensemble([one, t.nn.Linear(1, 1).eval()]),
        ]
        found = []
        for call in calls:
            with pytest.raises(RuntimeError) as error:
                call()
            found.append(str(error.value))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            older = part(t, "_functorch.deprecated")
            older.grad(t.sin)(t.tensor(1.0))
            older.vmap(t.sin)
            older.make_functional(one)
        return [*found, *(f"{w.category} {w.message} {w.filename}" for w in seen)]

    assert said(tt) == said(torch)


class Words:
    """Networks of which every example has its gradient."""

    @staticmethod
    def embedded(t: Any) -> tuple[Any, Any]:
        return t.nn.Sequential(t.nn.Embedding(7, 3), t.nn.Linear(3, 2)), t.arange(10).view(5, 2) % 7

    @staticmethod
    def convolved(t: Any) -> tuple[Any, Any]:
        layers = (t.nn.Conv2d(2, 4, 3, stride=2), t.nn.GroupNorm(2, 4), t.nn.Flatten())
        x = t.arange(3 * 2 * 25.0).view(3, 2, 5, 5) / 20
        return t.nn.Sequential(*layers, t.nn.Linear(16, 3, bias=False)), x.sin()


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("case", [Words.embedded, Words.convolved])
def test_gradients_of_examples(case: Any, reduction: str) -> None:
    def found(t: Any) -> Any:
        call = part(t, "nn.utils._per_sample_grad").call_for_per_sample_grads
        module, x = case(t)
        module[-1].weight.requires_grad_(False)
        with t.no_grad():
            for k, p in enumerate(module.parameters()):
                p.copy_((t.arange(p.numel()).reshape(p.shape) + k).sin())
        out = call(module, loss_reduction=reduction)(x)
        getattr(out.pow(2), reduction)().backward()
        got = [getattr(p, "grad_sample", None) for p in module.parameters()]
        return [plain(out), *map(plain, got)], [p.grad for p in module.parameters()]

    (got, none), (want, also) = found(tt), found(torch)
    assert none == also
    for a, b in zip(got, want, strict=True):
        alike(a, b)


def test_refusals_of_gradients_of_examples() -> None:
    def said(t: Any) -> list[str]:
        call = part(t, "nn.utils._per_sample_grad").call_for_per_sample_grads
        m = t.nn.Linear(2, 2)
        pair = t.nn.Bilinear(2, 2, 2)
        calls = [
            lambda: call(m, batch_size=0), lambda: call(m, batch_size="a"), lambda: call(3),
            lambda: call(m, loss_reduction="x"), lambda: call(m)(3),
            lambda: call(pair)(t.ones(2, 2), t.ones(3, 2)),
        ]  # fmt: skip
        found = []
        for c in calls:
            with pytest.raises(RuntimeError) as error:
                c()
            found.append(str(error.value))
        return found

    assert said(tt) == said(torch)


def test_sums_and_products_as_methods() -> None:
    def found(t: Any) -> Any:
        f = t.nn.quantized.FloatFunctional()
        a, b = t.arange(4.0).view(2, 2) - 2, t.ones(2, 2)
        made = (
            f.add(a, b), f.mul(a, b), f.cat([a, b], 1), f.add_relu(a, b), f.add_scalar(a, 2.0),
            f.mul_scalar(a, 3.0), f.matmul(a, b),
        )  # fmt: skip
        with pytest.raises(RuntimeError) as error:
            f(a)
        return [plain(m) for m in made], repr(f), list(f.state_dict()), str(error.value)

    assert found(tt) == found(torch)
    # Quantized kernels are not here: the error says what to use instead.
    with pytest.raises(NotImplementedError, match=r"autocast"):
        tt.nn.quantized.Linear(2, 2)


def test_the_graph_of_a_call() -> None:
    def found(t: Any) -> Any:
        ask = (
            part(t, "jit")._get_trace_graph
            if t is torch
            else part(t, "compat._further")._get_trace_graph
        )
        module, x = t.nn.Sequential(t.nn.Conv1d(2, 3, 1, bias=False), t.nn.ReLU()), t.ones(1, 2, 4)
        graph, out, given = ask(module, x, return_inputs=True)
        kinds = [n.kind() for n in graph.nodes() if n.kind()[:5] != "prim:"]
        kinds = [k.replace("aten::_", "aten::").replace("convolution", "conv1d") for k in kinds]
        shapes = [tuple(g.shape) for g in given]
        return kinds, len(list(graph.inputs())), tuple(out.shape), shapes

    assert found(tt) == found(torch)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scopes_of_a_call() -> None:
    """Hooks of libraries that count operations push them; `trace` names modules within modules."""

    def found(t: Any) -> Any:
        state = part(t, "_C" if t is torch else "compat._C")._get_tracing_state
        ask = part(t, "jit" if t is torch else "compat._further")._get_trace_graph
        net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Sequential(t.nn.ReLU(), t.nn.Tanh()))
        traced = t.jit.trace(net, t.ones(2, 3)).inlined_graph
        for name, module in net.named_modules():
            module.register_forward_pre_hook(lambda m, given, name=name: state().push_scope(name))
            module.register_forward_hook(lambda m, given, out: state().pop_scope())
        graphs = traced, ask(net, t.ones(2, 3))[0]
        return [
            (n.kind(), n.scopeName()) for g in graphs for n in g.nodes() if n.kind()[:5] == "aten:"
        ]

    assert found(tt) == found(torch)
