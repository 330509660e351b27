"""Names of PyTorch's documentation, each in a short program that prints the same in both packages."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import re
import tempfile
import textwrap
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS = {
    "least squares of several matrices": """
        shapes = (2, 5), (5, 5), (5, 2), (2, 5, 1), (5,), (2, 2), (3, 3), (2, 3, 2), (1, 2, 2)
        for a in ((2, 5, 3), (5, 5, 3), (1, 5, 3), (5, 3), (2, 2, 3), (3, 3, 3), (2, 2, 2, 2)):
            for b in shapes:
                tried(lambda: [v.shape for v in torch.linalg.lstsq(torch.ones(a), torch.ones(b))[:3]])
        a = torch.eye(3)[None].clone()
        a[:, 0] = 0
        for driver in ("gelsy", "gelsd", "gelss"):
            print(torch.linalg.lstsq(a, torch.ones(2, 3, 3), driver=driver).rank.shape)
    """,
    "the type of gradients": """
        x = torch.tensor([1.0, 2.0])
        print(x.grad_dtype, x.requires_grad_().grad_dtype)
        tried(lambda: (x * 2).grad_dtype)
        tried(lambda: setattr(x * 2, "grad_dtype", torch.float16))
        tried(lambda: setattr(x, "grad_dtype", "a"))
        x.grad_dtype = torch.float16
        x.register_hook(lambda g: print(g.dtype))
        for _ in range(2):
            (x * 2).sum().backward()
            print(x.grad, x.grad_dtype)
        tried(lambda: setattr(x, "grad_dtype", torch.float64))
        tried(lambda: setattr(x, "grad", torch.ones(2)))
        x.grad_dtype = None
        x.grad = torch.ones(2, dtype=torch.float64)
        print(x.grad_dtype, torch.autograd.grad((x * 3).sum(), x))
    """,
    "a hook that gives the leaf back": """
        x = torch.zeros(3, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda p: print(p.grad))
        h = x.register_post_accumulate_grad_hook(lambda p: p.requires_grad_())
        x.backward(torch.ones(3))
        h.remove()
        x.register_post_accumulate_grad_hook(lambda p: p.detach())
        tried(lambda: x.backward(torch.ones(3)))
        print(x)
    """,
    "operators that are registered before they are defined": """
        lib = torch.library
        print(hasattr(torch.ops, "unheard_of"), hasattr(torch.ops.unheard_of, "x"), torch.ops.unheard_of)
        tried(lambda: torch.ops.unheard_of.x)
        tried(lambda: lib.register_autograd(f"{name}::a", print))
        tried(lambda: lib.register_autocast(f"{name}::a", "cpu", torch.float16))
        tried(lambda: lib.register_vmap(f"{name}::a", print))
        print(lib.impl(f"{name}::a", "cpu", lambda x: x * 2), lib.register_kernel(f"{name}::b", "cpu", len))
        lib.define(f"{name}::a", "(Tensor x) -> Tensor")
        print(getattr(torch.ops, name).a(torch.ones(2)))
    """,
    "checks of operators": """
        lib, Tensor = torch.library, torch.Tensor

        def good(x: Tensor, k: float = 2.0) -> Tensor:
            return x * k

        def written(x: Tensor) -> Tensor:
            x.add_(1)
            return x.clone()

        def pair(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return x + y, x - y

        made = {f: lib.custom_op(f"{name}::{f.__name__}", f, mutates_args=()) for f in (good, written, pair)}
        x, w = torch.ones(3), torch.ones(3, requires_grad=True)
        tried(lambda: lib.opcheck(made[good], (x,)))
        made[good].register_fake(lambda x, k=2.0: torch.empty_like(x))
        tried(lambda: lib.opcheck(made[good], (x,), {"k": 3.0}))
        tried(lambda: lib.opcheck(made[good], (w,), raise_exception=False)["test_aot_dispatch_dynamic"])
        made[good].register_autograd(
            lambda ctx, g: (g * ctx.k, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
        )
        tried(lambda: lib.opcheck(getattr(torch.ops, name).good, (w, 3.0)))
        tried(lambda: lib.opcheck(f"{name}::good", (x,)))
        tried(lambda: lib.opcheck(made[good], (x,), test_utils="unknown"))
        tried(lambda: lib.opcheck(made[written], (x,), test_utils="test_schema"))
        made[pair].register_fake(lambda x, y: (x.new_empty(4), torch.empty_like(x)))
        tried(lambda: lib.opcheck(made[pair], (x, x), test_utils="test_faketensor"))
        lib.define(f"{name}::alias", "(Tensor x) -> Tensor")
        lib.impl(f"{name}::alias", "cpu", lambda x: x.view(-1))
        tried(lambda: lib.opcheck(getattr(torch.ops, name).alias, (x,), test_utils="test_schema"))
        tried(
            lambda: lib.opcheck(
                getattr(torch.ops, name).alias, (w,), test_utils="test_autograd_registration"
            )
        )
    """,
    "hooks around a step that a program wrote": """
        class Mine(torch.optim.Optimizer):
            def __init__(self, params, lr=0.1):
                super().__init__(params, {"lr": lr})

            @torch.no_grad()
            def step(self, closure=None, more=0):
                self._cuda_graph_capture_health_check()
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad, alpha=-group["lr"])
                print("more", more)
                return closure and closure()

        class Child(Mine):
            def step(self, closure=None):
                return super().step(closure)

        for kind in (Mine, Child, torch.optim.SGD, torch.optim.LBFGS):
            p = torch.ones(2, requires_grad=True)
            p.grad = torch.ones(2)
            o = kind([p], lr=0.1)
            o.register_step_pre_hook(lambda o, args, kwargs: print(len(args), args[0] is o, kwargs))
            o.register_step_post_hook(lambda o, args, kwargs: print("behind", len(args)))
            s = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)
            print(o.step(lambda: (p * p).sum()), p)
            s.step()
        o = Mine([p])
        h = o.register_step_pre_hook(lambda o, args, kwargs: (args, {"more": 5}))
        o.step()
        h.remove()
        o.register_step_pre_hook(lambda o, args, kwargs: 1)
        tried(lambda: o.step())
    """,
    "dimensions by their names": """
        x = torch.arange(24.0).reshape(2, 3, 4)
        for text, sizes in (
            ("a b c -> (a b) c", {}), ("a b (c d) -> a b d c", {"c": 2}), ("... c -> c ...", {}),
            ("a ... -> (...) a", {}), ("a b c -> a 1 b () c", {}), ("a b c ... -> ... (a b c)", {}),
            ("a b -> b a", {}), ("a b c -> a b", {}), ("a b c", {}), ("a a b -> a b", {}),
            ("a b c -> c b a", {"z": 3}), ("a b c -> (a (b c))", {}), ("a b c) -> a b c", {}),
            ("a _b c -> a _b c", {}), ("a 2 c -> a c", {}), ("a ... -> a", {}), ("a (...) -> a ...", {}),
            ("a b c -> ... a b c", {}), ("... ... -> ...", {}), ("(a b c -> a b c", {}),
        ):
            tried(lambda: importlib.import_module(f"{torch.__name__}.func").rearrange(x, text, **sizes))
        print(importlib.import_module(f"{torch.__name__}.func").rearrange([x, x], "n a b c -> a (n b c)"))
    """,
    "gradcheck with sparse tensors": """
        check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        x = torch.tensor([[0, 1], [2, 3.0]], dtype=torch.float64)
        for made in (x.to_sparse, x.to_sparse_csr, x.to_sparse_csc):
            for masked in (False, True):
                tried(lambda: check(lambda x: x.to_dense(), made().requires_grad_(), masked=masked))
                tried(lambda: check(lambda x: x * 2, made().requires_grad_(), masked=masked))
        tried(lambda: check(torch.sparse.sum, x.to_sparse().requires_grad_()))
        tried(lambda: check(lambda x: x.detach() * x, torch.ones(2, dtype=torch.float64).requires_grad_()))
    """,
    "constants in trees": """
        import dataclasses

        tree = importlib.import_module(f"{torch.__name__}.utils._pytree")

        @dataclasses.dataclass(frozen=True)
        class Config:
            norm: str

        tree.register_constant(Config)
        print(tree.tree_flatten([Config("l2"), 1])[0], tree.tree_map(lambda v: v + 1, (Config("l2"), 1)))
        tried(lambda: tree.register_constant(type("Plain", (), {})))
        print(torch.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": 1}}))
        tried(lambda: torch.nn.factory_kwargs({"a": 1}))
        tried(lambda: torch.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 1}}))
    """,
    "a function below those who are asked": """
        overrides = importlib.import_module(f"{torch.__name__}.overrides")

        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args, kwargs=None):
                print(func.__name__)
                return overrides.redispatch_function(func, types, args, kwargs)

        def scaled(a, b):
            if overrides.has_torch_function((a, b)):
                return overrides.handle_torch_function(scaled, (a, b), a, b)
            return a * b + 1

        print(scaled(Loud(torch.ones(1)), torch.ones(1)))

        class Mode(overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args, kwargs=None):
                print(func.__name__)
                with self:
                    return overrides.redispatch_function(func, types, args, kwargs)

        a = torch.ones(1)
        with Mode():
            b = scaled(a, a)
            c = torch.tensor([1.0])
        print(b, c, torch.Tensor.as_subclass in overrides.get_ignored_functions())
    """,
    "files without their data": """
        files = importlib.import_module(f"{torch.__name__}.serialization")
        with tempfile.TemporaryDirectory() as folder:
            with files.skip_data():
                torch.save({"a": torch.ones(2, 3)}, f"{folder}/a.pt")
            print(torch.load(f"{folder}/a.pt"), files.get_unsafe_globals_in_checkpoint(f"{folder}/a.pt"))
            torch.save(torch.nn.Linear(1, 1).state_dict(), f"{folder}/b.pt")
            print(files.get_unsafe_globals_in_checkpoint(f"{folder}/b.pt"))
            with open(f"{folder}/c.pt", "wb") as file:
                file.write(b"abc")
            tried(lambda: files.get_unsafe_globals_in_checkpoint(f"{folder}/c.pt"))
    """,
    "tensors of a program's own class in files": """
        import sys
        import types

        module = types.ModuleType("made_by_a_program")
        sys.modules[module.__name__], module.torch = module, torch
        exec("class Named(torch.Tensor): pass", vars(module))
        x = torch.arange(2.0).as_subclass(module.Named)
        x.mark = [3]

        def again(**options):
            file = io.BytesIO()
            torch.save({"x": x}, file)
            file.seek(0)
            try:
                return torch.load(file, **options)["x"]
            except Exception as error:
                return type(error).__name__

        y = again(weights_only=False)
        print(type(y).__name__, y.mark, y)
        print(again())
        with importlib.import_module(f"{torch.__name__}.serialization").safe_globals([module.Named]):
            print(type(again()).__name__)

        class Local(torch.Tensor):
            pass

        tried(lambda: torch.save(torch.ones(1).as_subclass(Local), io.BytesIO()))
    """,
    "datasets and workers": """
        data = importlib.import_module(f"{torch.__name__}.utils.data")
        print(data.ConcatDataset.cumsum([[1, 2], [3]]), data.ConcatDataset([[1], [2, 3]]).cummulative_sizes)
        print(data.DataLoader([1, 2]).check_worker_number_rationality())
        print(torch.random.thread_safe_generator(), torch.thread_safe_generator())
        with torch.autograd.enforce_grad_layout_policy(False):
            print(torch.ones(1))
    """,
}


def said(lib: Any, text: str) -> str:
    """What a program prints with one of the packages; `tried` tells of errors."""

    def tried(call: Any) -> None:
        try:
            print(call())
        except Exception as error:
            print(type(error).__name__, str(error).partition("\n")[0])

    space = {
        "torch": lib, "tried": tried, "io": io, "importlib": importlib, "tempfile": tempfile, "math": math,
        "name": f"documented{abs(hash(text)) % 1000}", "__name__": "__main__",
    }  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(textwrap.dedent(text), space)
    return re.sub(r" at 0x\w+|toytorch\.", "", printed.getvalue())


@pytest.mark.parametrize("program", PROGRAMS)
def test_says_the_same(program: str) -> None:
    assert said(tt, PROGRAMS[program]) == said(torch, PROGRAMS[program])
