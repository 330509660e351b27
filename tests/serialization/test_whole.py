"""Whole modules, arrays of NumPy, functions and other objects in files, to and from PyTorch."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import io
import operator
import pathlib
import pickle
import random
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest

from tests.nn.test_every_module import MODULES, inputs
from tests.oracle import attempt, differences, torch, tt
from toytorch.serialization import UnpicklingError, add_safe_globals, clear_safe_globals

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS = [(tt, tt), (tt, torch), (torch, tt)]
way = pytest.mark.parametrize(("source", "target"), WAYS, ids=["here", "to torch", "from torch"])


def through(value: Any, source: Any = tt, target: Any = tt, **how: Any) -> Any:
    """A value after a journey through a file."""
    file = io.BytesIO()
    source.save(value, file)
    file.seek(0)
    return target.load(file, **{"weights_only": False, **how})


@way
@pytest.mark.parametrize("label", MODULES)
def test_every_module(label: str, source: Any, target: Any) -> None:
    name = label.partition("/")[0]
    args, options, shapes = MODULES[label]
    inputs.name = name  # type: ignore[attr-defined]
    module = getattr(source.nn, name)(*args, **options).double()
    if name.startswith("Lazy"):
        module(*inputs(source, shapes))
    module.eval()
    got = through(module, source, target)
    theirs, ours = (got, module) if target is torch else (module, got)
    assert repr(got) == repr(module) and type(got).__name__ == type(module).__name__
    assert not got.training and [p.requires_grad for p in got.parameters()] == [
        p.requires_grad for p in module.parameters()
    ]
    if source is target:
        state, other = dict(module.state_dict()), dict(got.state_dict())
        assert list(state) == list(other) and all(tt.equal(state[k], other[k]) for k in state)
        assert vars(got).keys() == vars(module).keys()
    elif shapes:
        assert not differences(dict(theirs.state_dict()), dict(ours.state_dict()), exact=True)
        want, found = theirs(*inputs(torch, shapes)), ours(*inputs(tt, shapes))
        assert not differences(want, found, slack=100)
    got.train()  # it goes on as any module
    if shapes:
        out = got(*inputs(target, shapes))
        first = out if isinstance(out, target.Tensor) else out[0]
        assert first.requires_grad or not list(got.parameters())


def mixed(m: Any) -> Any:
    """A network of many parts, with tied weights, frozen parameters and attributes."""
    nn = m.nn
    net = nn.Sequential(
        collections.OrderedDict(
            first=nn.Linear(4, 4),
            act=nn.ReLU(),
            norm=nn.BatchNorm1d(4),
            last=nn.Linear(4, 4),
            parts=nn.ModuleList([nn.Identity()]),
            table=nn.ModuleDict({"a": nn.Dropout(0.1)}),
            learned=nn.ParameterList([nn.Parameter(m.ones(2))]),
            named=nn.ParameterDict({"w": nn.Parameter(m.ones(3))}),
        )
    )
    net.last.weight = net.first.weight
    net.first.bias.requires_grad_(False)
    net.register_buffer("steps", m.arange(3))
    net.register_buffer("hidden", m.ones(1), persistent=False)
    net.note = ["text", 1.5, None, {"a": (1, 2)}]
    net.size = m.Size([2, 3])
    return net


@way
def test_a_network(source: Any, target: Any) -> None:
    net = mixed(source)
    got = through({"net": net, "epoch": 3}, source, target)["net"]
    assert repr(got) == repr(net) and got.last.weight is got.first.weight
    assert not got.first.bias.requires_grad and got.note == net.note
    assert list(got.state_dict()) == list(net.state_dict()) and got.hidden.tolist() == [1]
    assert got.steps.tolist() == [0, 1, 2] and tuple(got.size) == (2, 3)
    assert got.first.weight.tolist() == net.first.weight.tolist()


def test_files_name_pytorchs_classes() -> None:
    """So that PyTorch finds them, whatever toytorch's own file is, with the alias or without."""
    for m in (tt, torch):
        file = io.BytesIO()
        parts = m.nn.MultiheadAttention(2, 1), m.nn.GLU(), m.nn.LSTMCell(1, 1)
        m.save(m.nn.Sequential(*parts), file)
        program = zipfile.ZipFile(file).read("archive/data.pkl")
        for line in (
            b"container\nSequential",
            b"activation\nMultiheadAttention",
            b"activation\nGLU",
            b"rnn\nLSTMCell",
        ):
            assert b"ctorch.nn.modules." + line + b"\n" in program
        assert b"toytorch" not in program


def plain_objects() -> dict[str, Any]:
    """What programs keep beside their tensors."""
    return {
        "arrays": [
            np.arange(3.0),
            np.asfortranarray(np.arange(6).reshape(2, 3)),
            np.array(5),
            np.zeros((0, 3)),
            np.array([1, 2], ">f8"),
            np.array([True]),
            np.array(["ab", ""]),
            np.array([b"x"]),
            np.ones(2, np.float16),
            np.arange(4, dtype=np.complex64),
        ],
        "dates": np.array(["2020-01-01", "NaT"], "M8[s]"),
        "spans": np.array([3], "m8[25us]"),
        "numbers": [np.float32(1.5), np.int64(-3), np.bool_(True), np.float64("nan"), np.str_("a")],
        "types": [np.dtype("f4"), np.dtype(">i2"), np.float64, int, dict, np.dtype("U3")],
        "same": [x := np.ones(2), x],
        "tuple": (np.ones(1), (np.int8(1),)),
        "numpy's state": np.random.RandomState(3).get_state(),
        "python's": random.Random(3).getstate(),
        "legacy state": np.random.RandomState(3).get_state(legacy=False),
        "arguments": argparse.Namespace(lr=0.1, layers=[1, 2], name="x"),
        "defaults": collections.defaultdict(list, {"a": [1]}),
        "deque": collections.deque([1], 3),
        "sets": [frozenset([1, 2]), {3}],
        "slices": [slice(1, None, 2), range(3)],
        "dots": ...,
        "path": [pathlib.PurePosixPath("/a/b"), pathlib.Path("a")],
        "times": [datetime.datetime(2020, 1, 2), datetime.date(2020, 1, 1), datetime.timedelta(1)],
        "exact": [decimal.Decimal("1.5"), fractions.Fraction(1, 3)],
        "nameless types": [type(None), type(...)],
        "no bytes": b"",
        "ordered": collections.OrderedDict,
    }


@way
@pytest.mark.parametrize("name", plain_objects())
def test_plain_objects(name: str, source: Any, target: Any) -> None:
    value = plain_objects()[name]
    got = through(value, source, target)
    assert same(pickle.loads(pickle.dumps(value, 2)), got)
    if name == "same":
        assert got[0] is got[1]
    if name == "arguments":
        got.new = 1
    file = io.BytesIO()
    source.save(value, file)
    both = [attempt(m.load, io.BytesIO(file.getvalue()))[1] for m in (tt, torch)]
    assert type(both[0]) is type(both[1]), both  # PyTorch's own list of what is harmless


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return (
            a.dtype == b.dtype
            and a.dtype.str == b.dtype.str
            and a.shape == b.shape
            and a.tobytes() == b.tobytes()
            and a.flags.f_contiguous == b.flags.f_contiguous
            and b.flags.writeable
        )
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and type(a) is dict:
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or a != a)


@way
@pytest.mark.parametrize(
    "name",
    [
        "tanh",
        "sigmoid",
        "nn.functional.relu",
        "nn.functional.gelu",
        "nn.functional.softplus",
        "nn.functional.silu",
        "exp",
    ],
)
def test_functions_by_name(name: str, source: Any, target: Any) -> None:
    find = operator.attrgetter(name)
    got = through({"activation": find(source), "pair": (find(source), 1)}, source, target)
    assert got["activation"](target.tensor([0.5])).tolist() == pytest.approx(
        find(source)(source.tensor([0.5])).tolist()
    )
    assert got["pair"][0] is got["activation"]


@way
def test_training_goes_on(source: Any, target: Any) -> None:
    """A checkpoint with everything in it."""
    net = source.nn.Linear(2, 2)
    optimizer = source.optim.Adam(net.parameters(), lr=0.1)
    net(source.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule = source.optim.lr_scheduler.StepLR(optimizer, 2)
    got = through(
        {
            "net": net,
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "states": (source.get_rng_state(), np.random.get_state(), random.getstate()),
        },
        source,
        target,
    )
    other = target.optim.Adam(got["net"].parameters(), lr=0.1)
    other.load_state_dict(got["optimizer"])
    target.optim.lr_scheduler.StepLR(other, 2).load_state_dict(got["schedule"])
    got["net"](target.ones(1, 2)).sum().backward()
    other.step()
    random.setstate(got["states"][2])
    np.random.set_state(got["states"][1])
    if source is target:
        target.set_rng_state(got["states"][0])


# -- what is refused ------------------------------------------------------------------------------


class Net(tt.nn.Module):  # type: ignore[misc]
    """A network of the user."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = tt.nn.Linear(2, 1)
        self.scale = 3

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale


def hook(module: Any, args: Any, out: Any) -> Any:
    """A function of the user."""
    return out + 1


class Settings:
    """What a user keeps beside a network."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.activation = tt.nn.functional.relu


class Strict(Settings):
    """A class whose objects are not made without its code."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def test_classes_of_the_user() -> None:
    net = Net()
    name = f"{__name__}.Net"
    for got in (through(net), through({"net": net, "settings": Settings(3)})["net"]):
        assert type(got) is Net and repr(got) == repr(net) and got.scale == 3
        assert got(tt.ones(1, 2)).tolist() == net(tt.ones(1, 2)).tolist()
        got.load_state_dict(net.state_dict())
        assert through(got.eval()).training is False
    settings = through(Settings(3))
    assert type(settings) is Settings and vars(settings) == vars(Settings(3))
    with pytest.raises(UnpicklingError, match=rf"{name} was not an allowed global by default"):
        through(net, weights_only=True)
    with pytest.raises(
        UnpicklingError,
        match=rf"GLOBAL {__name__}.Strict is nothing that toytorch makes by "
        rf"itself(.|\n)*safe_globals\(\[{__name__}.Strict\]\): torch\.load",
    ):
        through(Strict(3))
    with tt.serialization.safe_globals([Strict]):
        assert through(Strict(3)).width == 3
    with tt.serialization.safe_globals([Net, tt.nn.Linear]):
        assert repr(through(net, weights_only=True)) == repr(net)


def test_hooks_are_code() -> None:
    net = tt.nn.Linear(1, 1)
    net.register_forward_hook(hook)
    with pytest.raises(UnpicklingError, match="is nothing that toytorch makes"):
        through(net)
    with tt.serialization.safe_globals([hook]):
        got = through(net)
    assert got(tt.ones(1, 1)).tolist() == net(tt.ones(1, 1)).tolist()
    net = tt.nn.Linear(1, 1)
    net.register_forward_hook(tt.nn.functional.relu)
    with pytest.raises(UnpicklingError, match=r"a Linear in this file has hooks \(_forward_ho"):
        through(net)
    with pytest.raises(UnpicklingError):
        through(tt.nn.LazyLinear(2))


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.nn.Sequential(m.nn.Linear(1, 1)),
        lambda m: m.nn.ReLU(),
        lambda m: np.ones(2),
        lambda m: np.float32(1),
        lambda m: m.nn.functional.relu,
        lambda m: argparse.Namespace(a=1),
        lambda m: [m.ones(1), {"a": m.nn.LSTM(1, 1)}],
        lambda m: pathlib.PurePath("a"),
    ],
)
def test_weights_only_is_the_default_and_refuses_in_pytorchs_words(make: Any) -> None:
    told = []
    for m in (tt, torch):
        for how in ({}, {"weights_only": True}):
            refused = attempt(through, make(m), m, m, **{"weights_only": None, **how})[1]
            assert isinstance(refused, UnpicklingError)
            text = str(refused)
            assert text.startswith(
                "Weights only load failed. This file can still be loaded, to do "
                "so you have two options, "
            )
            told.append(text[text.index("WeightsUnpickler error") :].split("\n\nCheck")[0])
    assert len(set(told)) == 1 and "add_safe_globals" in told[0]


def test_allowed_names_are_pytorchs() -> None:
    """What is allowed here is asked for by files of PyTorch under its own name."""
    file = io.BytesIO()
    torch.save({"net": torch.nn.Sequential(torch.nn.LSTMCell(1, 2)), "x": np.ones(3)}, file)
    try:
        add_safe_globals([tt.nn.Sequential, tt.nn.LSTMCell])
        with pytest.raises(UnpicklingError, match=r"numpy\.(_core|core)\.multiarray\._reconstruct"):
            tt.load(io.BytesIO(file.getvalue()))
        add_safe_globals([np.ones(1).__reduce__()[0], np.ndarray, np.dtype, type(np.dtype("f8"))])
        got = tt.load(io.BytesIO(file.getvalue()))
    finally:
        clear_safe_globals()
    assert repr(got["net"]) == "Sequential(\n  (0): LSTMCell(1, 2)\n)" and got["x"].sum() == 3


def test_all_that_files_may_name() -> None:
    """The whole table: classes that are made empty, values that nothing calls, checked builders."""
    from toytorch.serialization import known

    kinds = collections.Counter(type(v).__name__ for v in known.table().values())
    assert set(kinds) == {"Builder", "Made", "Value"} and kinds["Made"] > 140
    for name, entry in known.table().items():
        if isinstance(entry, known.Made):
            shells = tuple(known.shells().values())
            assert issubclass(entry.thing, (tt.nn.Module, tt.optim.Optimizer, *shells)), name
            assert entry.thing.__new__ is object.__new__ or entry.thing in shells, name
        elif isinstance(entry, known.Value) and not isinstance(entry.thing, (type, str)):
            module = getattr(entry.thing, "__module__", "")
            assert (
                entry.thing is ...
                or f"{module}.".startswith(
                    (
                        "toytorch.ops.",
                        "toytorch.nn.functional.",
                        "toytorch.nn.init.",
                        "toytorch.functional.",
                        "toytorch.core.",
                        "toytorch.facts.",
                        "toytorch.linalg.",
                        "toytorch.fft.",
                        "toytorch.special.",
                    )
                )
                or entry.thing is getattr(tt, entry.thing.__qualname__, None)
            ), name
    words = ("load", "save", "open", "eval", "exec", "compile", "import", "file", "system", "hub")
    assert not [
        n for n in known.functions() if any(w in n.rpartition(".")[2].split("_") for w in words)
    ]


def test_warnings_stay_the_users() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        through(mixed(tt))


@pytest.mark.parametrize("name", ["optim.RMSprop", "optim.AdamW", "optim.lr_scheduler.StepLR"])
def test_classes_of_optimizers_are_values(name: str) -> None:
    """A checkpoint says by its class which optimizer was used; no file can make one."""

    def of(m: Any) -> Any:
        for part in name.split("."):
            m = getattr(m, part)
        return m

    for m in (tt, torch):
        for n in (tt, torch):
            file = io.BytesIO()
            m.save({"optimizer": of(m)}, file)
            file.seek(0)
            assert n.load(file, weights_only=False) == {"optimizer": of(n)}
    file.seek(0)
    with pytest.raises(UnpicklingError):
        tt.load(file)
