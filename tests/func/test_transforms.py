"""`func`: gradients, products, Jacobians, Hessians and vmap, nested in each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, differences, torch, tt

CASES: dict[str, Callable[[Any], Any]] = {}


def case(name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Registers a function of the package, whose results are compared."""

    def keep(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CASES[name] = f
        return f

    return keep


def data(m: Any, *shape: int) -> Any:
    """Fixed numbers of a shape."""
    rng = np.random.default_rng(sum(shape) + len(shape))
    return m.from_numpy(rng.standard_normal(shape))


def layer(m: Any) -> Any:
    w = data(m, 4, 3)
    return lambda x: (x @ w.t()).tanh().softmax(-1)


def network(m: Any) -> Any:
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 1)).double()
    return net, {k: data(m, *v.shape) for k, v in net.named_parameters()}


def writing(m: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.clone()
        y[0] = 1.0
        y.mul_(2)
        y[1:] += x[0]
        return y

    return f


def many_ops(m: Any) -> Any:
    def f(x: Any) -> Any:
        return m.cat(
            [
                x.reshape(-1),
                x.t().flip(0).sum(1),
                x.sort(-1)[0][0],
                x.cumsum(1)[-1],
                m.where(x > 0, x, 0.0).amax((0, 1)).unsqueeze(0),
                x.unfold(0, 2, 1).mean((0, 1)),
                x.expand(2, 3, 4).permute(2, 0, 1).std(0)[0],
                x[1:, ::2].reshape(-1),
                x.norm().view(1),
                m.einsum("ij,kj->ik", x, x).diagonal(),
                x.var()[None],
                x.prod().view(1),
                x.squeeze().unbind(0)[0],
                m.stack([x[0], x[1]]).view(-1),
                x.narrow(1, 1, 2).flatten(),
                x.tril().trace().view(1),
                x.log_softmax(0)[0],
                x.masked_fill(x < 0, 3.0)[1],
                x.clamp(-0.5, 0.5)[2],
                x.max(1)[0],
                x.argmax().view(1),
                x.roll(1, 0)[0],
                x.topk(2)[0].view(-1),
                (x / x.abs().sum(0, keepdim=True))[0],
            ]
        )

    return f


for name, f in {
    "grad": lambda m: m.func.grad(lambda x: (x.sin() * x).sum())(data(m, 3)),
    "grad of grad": lambda m: m.func.grad(m.func.grad(lambda x: x.sin()))(m.tensor(0.3)),
    "grad by two": lambda m: m.func.grad(lambda x, y: (x * y**2).sum(), argnums=(0, 1))(
        data(m, 3), data(m, 3)),
    "grad with aux": lambda m: m.func.grad(lambda x: ((x**2).sum(), x * 2), has_aux=True)(
        data(m, 3)),
    "grad and value": lambda m: m.func.grad_and_value(lambda x: (x**2).sum())(data(m, 3)),
    "grad of a dict": lambda m: m.func.grad(lambda d: (d["a"] * d["b"]).sum())(
        {"a": data(m, 3), "b": data(m, 3)}),
    "grad stays connected": lambda m: m.func.grad(lambda x: (x**3).sum())(
        data(m, 3).requires_grad_()),
    "grad of a constant": lambda m: m.func.grad(lambda x: m.tensor(1.0))(data(m, 3)),
    "grad of a vector": lambda m: m.func.grad(lambda x: x)(data(m, 3)),
    "perturbations keep apart": lambda m: m.func.grad(
        lambda x: x * m.func.grad(lambda y: x * y)(m.tensor(2.0)))(m.tensor(3.0)),
    "vjp": lambda m: (lambda v: (v[0], v[1](data(m, 3))))(
        m.func.vjp(lambda x: x.exp(), data(m, 3))),
    "jvp": lambda m: m.func.jvp(lambda x, y: (x * y).cumsum(0), (data(m, 3), data(m, 3)),
                                (data(m, 3), data(m, 3))),
    "jvp with aux": lambda m: m.func.jvp(lambda x: (x.sin(), x * 2), (data(m, 3),),
                                         (data(m, 3),), has_aux=True),
    "jvp through a write": lambda m: m.func.jvp(writing(m), (data(m, 3, 2),), (data(m, 3, 2),)),
    "jacrev": lambda m: m.func.jacrev(layer(m))(data(m, 2, 3)),
    "jacfwd": lambda m: m.func.jacfwd(layer(m))(data(m, 2, 3)),
    "jacrev by two": lambda m: m.func.jacrev(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(
        data(m, 3), data(m, 3)),
    "jacfwd by two": lambda m: m.func.jacfwd(lambda x, y: (x * y, x.sum()), argnums=(0, 1))(
        data(m, 3), data(m, 3)),
    "jacrev with aux": lambda m: m.func.jacrev(lambda x: (x.sin(), x * 2), has_aux=True)(
        data(m, 3)),
    "hessian": lambda m: m.func.hessian(lambda x: layer(m)(x).square().sum())(data(m, 3)),
    "hessian rev rev": lambda m: m.func.jacrev(m.func.jacrev(
        lambda x: layer(m)(x).square().sum()))(data(m, 3)),
    "hessian fwd fwd": lambda m: m.func.jacfwd(m.func.jacfwd(
        lambda x: layer(m)(x).square().sum()))(data(m, 3)),
    "hvp of x^4": lambda m: m.func.jvp(m.func.grad(lambda x: (x**4).sum()), (data(m, 3),),
                                       (data(m, 3),)),
    "linearize": lambda m: (lambda v: (v[0], v[1](data(m, 3))))(
        m.func.linearize(lambda x: x.sin(), data(m, 3))),
    "vmap": lambda m: m.func.vmap(lambda x, y: (x * y).sum() + y[0])(data(m, 5, 3), data(m, 5, 3)),
    "vmap dims": lambda m: m.func.vmap(lambda x, y: (x @ y, x.max(0)[0]), in_dims=(1, None),
                                       out_dims=(1, 0))(data(m, 3, 5), data(m, 3, 2)),
    "vmap of grad": lambda m: m.func.vmap(m.func.grad(lambda w, x: (x @ w).sin().sum()),
                                          in_dims=(None, 0))(data(m, 3, 2), data(m, 5, 4, 3)),
    "vmap of group norm": lambda m: m.func.vmap(m.func.grad(
        lambda x: m.nn.functional.group_norm(x, 2, x[0], x[0]).square().sum()))(data(m, 3, 2, 4)),
    "vmap of logcumsumexp": lambda m: m.func.vmap(m.func.grad(
        lambda x: x.logcumsumexp(0).square().sum()))(data(m, 3, 4)),
    "vmap of vmap": lambda m: m.func.vmap(m.func.vmap(
        lambda x, y: x.dot(y), in_dims=(None, 0)), in_dims=(0, None))(data(m, 5, 3), data(m, 4, 3)),
    "grad of vmap": lambda m: m.func.grad(lambda x: m.func.vmap(
        lambda r: (r**2).sum().sqrt())(x).sum())(data(m, 4, 3)),
    "autograd through vmap": lambda m: (lambda x: m.autograd.grad(m.func.vmap(
        lambda r: (r**2).sum())(x).sum(), x))(data(m, 4, 3).requires_grad_()),
    "vmap of jvp": lambda m: m.func.vmap(lambda x: m.func.jvp(
        lambda y: y.prod(), (x,), (m.ones(3, dtype=m.float64),)))(data(m, 4, 3)),
    "vmap of hessian": lambda m: m.func.vmap(m.func.hessian(
        lambda x: (x**3).sum() + x.prod()))(data(m, 4, 3)),
    "vmap index": lambda m: m.func.vmap(lambda x, i: x[i], in_dims=(None, 0))(
        data(m, 4, 3), m.tensor([[0, 1], [2, 3]])),
    "vmap index by a number": lambda m: m.func.vmap(lambda x, i: x[i])(
        data(m, 4, 3), m.tensor([0, 2, 1, 0])),
    "vmap gather": lambda m: m.func.vmap(lambda x, i: x.gather(0, i))(
        data(m, 4, 3), m.tensor([[0, 1], [2, 2], [1, 1], [0, 0]])),
    "vmap many ops": lambda m: m.func.vmap(many_ops(m))(data(m, 5, 3, 4)),
    "vmap many ops, gradients": lambda m: m.func.vmap(m.func.grad(
        lambda x: (many_ops(m)(x) ** 2).sum()))(data(m, 5, 3, 4)),
    "vmap in chunks": lambda m: m.func.vmap(lambda x: x * 2, chunk_size=2)(data(m, 5, 3)),
    "vmap item": lambda m: m.func.vmap(lambda x: x * x.sum().item())(data(m, 5, 3)),
    "vmap if": lambda m: m.func.vmap(lambda x: x if x.sum() > 0 else -x)(data(m, 5, 3)),
    "vmap write": lambda m: m.func.vmap(writing(m))(data(m, 5, 3)),
    "vmap write, gradients": lambda m: m.func.vmap(m.func.grad(
        lambda x: (writing(m)(x) ** 2).sum()))(data(m, 5, 3)),
    "vmap write of more": lambda m: m.func.vmap(
        lambda x: m.zeros(3, dtype=m.float64).add_(x))(data(m, 5, 3)),
    "vmap sizes differ": lambda m: m.func.vmap(lambda x, y: x)(data(m, 5, 3), data(m, 4, 3)),
    "vmap of no tensor": lambda m: m.func.vmap(lambda x: 3)(data(m, 5, 3)),
    "vmap dim out of range": lambda m: m.func.vmap(lambda x: x, in_dims=3)(data(m, 5, 3)),
    "vmap dims do not match": lambda m: m.func.vmap(lambda x: x, in_dims=(0, 0))(data(m, 5, 3)),
    "vmap over a number": lambda m: m.func.vmap(lambda x, y: x, in_dims=(0, 0))(data(m, 5), 2),
    "vmap over nothing": lambda m: m.func.vmap(lambda x: x, in_dims=None)(data(m, 5)),
    "vmap argnum": lambda m: m.func.grad(lambda x: x, argnums=2)(data(m, 5)),
    "functional_call": lambda m: (lambda n, p: m.func.functional_call(n, p, (data(m, 5, 3),)))(
        *network(m)),
    "functional_call of a wrong name": lambda m: m.func.functional_call(
        network(m)[0], {"no": data(m, 1)}, (data(m, 5, 3),), strict=True),
    "gradients per example": lambda m: (lambda n, p: m.func.vmap(m.func.grad(
        lambda q, x: m.func.functional_call(n, q, (x,)).sum()), in_dims=(None, 0))(
            p, data(m, 5, 3)))(*network(m)),
    "jacobian": lambda m: m.autograd.functional.jacobian(
        lambda x, y: (x * y.sum(), y.exp()), (data(m, 2), data(m, 3))),
    "jacobian at once": lambda m: m.autograd.functional.jacobian(
        lambda x: x.sin() * x.sum(), data(m, 3), vectorize=True),
    "jacobian forward": lambda m: m.autograd.functional.jacobian(
        lambda x: x.sin() * x.sum(), data(m, 3), vectorize=True, strategy="forward-mode"),
    "jacobian connected": lambda m: m.autograd.functional.jacobian(
        lambda x: x.sin(), data(m, 3).requires_grad_(), create_graph=True),
    "jacobian strict": lambda m: m.autograd.functional.jacobian(
        lambda x: m.ones(2), data(m, 3), strict=True),
    "functional.hessian": lambda m: m.autograd.functional.hessian(
        lambda x, y: (x**2 * y).sum(), (data(m, 2), data(m, 2))),
    "functional.vjp": lambda m: m.autograd.functional.vjp(
        lambda x: x.sin() * x.sum(), data(m, 3), data(m, 3)),
    "functional.jvp": lambda m: m.autograd.functional.jvp(
        lambda x: x.sin() * x.sum(), data(m, 3), data(m, 3)),
    "functional.hvp": lambda m: m.autograd.functional.hvp(
        lambda x: (x**4).sum(), data(m, 3), data(m, 3)),
    "functional.vhp": lambda m: m.autograd.functional.vhp(
        lambda x: (x**4).sum(), data(m, 3), data(m, 3)),
    "functional.vjp of a wrong size": lambda m: m.autograd.functional.vjp(
        lambda x: x.sin(), data(m, 3), data(m, 2)),
    "functional.hvp of a vector": lambda m: m.autograd.functional.hvp(
        lambda x: x.sin(), data(m, 3), data(m, 3)),
    "jacobian of a number": lambda m: m.autograd.functional.jacobian(lambda x: x, 3.0),
}.items():  # fmt: skip
    case(name)(f)


@pytest.mark.parametrize("name", CASES)
def test_agrees(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, refused = attempt(CASES[name], torch)
        got, failure = attempt(CASES[name], tt)
    if refused is not None:
        assert failure is not None, f"PyTorch refuses: {refused!r}"
        same = type(failure).__name__ == type(refused).__name__
        assert same, f"{failure!r}, in PyTorch {refused!r}"
        return
    if failure is not None:
        raise failure
    assert not differences(want, got)
    wants = [t.requires_grad for t in ORACLE.tensors(want)]
    assert wants == [t.requires_grad for t in SUBJECT.tensors(got)]


@pytest.mark.parametrize("randomness", ["error", "different", "same"])
def test_random_numbers(randomness: str) -> None:
    """What vmap does with random numbers is what the caller says."""

    def f(x: Any) -> Any:
        return x * 0 + tt.rand(3, dtype=tt.float64) + tt.zeros_like(x).uniform_() * x * 0

    run = tt.func.vmap(f, randomness=randomness)
    if randomness == "error":
        with pytest.raises(RuntimeError, match="randomness"):
            run(data(tt, 5, 3))
        return
    made = run(data(tt, 5, 3)).numpy()
    assert (made[0] == made[1]).all() == (randomness == "same")


@pytest.mark.parametrize("randomness", ["error", "different", "same"])
@pytest.mark.parametrize("batched", [True, False])
def test_draws_of_distributions_that_tensors_give(randomness: str, batched: bool) -> None:
    """One for all, of each example's own, or refused: of the same seed, what PyTorch draws."""
    draws = (
        lambda m, v: m.bernoulli(v.sigmoid()),
        lambda m, v: m.bernoulli(v, 0.5),
        lambda m, v: m.zeros(3).uniform_() + v,
        lambda m, v: m.zeros_like(v).bernoulli_(v.sigmoid()),
        lambda m, v: m.normal(v, 2.0),
        lambda m, v: m.normal(v, v.exp()),
        lambda m, v: m.poisson(v.exp()),
        lambda m, v: m.binomial(v.exp().ceil(), v.sigmoid()),
        lambda m, v: m.multinomial(v.sigmoid(), 2),
        lambda m, v: m.multinomial(v.sigmoid().expand(2, 3), 2, replacement=True),
        lambda m, v: m._standard_gamma(v.exp()),
        lambda m, v: m._sample_dirichlet(v.exp()),
        lambda m, v: v + m.randperm(3),
    )

    def run(m: Any, draw: Any) -> Any:
        m.manual_seed(0)
        one = data(m, 3)

        def example(v: Any) -> Any:
            return draw(m, v if batched else one) + v * 0

        return attempt(m.func.vmap(example, randomness=randomness), data(m, 5, 3))

    for draw in draws:
        (want, expected), (got, raised) = run(torch, draw), run(tt, draw)
        assert str(expected) == str(raised)
        assert expected is not None or not differences(want, got)


def test_ensemble() -> None:
    """Stacked parameters of several modules, all run at once."""
    nets = [tt.nn.Linear(3, 2).double() for _ in range(4)]
    params, buffers = tt.func.stack_module_state(nets)
    x = data(tt, 5, 3)
    made = (
        tt.func.vmap(lambda p, b: tt.func.functional_call(nets[0], (p, b), (x,)))(params, buffers)
        if buffers
        else tt.func.vmap(lambda p: tt.func.functional_call(nets[0], p, (x,)))(params)
    )
    want = tt.stack([n(x) for n in nets])
    assert params["weight"].shape == (4, 2, 3)
    assert params["weight"].requires_grad
    assert tt.allclose(made, want)


def test_module_is_put_back() -> None:
    """functional_call leaves the module as it was, also after an error."""
    net, params = network(tt)
    before = {k: id(v) for k, v in net.named_parameters()}
    tt.func.functional_call(net, params, (data(tt, 5, 3),))
    with pytest.raises(RuntimeError):
        tt.func.functional_call(net, params, (data(tt, 5, 4),))
    assert before == {k: id(v) for k, v in net.named_parameters()}
