"""What freezing folds, and what stays an attribute, as in PyTorch."""

from __future__ import annotations

import io
import linecache
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MODULES = """
class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.ones(2), torch.ones(2) * 3

    def forward(self, x):
        self.a.add_(x)
        return self.a + self.b

class ThroughView(Written):
    def forward(self, x):
        y = self.a.view(2, 1)
        y[0][0] += 10
        return self.a.sum() + self.b

class InList(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = [torch.ones(2)], torch.ones(2)

    def forward(self, x):
        self.a[0][1] += 10
        return self.a[0].sum() + self.b

def doubled(x):
    return x * 2

class Forked(Written):
    def forward(self, x):
        future = torch.jit._fork(doubled, self.a)
        return doubled(self.b) + torch.jit._wait(future)

class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.ones(2), 2.5

    def forward(self, x):
        self.a[0] = 3.5
        return self.a + self.b

class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub1, self.sub2, self.a = Sub(), Sub(), torch.ones(2)

    def forward(self, x):
        return self.sub2(x) + self.sub1(x) + self.a

class Overlapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.ones(2)
        self.b = [self.a, torch.ones(1)]

    def forward(self, x):
        self.b[0][0] += 10
        return self.a.sum()

class Reassigned(Written):
    def forward(self, x):
        self.b = self.b + x
        return self.a + self.b

    @torch.jit.export
    def modify(self, x):
        self.a[0] += 10
        return self.b + self.a

class GivesChild(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, x):
        return self.conv

class Folded(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
        self.scale, self.shift = torch.tensor(2.5), torch.arange(3.0).reshape(1, 3, 1, 1)

    def forward(self, x):
        return self.bn(torch.add(torch.mul(self.conv(x), self.scale), self.shift))

class Detached(nn.Module):
    def forward(self, x):
        y = x.detach()
        return y * y

class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.f = "text", [(1, "two")]
        self.g, self.h = ([1, 2], 3.2, torch.tensor([5.5])), {"layer": [torch.tensor(7.5)]}

    def forward(self, x):
        return self.c + str(self.f) + str(self.g) + str(self.h)
"""


class Holder:
    def __init__(self, val: int) -> None:
        self.val: int = val


class Picks(tt.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Holder(1), Holder(2)

    def forward(self, cond: bool) -> int:
        if cond:
            mod = self.first
        else:
            mod = self.second
        return mod.val


def test_objects_may_be_chosen_among() -> None:
    tt.jit.script(Holder)
    frozen = tt.jit.freeze(tt.jit.script(Picks().eval()))
    assert (frozen(True), frozen(False)) == (1, 2)


def modules(T: Any) -> dict[str, Any]:
    """The classes above, over one package."""
    place = f"<frozen modules of {T.__name__}>"
    linecache.cache[place] = (len(MODULES), None, MODULES.splitlines(True), place)
    names: dict[str, Any] = {"torch": T, "nn": T.nn, "__name__": "__main__"}
    exec(compile(MODULES, place, "exec"), names)
    return names


ASKED = [
    ("Written", (), "a b"),
    ("ThroughView", (), "a b"),
    ("InList", (), "a b"),
    ("Forked", (), "a b"),
    ("Nested", (), "sub1 sub2 a"),
    ("Nested", (), "sub1.a sub1.b sub2.a sub2.b"),
    ("Nested", ("sub1",), "sub1.a sub1.b sub2.a sub2.b"),
    ("Overlapping", (), "a b"),
    ("Reassigned", ("modify",), "a b"),
    ("GivesChild", (), "conv"),
    ("Folded", (), "conv bn training"),
    ("Parts", (), "c f g h"),
]


def build(T: Any, name: str) -> Any:
    T.manual_seed(0)
    made = T.jit.script(modules(T)[name]())
    return made.eval()


def has(frozen: Any, path: str) -> bool:
    place = frozen._c
    *above, last = path.split(".")
    for name in above:
        if not place.hasattr(name):
            return False
        place = getattr(place, name)
    return bool(place.hasattr(last))


@pytest.mark.parametrize(("name", "preserved", "names"), ASKED)
def test_what_stays(name: str, preserved: tuple[str, ...], names: str) -> None:
    def ask(T: Any) -> Any:
        frozen = T.jit.freeze(build(T, name), list(preserved))
        return {n: has(frozen, n) for n in names.split()}

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    assert got == want


@pytest.mark.parametrize(
    "name", ["Written", "ThroughView", "InList", "Forked", "Nested", "Reassigned"]
)
def test_runs_as_before(name: str) -> None:
    """Twice in a row: what is written stays written."""

    def ask(T: Any) -> Any:
        x = T.ones(2)
        frozen = T.jit.freeze(build(T, name))
        return [frozen(x).tolist() for _ in range(2)]

    assert ask(tt) == ask(torch)


def test_what_one_method_sets_is_no_constant_of_another() -> None:
    def ask(T: Any) -> Any:
        frozen = T.jit.freeze(build(T, "Reassigned"), ["modify"])
        x = T.ones(2)
        return [frozen(x).tolist(), frozen.modify(x).tolist(), frozen(x).tolist()]

    assert ask(tt) == ask(torch)


def test_convolutions_take_arithmetic_in() -> None:
    def ask(T: Any) -> Any:
        made, x = build(T, "Folded"), T.ones(1, 2, 5, 5)
        frozen = T.jit.freeze(made)
        kinds = [n.kind() for n in frozen.graph.nodes()]
        np.testing.assert_allclose(
            frozen(x).detach().numpy(), made(x).detach().numpy(), rtol=1e-4, atol=1e-5
        )
        return [k for k in kinds if k in ("aten::mul", "aten::add")]

    assert ask(tt) == ask(torch) == []


def test_detach_is_gone() -> None:
    def ask(T: Any) -> Any:
        frozen = T.jit.freeze(build(T, "Detached"))
        return [n.kind() for n in frozen.graph.nodes() if n.kind() != "prim::Constant"]

    assert ask(tt) == ask(torch)


def test_constants_that_hold_tensors_are_saved() -> None:
    frozen = tt.jit.freeze(build(tt, "Parts"))
    file = io.BytesIO()
    tt.jit.save(frozen, file)
    file.seek(0)
    again = tt.jit.load(file)
    assert again(tt.ones(2)) == frozen(tt.ones(2))


def test_words() -> None:
    def ask(T: Any) -> Any:
        T.jit.freeze(build(T, "Written"))._c.state_dict()

    want, got = attempt(ask, torch)[1], attempt(ask, tt)[1]
    assert type(got) is type(want) is AttributeError
    assert str(got).partition(") ")[2] == str(want).partition(") ")[2]


def test_training_modules_keep_parameters() -> None:
    def ask(T: Any) -> Any:
        made = build(T, "Folded").train()
        inner = T._C._freeze_module(made._c)
        kept = T._C._freeze_module(made.eval()._c, preserveParameters=True)
        return [
            *(inner.hasattr(n) for n in ("conv", "bn", "training")),
            inner.conv.hasattr("weight"), inner.conv.hasattr("training"), inner.bn.hasattr("training"),
            kept.hasattr("conv"), kept.hasattr("training"),
        ]  # fmt: skip

    assert ask(tt) == ask(torch)
