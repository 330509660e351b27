"""Objects in compiled code: methods with special names, enumerations, generators, named tuples, lists of elements."""

from __future__ import annotations

from typing import Any

import pytest

import toytorch
from tests.jit.script.test_as_pytorch import space
from tests.oracle import names

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is absent")

pytestmark = pytest.mark.filterwarnings("ignore")

HEAD = """
import tests.jit.script.held as held
C, Color, P, Q = held.classes(torch)
torch.jit.script(C)
"""
PROGRAMS = [
    "def f():\n    c = C(3)\n    with c as k:\n        m = k * 2\n    return m, c.n",
    "def f():\n    c = C(0)\n    for i in range(3):\n        with c:\n            if c.n > 2:\n"
    "                break\n    return c.n",
    "def f():\n    c = C(2)\n    return c + 3, c - 1, c * 2, c < C(3), c == C(2), c != C(2)",
    "def f():\n    c = C(2)\n    return len(c), 2 in c, c(3), c[5], -c, str(c), c / 2",
    "def f():\n    c = C(2)\n    c[3] = 4\n    c += 5\n    return c.n",
    "def f():\n    c = C(2)\n    c += 5\n    c -= 1\n    return c.n",
    "def f(c: Color): return c == Color.RED, c.name, c.value\nargs = (Color.RED,)",
    "def f(c: Color) -> bool:\n    return c is Color.GREEN or c != Color.RED\nargs = (Color.GREEN,)",
    "def f() -> Color: return Color.GREEN",
    "def f(x, g: Optional[torch.Generator] = None):\n    return x + torch.rand(1, generator=g)\n"
    "args = (torch.tensor(1.0), torch.Generator().manual_seed(1))",
    "def f(g: torch.Generator):\n    return torch.rand(1, generator=g), torch.randn(2, generator=g)\n"
    "args = (torch.Generator().manual_seed(3),)",
    "def f(): return Q()",
    "def f(): return Q(y=[4]).y",
    "def f(p: P): return p.x + p.y\nargs = (P(torch.tensor(1.0), 2),)",
    "def f(x):\n    y: List[float] = x.tolist()\n    return y\nargs = (torch.tensor([1.0, 2.0]),)",
    "def f(x) -> List[List[int]]:\n    return x.tolist()\nargs = (torch.tensor([[1, 2]]),)",
    "def f():\n    e = torch.jit.annotate(List[int], [])\n    return torch.tensor(e), torch.as_tensor([e, e])",
    "def f():\n    e = torch.jit.annotate(List[bool], [])\n    return torch.tensor(e)",
    "def f(x: List[float]): return torch.tensor(x)\nargs = ([1.5],)",
    "def f(x: int): return torch.tensor(x), torch.tensor([x])\nargs = (3,)",
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_objects(program: str) -> None:
    found = []
    for root in (toytorch, torch):
        made = space(root, HEAD + program, "objects")
        compiled = root.jit.script(made["f"])
        args = made.get("args", ())
        found.append([repr(compiled(*args)) for _ in range(2)])
    assert found[0] == found[1]


def test_warnings_stand_where_the_program_warns() -> None:
    source = (
        "import warnings\n@torch.jit.script\ndef f(x):\n    warnings.warn('less')\n    return x"
    )
    found: list[Any] = []
    for root in (toytorch, torch):
        f = space(root, source, "warns")["f"]
        with pytest.warns(UserWarning, match="less") as caught:
            f(root.ones(1))
        name = caught[0].filename.replace("toytorch", "torch")
        found.append((name, caught[0].lineno, str(caught[0].message)))
    assert found[0] == found[1]


FUNCTIONS = names("triplet_margin_loss cross_entropy softmax layer_norm normalize mse_loss")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_framework_are_scripted(name: str) -> None:
    found = []
    for root in (toytorch, torch):
        x = root.arange(6.0).reshape(2, 3)
        function = getattr(root.nn.functional, name)
        args: dict[str, Any] = {
            "triplet_margin_loss": (x, x + 1, x - 2),
            "cross_entropy": (x, root.tensor([0, 2])),
            "softmax": (x, 1),
            "layer_norm": (x, [3]),
            "normalize": (x,),
            "mse_loss": (x, x * 2),
        }
        found.append(repr(root.jit.script(function)(*args[name])))
    assert found[0] == found[1]
