"""Checkpoints that keep some results, beside PyTorch's."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.oracle import torch, tt


def program(T: Any, x: Any, w: Any, b: Any) -> Any:
    y = (x @ w).sin() * 2 + 1
    y = T.nn.functional.linear(y, w, b).relu()
    low, high = T.aminmax(y)
    y = (2 - y / 3) ** 2 + low - high
    y = T.bmm(y[None], x[None]).sum(0).view(-1)
    y = T.cat([y, y.exp()]).mean() + T.nn.functional.layer_norm(x, (3,)).sum()
    return y.mul_(3) + T.where(x > 0, x, w).sum()


def ran(T: Any, policy: Any, **options: Any) -> list[Any]:
    """The value, the gradients, and the ops that the policy was asked about."""
    C = T.utils.checkpoint
    x, w = (T.arange(9.0).reshape(3, 3).sub(k).div(7).requires_grad_() for k in (3, 5))
    b, asked = T.ones(3, requires_grad=True), list[str]()

    def decide(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        assert not context.is_recompute and context.op_output is not None
        asked.append(str(op))
        return policy(C, op.name().split("::")[1])

    contexts = functools.partial(C.create_selective_checkpoint_contexts, decide, **options)
    f = functools.partial(program, T)
    y = C.checkpoint(f, x, w, b, use_reentrant=False, context_fn=contexts)
    n = len(asked)
    y.backward()
    assert len(asked) == n  # the second run asks nothing
    return [y.item(), *(t.grad.tolist() for t in (x, w, b))]


@pytest.mark.parametrize(
    "policy",
    [
        lambda C, name: C.CheckpointPolicy.MUST_RECOMPUTE,
        lambda C, name: C.CheckpointPolicy.PREFER_RECOMPUTE,
        lambda C, name: name in ("mm", "addmm", "bmm"),
        lambda C, name: C.CheckpointPolicy.MUST_SAVE if "mm" in name else False,
        lambda C, name: name not in ("add.Tensor", "mul_.Tensor"),
        lambda C, name: C.CheckpointPolicy.PREFER_SAVE if name == "aminmax" else False,
    ],
)
def test_gradients_are_those_of_pytorch(policy: Any) -> None:
    theirs, ours = ran(torch, policy), ran(tt, policy)
    for a, b in zip(ours, theirs, strict=True):
        for u, v in zip(tt.tensor(a).flatten().tolist(), tt.tensor(b).flatten().tolist()):
            assert u == pytest.approx(v, rel=1e-4, abs=1e-5)


def test_what_is_saved_is_not_computed_again() -> None:
    """By a kernel that counts: three products, of which the list names one."""

    class Counting:
        count = 0

        def on_call(self, op: Any, args: Any, out: Any) -> Any:
            from toytorch.core import dispatch

            self.count += op.name == "mm"
            return dispatch.call(op, args, out)

    from toytorch.facts import state

    C = tt.utils.checkpoint
    for ops, expected in (([], 2), ([tt.ops.aten.mm.default], 0)):
        x, w = tt.ones(2, 2, requires_grad=True), tt.ones(2, 2, requires_grad=True)
        contexts = functools.partial(C.create_selective_checkpoint_contexts, ops)
        y = C.checkpoint(
            lambda x, w: ((x @ w).sin() @ w).exp(), x, w, use_reentrant=False, context_fn=contexts
        )
        counting = Counting()
        with state.watching(counting):
            tt.autograd.grad(y.sum(), (x, w))
        assert counting.count == expected + 4  # a product for each gradient


def test_errors() -> None:
    def failed(T: Any, given: Any) -> str:
        try:
            T.utils.checkpoint.create_selective_checkpoint_contexts(given(T))
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}".split(" of type ")[0]
        return ""

    for given in (lambda T: [2], lambda T: [T.ops.aten.sin], lambda T: 2, lambda T: (2,)):
        assert failed(tt, given) == failed(torch, given)


def test_saved_results_may_not_change_nor_be_used_twice() -> None:
    def said(T: Any, f: Any, times: int, **options: Any) -> str:
        C, x = T.utils.checkpoint, T.ones(3, requires_grad=True)
        contexts = functools.partial(
            C.create_selective_checkpoint_contexts, [T.ops.aten.sin.default], **options
        )
        y = C.checkpoint(f, x, use_reentrant=False, context_fn=contexts)
        try:
            for _ in range(times):
                y.sum().backward(retain_graph=True)
        except RuntimeError as error:
            return str(error)
        return "fine"

    def write(x: Any) -> Any:
        return x.sin().mul_(2).cos().exp()

    for arguments in ((write, 1), (lambda x: x.sin().cos().exp(), 2), (lambda x: x.sin().exp(), 1)):
        assert said(tt, *arguments) == said(torch, *arguments)
    assert said(tt, write, 1, allow_cache_entry_mutation=True) == "fine"


def test_names_of_ops() -> None:
    """What a policy sees is what PyTorch's dispatcher calls."""

    def asked(T: Any) -> list[str]:
        C, F, names = T.utils.checkpoint, T.nn.functional, list[str]()

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            names.append(str(op))
            return False

        def f(x: Any, w: Any, b: Any) -> Any:
            y = F.linear((x @ w).sin(), w, b).relu() * 2 + 1
            y = y + (y > 1) * y.sum(0) - y.sum()
            y = F.max_pool2d(y[None, None], 2).mean() / 3 + F.conv2d(x[None, None], w[None, None])
            return y.exp().mul_(2).view(-1)

        given = (T.ones(3, 3, requires_grad=True), T.ones(3, 3), T.ones(3))
        contexts = functools.partial(C.create_selective_checkpoint_contexts, policy)
        C.checkpoint(f, *given, use_reentrant=False, context_fn=contexts).backward()
        return [n for n in names if n != "aten.t.default"]  # `linear` is one record here

    assert asked(tt) == asked(torch)
