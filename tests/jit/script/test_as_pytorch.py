"""What programs for PyTorch's compiler notice: the same source under both packages, the same answers."""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import textwrap
import typing
from typing import Any

import numpy as np
import pytest

import toytorch

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is absent")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

HEAD = """
from typing import *
from collections import OrderedDict
"""
FUNCTIONS = """
@torch.jit.script
def an_int(a: int): return a
@torch.jit.script
def a_float(a: float): return a
@torch.jit.script
def a_bool(a: bool): return a
@torch.jit.script
def a_str(a: str): return a
@torch.jit.script
def ints(a: List[int]):
    a.append(7)
    return a
@torch.jit.script
def floats(a: List[float]): return a
@torch.jit.script
def tensors(a: List[torch.Tensor]): return len(a)
@torch.jit.script
def pair(a: Tuple[int, float]): return a
@torch.jit.script
def perhaps(a: Optional[float]): return a
@torch.jit.script
def table(a: Dict[str, int]): return a
@torch.jit.script
def any_number(a: Union[int, float, complex]): return a
"""
VALUES = """
1|2.5|True|None|"a"|b"ab"|T(2)|T(2.5)|T([1])|T([1, 2])|(1, 2)|[1, 2]|[1.5, 2]|[T(1), T(2)]|(T(1),)|range(3)
[T(1.5)]|np.float32(1.5)|np.int64(3)|torch.Size([2, 3])|{"a": 1}|OrderedDict(a=1)|{"a": 1.5}|{"a": 1, "b": "c"}
np.array([1, 2])|["a"]|[1, "a"]|1j|()
"""
PROGRAMS = {
    "tensors for numbers": """
@torch.jit.script
def along(x, t): return x.unsqueeze(t)
@torch.jit.script
def scaled(x, t): return x.addcmul(x, x, value=t)
for data in (0, 1.5, [0], [[2]], True):
    for wanted in (False, True):
        t = torch.tensor(data)
        if not wanted or t.is_floating_point():
            for f in (along, scaled):
                try:
                    y = f(torch.ones(2), t.requires_grad_(wanted))
                    print(y, y.dtype)
                except RuntimeError as error:
                    print(str(error).strip().splitlines()[-1])
""",
    "heirs of containers": """
class Block(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(2, 2), torch.nn.ReLU())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(Block(), torch.nn.Identity(), Block())
    def forward(self, x):
        return self.blocks(x)
print(torch.jit.script(Net())(torch.ones(2, 2)).shape)
""",
    "a default of None": """
@torch.jit.script
def f(x, w: Optional[torch.Tensor] = None):
    if w is None:
        if x.dim() == 1:
            w = torch.tensor([2.0])
        elif x.dim() == 2:
            w = torch.tensor([3.0])
        else:
            w = torch.tensor([4.0])
    else:
        w = w * 2
    return x * w
print(f(torch.ones(1)), f(torch.ones(1, 1)), f(torch.ones(1), torch.ones(1)))
""",
    "types in messages": """
@torch.jit.script
def f(x):
    assert x.dim() == 1, f"a vector, not {type(x)}"
    if x.numel() > 3:
        raise ValueError(f"{type(x)} of {x.shape}")
    return x
print(f(torch.ones(2)))
for x in (torch.ones(2, 2), torch.ones(4)):
    try:
        f(x)
    except RuntimeError as error:
        print("expected value of type Tensor for return value" in str(error))
""",
    "futures": """
def double(x):
    return x * 2
@torch.jit.script
def f(x):
    later = torch.jit.fork(double, x)
    return torch.jit.wait(later) + later.wait()
print(f(torch.ones(2)), torch.jit.wait(torch.jit.fork(double, torch.ones(1))))
""",
    "dictionaries": """
@torch.jit.script
def f(k: int):
    a = dict(x=k, y=2)
    b = dict([("x", k)], z=3)
    c = dict(zip(["p", "q"], [k, 4]))
    return a, b, c, dict(a)
print(f(5))
""",
    "truth": """
@torch.jit.script
def f(xs: List[int], d: Dict[str, int]):
    return bool(xs), bool(d), any(xs), all(xs), min(xs, [1, 9])
print(f([3, 4], {}))
""",
    "places": """
@torch.jit.script
def f(x, i: int):
    t = (10, 20, 30)
    return x[..., 1].shape, x[0, Ellipsis].shape, t[i]
print(f(torch.ones(2, 3, 4), 2))
""",
    "stars": """
def three(x):
    return x, x + 1, x + 2
traced = torch.jit.trace(three, torch.zeros(2))
@torch.jit.script
def f(x):
    first, *rest = traced(x)
    return first, rest
print(f(torch.ones(2)))
""",
    "comments": """
@torch.jit.script
def f(a,      # type: int
      b=2.5,  # type: float
      ):
    # type: (...) -> float
    return a + b
print(f(1), f(1, 2.0))
""",
    "broadcast": """
from torch.jit.annotations import BroadcastingList2
@torch.jit.script
def f(a: BroadcastingList2[int]):
    return a
print(f(3), f([1, 2]))
""",
    "types of a dtype": """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    @torch.jit.script
    def f(x, t: torch.LongTensor, m: Optional[torch.ByteTensor] = None) -> torch.FloatTensor:
        return x + t if m is None else x * m
    print(f(torch.ones(2), torch.tensor([1, 2])), f(torch.ones(2), torch.ones(2), torch.tensor([3.5])))
print({str(w.message) for w in told if w.category is UserWarning})
""",
    "asked": """
@torch.jit.script
def f(x):
    return x.relu() + 1
print([n.kind() for n in f.graph.nodes() if n.kind() != "prim::Constant"])
print([v.type().kind() for v in f.graph.inputs()], f.graph.findNode("aten::relu").output().type())
print([v.type().annotation_str for v in f.graph.outputs()], f.__doc__)
""",
    "children": """
class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.names = ["a"]
        self.n = 1
    def forward(self, x):
        return x + self.n
    @torch.jit.export
    def more(self, name: str):
        self.names.append(name)
        self.n += 1
        return self.names
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.several = torch.nn.ModuleList([Inner(), Inner()])
    def forward(self, x):
        for name, m in self.named_children():
            print(name)
        for m in self.several:
            x = m(x)
        return self.inner(x), self.inner.more("b")
m = Outer()
s = torch.jit.script(m)
print(s(torch.ones(1)), s.inner.n, m.inner.n, s.inner.names, m.inner.names)
print(isinstance(s.inner, torch.jit.ScriptModule), s.inner.more("c"), len(s.several))
print(s)
""",
    "frozen": """
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.tensor([1.0, 2.0])
        self.b = self.a.view(2, 1)
        self.c = torch.tensor([3.0])
        self.d = [1, 2]
    def forward(self, x):
        self.b[0] += 10
        self.d.append(3)
        return self.a.sum() + self.c + x, self.d
s = torch.jit.script(M()).eval()
f = torch.jit.freeze(s)
print([f._c.hasattr(n) for n in "abcd"], f(torch.zeros(1)), f(torch.zeros(1)))
""",
    "traced by name": """
def f(x, y):
    return x - y
t = torch.jit.trace(f, (torch.ones(1), torch.ones(1)))
print(t(y=torch.ones(1), x=torch.zeros(1)), t(torch.zeros(1), y=torch.ones(1)))
""",
    "leaf": """
@torch.jit.script
def f():
    a = torch.tensor(2.5, requires_grad=True)
    return a, a * 2
a, b = f()
b.backward()
print(a.grad)
""",
}
ERRORS = {
    "an operation": ("def f(x):\n    return x.t()\nf(torch.ones(2, 2, 2))", RuntimeError),
    "a call": (
        "def g(x):\n    return x.t()\ndef f(x):\n    return g(x)\nf(torch.ones(2, 2, 2))",
        RuntimeError,
    ),
    "raise": (
        'def f(x):\n    raise ValueError("no")\n    return x\nf(torch.ones(1))',
        Exception,
    ),
    "assert": ('def f(n: int):\n    assert n > 1, "small"\nf(1)', Exception),
    "an index": ("def f(xs: List[int]):\n    return xs[4]\nf([1])", RuntimeError),
    "no result": ("def f(n: int) -> int:\n    if n > 1:\n        return 1\nf(1)", RuntimeError),
    "a default": ("def f(n: int = 2.5):\n    return n\nf(1)", RuntimeError),
    "lists as defaults": ("def f(n: List[int] = []):\n    return n\nf()", Exception),
    "a large number": ("def f():\n    return 9223372036854775808\nf()", RuntimeError),
}


def space(root: Any, source: str, name: str) -> dict[str, Any]:
    """What a program defines, with a package as torch."""
    text = HEAD + textwrap.dedent(source)
    file = f"<{root.__name__} {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)

    made: dict[str, Any] = {"torch": root, "np": np, "T": root.tensor, **vars(typing)}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, file, "exec", dont_inherit=True), made)
    made["printed"] = printed.getvalue().splitlines()
    return made


def seen(function: Any, value: str, names: dict[str, Any]) -> str:
    """What a call gives, or what error."""
    try:
        return repr(function(eval(value, names)))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def test_what_is_given() -> None:
    ours, theirs = (space(root, FUNCTIONS, "given") for root in (toytorch, torch))
    different = []
    for name in [n for n in ours if getattr(ours[n], "graph", None) is not None]:
        for value in VALUES.strip().replace("\n", "|").split("|"):
            found = [seen(s[name], value, s) for s in (ours, theirs)]
            if found[0] != found[1]:
                different.append((name, value, *found))
    assert {d[:2] for d in different} <= {
        ("a_bool", "range(3)"),  # any object of a true or false kind there
        ("table", "None"),
        ("pair", 'b"ab"'),  # bytes are a sequence of numbers there
        ("pair", "T([1, 2])"),  # equal, but printed as an int
        ("table", "()"),
    }, different


def test_lists_are_copied() -> None:
    mine = [1]
    assert space(toytorch, FUNCTIONS, "copied")["ints"](mine) == [1, 7] and mine == [1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = PROGRAMS[name].replace("from torch.", "from toytorch.")
    got, wanted = (
        space(root, text, name)["printed"]
        for root, text in ((toytorch, ours), (torch, PROGRAMS[name]))
    )
    ours_named = [line.replace("<DifferentiableGraphBackward>", "<AddBackward0>") for line in got]
    assert ours_named == wanted


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    source, kind = ERRORS[name]
    source = source.replace("def f", "@torch.jit.script\ndef f").replace(
        "def g", "@torch.jit.script\ndef g"
    )
    found = []
    for root in (toytorch, torch):
        with pytest.raises(kind) as caught:
            space(root, source, name)
        found.append(caught.value)
    first = [str(e).strip().splitlines()[0].split("(")[0][:23] for e in found]
    assert first[0].rstrip(".:") == first[1].rstrip(".:")
    assert str(found[0]).count("<--- HERE") == str(found[1]).count("<--- HERE")
    assert isinstance(found[0], toytorch.jit.Error) == isinstance(found[1], torch.jit.Error)


def test_names() -> None:
    annotations = importlib.import_module("toytorch.jit.annotations")
    assert [str(t) for t in annotations.get_signature(def_with_types)[0]] == ["int", "Tensor[]"]
    assert toytorch.jit._unique_state_dict(toytorch.nn.Linear(1, 1)).keys() == {"weight", "bias"}


def def_with_types(n: int, xs: list[toytorch.Tensor]) -> int:
    return n
