"""Subclasses of Tensor and objects that answer to functions of tensors, each in a fresh process:
functions ask for good once somebody wants to be asked. `compat/programs/tensor_subclasses.py` has
what both packages must print."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

from tests.oracle import UNDER_TEST


def run(program: str, package: str = UNDER_TEST) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import {package} as torch\n{program}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FOREIGN = """
class Foreign:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, len(args), sorted(kwargs or {})
f = Foreign()
"""


CALLS = [
    "torch.sin(f)", "torch.add(f, 1)", "torch.add(torch.ones(2), f)", "torch.cat([f, f])",
    "torch.stack((torch.ones(1), f), dim=0)", "torch.mean(f, dim=1)", "torch.sum(f)",
    "torch.nn.functional.relu(f)", "torch.matmul(f, f)", "torch.where(f, 1, 2)",
    "torch.where(torch.ones(2) > 0, torch.ones(2), f)",
    "torch.einsum('i,i', [f, f])", "torch.einsum('i,i', torch.ones(2), f)",
    "torch.reshape(f, (2,))", "torch.transpose(f, 0, 1)", "torch.linalg.det(f)",
    "torch.nn.functional.linear(torch.ones(1, 2), f)", "torch.split(f, 2)",
    "torch.unbind(f)", "torch.max(f)", "torch.zeros_like(f)",
    "torch.ones(2).add(f)", "torch.ones(2).matmul(f)", "torch.clamp(f, min=0)",
    "torch.nn.functional.softmax(f, dim=-1)",
]  # fmt: skip
# Each call in a process of its own, which begins after the import where processes can be forked.
EACH = """
import os, sys
for call in CALLS:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        print(call, eval(call)[:1])
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, call
"""


@functools.cache
def answers(package: str) -> list[str]:
    if hasattr(os, "fork"):
        return run(f"{FOREIGN}CALLS = {CALLS}\n{EACH}", package).splitlines()
    return [f"{call} {run(f'{FOREIGN}print({call}[:1])', package).strip()}" for call in CALLS]


@pytest.mark.parametrize("number", range(len(CALLS)), ids=CALLS)
def test_first_call_with_an_object_that_is_no_tensor(number: int) -> None:
    """Nobody has asked before, so the call fails first and is made again."""
    assert answers(UNDER_TEST)[number] == answers("torch")[number]


def test_plain_programs_do_not_ask() -> None:
    program = """
class P(torch.nn.Parameter): pass
code = torch.sin.__code__
P(torch.ones(1)).sin(), torch.sin(torch.ones(1))
class Flag(torch.nn.Module): pass
import sys
print("toytorch.overrides" in sys.modules)
"""
    if UNDER_TEST == "toytorch":
        assert run(program) == "False\n"


def test_functions_stay_the_same_objects() -> None:
    program = """
import inspect
before = torch.sin, torch.Tensor.add, torch.nn.functional.relu, torch.cat, torch.Tensor.clone
signatures = [str(inspect.signature(f)) for f in before]
class S(torch.Tensor): pass
s = S([1.0])
assert type(torch.sin(s)) is S
assert before == (torch.sin, torch.Tensor.add, torch.nn.functional.relu, torch.cat, torch.Tensor.clone)
assert signatures == [str(inspect.signature(f)) for f in before]
assert torch.sin(torch.ones(2), out=torch.zeros(2)).shape == (2,)
assert type(torch.sin(torch.ones(2))) is torch.Tensor
"""
    if UNDER_TEST == "toytorch":
        run(program)


def test_copies_and_files() -> None:
    program = """
import copy, io, pickle
class S(torch.Tensor): pass
s = S([1.0, 2.0])
t = copy.copy(s)
print(type(t).__name__, t.tolist())
x = torch.ones(2, requires_grad=True)
y = x.as_subclass(S)
z = (y * y).sum()
(g,) = torch.autograd.grad(z, x, create_graph=True)
g.sum().backward()
print(x.grad.tolist(), type(z).__name__, y.requires_grad, y.is_leaf)
try:
    x.as_subclass(int)
except TypeError:
    print("refused")
"""
    assert run(program) == run(program, "torch")


def test_threads_switch_for_themselves() -> None:
    program = """
import threading
from {0}.overrides import TorchFunctionMode
class M(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(threading.get_ident()); return func(*args, **(kwargs or {{}}))
seen = []
with M():
    t = threading.Thread(target=lambda: torch.ones(1).sin()); t.start(); t.join()
    torch.ones(1)
print(set(seen) == {{threading.get_ident()}})
"""
    for package in {UNDER_TEST, "torch"}:
        assert run(program.format(package), package) == "True\n"


def test_gradients_networks_and_graphs_with_functions_that_ask() -> None:
    """Everything goes on as before: training, graphs, vmap."""
    program = """
class S(torch.Tensor): pass
S([1.0])
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 12).reshape(4, 3)
for _ in range(5):
    loss = (net(x) ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
print(f"{loss.item():.5f}")
traced = torch.jit.trace(net, x)
print(torch.allclose(traced(x), net(x)), torch.func.vmap(torch.sum)(x).shape)
print(f"{torch.func.grad(lambda v: (v ** 3).sum())(x).sum().item():.5f}")
"""
    program = "import warnings; warnings.simplefilter('ignore')\n" + program
    want = run(program.replace("S([1.0])", ""), "torch")
    assert run(program) == want


def test_frames_of_functions_that_ask_show_their_locals() -> None:
    """As debuggers and pytest ask for them: a frame without its cells crashed the process."""
    program = """
import sys
class S(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise KeyError(func.__name__)
s = torch.ones(2).as_subclass(S)
seen = 0
for function in (torch.Tensor.__radd__, torch.Tensor.__rpow__, torch.add, torch.Tensor.__eq__, torch.Tensor.sum):
    try:
        function(s, 2)
    except KeyError:
        frame = sys.exc_info()[2]
        while frame is not None:
            dict(frame.tb_frame.f_locals)
            frame, seen = frame.tb_next, seen + 1
print(seen > 5)
"""
    assert run(program) == run(program, "torch") == "True\n"


def test_types_behind_properties_of_a_subclass() -> None:
    """As image classes of libraries have them."""
    program = """
class Plain:
    @property
    def dtype(self):
        return super().dtype
class S(Plain, torch.Tensor):
    @property
    def shape(self):
        return super().shape
x = torch.ones(2, 3).as_subclass(S)
print(x, x.dtype, x.shape, x.double().dtype, x[0], S([1, 2]), torch.Tensor._make_subclass(S, torch.ones(2)))
x.add_(1)
print(x.sum(), x.clone(), torch.stack([x, x]).dtype, torch.vmap(torch.sum)(x))
"""
    assert run(program) == run(program, "torch")


def test_types_behind_properties_of_a_wrapper() -> None:
    program = """
class Held(torch.Tensor):
    @staticmethod
    def __new__(cls, data):
        made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)
        made.data_held = data
        return made
    @property
    def dtype(self):
        return self.data_held.dtype
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*[a.data_held if isinstance(a, cls) else a for a in args], **(kwargs or {}))
print(Held(torch.ones(2).double()).dtype, Held(torch.ones(2)) + 1)
"""
    assert run(program) == run(program, "torch")
