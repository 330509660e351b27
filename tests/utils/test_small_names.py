"""Names below `torch.utils` and `torch._utils` that programs use: devices, tracebacks, calls as text."""

from __future__ import annotations

import importlib
import traceback
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

CALLS = [
    "r(torch.sum, [torch.ones(100)], {'dim': 0})",
    "r(torch.add, [torch.ones(2, 3), 1.5, None, [1, torch.ones(2)]], {'alpha': torch.tensor(3)})",
    "r(torch.nn.functional.relu, [torch.ones(2)], {'inplace': True})",
    "r(torch.add, [(1, 2), (torch.ones(1),), {'a': 1}], {})",
    "str(d('meta')(lambda: torch.empty(3))().device)",
    "str([t.device for t in d('meta')(make)()])",
    "d('meta')(object)",
]


@pytest.mark.parametrize("text", CALLS)
def test_same_answers(text: str) -> None:
    def ask(T: Any) -> Any:
        def make() -> Any:
            yield T.empty(3)
            yield T.empty(2)

        root = "torch" if T is torch else "toytorch"
        places = {
            "r": importlib.import_module(f"{root}._utils").render_call,
            "d": importlib.import_module(
                f"{root}.utils._device" if T is torch else "toytorch.compat.utils._device"
            ).set_device,
        }
        return eval(text, {"torch": T, "make": make, **places})

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    assert got == want


SOURCE = """\
def f(x):
    def g(x):
        raise RuntimeError()  # here

    return g(x) + 1
"""


def test_generated_code_has_lines() -> None:
    from toytorch.compat.utils._traceback import report_compile_source_on_error

    scope: dict[str, Any] = {"__compile_source__": SOURCE}
    exec(SOURCE, scope)
    with pytest.raises(RuntimeError) as caught, report_compile_source_on_error():
        scope["f"](1)
    assert "# here" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_captured_tracebacks() -> None:
    from toytorch.compat.utils._traceback import CapturedTraceback, format_traceback_short

    kept = CapturedTraceback.extract()
    assert "test_captured_tracebacks" in kept.format()[-1]
    assert "test_captured" not in CapturedTraceback.extract(skip=1).format()[-1]
    assert CapturedTraceback.format_all([kept, kept]) == [kept.format()] * 2
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError
    assert "test_small_names.py" in format_traceback_short(caught.value.__traceback__)


class Checks(tt.nn.Module):
    def forward(self, x: tt.Tensor) -> tt.Tensor:
        tt._assert(x.sum() > 0, "too small")
        return x


def test_assertions_in_compiled_code() -> None:
    with pytest.raises(tt.jit.Error, match="AssertionError: too small"):
        tt.jit.script(Checks())(tt.zeros(1))
