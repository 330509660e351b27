"""Functions whose source is generated when they are first called.

A record has a function, an operator and an in-place form, each written from a template: a thousand
sources, which Python would compile for half a second at `import toytorch`, though a program uses a
few dozen of them. So a function is made with the code of `STUB`. Its first call writes the source,
compiles it in the function's own globals and gives the function that code. It stays the same
object: whoever holds it (`from toytorch import mul`, `Tensor.mul`, a table by identity) need not
know, and the calls that follow cost nothing more.
"""

from __future__ import annotations

import inspect
import linecache
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from toytorch.core.node_class import generate
from toytorch.core.op import Op
from toytorch.facts.hints import Fn

STUB_NAME = "<toytorch: first call of a generated function>"
STUB_SOURCE = """\
def stub(*args, **kwargs):  # `source()` of the record shows what takes the place of this
    return first_call()(*args, **kwargs)
"""
STUB = compile(STUB_SOURCE, STUB_NAME, "exec")
STUB_CODE: CodeType = STUB.co_consts[0]
linecache.cache[STUB_NAME] = (
    len(STUB_SOURCE),
    None,
    STUB_SOURCE.splitlines(keepends=True),
    STUB_NAME,
)
_lock = threading.RLock()  # two threads may call a function for the first time


class Generated:
    """A function, and how its source is written.

    name    of the function, which the source defines
    label   where tracebacks and debuggers say the source is
    write   gives the source, and the names it uses with what they stand for
    """

    def __init__(
        self, name: str, label: str, write: Callable[[], tuple[str, dict[str, Any]]]
    ) -> None:
        self.name, self.label, self.write = name, label, write
        self.text = ""
        space: dict[str, Any] = {"first_call": self.ready, "__name__": "toytorch.ops"}
        exec(STUB, space)
        self.function: FunctionType = space.pop("stub")
        self.function.__name__ = self.function.__qualname__ = name

    def of_record(self, op: Op, doc: str, out: bool = False) -> FunctionType:
        """The function as one of a record's; `out` tells whether it takes out=."""
        self.function.__globals__["op"] = op
        self.function.__doc__ = doc
        self.function.__dict__["__signature__"] = RecordSignature(op, out)
        op.generated.append(self)
        return self.function

    def ready(self) -> FunctionType:
        """The function, with its own code."""
        with _lock:
            if not self.text:
                text, names = self.write()
                space = self.function.__globals__
                space.update(names)
                generate(self.label, text, space)
                made = space.pop(self.name)
                # the code comes last: until then, other threads call the stub
                self.function.__defaults__ = made.__defaults__
                self.function.__kwdefaults__ = made.__kwdefaults__
                self.function.__code__ = made.__code__
                self.text = text
        return self.function

    def source(self) -> str:
        """What the function runs."""
        self.ready()
        return self.text


class RecordSignature(inspect.Signature):
    """The parameters of a record's function, read from the schema when somebody asks."""

    __slots__ = ("op", "out")

    def __init__(self, op: Op, out: bool) -> None:
        self.op, self.out = op, out

    def plain(self) -> inspect.Signature:
        """The same as an ordinary signature."""
        return self.op.schema.signature(self.out)

    @property
    def parameters(self) -> Any:
        """The parameters by name."""
        return self.plain().parameters

    @property
    def return_annotation(self) -> Any:
        """What it returns is not annotated."""
        return inspect.Signature.empty

    def replace(self, **changes: Any) -> Any:
        """A signature with some things changed."""
        return self.plain().replace(**changes)

    def __reduce__(self) -> Any:
        return self.plain().__reduce__()


def generated(function: Fn) -> Any:
    """The function, with its own code if it is one that is generated at its first call."""
    if getattr(function, "__code__", None) is STUB_CODE:
        return function.__globals__["first_call"]()
    return function
