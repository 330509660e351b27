"""What a node saves, seen and packed one by one; gradients that do not arrive."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

SAVED = [
    "saved.register_hooks(lambda t: t)",
    "saved.register_hooks(1, 1)",
    "[saved.register_hooks(lambda t: t, lambda t: t) for _ in range(2)]",
    "torch.autograd.SavedTensor()",
    "isinstance(saved, torch._C._autograd.SavedTensor)",
    "saved.register_hooks(lambda t: t * 2, lambda t: t) or y.grad_fn._saved_self.tolist()",
    "saved.register_hooks(lambda t: t, lambda t: t) or y.grad_fn._saved_self.grad_fn is z.grad_fn",
    "saved.register_hooks(lambda t: t * 2, lambda t: t / 2) or y.sum().backward() or x.grad.tolist()",
    "saved.register_hooks(lambda t: t, lambda t: 1) or y.grad_fn._saved_self",
    "saved.register_hooks(lambda t: t.mul_(2), lambda t: t)",
    "y.sum().backward() or saved.register_hooks(lambda t: t, lambda t: t)",
    "(e := x.exp()).grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)",
    "(e := x.exp()).grad_fn._saved_result.grad_fn is e.grad_fn",
    "z.add_(1) and y.grad_fn._saved_self",
    "saved.data.tolist()",
    "y.grad_fn()",
    "y.grad_fn(x, x)",
    "torch._C._functions.DelayedError('no', 1)(x).tolist()",
    "torch._C._functions.DelayedError('no', 1)(x, y)",
    "torch._C._functions.DelayedError('no', 2)(x, y)[1].grad_fn.name()",
    "torch._C._functions.DelayedError('no', 2)(x, y)[0].sum().backward()",
    "len(torch._C._functions.DelayedError('no', 3)(x, None, y)[0].grad_fn.next_functions)",
    "torch._C._functions.UndefinedGrad()(y).sum().backward() or x.grad",
]


@pytest.mark.parametrize("text", SAVED)
def test_saved_tensors(text: str) -> None:
    def ask(T: Any) -> Any:
        x = T.tensor([1.0, 3.0], requires_grad=True)
        z = x * 2
        y = z * x
        saved = y.grad_fn._raw_saved_self
        return eval(text, {"torch": T, "x": x, "y": y, "z": z, "saved": saved})

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    if failed is not None:
        assert str(failed)[:60] == str(refused)[:60]
    assert got == want


def functions(T: Any, seen: list[Any]) -> tuple[Any, Any]:
    """A step whose gradient is None, and one that notes what arrives."""

    class Stop(T.autograd.Function):  # type: ignore[misc]  # the class of either package
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    class Note(T.autograd.Function):  # type: ignore[misc]  # the class of either package
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(x.numel() != 3)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(g if g is None else g.tolist())
            return None if g is None else g * 2

    return Stop, Note


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("way", ["plain", "inputs", "grad", "hooks", "sum", "split"])
def test_gradients_that_do_not_arrive(way: str, size: int) -> None:
    """Steps below a None are reached: Functions get zeros, or None where they want no zeros."""

    def run(T: Any) -> Any:
        seen: list[Any] = []
        Stop, Note = functions(T, seen)
        x = T.ones(size, requires_grad=True)
        if way == "hooks":
            x.register_hook(lambda g: seen.append(None if g is None else g.tolist()))
        y = Note.apply(x)
        z = y.exp()
        if way == "hooks":
            z.register_hook(lambda g: seen.append(None if g is None else g.tolist()))
            z.grad_fn.register_hook(lambda *g: seen.append(str(g)))
            z.retain_grad()
        out = Stop.apply(z).sum()
        if way == "sum":
            out = out + y.sum()
        if way == "split":
            out = Stop.apply(T.cat(z.split(1)[::-1])).sum()
        if way == "grad":
            seen += T.autograd.grad(out, x, allow_unused=True)
            seen[-1] = None if seen[-1] is None else seen[-1].tolist()
        else:
            out.backward(inputs=[x] if way == "inputs" else None)
        return None if x.grad is None else x.grad.tolist(), seen

    assert run(tt) == run(torch)


def test_forward_with_defaults() -> None:
    """`setup_context` gets the defaults of forward's arguments."""

    def run(T: Any) -> Any:
        class Power(T.autograd.Function):  # type: ignore[misc]  # the class of either package
            @staticmethod
            def forward(x: Any, n: int = 3) -> Any:
                return x**n

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                x, ctx.n = inputs
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return g * ctx.n * x ** (ctx.n - 1), None

        x = T.tensor(2.0, requires_grad=True)
        Power.apply(x).backward()
        Power.apply(x, 2).backward()
        return x.grad.item()

    assert run(tt) == run(torch)


def test_hooks_end_with_their_context() -> None:
    """Also where one object is entered twice, or by the hook itself during a backward pass."""

    def packed(T: Any) -> list[int]:
        counts, seen = [], 0

        def pack(tensor: Any) -> Any:
            nonlocal seen
            seen += 1
            return tensor

        def unpack(tensor: Any) -> Any:
            own.__enter__()
            return tensor

        x = T.ones(2, requires_grad=True)
        hooks = T.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
        with hooks:
            with hooks:
                x.exp()
            x.exp()
        own = T.autograd.graph.saved_tensors_hooks(pack, unpack)
        with own:
            x.exp().sum().backward()
        counts.append(seen)
        with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass  # calls take the general path, which packs
        watching = T.autograd.detect_anomaly()
        with watching:
            x.exp()
        counts.append(seen)
        return counts

    (theirs, _), (ours, error) = attempt(packed, torch), attempt(packed, tt)
    assert error is None
    assert ours == theirs
