"""nn.Module: hooks, state, containers, lazy modules, copies; beside PyTorch."""

from __future__ import annotations

import copy
import functools
import pickle
from collections import OrderedDict
from typing import Any

import pytest

from tests.oracle import attempt, both, dtype_name, error_difference, torch, tt


def layer(m: Any) -> Any:
    made = m.nn.Linear(2, 2)
    with m.no_grad():
        made.weight.copy_(m.tensor([[1.0, 2.0], [3.0, 4.0]]))
        made.bias.zero_()
    return made


def net(m: Any) -> Any:
    return m.nn.Sequential(layer(m), m.nn.BatchNorm1d(2), layer(m))


# -- hooks ----------------------------------------------------------------------------------------


def _order(m: Any) -> Any:
    """All hooks of a call in the order in which they run."""
    seen: list[str] = []
    one = layer(m)
    one.register_forward_pre_hook(lambda k, a: seen.append("pre 1"))
    one.register_forward_pre_hook(lambda k, a: seen.append("pre 0"), prepend=True)
    one.register_forward_hook(lambda k, a, o: seen.append("post 1"))
    one.register_forward_hook(lambda k, a, o: seen.append("post 0"), prepend=True)
    one.register_full_backward_pre_hook(lambda k, g: seen.append("back pre"))
    one.register_full_backward_hook(lambda k, gi, go: seen.append("back"))
    one(m.ones(1, 2, requires_grad=True)).sum().backward()
    return seen


def _with_kwargs(m: Any) -> Any:
    class Scaled(m.nn.Module):
        def forward(self, x: Any, *, by: float = 1.0) -> Any:
            return x * by

    one, seen = Scaled(), []
    one.register_forward_pre_hook(lambda k, a, kw: (a, {"by": kw["by"] * 2}), with_kwargs=True)
    one.register_forward_hook(lambda k, a, kw, o: seen.append(kw["by"]), with_kwargs=True)
    return one(m.ones(2), by=3.0), seen


def _changed(m: Any) -> Any:
    one = layer(m)
    one.register_forward_pre_hook(lambda k, a: (a[0] * 2,))
    one.register_forward_hook(lambda k, a, o: o + 1)
    x = m.ones(1, 2, requires_grad=True)
    one.register_full_backward_pre_hook(lambda k, go: (go[0] * 10,))
    one.register_full_backward_hook(lambda k, gi, go: (gi[0] * 3,))
    y = one(x)
    y.sum().backward()
    return y, x.grad, one.weight.grad


def _always(m: Any) -> Any:
    class Broken(m.nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyError("broken")

    one, seen = Broken(), []
    one.register_forward_hook(lambda k, a, o: seen.append("normal"))
    one.register_forward_hook(lambda k, a, o: seen.append(("always", o)), always_call=True)
    return type(attempt(one, m.ones(1))[1]).__name__, seen


def _removed(m: Any) -> Any:
    one, seen = layer(m), []
    with one.register_forward_hook(lambda k, a, o: seen.append(1)):
        one(m.ones(1, 2))
    one(m.ones(1, 2))
    return seen


def _everywhere(m: Any) -> Any:
    seen: list[str] = []
    hooks = m.nn.modules.module
    handles = [
        hooks.register_module_forward_pre_hook(lambda k, a: seen.append(type(k).__name__)),
        hooks.register_module_forward_hook(lambda k, a, o: seen.append(f"/{type(k).__name__}")),
    ]
    try:
        m.nn.Sequential(layer(m))(m.ones(1, 2))
    finally:
        for h in handles:
            h.remove()
    net(m)
    return seen


def _no_input_gradient(m: Any) -> Any:
    one, seen = layer(m), []
    one.register_full_backward_hook(lambda k, gi, go: seen.append((gi, go)))
    one(m.ones(1, 2)).sum().backward()
    return seen


HOOKS: dict[str, Any] = {
    "order": _order, "kwargs": _with_kwargs, "changed": _changed, "always": _always,
    "removed": _removed, "every module": _everywhere, "no input gradient": _no_input_gradient,
}  # fmt: skip


@pytest.mark.parametrize("label", HOOKS)
def test_hooks(label: str) -> None:
    both(HOOKS[label])


# -- state ----------------------------------------------------------------------------------------


def _partial(m: Any) -> Any:
    state = net(m).state_dict()
    del state["0.bias"]
    state["extra"] = m.ones(1)
    return repr(net(m).load_state_dict(state, strict=False))


def _assigned(m: Any) -> Any:
    one = layer(m)
    state = {"weight": m.ones(2, 2, dtype=m.float64), "bias": m.ones(2, dtype=m.float64)}
    one.load_state_dict(state, assign=True)
    return dtype_name(one.weight.dtype), one.weight.requires_grad, type(one.weight).__name__


def _hooked(m: Any) -> Any:
    one, seen = net(m), []
    one.register_state_dict_pre_hook(lambda k, prefix, keep: seen.append(("saving", prefix, keep)))
    one.register_state_dict_post_hook(lambda k, state, p, about: seen.append(len(state)))
    one[0].register_load_state_dict_pre_hook(lambda k, s, prefix, *rest: seen.append(prefix))
    one.register_load_state_dict_post_hook(lambda k, keys: keys.missing_keys.clear())
    state = one.state_dict()
    del state["0.bias"]
    return seen, repr(one.load_state_dict(state)), seen


def _extra(m: Any) -> Any:
    class Counting(m.nn.Module):
        count = 3

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"] + 1

    one = m.nn.Sequential(Counting())
    state = one.state_dict()
    one.load_state_dict(state)
    return list(state), one[0].count


def _buffers(m: Any) -> Any:
    one = m.nn.Module()
    one.a = m.nn.Buffer(m.ones(2))
    one.b = m.nn.Buffer(m.ones(2), persistent=False)
    one.register_buffer("c", None)
    one.a = m.zeros(2)
    return list(one.state_dict()), [n for n, _ in one.named_buffers()], one.a


def _replaced_kinds(m: Any) -> Any:
    one = m.nn.Module()
    one.x = m.nn.Parameter(m.ones(1))
    one.y = m.ones(1)
    one.y = m.nn.Parameter(m.zeros(1))
    one.x = None
    one.z = layer(m)
    del one.y
    return list(one._parameters), list(one._modules), one.x


def _train_is_overridden(m: Any) -> Any:
    """A child that refuses training stays in evaluation."""

    class Frozen(m.nn.BatchNorm1d):
        def train(self, mode: bool = True) -> Any:
            return super().train(False)

    one = m.nn.Sequential(Frozen(2), m.nn.Dropout())
    return [k.training for k in one.train().modules()]


STATE: dict[str, Any] = {
    "partial": _partial, "assign": _assigned, "hooks": _hooked, "extra state": _extra,
    "buffers": _buffers, "other kinds": _replaced_kinds, "train": _train_is_overridden,
    "versions": lambda m: {k: dict(v) for k, v in net(m).state_dict()._metadata.items()},
    "keep_vars": lambda m: [v.requires_grad for v in net(m).state_dict(keep_vars=True).values()],
    "to": lambda m: [dtype_name(v.dtype) for v in net(m).to(m.float64).state_dict().values()],
    "to like": lambda m: [dtype_name(p.dtype)
        for p in net(m).to(m.ones(1, dtype=m.float64)).parameters()],
    "type": lambda m: [dtype_name(p.dtype) for p in net(m).type(m.float64).parameters()],
    "to_empty": lambda m: [tuple(p.shape) for p in net(m).to_empty(device="cpu").parameters()],
    "grads follow": lambda m: _grads_follow(m),
    "get_buffer": lambda m: net(m).get_buffer("1.running_mean"),
    "set_submodule": lambda m: repr(_with_submodule(m)),
    "dir": lambda m: [n for n in ("0", "weight", "forward") if n in dir(net(m))],
    "sequential arithmetic": lambda m: repr((m.nn.Sequential(m.nn.ReLU()) + m.nn.Sequential(
        m.nn.Tanh())) * 2),
    "sequential insert, pop": lambda m: _inserted(m),
    "module list": lambda m: _module_list(m),
    "module list repr": lambda m: repr(m.nn.ModuleList([layer(m), layer(m), m.nn.ReLU(), net(m)])),
    "empty list": lambda m: repr(m.nn.ModuleList()),
    "operators of a class": lambda m: _operators_of_a_class(m),
    "replica": lambda m: _replica(m),
    "module dict": lambda m: _module_dict(m),
    "parameter list": lambda m: _parameter_list(m),
    "parameter dict": lambda m: _parameter_dict(m),
}  # fmt: skip


def _grads_follow(m: Any) -> Any:
    one = layer(m)
    one(m.ones(1, 2)).sum().backward()
    one.double()
    return one.weight.grad, one.weight.is_leaf


def _with_submodule(m: Any) -> Any:
    one = m.nn.Sequential(net(m))
    one.set_submodule("0.2", m.nn.ReLU())
    return one


def _inserted(m: Any) -> Any:
    one = m.nn.Sequential(m.nn.ReLU())
    one.insert(0, m.nn.Tanh()).extend([m.nn.GELU()])
    gone = one.pop(1)
    named = m.nn.Sequential(OrderedDict(a=m.nn.ReLU(), b=m.nn.Tanh(), c=m.nn.ELU()))[:2]
    named.append(m.nn.GELU())  # the names in front of what comes in stay
    return repr(one), repr(gone), len(one), repr(named.insert(2, m.nn.SiLU()))


def _module_list(m: Any) -> Any:
    one = m.nn.ModuleList([m.nn.ReLU()])
    one += [m.nn.Tanh(), m.nn.GELU()]
    one.insert(1, layer(m))
    del one[0]
    one[0] = m.nn.Sigmoid()
    return repr(one), len(one), repr(one[1:]), repr(one[-1]), repr(one + [m.nn.ReLU()])


def _operators_of_a_class(m: Any) -> Any:
    class Layer(m.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch's base or ours
        norm, join, new, act = m.tanh, m.cat, m.zeros, m.nn.functional.gelu

        def twice(self) -> Any:
            return self.new(2) * 2

    class Wrapping(m.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch's base or ours
        @functools.wraps(m.relu)
        def forward(self, *args: Any) -> Any:
            return len(args)

    def own(self: Any) -> Any:
        return self.twice()

    own.__module__ = "package.ops.layers"  # a part of that name, but of somebody else's package
    one = type("Further", (Layer,), {"own": own})()
    parts = one.join([m.ones(1), one.new(2)])
    acted = one.act(one.norm(m.ones(2)))
    return acted, parts, Layer.norm(m.ones(1)), one.own(), Wrapping()(1, 2)


def _replica(m: Any) -> Any:
    one = m.nn.Sequential(layer(m), m.nn.BatchNorm1d(2))
    copy = one._replicate_for_data_parallel()
    copy[1] = m.nn.ReLU()
    again = one[1]._replicate_for_data_parallel()
    return (
        repr(one),
        repr(copy),
        copy._is_replica,
        list(vars(again)["_parameters"]),
        list(again._buffers),
    )


def _module_dict(m: Any) -> Any:
    one = m.nn.ModuleDict({"b": m.nn.ReLU(), "a": layer(m)})
    one.update([("c", m.nn.Tanh())])
    gone = one.pop("b")
    return repr(one), list(one), "a" in one, repr(gone), list(one.state_dict())


def _parameter_list(m: Any) -> Any:
    one = m.nn.ParameterList([m.ones(2), m.nn.Parameter(m.zeros(1, 2)), "text"])
    one.append(m.ones(1))
    one[0] = m.zeros(3)
    return repr(one), len(one), list(one.state_dict()), len(one[1:3]), one[-1]


def _parameter_dict(m: Any) -> Any:
    one = m.nn.ParameterDict({"b": m.ones(2), "a": m.zeros(1)})
    one["c"] = m.ones(3)
    other = one | m.nn.ParameterDict(OrderedDict(z=m.ones(1)))
    return repr(one), list(one), list(other), one.pop("a"), one.get("q", 5), one.popitem()[0]


@pytest.mark.parametrize("label", STATE)
def test_state(label: str) -> None:
    both(STATE[label])


MISUSE: dict[str, Any] = {
    "missing and unexpected": lambda m: net(m).load_state_dict({"other": m.ones(1)}),
    "sizes": lambda m: layer(m).load_state_dict({"weight": m.ones(3), "bias": m.ones(2)}),
    "no tensor": lambda m: layer(m).load_state_dict({"weight": 3, "bias": m.ones(2)}),
    "no dict": lambda m: layer(m).load_state_dict(3),
    "integers": lambda m: layer(m).to(m.int64),
    "no init": lambda m: _uninitialised(m),
    "name with a dot": lambda m: m.nn.Module().register_parameter("a.b", None),
    "no name": lambda m: m.nn.Module().register_buffer("", None),
    "taken": lambda m: m.nn.Module().register_buffer("training", None),
    "no module": lambda m: m.nn.Module().add_module("a", 3),
    "parameter": lambda m: setattr(layer(m), "weight", m.ones(2)),
    "not a leaf": lambda m: m.nn.Module().register_parameter(
        "a", _as_parameter(m, m.nn.Parameter(m.ones(1)) * 2)),
    "submodule": lambda m: net(m).get_submodule("0.nothing"),
    "parameter by path": lambda m: net(m).get_parameter("0"),
    "list": lambda m: m.nn.ModuleList([3]),
    "index": lambda m: m.nn.ModuleList([])[0],
    "extend": lambda m: m.nn.ModuleList().extend(3),
    "dict": lambda m: m.nn.ModuleDict([("a",)]),
    "call of a list": lambda m: m.nn.ParameterList()(),
    "train": lambda m: net(m).train("yes"),
    "two kinds of backward hooks": lambda m: _two_kinds(m),
    "no forward": lambda m: m.nn.Module()(1),
    "keyword": lambda m: m.nn.Module(size=3),
}  # fmt: skip


def _uninitialised(m: Any) -> None:
    class Hasty(m.nn.Module):
        def __init__(self) -> None:
            self.layer = layer(m)

    Hasty()


def _as_parameter(m: Any, tensor: Any) -> Any:
    tensor.__class__ = m.nn.Parameter
    return tensor


def _two_kinds(m: Any) -> None:
    one = layer(m)
    one.register_backward_hook(lambda *a: None)
    one.register_full_backward_hook(lambda *a: None)


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


# -- copies, lazy modules -------------------------------------------------------------------------


def test_copies_and_pickles() -> None:
    model = net(tt)
    model.tied = model[0].weight
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(other) == repr(model)
        assert other.tied is other[0].weight is not model[0].weight
        assert other[0].weight.requires_grad
        assert other(tt.ones(3, 2)).tolist() == model(tt.ones(3, 2)).tolist()


def test_lazy_modules() -> None:
    model = tt.nn.Sequential(tt.nn.LazyConv2d(4, 3), tt.nn.LazyBatchNorm2d(), tt.nn.Flatten(),
                             tt.nn.LazyLinear(2))  # fmt: skip
    assert repr(model[0].weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        _ = model[0].weight.shape
    with pytest.raises(ValueError, match="uninitialized parameter"):  # as PyTorch's buffers say
        copy.deepcopy(model)
    copied = tt.nn.Sequential(tt.nn.LazyConv2d(4, 3), tt.nn.LazyBatchNorm2d(), tt.nn.Flatten(),
                              copy.deepcopy(model[3])).double()  # fmt: skip
    assert model(tt.ones(2, 3, 5, 5)).shape == (2, 2)
    assert [type(k).__name__ for k in model] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    assert not model[0]._forward_pre_hooks
    copied.load_state_dict(model.state_dict())  # takes the shapes over
    assert copied[0].weight.shape == (4, 3, 3, 3)
    assert copied[0].weight.dtype is tt.float64
    want = model.double()(tt.ones(2, 3, 5, 5, dtype=tt.float64))
    assert copied(tt.ones(2, 3, 5, 5, dtype=tt.float64)).tolist() == want.tolist()


def test_transformer_masks() -> None:
    """A stack with a causal mask given, said, and found; and with hidden keys."""

    def run(m: Any) -> Any:
        m.manual_seed(0)
        one = m.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        stack = m.nn.TransformerEncoder(one, 2, m.nn.LayerNorm(4), enable_nested_tensor=False)
        with m.no_grad():
            for i, p in enumerate(stack.parameters()):
                p.copy_(m.cos(m.arange(p.numel()) * 0.7 + i).reshape(p.shape) * 0.5)
        x = m.sin(m.arange(24.0)).reshape(2, 3, 4)
        mask = m.nn.Transformer.generate_square_subsequent_mask(3)
        hidden = m.tensor([[False, False, True], [False, False, False]])
        return [stack(x), stack(x, mask), stack(x, mask, is_causal=True), stack(x, mask != 0),
                stack(x, src_key_padding_mask=hidden)]  # fmt: skip

    both(run)


def test_words_of_a_header_reach_the_base_that_takes_them() -> None:
    class Tagged:
        tag = ""

        def __init_subclass__(cls, label: str = "", **more: object) -> None:
            super().__init_subclass__(**more)
            cls.tag = label

    for m in (tt, torch):

        class Own(m.nn.Conv2d, Tagged, label="x"):
            pass

        assert Own.tag == "x" and Own(1, 1, 1).kernel_size == (1, 1)
        with pytest.raises(TypeError, match="takes no keyword arguments"):
            type("Wrong", (m.nn.Conv2d,), {}, nothing=1)
