"""Calls: of the framework's functions, of Python's builtins, of functions that are compiled too."""

from __future__ import annotations

import ast
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from toytorch.core.op import Op, registry
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.device import device
from toytorch.facts.dtype import bool as bool_
from toytorch.facts.dtype import int64
from toytorch.facts.hints import Fn, Kwargs
from toytorch.facts.package import is_ours
from toytorch.facts.schema import REQUIRED
from toytorch.facts.size import Size
from toytorch.facts.syntax import parse as parse_python
from toytorch.jit import forks, types
from toytorch.jit.builtins import FAMILIES, fits
from toytorch.jit.ir import Value
from toytorch.jit.reachable import where_is
from toytorch.jit.script import markers
from toytorch.jit.script.annotations import Unreadable, is_older_tensor, read, spelled, type_of
from toytorch.jit.script.attributes import Attributes
from toytorch.jit.script.base import Compiled, Parameter
from toytorch.jit.script.classes import Object, register
from toytorch.jit.script.errors import FrontendError, NotSupportedError
from toytorch.jit.script.operators import has_method
from toytorch.jit.script.pythons import Pythons
from toytorch.jit.script.reading import commented_result, names_of
from toytorch.jit.script.values import (
    At,
    Given,
    Known,
    Method,
    ModuleMethod,
    ModuleValue,
    Record,
    Spelled,
    describe,
)
from toytorch.nn import Module
from toytorch.ops.aten import OpOverload, OpOverloadPacket
from toytorch.ops.creation import create, from_data
from toytorch.ops.define import PUBLIC

RECORDS: dict[int, Op] = {id(op.function): op for op in registry.values()}
PUBLIC_NAMES: dict[int, str] = {
    id(f): name.replace(".", "_")  # of several, the first
    for name, f in reversed(PUBLIC.items())
}


LEAVES = {types.INT: int64, types.BOOL: bool_}
NUMBER_FROM = {types.INT: "Int", types.FLOAT: "Float", types.COMPLEX: "Complex"}


class Calls(Pythons, Attributes):
    """Emits calls."""

    def on_Call(self, node: ast.Call) -> Any:
        callee = self.expression(node.func)
        if isinstance(callee, Known):
            special = self.special(callee.object, node)
            if special is not None:
                return special
        args: list[Any] = []
        for a in node.args:
            if isinstance(a, ast.Starred):
                args += self.elements(self.expression(a.value), a)
            else:
                args.append(self.expression(a))
        kwargs = {}
        for k in node.keywords:
            if k.arg is None:
                raise NotSupportedError(
                    self.program.source(k.value), "keyword-arg expansion is not supported"
                )
            kwargs[k.arg] = self.expression(k.value)
        return self.call_item(callee, args, kwargs, node)

    def special(self, function: object, node: ast.Call) -> Any:
        """Calls whose arguments are types, or that are answered while compiling."""
        if function is markers.annotate or getattr(function, "word", "") == "annotate":
            self.need(node, 2, "annotate")
            kind = self.annotation(node.args[0])
            if isinstance(node.args[1], ast.ListComp) and not isinstance(kind, types.List):
                raise self.fail(
                    f"Expected an annotation of type List but got {spelled(kind)}", node.args[1]
                )
            value = self.value(node.args[1], kind)
            if isinstance(value.type, types.Tensor) and kind in NUMBER_FROM:
                return self.call_builtin(NUMBER_FROM[kind], [value], node)
            if value.type != types.ANY and not fits(kind, value.type, {}):
                raise self.fail(
                    f"expected an expression of type {spelled(kind)} but found "
                    f"{spelled(value.type)}",
                    node.args[1],
                )
            return self.cast(value, kind, node)
        word = getattr(function, "word", "")
        if word == "unchecked_cast":
            value, kind = self.value(node.args[1]), self.annotation(node.args[0])
            return self.one("prim::unchecked_cast", [value], kind, node)
        if word == "uninitialized":
            return self.uninitialized(self.block, self.annotation(node.args[0]), node)
        if function in (isinstance, markers.isinstance_) and len(node.args) == 2:
            return self.is_instance(node)
        if function is forks.fork:
            return self.forked(node)
        if function is forks.wait and len(node.args) == 1:
            return self.call_builtin("wait", [self.value(node.args[0])], node)
        if function in (hasattr, markers.is_scripting, markers.is_tracing):
            return Known(self.static_call(node))
        return None

    def forked(self, node: ast.Call) -> Value:
        """fork(f, …): the call, and a future of what it gives."""
        if not node.args:
            raise self.fail("Expected at least one argument to fork()", node)
        call = ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node)
        result = self.as_value(self.on_Call(call), node)
        return self.one("prim::fork", [result], types.Future(result.type), node)

    def need(self, node: ast.Call, count: int, name: str) -> None:
        """Refuses a wrong number of arguments."""
        if len(node.args) != count:
            raise self.fail(f"{name} expected {count} arguments, got {len(node.args)}", node)

    def is_instance(self, node: ast.Call) -> Any:
        """isinstance, answered at once where the type tells."""
        known = self.static(node)
        if known is not None:
            return Known(known)
        value = self.value(node.args[0])
        wanted = self.kinds(node.args[1], value.type)
        kinds = {"types": ", ".join(map(spelled, wanted)), "_types": tuple(wanted)}
        return self.one("prim::isinstance", [value], types.BOOL, node, kinds)

    def call_item(self, item: object, args: Given, kwargs: Kwargs, at: Any) -> Any:
        """Calls whatever may be called."""
        if isinstance(item, Method):
            return self.call_method(item.value, item.name, args, kwargs, at)
        if isinstance(item, Spelled):
            return self.call_spelled(item.name, args, kwargs, at)
        if isinstance(item, ModuleMethod):
            return self.call_bound(item, args, kwargs, at)
        if isinstance(item, ModuleValue):
            return self.call_module(item, args, kwargs, at)
        if isinstance(item, Known):
            return self.call_function(item.object, args, kwargs, at)
        if isinstance(item, Value) and callable_object(item):
            return self.call_item(self.attribute(item, "__call__", at), args, kwargs, at)
        if isinstance(item, Value):
            raise self.fail(
                f"cannot call a value: '{spelled(item.type)}' object is not callable", at
            )
        raise self.fail(f"{describe(item)} is not callable", at)

    def call_spelled(self, name: str, args: Given, kwargs: Kwargs, at: At) -> Any:
        """An operation by its name in the graph, as `.code` writes it."""
        if name in ("format", "percentFormat"):
            return self.one(f"aten::{name}", [self.as_value(a, at) for a in args], types.STR, at)
        first = self.as_value(args[0], at)
        if isinstance(first.type, types.Tensor):
            return self.call_method(first, name, args[1:], kwargs, at)
        return self.call_builtin(name, [first, *args[1:]], at, kwargs)

    # -- methods of values -------------------------------------------------------------------------

    def call_method(self, value: Value, name: str, args: Given, kwargs: Kwargs, at: At) -> Any:
        """value.name(…)"""
        if not isinstance(value.type, types.Tensor):
            if name == "format":
                return self.one(
                    "aten::format", [value, *(self.as_value(a, at) for a in args)], types.STR, at
                )
            if name == "items" and isinstance(value.type, types.Dict) and args:
                raise self.invalid(name, [value], at)
            return self.call_builtin(name, [value, *args], at, kwargs)
        given = [self.as_value(a, at) for a in args]
        named = {k: self.as_value(v, at) for k, v in kwargs.items()}
        found = self.overload(name, [value, *given], named)
        if found is not None:
            return self.call_builtin(name, [value, *given], at, named)
        function = getattr(Tensor, name)
        if name == "tolist":
            return self.one("aten::tolist", [value], types.ANY, at, function=function)
        inplace = registry.get(name.removesuffix("_")) if name.endswith("_") else None
        if (
            inplace is not None
            and inplace.has_inplace
            and getattr(function, "__globals__", {}).get("op") is inplace
        ):  # not written by hand
            return self.call_record(name[:-1], [value, *given], at, True, named)
        record = RECORDS.get(id(function))
        if record is not None:
            return self.call_record(record.name, [value, *given], at, kwargs=named)
        return self.call_composed(function, name, [value, *given], named, at)

    # -- functions --------------------------------------------------------------------------------

    def call_function(
        self, function: Any, args: Given, kwargs: Kwargs, at: At, name: str = ""
    ) -> Any:
        """Calls a Python object."""
        if isinstance(function, functools.partial):
            first = [self.as_value(Known(v), at) for v in function.args]
            more = {k: self.as_value(Known(v), at) for k, v in function.keywords.items()}
            return self.call_function(function.func, [*first, *args], {**more, **kwargs}, at, name)
        if isinstance(function, OpOverload):
            function = function.overloadpacket
        if isinstance(function, OpOverloadPacket):
            function = function._function
        compiled = getattr(function, "compiled", None)
        if isinstance(compiled, Compiled):
            return self.call_compiled(compiled, args, kwargs, at)
        if isinstance(function, Record):
            return self.call_record(function.name, args, at, kwargs=kwargs)
        if getattr(function, "__name__", "") == "__new__" and args and isinstance(args[0], Known):
            kind = args[0].object
            made = {"name": kind.__name__, "_class": kind}
            return self.one("prim::CreateObject", [], register(kind), at, made)
        if self.is_python(function):
            return self.call_python(function, args, kwargs, at)
        modifier = getattr(function, markers.MODIFIER, "")
        if modifier in ("ignore", "unused"):
            if isinstance(function, type):
                raise FrontendError(
                    self.program.source(at),
                    f"Cannot instantiate class '{function.__name__}' in a script function",
                )
            return self.call_outside(function, modifier, args, kwargs, at)
        if function is warnings.warn or function is warned.at_call:
            return self.call_outside(self.warner(at), "ignore", args[:1], {}, at)
        if isinstance(function, type):
            return self.call_class(function, args, kwargs, at)
        if hasattr(function, "graph") and hasattr(function, "executor"):  # traced
            return self.call_traced(function, args, at)
        if isinstance(function, Module):
            return self.call_foreign(function, args, at)
        module = str(getattr(function, "__module__", "") or "")
        if (
            module == "math"
            or is_ours(module)
            or id(function) in RECORDS
            or (id(function) in PUBLIC_NAMES)
        ):
            return self.call_library(function, module, args, kwargs, at)
        if inspect.isfunction(function):
            return self.call_compiled(self.compile_function(function, at), args, kwargs, at)
        if inspect.ismethod(function):
            raise self.fail(
                "bound methods of Python objects cannot be called from compiled code; "
                "script the object's class or mark the method with @torch.jit.ignore",
                at,
            )
        if inspect.isbuiltin(function):
            raise self.fail(
                f"Python builtin {function!r} is currently not supported in Torchscript",
                getattr(at, "func", at),
            )
        raise self.fail(f"{describe(Known(function))} is not callable in compiled code", at)

    def call_foreign(self, module: Module, args: Given, at: At) -> Value:
        """A module that is no part of the one that is compiled: Python runs it."""
        if "_methods" in module.__dict__:
            where = getattr(at, "func", at)
            raise self.fail(
                "Cannot call a ScriptModule that is not a submodule of the caller", where
            )
        values = [self.as_value(a, at) for a in args]
        name = {"name": "python_value"}
        return self.one("prim::CallFunction", values, types.TENSOR, at, name, module)

    def call_traced(self, function: Any, args: Given, at: At, owner: Value | None = None) -> Any:
        """A function that was traced, or the forward of a traced module."""
        graph = function.graph
        inputs = [v for a in args for v in self.flat_parts(self.as_value(a, at), at)]
        wanted = len(graph.inputs) - (owner is not None)
        if len(inputs) != wanted:
            raise self.fail(
                f"\n{function.name}():\nExpected at most {wanted} arguments but found "
                f"{len(inputs)} positional arguments.\n",
                getattr(at, "func", at),
            )
        kinds = [
            types.TENSOR if isinstance(v.type, types.Tensor) else v.type for v in graph.outputs
        ]
        kind = "prim::CallFunction" if owner is None else "prim::CallMethod"
        given = inputs if owner is None else [owner, *inputs]
        node = self.emit(kind, given, kinds, at, {"name": function.name, "Subgraph": graph})
        return node.output if len(kinds) == 1 else self.tuple_of(node.outputs, at)

    def flat_parts(self, value: Value, at: At) -> list[Value]:
        """The values in a tuple, as a trace takes them one by one."""
        if not isinstance(value.type, types.Tuple):
            return [value]
        return [p for e in self.elements(value, at) for p in self.flat_parts(e, at)]

    def call_library(self, function: Fn, module: str, args: Given, kwargs: Kwargs, at: At) -> Any:
        """A function of the framework or of `math`."""
        record = RECORDS.get(id(function))
        if record is not None:
            name = record.name.partition(".")[0]
        else:
            name = PUBLIC_NAMES.get(id(function)) or str(function.__name__)
        if (
            self.program.closed
            and record is None
            and module != "math"
            and (function is not markers.unwrap_optional and where_is(function) is None)
        ):
            raise self.fail(
                f"code that came as text may call operations only, and {name} is none", at
            )
        given = [self.as_value(a, at) for a in args]
        named = {k: self.as_value(v, at) for k, v in kwargs.items()}
        if name in ("tensor", "as_tensor") and given and not named.get("dtype"):
            leaf = given[0].type
            while isinstance(leaf, types.List) and leaf.element != types.TENSOR:
                leaf = leaf.element
            if leaf in LEAVES and leaf is not given[0].type:  # even if the list is empty
                named["dtype"] = self.constant(LEAVES[leaf], at)
        if module == "math":
            name = f"math{name}" if f"math{name}" in FAMILIES else name  # not the tensors' own
            if name not in FAMILIES:
                raise self.fail(
                    f"Python builtin {function!r} is currently not supported in Torchscript",
                    getattr(at, "func", at),
                )
            given = [
                self.as_value(self.call_builtin("Float", [v], at), at)
                if isinstance(v.type, types.Tensor)
                else v
                for v in given
            ]
            return self.call_builtin(name, given, at, named)
        if self.overload(name, given, named) is not None:
            return self.call_builtin(name, given, at, named)
        if record is not None:
            if "out" not in named:
                return self.call_record(record.name, given, at, kwargs=named)
            return self.call_composed(function, name, given, named, at)
        if function is markers.unwrap_optional:
            kind = given[0].type
            if kind == types.NONE:
                raise self.fail(
                    "Arguments for call are not valid: type t of the optional could not be "
                    "inferred from actual type None",
                    at,
                )
            inner = kind.element if isinstance(kind, types.Optional) else kind
            return self.one("prim::unchecked_unwrap_optional", given, inner, at)
        return self.call_composed(function, name, given, named, at)

    def call_class(self, kind: Any, args: Given, kwargs: Kwargs, at: At) -> Any:
        """Makes a named tuple, a device, a size, or an object of a class that is compiled."""
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            made = type_of(kind)
            assert isinstance(made, types.Tuple)
            defaults = getattr(kind, "_field_defaults", {})
            given = dict(zip(kind._fields, args)) | kwargs
            missing = [f for f in kind._fields if f not in given and f not in defaults]
            if missing or len(args) > len(kind._fields) or set(given) - set(kind._fields):
                raise self.fail(
                    f"{kind.__name__}() takes the fields {', '.join(kind._fields)}; "
                    f"missing: {', '.join(missing) or 'none'}",
                    at,
                )
            parts = [
                self.as_value(given[f], at)
                if f in given
                else self.default_of(defaults[f], wanted, at)
                for f, wanted in zip(kind._fields, made.elements)
            ]
            for field, part, wanted in zip(kind._fields, parts, made.elements):
                if not fits(wanted, part.type, {}):
                    known = field in getattr(kind, "__annotations__", ())
                    shown = spelled(wanted) + ("" if known else " (inferred)")
                    raise self.fail(
                        f"Expected a value of type '{shown}' for argument "
                        f"'{field}' but instead found type '{spelled(part.type)}'.",
                        at,
                    )
            return self.one("prim::TupleConstruct", parts, made, at, {"_class": kind})
        if kind is device and all(isinstance(a, Known) for a in args):
            given_names = {k: getattr(v, "object", v) for k, v in kwargs.items()}
            return Known(device(*(a.object for a in args), **given_names))
        if kind is Size:
            return args[0]
        if issubclass(kind, BaseException):
            raise self.fail("exceptions can only be raised", at)
        if is_older_tensor(kind):
            return self.call_legacy(kind, args, kwargs, at)
        if kind.__module__ in ("builtins", "typing") or is_ours(kind.__module__):
            raise self.fail(f"{kind.__name__} cannot be made in compiled code", at)
        return self.call_constructor(kind, args, kwargs, at)

    def default_of(self, value: Any, kind: types.Type, at: At) -> Value:
        """The default of a named tuple's field, of the type that the field has."""
        if not isinstance(value, (list, dict)):
            return self.as_value(Known(value), at)
        made = self.constant(value, at)
        made.type = kind.element if isinstance(kind, types.Optional) else kind
        return made

    def call_legacy(self, kind: Any, args: Given, kwargs: Kwargs, at: At) -> Any:
        """`LongTensor([1, 2])` is `tensor` of these elements, `LongTensor(2, 3)` is `empty`."""
        given = [self.as_value(a, at) for a in args]
        sizes = bool(given) and all(v.type == types.INT for v in given)
        wrong = next((f"Got kwarg {k}" for k in kwargs if k != "device"), "")
        if len(given) > 1 and not sizes:
            wrong = "Got multiple positional arguments that were not all integers"
        if wrong:
            raise self.fail(
                "\nLegacy Tensor Constructor only supports two schemas in TorchScript: \n'new("
                "IntArrayRef size, *, Device? device=None)',\n'new(PyObject* data, *, Device? "
                f"device=None)\n'{wrong}",
                at,
            )
        first = self.list_of(given, at, types.List(types.INT)) if sizes or not given else given[0]
        named = {"dtype": Known(kind.dtype), **kwargs}
        return self.call_function(create.empty if sizes else from_data.tensor, [first], named, at)

    def call_constructor(self, kind: Any, args: Given, kwargs: Kwargs, at: At) -> Value:
        """An object of a class: made empty, then its __init__."""
        made = self.one(
            "prim::CreateObject", [], register(kind), at, {"name": kind.__name__, "_class": kind}
        )
        start = kind.__dict__.get("__init__")
        if start is not None:
            self.call_bound(ModuleMethod(made, "__init__", start), args, kwargs, at)
        return made

    def call_outside(
        self,
        function: Fn,
        modifier: str,
        args: Given,
        kwargs: Kwargs,
        at: At,
        owner: Value | None = None,
    ) -> Any:
        """A function that is left to Python, or one that raises in compiled code."""
        result = self.declared_result(function)
        if modifier == "unused":
            text = (
                f"<python_value> is annotated to be ignored and cannot be run: "
                f"'{function.__name__}' is marked @torch.jit.unused"
            )
            error = {"_class": RuntimeError, "name": "RuntimeError"}
            self.emit("prim::RaiseException", [self.constant(text, at)], [], at, error)
            return self.uninitialized(self.block, result, at)
        inputs = [self.as_value(a, at) for a in args]
        named = {k: self.as_value(v, at) for k, v in kwargs.items()}
        self.check_outside(function, inputs, named, at, owner is not None)
        attributes: dict[str, Any] = {"name": function.__name__}
        if named:
            attributes["_names"] = tuple(named)
        full = [*([owner] if owner is not None else []), *inputs, *named.values()]
        kind = "prim::CallFunction" if owner is None else "prim::CallMethod"
        outputs = [] if result == types.NONE else [result]
        made = self.emit(kind, full, outputs, at, attributes, function if owner is None else None)
        return made.output if outputs else Known(None)

    def warner(self, at: At) -> Callable[[str], None]:
        """`warnings.warn` at a place of the program."""
        source = self.program.source(at)
        assert source is not None
        file, line = source.file, source.line

        def warn(message: str) -> None:
            warnings.warn_explicit(str(message), UserWarning, file, line)

        return warn

    def check_outside(
        self, function: Fn, inputs: Sequence[Value], named: dict[str, Value], at: At, method: bool
    ) -> None:
        """Refuses arguments that a function left to Python has no place for, or no use for."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return
        kinds = [p.kind for p in signature.parameters.values()]
        if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
            return
        if method and not kinds:
            raise self.fail("Non-static method does not have a self argument", at)
        own: list[Any] = [None] * method
        wanted = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
        why = ""
        if len(own) + len(inputs) > len(wanted):
            why = (
                f"Expected at most {len(wanted)} arguments but found {len(own) + len(inputs)} "
                "positional arguments."
            )
        else:
            rest = [p for p in wanted[len(own) + len(inputs) :] if p.default is p.empty]
            why = next(
                (f"Argument {p.name} not provided." for p in rest if p.name not in named), ""
            )
        for p, value in zip(wanted[len(own) :], inputs):
            hint = p.annotation
            kind = types.TENSOR if hint is Tensor or hint == "Tensor" else None
            if kind is not None and isinstance(value.type, (types.Tuple, types.List, types.Dict)):
                why = (
                    f"Expected a value of type 'Tensor' for argument '{p.name}' but instead found "
                    f"type '{spelled(value.type)}'."
                )
                break
        if why:
            raise self.fail(f"\n{function.__name__}{signature}:\n{why}\n", at)

    def declared_result(self, function: Fn) -> types.Type:
        """The type that a Python function's annotation promises; a tensor without one."""
        hint = getattr(function, "__annotations__", {}).get("return")
        if hint is None and "return" not in getattr(function, "__annotations__", {}):
            hint = commented_result(function) or Tensor
        try:
            if isinstance(hint, str):
                return read(parse_python(hint, mode="eval").body, names_of(function))
            return type_of(hint)
        except (Unreadable, AttributeError):
            return types.TENSOR

    # -- compiled functions ------------------------------------------------------------------------

    def call_compiled(
        self, compiled: Compiled, args: Given, kwargs: Kwargs, at: At, owner: Value | None = None
    ) -> Any:
        """A prim::CallFunction, or a prim::CallMethod of `owner`."""
        inputs = self.inputs_of(compiled, args, kwargs, at)
        attributes = {"name": compiled.name, "Subgraph": compiled.graph}
        if owner is not None:
            attributes["_compiled"] = compiled
            return self.one("prim::CallMethod", [owner, *inputs], compiled.returns, at, attributes)
        attributes["_compiled"] = compiled
        return self.one("prim::CallFunction", inputs, compiled.returns, at, attributes)

    def inputs_of(self, compiled: Compiled, args: Given, kwargs: Kwargs, at: At) -> list[Value]:
        """The arguments of a compiled function in the order of its parameters."""
        given = self.by_name(compiled, args, kwargs, at)
        inputs = []
        for p in compiled.params:
            if p.name not in given and p.default is REQUIRED:
                raise self.fail(
                    f"\n{compiled.declaration()}:\nArgument {p.name} not provided.\n",
                    getattr(at, "func", at),
                )
            item = given.get(p.name, Known(p.default))
            if p.name not in given and isinstance(p.default, Tensor):
                item = self.constant(p.default, at)
            inputs.append(self.fitted(compiled, p, item, at))
        return inputs

    def by_name(self, compiled: Compiled, args: Given, kwargs: Kwargs, at: At) -> dict[str, Any]:
        """What a call gives to the parameters of a compiled function."""
        positional = [p for p in compiled.params if not p.keyword_only]
        where = getattr(at, "func", at)
        if len(args) > len(positional):
            required = [p for p in compiled.params if p.keyword_only and p.default is REQUIRED]
            for p in required:
                if p.name not in kwargs:
                    raise self.fail(
                        f"\n{compiled.declaration()}:\nArgument {p.name} not provided.\n", where
                    )
            raise self.fail(
                f"\n{compiled.declaration()}:\nExpected at most {len(positional)} "
                f"arguments but found {len(args)} positional arguments.\n",
                where,
            )
        given = {p.name: a for p, a in zip(positional, args)}
        for key, item in kwargs.items():
            if key in given or key not in [p.name for p in compiled.params]:
                raise self.fail(
                    f"\n{compiled.declaration()}:\nUnknown keyword argument '{key}'.\n", where
                )
            given[key] = item
        return given

    def fitted(self, compiled: Compiled, p: Parameter, item: Any, at: At) -> Value:
        """An argument as a value of its parameter's type."""
        empty = (
            isinstance(item, Value)
            and item.node is not None
            and not item.node.inputs
            and (item.node.kind in ("prim::ListConstruct", "prim::DictConstruct"))
            and not self.is_named(item, at)
        )
        value = self.as_value(item, at)
        if isinstance(p.type, types.List) and p.type.count and fits(p.type.element, value.type, {}):
            value = self.list_of([value] * p.type.count, at, p.type)
        wanted = p.type.element if isinstance(p.type, types.Optional) else p.type
        if isinstance(wanted, types.List) and isinstance(value.type, types.Tuple):
            parts = [self.as_value(e, at) for e in self.elements(value, at)]
            value = self.list_of(parts, at, wanted)
        if empty and isinstance(p.type, (types.List, types.Dict)):
            value.type = p.type  # [] is whatever the parameter wants
        if not fits(p.type, value.type, {}):
            raise self.fail(
                f"\n{compiled.declaration()}:\nExpected a value of type "
                f"'{spelled(p.type)}' for argument '{p.name}' but instead found "
                f"type '{spelled(value.type)}'.\n{EMPTY if is_empty(value) else ''}",
                getattr(at, "func", at),
            )
        return value

    def is_named(self, item: Value, at: At) -> bool:
        """Whether a call is given a value by its name, so that it is more than the call's own."""
        words = [k.value for k in at.keywords] if isinstance(at, ast.Call) else []
        places = [*at.args, *words] if isinstance(at, ast.Call) else []
        return any(isinstance(a, ast.Name) and self.scope.find(a.id) is item for a in places)

    def compile_function(self, function: Fn, at: At) -> Compiled:
        """The graph of a Python function that is called."""
        raise NotImplementedError

    def call_bound(self, method: ModuleMethod, args: Given, kwargs: Kwargs, at: At) -> Any:
        """A method of a module or of an object."""
        raise NotImplementedError

    def call_module(self, item: ModuleValue, args: Given, kwargs: Kwargs, at: At) -> Any:
        """A module."""
        raise NotImplementedError


def callable_object(value: Value) -> bool:
    """Whether the class of an object has a method for calls."""
    return isinstance(value.type, Object) and has_method(value.type.python, "__call__")


EMPTY = (
    "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to create an "
    "empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in "
    "the list for Python 2)\n"
)


def is_empty(value: Value) -> bool:
    """Whether a value is a list written as []."""
    node = value.node
    return node is not None and node.kind == "prim::ListConstruct" and not node.inputs
