"""`item.name`: attributes of tensors, packages, named tuples, objects and modules."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import sys
import typing
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.package import is_ours
from toytorch.facts.syntax import parse as parse_python
from toytorch.jit import types
from toytorch.jit.builtins import FAMILIES, fits
from toytorch.jit.ir import Block, Value
from toytorch.jit.module import ScriptMethod
from toytorch.jit.script.annotations import Unreadable, read, spelled, type_of
from toytorch.jit.script.classes import Object, register
from toytorch.jit.script.errors import CompileError
from toytorch.jit.script.expressions import CONSTANTS
from toytorch.jit.script.markers import Attribute
from toytorch.jit.script.subscripts import Subscripts
from toytorch.jit.script.values import At, Counted, Items, Known, Method, ModuleMethod, ModuleValue
from toytorch.jit.types import Type
from toytorch.nn import Module

BOOLS = (
    "requires_grad", "is_cuda", "is_sparse", "is_sparse_csr", "is_mkldnn", "is_leaf",
    "is_quantized", "is_meta",
)  # fmt: skip
TENSOR_ATTRIBUTES: dict[str, Type] = {
    "dtype": types.DTYPE, "device": types.DEVICE, "layout": types.LAYOUT, "itemsize": types.INT,
    "nbytes": types.INT, "grad": types.Optional(types.TENSOR), **dict.fromkeys(BOOLS, types.BOOL),
    **dict.fromkeys(("T", "mT", "H", "mH", "real", "imag", "data"), types.TENSOR),
}  # fmt: skip


class Attributes(Subscripts):
    """Emits attributes."""

    def on_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.expression(node.value), node.attr, node)

    def attribute(self, item: object, name: str, at: Any) -> Any:
        """What `item.name` stands for."""
        if isinstance(item, ModuleValue):
            return self.module_attribute(item, name, at)
        if isinstance(item, (Items, Counted)) or (
            isinstance(item, Known) and isinstance(item.object, (*CONSTANTS[:5], Tensor))
        ):
            item = self.as_value(item, at)
        if isinstance(item, Known):
            return self.known_attribute(item.object, name, at)
        if isinstance(item, Method):
            raise self.fail(f"attribute lookup is not defined on builtin: '{name}'", at)
        if not isinstance(item, Value):
            raise self.fail(f"object has no attribute {name}", at)
        kind = item.type
        if isinstance(kind, types.Tensor):
            return self.tensor_attribute(item, name, at)
        if isinstance(kind, types.Tuple) and name in kind.names:
            return self.element(item, kind.names.index(name), at)
        if kind == types.DEVICE and name in ("type", "index"):
            kind = types.STR if name == "type" else types.Optional(types.INT)
            return self.one(f"prim::{name}", [item], kind, at)
        if isinstance(kind, types.Enum) and name in ("name", "value"):
            made = types.STR if name == "name" else kind.element
            return self.one(f"prim::Enum{name.title()}", [item], made, at)
        if isinstance(kind, Object):
            return self.object_attribute(item, kind, name, at)
        if (name in FAMILIES or name == "format") and kind not in (
            types.INT,
            types.FLOAT,
            types.BOOL,
            types.NUMBER,
        ):
            return Method(item, name)
        raise self.fail(f"'{spelled(kind)}' object has no attribute or method '{name}'.", at)

    def known_attribute(self, owner: Any, name: str, at: At) -> Any:
        """An attribute of a package, a class or another Python object."""
        if (
            self.program.closed
            and inspect.ismodule(owner)
            and (owner.__name__ not in ("math", "typing") and not is_ours(owner.__name__))
        ):
            raise self.fail(f"code that came as text may not use the module {owner.__name__}", at)
        missing = object()
        found = inspect.getattr_static(owner, name, missing)
        if found is missing and inspect.ismodule(owner):
            found = getattr(owner, name, missing)
        if found is missing:
            spelled_out = (
                self.program.named(owner, name) if hasattr(self.program, "named") else None
            )
            if spelled_out is not None:
                return spelled_out
            raise self.fail(f"object has no attribute {name}", at)
        return Known(getattr(owner, name))

    def tensor_attribute(self, value: Value, name: str, at: At) -> Any:
        """An attribute of a tensor, or a method on its way to being called."""
        if name == "shape":
            return self.call_builtin("size", [value], at)
        if name == "ndim":
            return self.call_builtin("dim", [value], at)
        if name in TENSOR_ATTRIBUTES:
            return self.one(f"prim::{name}", [value], TENSOR_ATTRIBUTES[name], at)
        if name in FAMILIES or callable(getattr(Tensor, name, None)):
            return Method(value, name)
        raise self.fail(f"'Tensor' object has no attribute or method '{name}'.", at)

    def learn(self, kind: Object, at: At) -> None:
        """Finds the attributes of a class of which no object was made yet: its `__init__` is
        compiled, and forgotten."""
        start = vars(kind.python).get("__init__")
        if kind.learnt or not inspect.isfunction(start):
            return
        kind.learnt.append(True)
        try:
            hints = typing.get_type_hints(start)
        except (NameError, TypeError):
            return
        block, (_, *names) = Block(), inspect.signature(start).parameters
        with self.inside(block), contextlib.suppress(CompileError, Unreadable):
            given = [self.uninitialized(block, type_of(hints.get(n, Tensor)), at) for n in names]
            self.call_constructor(kind.python, given, {}, at)

    def object_attribute(self, value: Value, kind: Object, name: str, at: At) -> Any:
        """An attribute or a method of a scripted class."""
        found = inspect.getattr_static(kind.python, name, None)
        if name not in kind.attributes and found is None:
            self.learn(kind, at)
        if name in kind.attributes:
            return self.one("prim::GetAttr", [value], kind.attributes[name], at, {"name": name})
        if inspect.isfunction(found):
            return ModuleMethod(value, name, found)
        if isinstance(found, staticmethod):
            return Known(found.__func__)
        if isinstance(found, property):
            return self.call_item(ModuleMethod(value, name, found.fget), [], {}, at)
        raise self.fail(f"'{kind.name}' object has no attribute or method '{name}'.", at)

    # -- modules ---------------------------------------------------------------------------------

    def module_attribute(self, item: ModuleValue, name: str, at: At) -> Any:
        """An attribute of a module: a child, a tensor, a constant, a method."""
        module = item.module
        if name in module._modules:
            child = module._modules[name]
            return (
                Known(None)
                if child is None
                else ModuleValue(
                    child,
                    self.one(
                        "prim::GetAttr",
                        [item.value],
                        types.Class(type(child).__name__),
                        at,
                        {"name": name},
                    ),
                )
            )
        if name in module._parameters or name in module._buffers:
            tensor = module._parameters.get(name, module._buffers.get(name))
            if tensor is None:
                return Known(None)
            return self.one("prim::GetAttr", [item.value], types.TENSOR, at, {"name": name})
        ready = module.__dict__.get("_methods", {}).get(name)
        text = module.__dict__.get("_defined", {}).get(name)
        if text is not None or hasattr(ready, "compiled"):
            return ModuleMethod(item, name, text if text is not None else ready)
        found = inspect.getattr_static(type(module), name, None)
        if isinstance(found, property):
            return self.call_item(ModuleMethod(item, name, found.fget), [], {}, at)
        if isinstance(found, ScriptMethod):
            found = found.function
        if inspect.isfunction(found) and name not in module.__dict__:
            return ModuleMethod(item, name, found)
        if isinstance(found, staticmethod):
            return Known(found.__func__)
        return self.plain_attribute(item, name, at)

    def plain_attribute(self, item: ModuleValue, name: str, at: At) -> Any:
        """An attribute of a module that is a Python value."""
        module = item.module
        try:
            value = getattr(module, name)
        except AttributeError:
            raise self.fail(
                f"Module '{type(module).__name__}' has no attribute '{name}' ", at
            ) from None
        if isinstance(value, (list, tuple)) and any(isinstance(v, Module) for v in value):
            raise self.fail(
                f"Module '{type(module).__name__}' has no attribute '{name}' (a list of modules is "
                "no attribute of compiled code; use torch.nn.ModuleList)",
                at,
            )
        declared, final = declared_type(module, name)
        if (
            name not in module.__dict__
            and name in dir(type(module))
            and not (final or callable(value) or is_ours(type(module).__module__))
            and name not in getattr(module, "__constants__", ())
        ):
            raise self.fail(f"Module '{type(module).__name__}' has no attribute '{name}' ", at)
        if is_ours(type(module).__module__) and isinstance(value, (str, tuple)):
            return Known(value)  # how a module of the framework was made does not change
        if (
            final
            or name in getattr(module, "__constants__", ())
            or (value is None and declared is None)
            or not isinstance(
                value, (bool, int, float, complex, str, list, tuple, dict, type(None), Tensor)
            )
        ):
            if isinstance(value, Module):
                raise self.fail(
                    f"Module '{type(module).__name__}' keeps '{name}' where the "
                    "compiler does not find it",
                    at,
                )
            made = object_type(value)
            if made is not None:
                return self.one("prim::GetAttr", [item.value], made, at, {"name": name})
            if not (isinstance(value, (*CONSTANTS, tuple, list, dict)) or callable(value)):
                raise self.fail(
                    f"Module '{type(module).__name__}' has no attribute '{name}' (This attribute "
                    "exists on the Python module, but we failed to convert Python type: "
                    f"'{type(value).__name__}' to a TorchScript type.)",
                    at,
                )
            return Known(value)
        kind = declared or kind_of(value)
        if not fits(kind, kind_of(value), {}) and value not in ([], {}):
            raise self.fail(
                f"Attribute '{name}' is annotated with type {spelled(kind)} but is of "
                f"type {spelled(types.of(value))}",
                at,
            )
        return self.one("prim::GetAttr", [item.value], kind, at, {"name": name})

    def set_attribute(self, target: ast.Attribute, value: Value, at: At) -> None:
        """owner.name = value."""
        owner, name = self.expression(target.value), target.attr
        if isinstance(owner, ModuleValue):
            before = self.module_attribute(owner, name, target)
            if isinstance(before, ModuleValue):
                raise self.fail(
                    f"Cannot re-assign modules in compiled code: '{name}' is one, and its type is "
                    "known while compiling",
                    at,
                )
            if isinstance(before, Value) and not fits(before.type, value.type, {}):
                raise self.wrong_type(before.type, value.type, at)
            self.emit("prim::SetAttr", [owner.value, value], [], at, {"name": name})
            return
        if not (isinstance(owner, Value) and isinstance(owner.type, Object)):
            shown = spelled(owner.type) if isinstance(owner, Value) else "value"
            raise self.fail(f"Tried to set an attribute: {name} on a non-class: {shown}", at)
        if name not in owner.type.attributes and self.name != "__init__":
            self.learn(owner.type, at)
        kind = owner.type.attributes.get(name)
        if kind is None:
            if self.name != "__init__":
                raise self.fail(
                    f"Tried to set nonexistent attribute: {name}. Did you forget to "
                    "initialize it in __init__()?",
                    at,
                )
            owner.type.attributes[name] = kind = value.type
        if not fits(kind, value.type, {}):
            raise self.wrong_type(kind, value.type, at)
        self.emit("prim::SetAttr", [owner, value], [], at, {"name": name})

    def wrong_type(self, wanted: Type, have: Type, at: At) -> Exception:
        """The error for an attribute that is set to something else than it was."""
        return self.fail(
            f"Wrong type for attribute assignment. Expected {spelled(wanted)} but got "
            f"{spelled(have)}",
            at,
        )


def object_type(value: object) -> Object | None:
    """The type of an object of a class of one's own, with the attributes that it has."""
    kind = type(value)
    if (
        is_ours(kind.__module__)
        or kind.__module__ == "builtins"
        or not hasattr(value, "__dict__")
        or callable(value)
    ):
        return None
    made = register(kind)
    hints = getattr(kind.__init__, "__annotations__", {})
    for name, part in vars(value).items():
        if name not in made.attributes:
            said = hints.get(name) if isinstance(part, (list, dict)) else None  # may be empty
            found = kind_of(part) if said is None or isinstance(said, str) else type_of(said)
            made.attributes[name] = object_type(part) or found if found == types.ANY else found
    return made


def kind_of(value: object) -> Type:
    """The type of a value; a dictionary's values may be objects of a class of one's own."""
    kind = general(types.of(value))
    values = list(value.values()) if isinstance(value, dict) else []
    one = len(set(map(type, values))) == 1
    if one and isinstance(kind, types.Dict) and kind.value == types.ANY:
        return types.Dict(kind.key, object_type(values[0]) or types.ANY)
    return kind


def general(kind: Type) -> Type:
    """A type without what is only true of the tensor at hand."""
    if isinstance(kind, types.Tensor):
        return types.TENSOR
    if isinstance(kind, types.List):
        return types.List(general(kind.element))
    if isinstance(kind, types.Dict):
        return types.Dict(general(kind.key), general(kind.value))
    if isinstance(kind, types.Tuple):
        return types.Tuple(tuple(map(general, kind.elements)), kind.names, kind.python)
    return kind


def declared_type(module: object, name: str) -> tuple[Type | None, bool]:
    """The type that a class annotates an attribute with, and whether it is Final."""
    held = module.__dict__.get("_jit_attributes", {}).get(name)
    if isinstance(held, Attribute):
        return type_of(held.type), False
    for kind in type(module).__mro__:
        hint = inspect.get_annotations(kind).get(name)
        if hint is None:
            continue
        space = vars(builtins) | vars(sys.modules.get(kind.__module__, typing))
        text = hint if isinstance(hint, str) else ""
        final = text.startswith(("Final", "torch.jit.Final", "typing.Final", "jit.Final")) or (
            "typing.Final" in (str(hint), str(typing.get_origin(hint)))
        )
        try:
            if text:
                found = read(parse_python(text, mode="eval").body, space.__getitem__)
            else:
                found = type_of(hint)
        except (Unreadable, AttributeError, SyntaxError, KeyError):
            found = None
        return found, final
    return None, False
