"""nn.Module and the first layers: registration, traversal, state, modes, repr."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.oracle import attempt, both, differences, error_difference, torch, tt


def mlp(m: Any) -> Any:
    """The same network on both sides: its weights are a fixed pattern, exact in float32."""
    model = m.nn.Sequential(
        m.nn.Linear(4, 5), m.nn.Tanh(), m.nn.Linear(5, 5), m.nn.ReLU(), m.nn.Linear(5, 3)
    )
    with m.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(((m.arange(p.numel()) * 7 + 3 * i) % 11 - 5).reshape(p.shape) * 0.125)
    return model


def block(m: Any) -> Any:
    """A module with parameters, a buffer, children, one shared, and a plain attribute."""

    class Block(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = m.nn.Parameter(m.ones(2))
            self.register_buffer("seen", m.zeros(1))
            self.register_buffer("scratch", m.zeros(1), persistent=False)
            self.inner = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.ReLU())
            self.again = self.inner[0]
            self.plain = 3
            self.register_parameter("nothing", None)

        def forward(self, x: Any) -> Any:
            return self.inner(x) * self.scale

        def extra_repr(self) -> str:
            return "plain=3"

    return Block()


def saying(m: Any, text: str) -> str:
    """What a module prints, by itself and in another, that says more of itself."""

    class Said(m.nn.Module):
        def extra_repr(self) -> str:
            return text

    alone, around = Said(), Said()
    around.inner = m.nn.Sequential(alone)
    return f"{alone!r} {around!r}"


def shapes(named: Any) -> list[Any]:
    return [(name, tuple(p.shape), p.requires_grad) for name, p in named]


STRUCTURE: dict[str, Any] = {
    "named_parameters": lambda m: shapes(block(m).named_parameters()),
    "parameters": lambda m: [tuple(p.shape) for p in block(m).parameters()],
    "parameters of this one": lambda m: shapes(block(m).named_parameters(recurse=False)),
    "named_parameters with prefix": lambda m: shapes(block(m).named_parameters(prefix="net")),
    "duplicates kept": lambda m: shapes(block(m).named_parameters(remove_duplicate=False)),
    "_named_members": lambda m: [
        (name, str(value))
        for name, value in block(m)._named_members(
            lambda module: [("kind", type(module).__name__), ("none", None)], prefix="net"
        )
    ],
    "named_buffers": lambda m: shapes(block(m).named_buffers()),
    "named_modules": lambda m: [(n, type(k).__name__) for n, k in block(m).named_modules()],
    "modules": lambda m: [type(k).__name__ for k in block(m).modules()],
    "named_children": lambda m: [(n, type(k).__name__) for n, k in block(m).named_children()],
    "state_dict": lambda m: shapes(block(m).state_dict().items()),
    "state_dict with prefix": lambda m: list(block(m).state_dict(prefix="a.")),
    "state_dict of mlp": lambda m: list(mlp(m).state_dict().items()),
    "repr": lambda m: repr(block(m)),
    "repr of mlp": lambda m: repr(mlp(m)),
    "repr of linear": lambda m: repr(m.nn.Linear(3, 2, bias=False)),
    **{
        f"repr of {text!r}": lambda m, text=text: saying(m, text)
        for text in ("", "a", "a\n", "a\n\nb", "\n", "a\n   \n  b", " ")
    },
    "repr of an empty sequential": lambda m: repr(m.nn.Sequential()),
    "repr of nested": lambda m: repr(m.nn.Sequential(mlp(m), m.nn.Tanh())),
    "repr of losses": lambda m: repr([m.nn.CrossEntropyLoss(), m.nn.MSELoss()]),
    "get_submodule": lambda m: type(block(m).get_submodule("inner.1")).__name__,
    "get_parameter": lambda m: tuple(block(m).get_parameter("inner.0.weight").shape),
    "training flags": lambda m: [k.training for k in block(m).eval().modules()],
    "train again": lambda m: [k.training for k in block(m).eval().train().modules()],
    "requires_grad_": lambda m: shapes(block(m).requires_grad_(False).named_parameters()),
    "double": lambda m: [str(p.dtype)[-7:] for p in block(m).double().parameters()],
    "to dtype": lambda m: [str(p.dtype)[-7:] for p in block(m).to(m.float64).parameters()],
    "half": lambda m: [str(p.dtype)[-7:] for p in block(m).half().state_dict().values()],
    "len, index, slice": lambda m: [len(mlp(m)), repr(mlp(m)[1]), repr(mlp(m)[-1]),
        repr(mlp(m)[1:3])],
    "iteration": lambda m: [type(k).__name__ for k in mlp(m)],
    "append": lambda m: repr(mlp(m).append(m.nn.Tanh())),
    "ordered dict": lambda m: repr(m.nn.Sequential(_ordered(m))),
    "deleted": lambda m: _deleted(m),
    "replaced": lambda m: _replaced(m),
    "apply": lambda m: _applied(m),
    "parameter": lambda m: [m.nn.Parameter(m.ones(2)).requires_grad,
        m.nn.Parameter(m.ones(2), False).requires_grad,
                            isinstance(m.nn.Parameter(m.ones(2)), m.Tensor),
                            m.nn.Parameter(m.ones(2)).is_leaf],
    "result of a parameter": lambda m: type(m.nn.Parameter(m.ones(2)) * 1) is m.Tensor,
    "zero_grad": lambda m: _zeroed(m),
    "dir": lambda m: "weight" in dir(m.nn.Linear(1, 1)),
}  # fmt: skip


def _ordered(m: Any) -> Any:
    from collections import OrderedDict

    return OrderedDict(first=m.nn.Linear(2, 2), act=m.nn.ReLU())


def _deleted(m: Any) -> Any:
    b = block(m)
    del b.scale
    del b.seen
    del b.again
    return list(b.state_dict()), hasattr(b, "scale")


def _replaced(m: Any) -> Any:
    b = block(m)
    b.inner = m.nn.Tanh()
    b.seen = m.ones(3)
    b.plain = 4
    return list(b.state_dict()), b.plain


def _applied(m: Any) -> Any:
    seen: list[str] = []
    out = block(m).apply(lambda k: seen.append(type(k).__name__))
    return seen, type(out).__name__


def _zeroed(m: Any) -> Any:
    model = mlp(m)
    model(m.ones(1, 4)).sum().backward()
    some = [p.grad is None for p in model.parameters()]
    model.zero_grad()
    none = [p.grad is None for p in model.parameters()]
    model(m.ones(1, 4)).sum().backward()
    model.zero_grad(set_to_none=False)
    return some, none, [p.grad for p in model.parameters()]


@pytest.mark.parametrize("label", STRUCTURE)
def test_structure(label: str) -> None:
    assert attempt(STRUCTURE[label], torch)[1] is None
    both(STRUCTURE[label])


def test_forward_and_gradients() -> None:
    def f(m: Any) -> Any:
        model = mlp(m)
        x = m.cos(m.arange(24.0)).reshape(6, 4).requires_grad_()
        y = model(x)
        (y * y).sum().backward()
        return y, x.grad, [p.grad for p in model.parameters()]

    both(f)


@pytest.mark.parametrize(
    "name", ["ReLU", "Tanh", "Sigmoid", "GELU", "Softmax", "LogSoftmax", "Flatten", "Identity"]
)
def test_activations(name: str) -> None:
    if not hasattr(tt.nn, name):
        pytest.skip(f"nn.{name} comes with a later issue")
    args = (1,) if "oftmax" in name else ()

    def f(m: Any) -> Any:
        x = m.linspace(-2, 2, 12).reshape(3, 4).requires_grad_()
        y = getattr(m.nn, name)(*args)(x)
        y.square().sum().backward()
        return y, x.grad, repr(getattr(m.nn, name)(*args))

    both(f)


def test_state_dict_round_trip() -> None:
    a, b = mlp(tt), mlp(tt)
    with tt.no_grad():
        for p in b.parameters():
            p.zero_()
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert p.tolist() == q.tolist()
        assert p.data_ptr() != q.data_ptr()
    state = a.state_dict()
    assert not state["0.weight"].requires_grad
    assert state["0.weight"].data_ptr() == a[0].weight.data_ptr()


LOADING: dict[str, Any] = {
    "missing key": lambda m: _load(m, drop="2.bias"),
    "unexpected key": lambda m: _load(m, add="9.weight"),
    "missing, lenient": lambda m: _load(m, drop="2.bias", strict=False),
    "unexpected, lenient": lambda m: _load(m, add="9.weight", strict=False),
    "wrong shape": lambda m: _load(m, wrong="0.weight"),
    "no dict": lambda m: mlp(m).load_state_dict([1]),
}


def _load(m: Any, drop: str = "", add: str = "", wrong: str = "", strict: bool = True) -> Any:
    state = dict(mlp(m).state_dict())
    if drop:
        del state[drop]
    if add:
        state[add] = m.ones(1)
    if wrong:
        state[wrong] = m.ones(7, 7)
    out = mlp(m).load_state_dict(state, strict=strict)
    return repr(out), list(out.missing_keys), list(out.unexpected_keys)


@pytest.mark.parametrize("label", LOADING)
def test_loading(label: str) -> None:
    (want, refused), (got, failure) = attempt(LOADING[label], torch), attempt(LOADING[label], tt)
    assert got == want
    bad = error_difference(refused, failure)
    assert not bad, bad
    if refused is not None and "state_dict" in str(refused):
        assert str(failure).replace("toytorch", "torch") == str(refused)


MISUSE: dict[str, Any] = {
    "no super().__init__": lambda m: _no_init(m),
    "parameter that is no tensor": lambda m: m.nn.Module().register_parameter("a", 3),
    "parameter that is a plain tensor": lambda m: setattr(m.nn.Linear(1, 1), "weight", m.ones(1)),
    "buffer that is no tensor": lambda m: m.nn.Module().register_buffer("a", 3),
    "name with a dot": lambda m: m.nn.Module().register_buffer("a.b", m.ones(1)),
    "empty name": lambda m: m.nn.Module().register_parameter("", None),
    "module that is none": lambda m: m.nn.Module().add_module("a", 3),
    "no forward": lambda m: m.nn.Module()(m.ones(1)),
    "no attribute": lambda m: m.nn.Linear(1, 1).wieght,
    "unknown submodule": lambda m: m.nn.Linear(1, 1).get_submodule("a"),
    "sequential of a number": lambda m: m.nn.Sequential(3),
    "sequential out of range": lambda m: mlp(m)[9],
    "result as a parameter": lambda m: _result_parameter(m),
    "shapes": lambda m: m.nn.Linear(3, 2)(m.ones(4, 5)),
    "dtypes": lambda m: m.nn.Linear(3, 2)(m.ones(4, 3, dtype=m.float64)),
    "to an integer dtype": lambda m: m.nn.Linear(3, 2).to(m.int64),
    "parameter of integers": lambda m: m.nn.Parameter(m.tensor([1, 2])),
}


def _no_init(m: Any) -> None:
    class Bad(m.nn.Module):
        def __init__(self) -> None:
            self.layer = m.nn.Linear(1, 1)

    Bad()


def _result_parameter(m: Any) -> None:
    k = m.nn.Module()
    k.register_parameter("a", m.nn.Parameter(m.ones(1)) * 2)


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


def test_hooks() -> None:
    def f(m: Any) -> Any:
        model, seen = mlp(m), []
        handle = model[0].register_forward_hook(
            lambda k, args, out: seen.append(("after", tuple(out.shape)))
        )
        model[0].register_forward_pre_hook(
            lambda k, args: seen.append(("before", tuple(args[0].shape)))
        )
        model[1].register_forward_hook(lambda k, args, out: out * 2)
        y = model(m.ones(2, 4))
        handle.remove()
        model(m.ones(1, 4))
        return seen, y

    both(f)


def test_full_backward_hook() -> None:
    if not hasattr(tt.nn.Module, "register_full_backward_hook"):
        pytest.skip("comes with a later issue")

    def f(m: Any) -> Any:
        model, seen = mlp(m), []
        model[2].register_full_backward_hook(
            lambda k, gi, go: seen.append((gi[0].clone(), go[0].clone()))
        )
        model(m.ones(2, 4)).sum().backward()
        return seen

    both(f)


def test_initial_weights_have_pytorchs_bounds() -> None:
    """U(-1/√in, 1/√in) for weight and bias."""
    tt.manual_seed(0)
    layer = tt.nn.Linear(100, 50)
    for p in (layer.weight, layer.bias):
        assert p.abs().max().item() <= 0.1
        assert abs(p.mean().item()) < 0.02
    assert abs(layer.weight.std().item() - 0.1 / 3**0.5) < 0.003
    tt.manual_seed(0)
    assert tt.nn.Linear(100, 50).weight.tolist() == layer.weight.tolist()


def test_deepcopy() -> None:
    a = mlp(tt)
    b = copy.deepcopy(a)
    with tt.no_grad():
        b[0].weight.zero_()
    assert a[0].weight.abs().sum().item() > 0
    assert list(a.state_dict()) == list(b.state_dict())
    assert type(b[0].weight) is tt.nn.Parameter
    assert not differences(mlp(torch)(torch.ones(1, 4)), a(tt.ones(1, 4)))


@pytest.mark.parametrize("place", ["cpu", "meta", "cpu:0"])
def test_cuda_takes_only_gpus(place: str) -> None:
    for m in (tt, torch):
        for thing in (m.ones(1), m.nn.Linear(1, 1)):
            with pytest.raises(RuntimeError, match=r"^Invalid device, must be cuda device$"):
                thing.cuda(m.device(place))
