"""`autocast` as a context and a decorator, and what it leaves behind; PyTorch's answers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, Side, dtype_name

SIDES = [pytest.param(ORACLE, id="PyTorch"), pytest.param(SUBJECT, id="toytorch")]


def kind(t: Any) -> str:
    return dtype_name(t.dtype)


@pytest.mark.parametrize("side", SIDES)
def test_contexts_nest(side: Side) -> None:
    torch = side.root
    x = torch.ones(2, 2)
    assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and kind(x @ x) == "bfloat16"
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu") and kind(x @ x) == "float32"
            with torch.autocast("cpu", dtype=torch.float16):
                assert kind(x @ x) == "float16"
                assert torch.get_autocast_dtype("cpu") is torch.float16
        assert kind(x @ x) == "bfloat16"
        assert kind(x.double() @ x.double()) == "float64"
        assert kind((x.int() + 1) @ x.int()) == "int32"
    assert kind(x @ x) == "float32" and torch.get_autocast_dtype("cpu") is torch.bfloat16


@pytest.mark.parametrize("side", SIDES)
def test_a_context_left_by_an_error(side: Side) -> None:
    torch = side.root
    context, x = torch.autocast("cpu"), torch.ones(2, 2)
    with pytest.raises(KeyError), context:
        raise KeyError("inside")
    assert kind(x @ x) == "float32" and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("side", SIDES)
def test_a_decorator_and_another_thread(side: Side) -> None:
    torch, found = side.root, []
    x = torch.ones(2, 2)

    @torch.autocast("cpu")
    def product(a: Any) -> Any:
        """The product."""
        return a @ a

    assert kind(product(x)) == "bfloat16" and product.__doc__ == "The product."
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(kind(x @ x)))
        thread.start()
        thread.join()
    assert found == ["float32"]


@pytest.mark.parametrize("side", SIDES)
def test_a_parameter_is_cast_once(side: Side) -> None:
    """The cast is kept until the outermost context ends; so both uses are one path of the graph."""
    torch = side.root
    w = torch.nn.Parameter(torch.ones(2, 2))
    x = torch.ones(2, 2)

    def source(y: Any) -> Any:
        return next(f for f, _ in y.grad_fn.next_functions if f is not None)

    with torch.autocast("cpu"):
        a, b = w.mm(x), w.mm(x)
        assert source(a) is source(b)
        torch.clear_autocast_cache()
        assert source(w.mm(x)) is not source(a)
    with torch.autocast("cpu", cache_enabled=False):
        assert not torch.is_autocast_cache_enabled()
        assert source(w.mm(x)) is not source(w.mm(x))
    with torch.autocast("cpu"), torch.no_grad():
        w.mm(x)
        w.add_(1)
    with torch.autocast("cpu"):
        assert w.mm(x)[0, 0].item() == 4


def test_gradients_come_in_the_parameters_types() -> None:
    found = []
    for side in (ORACLE, SUBJECT):
        torch = side.root
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(64, 3),
        )
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape))
        x = torch.linspace(-2, 2, 72).reshape(2, 1, 6, 6)
        with torch.autocast("cpu"):
            out = net(x)
            loss = torch.nn.functional.cross_entropy(out, torch.tensor([0, 2]))
        loss.backward()
        found.append(
            [
                kind(out),
                kind(loss),
                [kind(p.grad) for p in net.parameters()],
                *(side.numpy(p.grad) for p in net.parameters()),
                side.numpy(net[1].running_var),
            ]
        )
    theirs, ours = found
    assert ours[:3] == theirs[:3]
    for a, b in zip(ours[3:], theirs[3:]):
        np.testing.assert_allclose(a, b, rtol=0.1, atol=0.05 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("cast", [None, "float32"])
def test_functions_of_ones_own(cast: str | None) -> None:
    found = []
    for side in (ORACLE, SUBJECT):
        torch, seen = side.root, []

        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast and getattr(torch, cast))
            def forward(ctx, a, b, seen=seen, torch=torch):
                seen += [kind(a), torch.is_autocast_enabled("cpu"), kind(a @ b)]
                ctx.save_for_backward(a, b)
                return a @ b

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g, seen=seen, torch=torch):
                a, b = ctx.saved_tensors
                seen += [kind(g), torch.is_autocast_enabled("cpu")]
                return g @ b.t(), a.t() @ g

        a = torch.ones(2, 2, requires_grad=True)
        with torch.autocast("cpu"):
            Product.apply(a, a.bfloat16()).sum().backward()
        found.append([*seen, kind(a.grad), a.grad.tolist()])
    assert found[1] == found[0]


def test_half_precision_batches_are_normalized_like_float32_ones() -> None:
    """Running means are written in their own type; mixed types as PyTorch allows them."""
    for stats in ("float32", "bfloat16"):
        found = []
        for side in (ORACLE, SUBJECT):
            torch = side.root
            x = torch.linspace(-1, 3, 12).reshape(4, 3).bfloat16().requires_grad_()
            mean, var = (torch.full((3,), v, dtype=getattr(torch, stats)) for v in (0.0, 1.0))
            y = torch.nn.functional.batch_norm(x, mean, var, training=True)
            (y**3 * torch.arange(12).reshape(4, 3)).sum().backward()
            found.append([kind(y), kind(x.grad), *map(side.numpy, (y, x.grad, mean, var))])
        assert found[1][:2] == found[0][:2]
        for a, b in zip(found[1][2:], found[0][2:]):
            np.testing.assert_allclose(a, b, rtol=0.02, atol=0.01 * np.abs(b).max())


def words(torch: Any, call: Any) -> str:
    with pytest.raises(Exception) as caught:
        call(torch)
    return f"{caught.type.__name__}: {caught.value}"


@pytest.mark.parametrize(
    "call",
    [
        lambda torch: torch.autocast(3),
        lambda torch: torch.autocast("cpu")(3),
        lambda torch: torch.amp.custom_fwd(lambda ctx: None, device_type=1),
        lambda torch: torch.amp.custom_bwd(lambda ctx: None, device_type=1),
        lambda torch: torch.autocast(),
    ],
)
def test_refusals_in_the_same_words(call: Any) -> None:
    ours, theirs = (words(s.root, call) for s in (SUBJECT, ORACLE))
    assert ours.replace("toytorch", "torch") == theirs


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "call",
    [
        lambda torch: torch.autocast("cpu", dtype=torch.float64),
        lambda torch: torch.autocast("cuda"),
        lambda torch: torch.cuda.amp.autocast(),
        lambda torch: torch.cuda.amp.GradScaler(),
        lambda torch: torch.amp.GradScaler(),
        lambda torch: torch.cpu.amp.autocast(),
    ],
)
def test_warnings_in_the_same_words(call: Any) -> None:
    if ORACLE.root.cuda.is_available() or SUBJECT.root.cuda.is_available():
        pytest.skip("these warnings are about a GPU that is not there")
    found = []
    for side in (ORACLE, SUBJECT):
        with pytest.warns() as caught:
            context = call(side.root)
        found.append(context._enabled)
        found.append(sorted((w.category.__name__, str(w.message)) for w in caught))
    assert found[2:] == found[:2]
