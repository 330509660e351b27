"""`__torch_dispatch__` of modes and of subclasses: what is asked, and that asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ops.records import TESTED
from tests.ops.samples.base import Sample, supported
from tests.oracle import ORACLE, SUBJECT, Side, attempt, differences, told

SIDES = [ORACLE, SUBJECT]
# What is sparse has its own way through some of these records, which their names do not tell.
SPARSE = {"coalesce", "sparse_coo_tensor", "to_sparse compressed"}


def kit(side: Side) -> SimpleNamespace:
    """The module of a side, and classes over it."""
    root = side.root
    dispatch = import_module(f"{root.__name__}.utils._python_dispatch")
    pytree = import_module(f"{root.__name__}.utils._pytree")

    class Log(dispatch.TorchDispatchMode):
        """Notes every op, and runs it."""

        def __init__(self, notes: list[str]) -> None:
            super().__init__()
            self.notes = notes

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.notes.append(str(func))
            return func(*args, **(kwargs or {}))

    class Held(root.Tensor):
        """A tensor that holds another."""

        @staticmethod
        def __new__(cls: Any, held: Any, requires_grad: bool = False) -> Any:
            made = root.Tensor._make_wrapper_subclass(
                cls, held.size(), strides=held.stride(), dtype=held.dtype, device=held.device,
                storage_offset=held.storage_offset(), requires_grad=requires_grad,
            )  # fmt: skip
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*unwrapped(args), **unwrapped(kwargs or {}))
            return pytree.tree_map(
                lambda e: cls(e) if isinstance(e, root.Tensor) and not isinstance(e, cls) else e,
                out,
            )

    def unwrapped(tree: Any) -> Any:
        return pytree.tree_map(lambda e: e.held if isinstance(e, Held) else e, tree)

    return SimpleNamespace(torch=root, dispatch=dispatch, Log=Log, Held=Held, unwrapped=unwrapped)


# -- every op: asking changes nothing ----------------------------------------------------------------


def leaves(tree: Any, kind: type) -> Iterator[Any]:
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for part in tree:
            yield from leaves(part, kind)
    elif isinstance(tree, dict):
        yield from leaves(list(tree.values()), kind)


def with_gradients(name: str, sample: Sample, asked: Callable[[], Any]) -> tuple[Any, Any]:
    """The results of a sample, and the gradients of its operands, inside a mode or none."""
    root = SUBJECT.root
    args, kwargs = SUBJECT.carry((sample.args, sample.kwargs))
    inputs = [t for t in leaves((args, kwargs), root.Tensor) if t.is_leaf]
    inputs = [t.requires_grad_() for t in inputs if t.is_floating_point() and sample.grad]
    function = TESTED[name].function(SUBJECT)
    root.manual_seed(1)
    with asked():
        made = function(*args, **kwargs)
        ends = [t for t in leaves(made, root.Tensor) if t.requires_grad]
        if ends:
            root.autograd.backward(ends, [root.ones_like(t) for t in ends])
    return made, [t.grad for t in inputs]


# Their gradients are made at once by a kernel, where no mode has to see how: in the last bits they differ.
AT_ONCE = {"batch_norm", "instance_norm", "layer_norm", "group_norm", "nn.functional.layer_norm"}


def near(ours: Any, theirs: Any) -> bool:
    """Whether lists of tensors are equal but for rounding."""
    given = ([ours], [theirs]) if hasattr(ours, "shape") else (ours, theirs)
    return len(given[0]) == len(given[1]) and all(
        a is b or (a.dtype is b.dtype and SUBJECT.root.allclose(a, b, 1e-6, 1e-6))
        for a, b in zip(*given)
    )


@pytest.mark.parametrize("name", sorted(TESTED.keys() - SPARSE))
def test_a_mode_that_lets_calls_through_changes_nothing(name: str) -> None:
    mode = kit(SUBJECT).dispatch.BaseTorchDispatchMode
    for sample in supported(TESTED[name])[:6]:
        want, refused = attempt(with_gradients, name, sample, nullcontext)
        got, failure = attempt(with_gradients, name, sample, mode)
        assert bool(refused) == bool(failure), f"{sample}: {told(failure or refused)}"
        if refused or not TESTED[name].values:
            continue
        for ours, theirs in zip(want, got, strict=True):
            assert repr(ours) == repr(theirs) or (name in AT_ONCE and near(ours, theirs)), str(
                sample
            )


def wrapped(name: str, sample: Sample) -> Any:
    """The results of a sample whose operands are wrappers."""
    root, mine = SUBJECT.root, kit(SUBJECT)
    args, kwargs = SUBJECT.carry((sample.args, sample.kwargs))
    tree_map = import_module(f"{root.__name__}.utils._pytree").tree_map
    args, kwargs = tree_map(
        lambda e: mine.Held(e) if isinstance(e, root.Tensor) else e, (args, kwargs)
    )
    root.manual_seed(1)
    made = TESTED[name].function(SUBJECT)(*args, **kwargs)
    return mine.unwrapped(made)


POINTWISE = ["add", "mul", "exp", "lerp", "where", "clamp", "sum", "mean", "var", "amax", "softmax",
             "log_softmax", "cumsum", "mm", "bmm", "addmm", "cat", "stack", "index_select", "gather",
             "transpose", "permute", "view", "select", "unsqueeze", "expand", "sort", "topk", "flip",
             "tril", "gelu", "relu", "native_layer_norm", "maximum", "atan2", "masked_fill", "roll",
             "max_pool2d", "conv2d", "embedding", "logsumexp", "eq", "isnan", "std", "prod"]  # fmt: skip


@pytest.mark.parametrize("name", [n for n in POINTWISE if n in TESTED])
def test_wrappers_come_to_what_they_hold(name: str) -> None:
    for sample in supported(TESTED[name])[:6]:
        want, refused = attempt(
            TESTED[name].function(SUBJECT),
            *SUBJECT.carry(sample.args),
            **SUBJECT.carry(sample.kwargs),
        )
        got, failure = attempt(wrapped, name, sample)
        assert not (refused or failure), f"{sample}: {told(failure or refused)}"
        assert repr(list(leaves(want, SUBJECT.root.Tensor))) == repr(
            list(leaves(got, SUBJECT.root.Tensor))
        ), str(sample)


# -- beside PyTorch --------------------------------------------------------------------------------

# Ops that PyTorch runs for its own sake, or where our records save arrays without one.
UNSEEN = {"aten.detach.default", "aten.lift_fresh.default", "aten.alias.default",
          "aten.ones_like.default"}  # fmt: skip


def layers(kit: Any, x: Any, w: Any, b: Any) -> Any:
    F = kit.torch.nn.functional
    return (F.gelu(F.linear(x, w, b)) * 2 + 1).sum()


def shapes(kit: Any, x: Any, w: Any, b: Any) -> Any:
    y = x.t().reshape(12).view(3, 4)[1:, :2].transpose(0, 1).contiguous()
    return (
        (y.unsqueeze(0).permute(2, 0, 1) / 3).mean() + x[0].max() + kit.torch.cat([x, x]).sum(0)[1]
    )


def losses(kit: Any, x: Any, w: Any, b: Any) -> Any:
    F = kit.torch.nn.functional
    return (F.log_softmax(x @ w.t(), 1).exp() - F.softmax(x, 0)[:, :1]).relu().sum()


def writes(kit: Any, x: Any, w: Any, b: Any) -> Any:
    z = x.detach().clone()
    z.add_(1).mul_(kit.torch.ones(4))
    z.view(-1)[2:4].fill_(3.0)
    kit.torch.zeros(2, 3), kit.torch.arange(5), kit.torch.full((2,), 1.5), kit.torch.eye(2)
    return z.sum()


@pytest.mark.parametrize("program", [layers, shapes, losses, writes])
def test_the_same_ops_are_asked_about(program: Callable[..., Any]) -> None:
    heard = []
    for side in SIDES:
        mine, notes = kit(side), list[str]()
        side.root.manual_seed(0)
        x, w, b = (side.root.randn(s, requires_grad=True) for s in ((3, 4), (5, 4), (5,)))
        with mine.Log(notes):
            program(mine, x, w, b)
        heard.append([note for note in notes if note not in UNSEEN])
    assert heard[0] == heard[1]


def backward_ops(side: Side) -> tuple[list[str], list[Any]]:
    mine, notes = kit(side), list[str]()
    side.root.manual_seed(0)
    x, w, b = (side.root.randn(s, requires_grad=True) for s in ((3, 4), (5, 4), (5,)))
    loss = (side.root.nn.functional.linear(x, w, b).relu() * 2).sum()
    with mine.Log(notes):
        loss.backward()
    notes = [n.replace("permute", "t") for n in notes]  # of a matrix, they are the same
    return sorted(n for n in notes if n not in UNSEEN), [x.grad, w.grad, b.grad]


def test_the_backward_pass_is_asked_about() -> None:
    (want, grads), (got, ours) = backward_ops(ORACLE), backward_ops(SUBJECT)
    assert {"aten.mm.default", "aten.threshold_backward.default"} <= set(got) <= set(want)
    assert not differences(grads, ours, SUBJECT)


def told_of(side: Side) -> list[str]:
    """What wrappers, modes and refusals come to, as text."""
    mine, root = kit(side), side.root
    said: list[Any] = []
    x = mine.Held(root.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    y = (x * 2 + 1).relu()
    said += [
        type(y).__name__,
        y.held,
        y.shape,
        y.device,
        y.dtype,
        y.requires_grad,
        y.grad_fn.name(),
    ]
    y.sum().backward()
    said += [type(x.grad).__name__, x.grad.held, x.is_leaf, x.stride(), type(x.detach()).__name__]
    weight = root.nn.Parameter(mine.Held(root.ones(2, 3)), requires_grad=False)
    layer = root.nn.Linear(3, 2, bias=False)
    layer.weight = weight
    said += [
        type(weight).__name__,
        isinstance(weight, root.nn.Parameter),
        layer(root.ones(1, 3)).held,
    ]
    z = mine.Held(root.ones(2))
    said += [z.add_(1) is z, z.held]

    class Plain(root.Tensor):
        """No method of its own."""

    class Silent(root.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    silent = root.Tensor._make_wrapper_subclass(Silent, (2,))
    for call in (
        lambda: root.Tensor._make_wrapper_subclass(Plain, (2,)),
        lambda: silent.exp(),
        lambda: root.exp(silent),
    ):
        _, refused = attempt(call)
        said.append(f"{type(refused).__name__}: {str(refused).split(';')[0]}")

    disabled = import_module(f"{root.__name__}._C")._disabled_torch_function_impl
    said.append([c.__torch_function__ is disabled for c in (Silent, Plain, mine.Held)])

    class Through(root.Tensor):
        """Has memory of its own."""

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            said.append([str(func), [t.__name__ for t in types]])
            with import_module(f"{root.__name__}._C")._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    made = root.ones(2).as_subclass(Through) + 1
    said += [type(made).__name__, made.sum()]

    class Double(mine.dispatch.TorchDispatchMode):  # type: ignore[name-defined,misc]  # by side
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            return made if str(func) in UNSEEN else made * 2

    a = root.tensor([1.0, 2.0], requires_grad=True)
    with Double() as inner:
        b = a.exp()
        current = mine.dispatch._get_current_dispatch_mode() is inner
        with mine.dispatch._disable_current_modes():
            c = a + 1
    b.sum().backward()  # autograd knows the op, and nothing of what the mode made of it
    said += [b, c, a.grad, current, mine.dispatch._get_current_dispatch_mode_stack()]
    return [str(one) for one in said]


def test_wrappers_and_modes_beside_pytorch() -> None:
    assert told_of(SUBJECT) == told_of(ORACLE)


OVERLOADS = """
x.pow(2) x.pow(y) 2**x 1+x 1-x x/2 x//2 x%2 2%x x>0 x==y i&1 i.bitwise_or(b) i^i x.lerp(y,.5) x.fmod(2)
x.lerp(y,y) x.masked_fill(b,0) m.where(b,x,y) x.clamp(0,1) x.clamp(min=y) x.sum(0) x.mean(0) x.mean()
x.amax(0) x.any(0) x.all() x.all((0,1)) x.prod(0) x.var() x.var(0) x.std(0,keepdim=True) x.argmax(0)
x.sort(0) x.topk(2) x.kthvalue(1) x.mode() x.cummax(0) x.squeeze(0) x.squeeze((0,1)) x.squeeze()
x.chunk(2) x.split(2) x.split([1,2]) x.unbind() x.scatter(0,i,y) x.scatter(0,i,1.) x.index_fill(0,i[0],2)
x.nansum(0) x.norm(dim=0) x.count_nonzero(0) m.arange(3) m.arange(1,3) m.arange(1,5,2) m.empty(3)
x.pow_(2) x.pow_(y) x.mul_(2) x.fmod_(2) x.masked_fill_(b,1)
"""


@pytest.mark.parametrize("call", OVERLOADS.split())
def test_overloads_are_pytorchs(call: str) -> None:
    heard = []
    for side in SIDES:
        mine, notes, m = kit(side), list[str](), side.root
        x, y = m.arange(1.0, 10).view(3, 3), m.full((3, 3), 2.0)
        space = {"m": m, "x": x, "y": y, "i": m.arange(9).view(3, 3) % 3, "b": x > 3}
        with mine.Log(notes):
            eval(call, space)
        heard.append(notes)
    assert heard[0] == heard[1]


RULES = {
    "SGD": {"lr": 0.1},
    "SGD with momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "AdamW": {"lr": 0.1},
    "Adagrad": {"lr": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.5},
    "Rprop": {"lr": 0.1},
    "ASGD": {"lr": 0.1},
    "Adadelta": {"lr": 1.0},
    "NAdam": {"lr": 0.1},
    "RAdam": {"lr": 0.1},
    "Adamax": {"lr": 0.1},
}


def trained(side: Side, rule: str) -> Any:
    """A parameter that holds another tensor, after three steps; and what was written to it."""
    mine, m = kit(side), side.root
    written: list[str] = []

    class Weight(mine.Held):  # type: ignore[name-defined,misc]  # by side
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*mine.unwrapped(args), **mine.unwrapped(kwargs or {}))
            if func._schema.name == "aten::detach":
                return cls(made)
            if func._schema.name[-1] == "_":
                written.append(func._schema.name)
                return args[0]
            return made

    weight = m.nn.Parameter(Weight(m.arange(6.0).view(2, 3) / 7))
    layer = m.nn.Linear(3, 2)
    m.nn.init.ones_(layer.bias)
    layer.weight = weight
    optimizer = getattr(m.optim, rule.split()[0])(layer.parameters(), **RULES[rule])
    x = m.arange(12.0).view(4, 3) / 9 - 0.5
    for _ in range(3):
        optimizer.zero_grad()
        layer(x).pow(2).mean().backward()
        optimizer.step()
    assert len(written) >= 3
    return weight.held, weight.grad, layer.bias


@pytest.mark.parametrize("rule", RULES)
def test_parameters_that_hold_tensors_are_trained(rule: str) -> None:
    assert not differences(trained(ORACLE, rule), trained(SUBJECT, rule), SUBJECT)
