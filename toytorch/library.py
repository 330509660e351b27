"""Operators of one's own, by name: `torch.ops.my.op`, like `torch.library`.

An operator has a signature, a function that computes it (one for all devices, or one a device), and,
where it is to be differentiated, a backward. Unlike a plain function it is one step of the graph,
whatever runs inside, and its arguments are checked against the signature.

>>> @custom_op("docs::twice", mutates_args=())
... def twice(x: torch.Tensor) -> torch.Tensor:
...     return x * 2
>>> torch.ops.docs.twice(torch.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types as _python
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toytorch.autograd.custom_op import (
    COMPOSITE,
    EVERYWHERE,
    Definition,
    found,
    split,
    when_defined,
)
from toytorch.core.tensor import Tensor
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Fn
from toytorch.ops.namespaces import NAMESPACES

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "get_ctx", "impl", "infer_schema",
    "opcheck",  # noqa: F822  # found by __getattr__
    "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_vmap",
    "triton_op", "wrap_triton",
]  # fmt: skip

KEYS = {"CPU": "cpu", "CUDA": "cuda", "cpu": "cpu", "cuda": "cuda"}

# -- signatures ------------------------------------------------------------------------------------

WORDS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType",
    device: "Device", complex: "complex",
}  # fmt: skip
LISTED = ("Tensor", "SymInt", "float", "bool")
NUMBER = frozenset((int, float, bool))


def _word(annotation: object) -> str | None:
    """The word of a signature for a Python annotation."""
    if annotation in WORDS:
        return WORDS[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, _python.UnionType):
        rest = tuple(a for a in args if a is not type(None))
        if frozenset(rest) == NUMBER:
            inner: str | None = "Scalar"
        else:
            inner = _word(rest[0]) if len(rest) == 1 else None
        return inner and inner + "?" * (len(rest) < len(args))
    if origin is not None and args and isinstance(origin, type) and issubclass(origin, Sequence):
        inner = _word(args[0])
        if inner is None or inner.removesuffix("?") not in LISTED:
            return None
        return f"{inner}[]" if origin is not tuple else None
    return None


def infer_schema(
    prototype_function: Fn, /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The signature that a function's annotations say, in PyTorch's notation.

    Raises ValueError where an annotation is missing or names a type that operators do not take.

    >>> def f(x: Tensor, n: int = 2) -> Tensor: ...
    >>> infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=2) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)

    def wrong(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    mutated = () if mutates_args == "unknown" else tuple(mutates_args)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated "
            'or the string "unknown". '
        )
    parts, marked, written = [], False, 0
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise wrong("We do not support varargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not marked:
            parts.append("*")
            marked = True
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        word = _word(hints[name])
        if word is None:
            raise wrong(
                f"Parameter {name} has unsupported type {hints[name]}. The valid types are: "
                f"{tuple(WORDS)}."
            )
        if name in mutated or (mutates_args == "unknown" and word.startswith("Tensor")):
            if not word.startswith("Tensor"):
                raise wrong(f"Parameter {name} is in mutable_args but only Tensors or collections "
                            "of Tensors can be mutated")  # fmt: skip
            word = word.replace("Tensor", f"Tensor(a{written}!)", 1)
            written += 1
        text = f"{word} {name}"
        if parameter.default is not parameter.empty:
            default = parameter.default
            text += f'="{default}"' if isinstance(default, str) else f"={default}"
        parts.append(text)
    missing = [name for name in mutated if name not in signature.parameters]
    if missing:
        raise wrong(f"{missing} in mutates_args were not found in the parameters.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(hints.get('return', ...), wrong)}"


def _returned(annotation: object, wrong: Callable[[str], ValueError]) -> str:
    if annotation is ...:
        raise wrong("No return type annotation was provided. Please add one.")
    if annotation in (None, type(None)):
        return "()"
    if typing.get_origin(annotation) is tuple:
        words = [_word(a) for a in typing.get_args(annotation)]
        if None not in words:
            return f"({', '.join(map(str, words))})"
    word = _word(annotation)
    if word is None:
        raise wrong(f"Return has unsupported type {annotation}.")
    return word


# -- the public functions --------------------------------------------------------------------------


class CustomOpDef:
    """An operator that `custom_op` made: called like the function it was made of."""

    def __init__(self, definition: Definition, function: Fn) -> None:
        self._definition, self._init_fn = definition, function
        self._qualname = definition.qualified
        self._namespace = definition.namespace
        self._name = definition.name
        functools.update_wrapper(self, function)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._definition(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Fn | None = None, /
    ) -> Any:
        """The function for some kinds of devices; None is all."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Fn, /) -> Fn:
        """The function that says which shape and type the result has."""
        register_fake(self, fn)
        return fn

    def register_autograd(self, backward: Fn, /, *, setup_context: Fn | None = None) -> None:
        """Its derivative: `backward(ctx, *grads)`, after `setup_context(ctx, inputs, output)`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Fn | None = None) -> Any:
        """How a batch is done at once; without it, example by example."""
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """The type that its arguments get under autocast."""
        register_autocast(self, device_type, cast_inputs)


def custom_op(
    name: str,
    fn: Fn | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: object = None,
) -> Any:
    """Makes an operator of a function; as a decorator or called with the function.

    `mutates_args` names the tensors that it writes to; the result may share no memory with its
    arguments. The signature follows from the annotations unless it is given. Raises ValueError for
    a name without `::`, or annotations of other types. Like `torch.library.custom_op`.
    """

    def make(function: Fn) -> CustomOpDef:
        text = schema or infer_schema(function, mutates_args=mutates_args)
        definition = Definition(name, text)
        definition.checks_aliases = True
        made = CustomOpDef(definition, function)
        register_kernel(made, device_types, function)
        return made

    return make if fn is None else make(fn)


def triton_op(
    name: str,
    fn: Fn | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """`custom_op` of a function that calls kernels in Triton and can itself say the result's shape."""

    def make(function: Fn) -> CustomOpDef:
        made: CustomOpDef = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made.register_fake(function)
        return made

    return make if fn is None else make(fn)


def wrap_triton(triton_kernel: Fn, /) -> Any:
    """A kernel in Triton as it is: no compiler looks into operators of one's own here."""
    return triton_kernel


def register_kernel(
    op: object,
    device_types: str | Sequence[str] | None,
    func: Fn | None = None,
    /,
    *,
    lib: object = None,
) -> Any:
    """Sets the function for some kinds of devices (None: all); as a decorator or called with it."""
    if device_types is None:
        kinds = [EVERYWHERE]
    else:
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)

    def make(function: Fn) -> Fn:
        when_defined(op, lambda d: d.kernels.update(dict.fromkeys(kinds, function)))
        return function

    if func is None:
        return make
    make(func)
    return None


def register_fake(op: object, func: Fn | None = None, /, *, lib: object = None, **_: object) -> Any:
    """Sets the function that says which shape and type the result has."""

    def make(function: Fn) -> Fn:
        when_defined(op, lambda d: setattr(d, "fake", function))
        return function

    return make if func is None else make(func)


def register_autograd(
    op: object, backward: Fn, /, *, setup_context: Fn | None = None, lib: object = None
) -> None:
    """Sets an operator's derivative.

    `setup_context(ctx, inputs, output)` saves what `backward(ctx, *grads)` needs, which returns a
    gradient, or None, for each positional argument (a list for a list of tensors).
    """
    definition = found(op)
    definition.backward, definition.setup = backward, setup_context
    if not definition.kernels:
        raise RuntimeError(f"{definition.qualified} has no function yet: register one first")


def register_vmap(op: object, func: Fn | None = None, /, *, lib: object = None) -> Any:
    """Takes a rule for `vmap`, which does operators of one's own example by example here."""
    found(op)
    return (lambda function: function) if func is None else func


def register_autocast(
    op: object, device_type: str, cast_inputs: dtype, /, *, lib: object = None
) -> None:
    """Sets the type that floating arguments get under autocast."""
    definition = found(op)
    definition.autocast = cast_inputs


def __getattr__(name: str) -> Any:
    if name == "opcheck":  # seldom wanted, and needs the compiler
        return importlib.import_module("toytorch.testing.opcheck").opcheck
    raise AttributeError(f"module 'torch.library' has no attribute '{name}'")


def get_ctx() -> Any:
    """Raises RuntimeError: sizes are known when shapes are asked for, so nothing is made of them."""
    raise RuntimeError("get_ctx() is only for fake functions of operators, where sizes are unknown")


class Library:
    """Operators of a namespace: `define` their signatures, then `impl` functions for them.

    `kind` is DEF for a namespace of one's own, FRAGMENT to add to one, IMPL to add functions only.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError("Unsupported kind: ", kind)
        if ns in ("prim", "prims") and kind == "DEF":
            raise ValueError(
                ns, " is a reserved namespace. Please try creating a library with another name."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: list[str] = []

    def define(
        self, schema: str, alias_analysis: str = "", *, tags: object = (), **_: object
    ) -> str:
        """Adds an operator by its signature, `"twice(Tensor x) -> Tensor"`; returns its name."""
        name = schema[: schema.index("(")].strip()
        Definition(f"{self.ns}::{name.split('.')[0]}", schema[schema.index("(") :])
        self._names.append(name)
        return name

    def impl(
        self,
        op_name: object,
        fn: Fn,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Sets the function of an operator for a key: CPU, CUDA, CompositeImplicitAutograd."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key
        if isinstance(op_name, str) and "::" not in op_name:
            op_name = f"{self.ns}::{op_name}"

        def complete(definition: Definition) -> None:
            if key in ("Meta", "Fake"):
                definition.fake = fn
            else:
                kind = COMPOSITE[0] if key.startswith("Autograd") else key or COMPOSITE[0]
                definition.kernels[KEYS.get(kind, kind)] = fn

        when_defined(op_name, complete)

    def _destroy(self) -> None:
        for name in self._names:
            NAMESPACES.get(self.ns, {}).pop(name, None)


def define(
    qualname: str, schema: str | Sequence[Any], *, lib: Library | None = None, tags: object = ()
) -> Any:
    """Adds an operator by name and signature: `define("my::f", "(Tensor x) -> Tensor")`."""
    split(qualname)
    if not isinstance(schema, str):
        raise ValueError(
            f"define(qualname, schema): expected schema to be of type str, but got type {type(schema)}"
        )
    Definition(qualname, schema)


def impl(
    qualname: object,
    types: str | Sequence[str] | None = None,
    func: Fn | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Sets the function of an operator for kinds of devices; as a decorator or called with it."""
    if isinstance(qualname, Library):  # the older form: impl(lib, name, key)
        library, name, key = qualname, types, func if isinstance(func, str) else ""

        def older(function: Fn) -> Fn:
            library.impl(name, function, key)
            return function

        return older
    kinds = [types] if isinstance(types, str) else list(types or ("",))

    more = {KEYS.get(kind, kind) for kind in kinds}

    def make(function: Fn) -> Fn:
        when_defined(qualname, lambda d: d.kernels.update(dict.fromkeys(more, function)))
        return function

    if func is None:
        return make
    make(func)
    return None
