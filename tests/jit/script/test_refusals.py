"""What the compiler refuses, in PyTorch's words, and how far the program is shown around a mistake."""

from __future__ import annotations

import re
from typing import Any

import pytest

import toytorch
from tests.jit.script.test_as_pytorch import space

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is absent")

pytestmark = pytest.mark.filterwarnings("ignore")

HEAD = """
nn = torch.nn
from tests.jit.script.test_refusals import Thing
torch.jit.script(Thing)
"""


class Thing:
    """An object without arithmetic."""

    def __init__(self) -> None:
        self.n = 1


# A program, and the lines of PyTorch's message that ours has, too.
PROGRAMS: list[tuple[str, str]] = [
    ("def f():\n    a = Thing()\n    a += Thing()\n    return a", r"Cannot emit inplace op on"),
    ("def f(x, dim): return x.sum(dim)", r"Inferred the value for argument 'dim' to be of type.*"),
    ("def f(): return torch.jit.annotate(int, [x for x in [1]])", r"Expected an annotation of .*"),
    ("def f(x): return torch.unsqueeze(3, 4, 5)", r"Expected a value of type 'Tensor' for .*"),
    ("def f(x): return [[x]] + [[1]]", r"Could not match type .* matched to type List\[int\]\."),
    ("def f(x):\n    c, d = x + x\n    return c", r"Tensor cannot be used as a tuple:"),
    ("def f(x): return torch.cat([3])", r"Expected .* 'List\[Tensor\]' for argument 'tensors' .*"),
    ("def f(x) -> None:\n    return x", r"Return value was annotated as having type NoneType.*"),
    ("def g(x):\n    return torch.nope(x)\ndef f(x):\n    y = x\n    return g(y)",
     r"'g' is being compiled since it was called from 'f'"),
    ("def f(x):\n    a = x\n    b = a\n    c = torch.nope(b)\n    d = c\n    e = d\n    return e",
     r"    a = x\n    b = a\n    c = torch.nope\(b\)\n        ~~~~~~~~~~ <--- HERE\n    d = c\n    e = d"),
]  # fmt: skip
MODULES: list[tuple[str, str]] = [
    ("__constants__ = ['k']\ndef __init__(self):\n    super().__init__()\n    self.k = [nn.Linear(1, 1)]"
     "\ndef forward(self, x): return x", r"(?s)'torch.nn.modules.linear.Linear' object in .*"),
    ("__constants__ = ['k']\ndef __init__(self):\n    super().__init__()\n    self.k = int"
     "\ndef forward(self, x): return x", r"'type' object in attribute 'M.k' is not a valid constant."),
    ("@torch.jit.ignore\ndef call(): return 1\ndef forward(self, x): return self.call()",
     r"Non-static method does not have a self argument"),
    ("@torch.jit.ignore\ndef call(self, x, y): return x\ndef forward(self, x): return self.call(x)",
     r"Argument y not provided\."),
    ("@torch.jit.ignore\ndef call(self, x): return x\ndef forward(self, x): return self.call(x, x)",
     r"Expected at most 2 arguments but found 3 positional arguments\."),
    ("FOO = 1\ndef forward(self, x): return x + self.FOO", r"Module 'M' has no attribute 'FOO' :"),
    ("FOO: int = 1\ndef forward(self, x): return x + self.FOO", r"Module 'M' has no .* 'FOO' :"),
    ("def forward(self, x): return x\n@torch.jit.export\ndef __setstate__(self, state): pass",
     r"`__setstate__` defined but not `__getstate__`.*"),
    ("class Two(nn.Module):\n    def forward(self, x): return x, x\nclass One(nn.Module):\n"
     "    def forward(self, x): return x - 1\ndef __init__(self):\n    super().__init__()\n"
     "    self.q = nn.Sequential(self.Two(), self.One())\ndef forward(self, x): return self.q(x)",
     r"but instead found type 'Tuple\[Tensor, Tensor\]'"),
]  # fmt: skip
UNITS: list[tuple[str, str]] = [
    ("def f(x: Tuple[(int,)]):\n    return x", r"Tuple literal in Tuple type annotation .*!:"),
    ("def f(x):\n    for a, b in x, x:\n        pass", r"List of iterables is not supported currently:"),
    ("def g(x, *, y) -> Tensor:\n    return x\ndef f(x):\n    return g(x, x)",
     r"Argument y not provided\."),
]  # fmt: skip


def refusal(root: Any, source: str) -> str:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        space(root, HEAD + source, "refused")
    return str(caught.value)


def same(source: str, pattern: str) -> None:
    ours, theirs = (refusal(root, source) for root in (toytorch, torch))
    wanted = re.search(pattern, theirs.replace(" (inferred)", ""))
    assert wanted is not None, theirs
    assert wanted[0] in ours, ours


@pytest.mark.parametrize(("program", "pattern"), PROGRAMS)
def test_functions(program: str, pattern: str) -> None:
    same(program + "\ntorch.jit.script(f)", pattern)


@pytest.mark.parametrize(("body", "pattern"), MODULES)
def test_modules(body: str, pattern: str) -> None:
    inside = "".join(f"    {line}\n" for line in body.splitlines())
    same(f"class M(nn.Module):\n{inside}torch.jit.script(M())", pattern)


@pytest.mark.parametrize(("text", "pattern"), UNITS)
def test_text(text: str, pattern: str) -> None:
    same(f"torch.jit.CompilationUnit({text + chr(10)!r})", pattern)


FINAL = """
class M(nn.Module):
    __constants__ = ["n"]
    k: torch.jit.Final[int]
    def __init__(self):
        super().__init__()
        self.n, self.k, self.m = 3, 4, 5
    def forward(self, x):
        return x * self.n + self.k
class S(torch.jit.ScriptModule):
    __constants__ = ["n"]
    def __init__(self):
        super().__init__()
        self.n = 3
"""


@pytest.mark.parametrize(
    "change", ["torch.jit.script(M()).n = 4", "torch.jit.script(M()).k = 5", "S().n = 4"]
)
def test_constants_are_not_set(change: str) -> None:
    ours, theirs = (refusal(root, FINAL + change) for root in (toytorch, torch))
    assert ours == theirs


def test_a_slice_needs_a_step() -> None:
    for root in (toytorch, torch):
        made = space(root, "@torch.jit.script\ndef f(x: List[int]): return x[::0]", "step")
        with pytest.raises(RuntimeError, match="List slice should have non-zero step"):
            made["f"]([1, 2])


RESULTS = """
F = torch.nn.functional
@torch.jit.script
def pool(x) -> Tuple[torch.Tensor, torch.Tensor]:
    return F.max_pool1d(x, 2, return_indices=True)
@torch.jit.script
def adaptive(x) -> Tuple[torch.Tensor, torch.Tensor]:
    return F.adaptive_max_pool2d(x[None], 2, return_indices=True)
@torch.jit.script
def values(x) -> torch.Tensor:
    return F.max_pool1d(x, 2, return_indices=False)
@torch.jit.script
def slopes(x) -> List[Optional[torch.Tensor]]:
    x = x.detach().requires_grad_()
    y = x.detach().requires_grad_()
    return torch.autograd.grad([(x * x).sum()], [x, y], allow_unused=True)
"""


@pytest.mark.parametrize("name", ["pool", "adaptive", "values", "slopes"])
def test_results_of_functions_have_their_types(name: str) -> None:
    found = [
        repr(space(root, RESULTS, "results")[name](root.arange(16.0).view(1, 2, 8)))
        for root in (toytorch, torch)
    ]
    assert found[0] == found[1]
