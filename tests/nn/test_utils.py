"""nn.utils and nn.init beside PyTorch."""

from __future__ import annotations

import copy
import importlib
import math
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, both, error_difference, torch, tt

importlib.import_module("torch.nn.utils.prune")  # PyTorch leaves this to its users


def layer(m: Any, *args: Any, kind: str = "Linear") -> Any:
    made = getattr(m.nn, kind)(*(args or (3, 4))).double()
    with m.no_grad():
        for i, p in enumerate(made.parameters()):
            p.copy_(m.cos(m.arange(p.numel(), dtype=m.float64) * 1.1 + i).reshape(p.shape))
    return made


def with_grads(m: Any) -> Any:
    made = layer(m)
    made(m.arange(6, dtype=m.float64).reshape(2, 3)).square().sum().backward()
    return made


def _clipped(m: Any, **options: Any) -> Any:
    made = with_grads(m)
    norm = m.nn.utils.clip_grad_norm_(made.parameters(), **options)
    return norm, [p.grad for p in made.parameters()]


def _clipped_value(m: Any) -> Any:
    made = with_grads(m)
    m.nn.utils.clip_grad_value_(made.parameters(), 1.5)
    return [p.grad for p in made.parameters()]


def _vector(m: Any) -> Any:
    made = layer(m)
    v = m.nn.utils.parameters_to_vector(made.parameters())
    m.nn.utils.vector_to_parameters(v.detach() * 2, made.parameters())
    return v, list(made.parameters())


def _weight_norm(m: Any, old: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home = m.nn.utils if old else m.nn.utils.parametrizations
        made = home.weight_norm(layer(m))
        y = made(m.ones(2, 3, dtype=m.float64))
        y.square().sum().backward()
        grads = [p.grad for p in made.parameters()]
        names = list(made.state_dict())
        if old:
            m.nn.utils.remove_weight_norm(made)
        else:
            m.nn.utils.parametrize.remove_parametrizations(made, "weight")
    return y, grads, names, list(made.state_dict()), made.weight, type(made).__name__


def _spectral(m: Any, old: bool) -> Any:
    """The weight's largest singular value after enough calls is 1."""
    m.manual_seed(0)
    home = m.nn.utils if old else m.nn.utils.parametrizations
    made = home.spectral_norm(layer(m, 4, 3), n_power_iterations=20)
    for _ in range(20):
        y = made(m.ones(2, 4, dtype=m.float64))
    made.eval()
    y = made(m.ones(2, 4, dtype=m.float64))
    y.sum().backward()
    grads = [p.grad for p in made.parameters()]
    return y, grads, list(made.state_dict()), m.linalg.svdvals(made.weight)[0]


def _older_state(m: Any, crafted: bool) -> Any:
    """A state as PyTorch 0.4 wrote it, without v, or the newest one without its version."""
    m.manual_seed(0)
    made = m.nn.utils.spectral_norm(layer(m, 4, 3))
    made(m.ones(2, 4, dtype=m.float64))
    state = copy.deepcopy(made.state_dict())
    versions = state._metadata[""].pop("spectral_norm")
    if not crafted:
        state["weight"] = made.weight.detach().clone()
        del state["weight_v"]
    other = copy.deepcopy(m.nn.utils.spectral_norm(layer(m, 4, 3)))
    other.load_state_dict(state)
    y = other.eval()(m.ones(2, 4, dtype=m.float64))
    rest = other.load_state_dict({"weight": state["weight_orig"]}, strict=False).missing_keys
    plain = m.nn.utils.remove_spectral_norm(other)
    kept = len(plain._state_dict_hooks) + len(plain._load_state_dict_pre_hooks)
    return y, versions, rest, sorted(plain.state_dict()._metadata[""]), kept


def _symmetric(m: Any) -> Any:
    class Symmetric(m.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    p = m.nn.utils.parametrize
    made = p.register_parametrization(layer(m, 3, 3), "weight", Symmetric())
    first = made.weight
    made.weight = m.eye(3, dtype=m.float64) * 2
    with p.cached():
        same = made.weight is made.weight
    text = repr(made), list(made.state_dict()), p.is_parametrized(made, "weight"), same
    made(m.ones(1, 3, dtype=m.float64)).sum().backward()
    grad = made.parametrizations.weight.original.grad
    p.remove_parametrizations(made, "weight")
    return text, first, made.weight, grad, repr(made), p.is_parametrized(made)


def _orthogonal(m: Any, kind: str) -> Any:
    made = m.nn.utils.parametrizations.orthogonal(layer(m, 4, 4), orthogonal_map=kind)
    q = made.weight
    return (q @ q.mT - m.eye(4, dtype=m.float64)).abs().max().item() < 1e-10


def _pruned(m: Any) -> Any:
    prune = m.nn.utils.prune
    made = layer(m)
    prune.l1_unstructured(made, "weight", amount=0.25)
    one = made.weight_mask.clone()
    prune.ln_structured(made, "weight", amount=1, n=2, dim=0)
    made(m.ones(1, 3, dtype=m.float64)).sum().backward()
    grad, names, pruned = made.weight_orig.grad, list(made.state_dict()), prune.is_pruned(made)
    both_masks = made.weight_mask.clone()
    prune.remove(made, "weight")
    return one, both_masks, grad, names, pruned, made.weight, list(made.state_dict()), (
        prune.is_pruned(made))  # fmt: skip


def _pruned_globally(m: Any) -> Any:
    a, b = layer(m), layer(m, 4, 2)
    m.nn.utils.prune.global_unstructured(
        [(a, "weight"), (b, "weight")], m.nn.utils.prune.L1Unstructured, amount=5
    )
    return a.weight_mask, b.weight_mask


def _pruned_at_random(m: Any) -> Any:
    prune = m.nn.utils.prune
    a = prune.random_unstructured(layer(m), "weight", amount=3)
    b = prune.random_structured(layer(m), "weight", amount=1, dim=1)
    c = prune.custom_from_mask(layer(m), "bias", m.tensor([1, 0, 1, 0]))
    return (a.weight_mask == 0).sum(), (b.weight_mask.sum(0) == 0).sum(), c.bias


def _fused(m: Any) -> Any:
    conv, norm = layer(m, 3, 4, 2, kind="Conv2d"), layer(m, 4, kind="BatchNorm2d")
    norm.running_mean.copy_(m.arange(4, dtype=m.float64))
    x = m.sin(m.arange(48, dtype=m.float64)).reshape(1, 3, 4, 4)
    fused = m.nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    linear, norm1 = layer(m, 3, 4), layer(m, 4, kind="BatchNorm1d")
    other = m.nn.utils.fuse_linear_bn_eval(linear.eval(), norm1.eval())
    y = m.ones(2, 3, dtype=m.float64)
    return fused(x), norm(conv(x)), other(y), norm1(linear(y))


UTILS: dict[str, Any] = {
    "clip": lambda m: _clipped(m, max_norm=1.0),
    "clip nothing": lambda m: _clipped(m, max_norm=1e9),
    "clip by maximum": lambda m: _clipped(m, max_norm=1.0, norm_type=math.inf),
    "clip by 1-norm": lambda m: _clipped(m, max_norm=1.0, norm_type=1),
    "clip values": _clipped_value,
    "total norm": lambda m: m.nn.utils.get_total_norm([m.ones(3), m.ones(2, 3)]),
    "vector": _vector,
    "weight norm": lambda m: _weight_norm(m, False),
    "weight norm by hooks": lambda m: _weight_norm(m, True),
    "spectral norm": lambda m: _spectral(m, False),
    "spectral norm by hooks": lambda m: _spectral(m, True),
    "spectral norm of an older file": lambda m: _older_state(m, False),
    "spectral norm without a version": lambda m: _older_state(m, True),
    "parametrize": _symmetric,
    "matrix_exp": lambda m: _orthogonal(m, "matrix_exp"),
    "cayley": lambda m: _orthogonal(m, "cayley"),
    "householder": lambda m: _orthogonal(m, "householder"),
    "prune": _pruned,
    "prune globally": _pruned_globally,
    "prune at random": _pruned_at_random,
    "fusion": _fused,
    "skip_init": lambda m: tuple(m.nn.utils.skip_init(m.nn.Linear, 3, 2).weight.shape),
}


@pytest.mark.parametrize("label", UTILS)
def test_utils(label: str) -> None:
    both(UTILS[label])


# -- starting values ------------------------------------------------------------------------------

FIXED: dict[str, Any] = {
    "eye_": lambda i, m: i.eye_(m.empty(2, 3)),
    "dirac_": lambda i, m: i.dirac_(m.empty(4, 2, 3, 3), groups=2),
    "constant_": lambda i, m: i.constant_(m.empty(2), 0.3),
    "ones_": lambda i, m: i.ones_(m.empty(2)),
    "zeros_": lambda i, m: i.zeros_(m.empty(2)),
    **{f"gain of {n}": lambda i, m, n=n: i.calculate_gain(n)
       for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")},
    "gain of a slope": lambda i, m: i.calculate_gain("leaky_relu", 0.2),
}  # fmt: skip
DRAWN: dict[str, Any] = {
    "uniform_": lambda i, t: i.uniform_(t, -1, 2),
    "normal_": lambda i, t: i.normal_(t, 1, 2),
    "trunc_normal_": lambda i, t: i.trunc_normal_(t, 0.5, 1.0, -0.5, 1.0),
    "xavier_uniform_": lambda i, t: i.xavier_uniform_(t, gain=2.0),
    "xavier_normal_": lambda i, t: i.xavier_normal_(t),
    "kaiming_uniform_": lambda i, t: i.kaiming_uniform_(t, mode="fan_out"),
    "kaiming_normal_": lambda i, t: i.kaiming_normal_(t, nonlinearity="relu"),
    "orthogonal_": lambda i, t: i.orthogonal_(t, gain=3.0),
}


@pytest.mark.parametrize("label", FIXED)
def test_fixed_values(label: str) -> None:
    both(lambda m: FIXED[label](m.nn.init, m))


@pytest.mark.parametrize("label", DRAWN)
def test_drawn_values(label: str) -> None:
    """The same distribution as PyTorch's: quantiles of 40,000 numbers."""
    quantiles = []
    for m in (torch, tt):
        m.manual_seed(1)
        t = m.empty(200, 200)
        assert DRAWN[label](m.nn.init, t) is t
        quantiles.append(np.quantile(t.numpy(), np.linspace(0.02, 0.98, 13)))
    spread = quantiles[0].max() - quantiles[0].min()
    assert np.allclose(*quantiles, atol=0.02 * spread)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    q = tt.nn.init.orthogonal_(tt.empty(shape, dtype=tt.float64)).flatten(1)
    gram = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    assert np.allclose(gram.numpy(), np.eye(len(gram)))


def test_sparse() -> None:
    t = tt.nn.init.sparse_(tt.empty(10, 6), 0.35, std=1.0)
    assert (t == 0).sum(0).tolist() == [4] * 6


def test_generator_decides() -> None:
    one, two = (
        tt.nn.init.normal_(tt.empty(3), generator=tt.Generator().manual_seed(5)) for _ in range(2)
    )
    assert one.tolist() == two.tolist()


MISUSE: dict[str, Any] = {
    "fans": lambda m: m.nn.init.xavier_uniform_(m.empty(3)),
    "mode": lambda m: m.nn.init.kaiming_normal_(m.empty(3, 3), mode="fan"),
    "nonlinearity": lambda m: m.nn.init.calculate_gain("cubic"),
    "eye": lambda m: m.nn.init.eye_(m.empty(3)),
    "dirac": lambda m: m.nn.init.dirac_(m.empty(3, 3)),
    "groups": lambda m: m.nn.init.dirac_(m.empty(3, 1, 1), groups=2),
    "orthogonal": lambda m: m.nn.init.orthogonal_(m.empty(3)),
    "infinite norm": lambda m: _infinite(m),
    "shape of a parametrization": lambda m: m.nn.utils.parametrize.register_parametrization(
        layer(m), "weight", m.nn.Flatten(0)),
    "nothing to parametrize": lambda m: m.nn.utils.parametrize.register_parametrization(
        layer(m), "other", m.nn.Identity()),
    "no parametrization": lambda m: m.nn.utils.parametrize.remove_parametrizations(
        layer(m), "weight"),
    "spectral dim": lambda m: m.nn.utils.parametrizations.spectral_norm(layer(m), dim=5),
    "amount": lambda m: m.nn.utils.prune.l1_unstructured(layer(m), "weight", 1.5),
    "too many": lambda m: m.nn.utils.prune.l1_unstructured(layer(m), "weight", 100),
    "not pruned": lambda m: m.nn.utils.prune.remove(layer(m), "weight"),
    "structured vector": lambda m: m.nn.utils.prune.ln_structured(layer(m), "bias", 1, 2, 0),
    "no weight norm": lambda m: m.nn.utils.remove_spectral_norm(layer(m)),
    "fusion in training": lambda m: m.nn.utils.fuse_conv_bn_eval(
        m.nn.Conv1d(1, 1, 1), m.nn.BatchNorm1d(1)),
}  # fmt: skip


def _infinite(m: Any) -> None:
    p = m.nn.Parameter(m.ones(1))
    p.grad = m.tensor([math.inf])
    m.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad
