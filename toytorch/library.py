"""Operators of one's own, by name: `torch.ops.my.op`, like `torch.library`.

An operator has a signature, a function that computes it (one for all devices, or one a device), and,
where it is to be differentiated, a backward. Unlike a plain function it is one step of the graph,
whatever runs inside, and its arguments are checked against the signature.

>>> import toytorch as torch
>>> @custom_op("docs::twice", mutates_args=())
... def twice(x: torch.Tensor) -> torch.Tensor:
...     return x * 2
>>> torch.ops.docs.twice(torch.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import functools
import inspect
import re
import types as _python
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toytorch.autograd.function import Function
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.facts.pytree import tree_flatten, tree_leaves, tree_unflatten
from toytorch.facts.schema import REQUIRED, Schema, parse

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "infer_schema",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

EVERYWHERE = "default"
KEYS = {"CPU": "cpu", "CUDA": "cuda", "cpu": "cpu", "cuda": "cuda"}
COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "", "default")

# -- signatures ------------------------------------------------------------------------------------

WORDS: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    dtype: "ScalarType",
    device: "Device",
    complex: "complex",
}
LISTED = ("Tensor", "SymInt", "float", "bool")
NUMBER = frozenset((int, float, bool))


def _word(annotation: Any) -> str | None:
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
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
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


def _returned(annotation: Any, wrong: Callable[[str], ValueError]) -> str:
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


def _read(qualified: str, text: str) -> Schema:
    """A signature with marks of writing left out, and `SymInt[2]` as `SymInt[]`."""
    text = re.sub(r"\((\w+!?|\w+ -> \*)\)", "", text.replace("-> ()", "-> None"))
    text = re.sub(r"\[\d+\]", "[]", text)
    name = qualified.replace("::", ".")
    return parse(re.sub(r"^\s*[\w:.]*\(", f"{name}(", text))


# -- operators -------------------------------------------------------------------------------------


class Definition:
    """What is known of an operator, and how it is called."""

    def __init__(self, qualified: str, text: str) -> None:
        self.qualified, self.namespace, self.name = qualified, *_split(qualified)
        text = text.strip()
        self.text = f"{qualified}{text[text.index('('):]}"
        self.schema = _read(qualified, self.text)
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup: Callable[..., Any] | None = None
        self.checks_aliases = False
        self.autocast: dtype | None = None
        NAMESPACES.setdefault(self.namespace, {})[self.name] = self

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """(values of positional arguments, those by name only), checked against the signature.

        Raises RuntimeError, with PyTorch's words, where they do not fit.
        """
        wanted = self.schema.args
        positional = [a for a in wanted if not a.keyword_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.qualified}() expected at most {len(positional)} argument(s) but received "
                f"{len(args)} argument(s). Declaration: {self.text}"
            )
        given = {**dict(zip((a.name for a in positional), args)), **kwargs}
        values: dict[str, Any] = {}
        for a in wanted:
            if a.name in given:
                values[a.name] = given.pop(a.name)
            elif a.default is not REQUIRED:
                values[a.name] = list(a.default) if isinstance(a.default, tuple) else a.default
            else:
                raise RuntimeError(
                    f"{self.qualified}() is missing value for argument '{a.name}'. Declaration: {self.text}"
                )
            if not _fits(a.type, values[a.name]):
                raise RuntimeError(
                    f"{self.qualified}() Expected a value of type '{a.type}' for argument "
                    f"'{a.name}' but instead found type '{type(values[a.name]).__name__}'."
                )
        if given:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(given))}' for operator '{self.qualified}'. "
                f"Schema: {self.text}"
            )
        return [values[a.name] for a in positional], {
            a.name: values[a.name] for a in wanted if a.keyword_only
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The operator's result; recorded as one step if an argument wants a gradient."""
        values, named = self.bound(args, kwargs)
        if not self.kernels or COMPOSITE[0] in self.kernels:  # made of steps that are recorded
            return self.run(values, named)
        leaves, spec = tree_flatten((values, named))
        if state.local.grad and any(isinstance(x, Tensor) and x._requires_grad for x in leaves):
            return self.function.apply(spec, *leaves)
        return self.run(values, named)

    def run(self, values: list[Any], named: dict[str, Any]) -> Any:
        """The result of the function for the device that the tensors are on."""
        tensors = [x for x in tree_leaves((values, named)) if isinstance(x, Tensor)]
        kind = tensors[0].device.type if tensors else "cpu"
        kernel = self.kernels.get(kind) or next(
            (self.kernels[k] for k in (EVERYWHERE, *COMPOSITE) if k in self.kernels), None
        )
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self.qualified}' with arguments from the '{kind.upper()}' backend: "
                "no function was registered for it."
            )
        result = kernel(*values, **named)
        if self.checks_aliases:
            self._refuse_aliases(tensors, tree_leaves(result))
        return result

    def _refuse_aliases(self, given: list[Tensor], made: list[Any]) -> None:
        memory = {t.untyped_storage().data_ptr() for t in given if t.numel()}
        for t in made:
            if isinstance(t, Tensor) and t.numel() and t.untyped_storage().data_ptr() in memory:
                raise RuntimeError(
                    f"{self.qualified} (with implementation in {self.namespace}): The output of this "
                    "custom operator (1) must not also be an input to this custom operator and (2) "
                    "may not alias any inputs to this custom operator or other returns. The most "
                    "common way to trigger this error is if we have y = custom_op(x) and y and x are "
                    "the same Tensor. Please instead return a clone of the offending output tensor(s) "
                    "(e.g. return x.clone()) or refactor the custom operator to not return y."
                )

    @functools.cached_property
    def function(self) -> type[Function]:
        """The step of the graph: its inputs are the leaves of all arguments."""
        operator = self

        def forward(ctx: Any, spec: Any, *leaves: Any) -> Any:
            values, named = tree_unflatten(leaves, spec)
            output = operator.run(values, named)
            ctx._spec, wants = spec, ctx.needs_input_grad
            if operator.setup is not None:
                ctx.needs_input_grad = tuple(tree_unflatten(wants[1:], spec)[0])
                more = {"keyword_only_inputs": named} if named else {}
                operator.setup(ctx, tuple(values), output, **more)
                ctx.needs_input_grad = wants
            return output

        def backward(ctx: Any, *grads: Any) -> Any:
            if operator.backward is None:
                raise RuntimeError(
                    f"Trying to backward through {operator.namespace}.{operator.name}.default but no "
                    "autograd formula was registered. Please use register_autograd to add one."
                )
            places, named = tree_unflatten(range(ctx._spec.num_leaves), ctx._spec)
            ctx.needs_input_grad = tuple(tree_unflatten(ctx.needs_input_grad[1:], ctx._spec)[0])
            found = operator.backward(ctx, *grads)
            found = found if isinstance(found, tuple) else (found,)
            result = [None] * ctx._spec.num_leaves
            for place, grad in zip(places, found, strict=True):
                if isinstance(place, int):
                    result[place] = grad
                elif grad is not None:
                    for k, g in zip(place, grad, strict=True):
                        result[k] = g
            return (None, *result)

        name = f"GeneratedBackwardFor_{self.namespace}_{self.name}_default"
        return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


NAMESPACES: dict[str, dict[str, Definition]] = {}


def _split(qualified: str) -> tuple[str, str]:
    """Namespace and name of `my::op`. Raises ValueError where it is not of that form."""
    names = qualified.split("::")
    if len(names) != 2:
        raise ValueError(
            f"Expected qualname to be of the form 'namespace::name', but got {qualified}. The qualname "
            "passed to the torch.library API must consist of a namespace and a name, e.g. aten::sin"
        )
    return names[0], names[1].split(".")[0]


def _fits(word: str, value: Any) -> bool:
    """Whether a value may stand for an argument of a type."""
    if word.endswith("?"):
        return value is None or _fits(word[:-1], value)
    if word.endswith("[]"):
        return isinstance(value, (list, tuple)) and all(_fits(word[:-2], v) for v in value)
    if word == "Tensor":
        return isinstance(value, Tensor)
    if word in ("SymInt", "int"):
        return isinstance(value, int) or (isinstance(value, Tensor) and value.numel() == 1)
    if word in ("float", "Scalar"):
        return isinstance(value, (int, float, complex, Tensor))
    return not isinstance(value, Tensor)


def _found(op: Any) -> Definition:
    """The definition of an operator that is given by name or as an object."""
    if isinstance(op, CustomOpDef):
        return op._definition
    qualified = op if isinstance(op, str) else f"{op._namespace}::{op.__name__}"
    namespace, name = _split(qualified)
    found = NAMESPACES.get(namespace, {}).get(name)
    if found is None:
        raise RuntimeError(f"operator {qualified} does not exist")
    return found


class Overload:
    """`torch.ops.my.op.default`."""

    def __init__(self, definition: Definition) -> None:
        self._definition, self.__name__ = definition, f"{definition.name}.default"
        self._schema, self._namespace = definition.text, definition.namespace

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._definition(*args, **kwargs)

    def name(self) -> str:
        """`my::op`."""
        return self._definition.qualified

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._namespace}.{self._definition.name}', overload='default')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self._definition.name}.default"


class Packet:
    """`torch.ops.my.op`."""

    def __init__(self, definition: Definition) -> None:
        self._definition, self.__name__ = definition, definition.name
        self._namespace, self._qualified_op_name = definition.namespace, definition.qualified
        self.default = Overload(definition)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._definition(*args, **kwargs)

    def overloads(self) -> list[str]:
        """The names of its overloads: there is one."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"


class Namespace:
    """`torch.ops.my`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Packet:
        found = NAMESPACES.get(self.__name__, {}).get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
        return _packet(found)

    def __dir__(self) -> list[str]:
        return sorted(NAMESPACES.get(self.__name__, {}))


_packet = functools.cache(Packet)
namespace = functools.cache(Namespace)


# -- the public functions --------------------------------------------------------------------------


class CustomOpDef:
    """An operator that `custom_op` made: called like the function it was made of."""

    def __init__(self, definition: Definition, function: Callable[..., Any]) -> None:
        self._definition, self._init_fn = definition, function
        self._qualname, self._namespace, self._name = (
            definition.qualified,
            definition.namespace,
            definition.name,
        )
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._definition(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """The function for some kinds of devices; None is all."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """The function that says which shape and type the result has."""
        register_fake(self, fn)
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Its derivative: `backward(ctx, *grads)`, after `setup_context(ctx, inputs, output)`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """How a batch is done at once; without it, example by example."""
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """The type that its arguments get under autocast."""
        register_autocast(self, device_type, cast_inputs)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator of a function; as a decorator or called with the function.

    `mutates_args` names the tensors that it writes to; the result may share no memory with its
    arguments. The signature follows from the annotations unless it is given. Raises ValueError for
    a name without `::`, or annotations of other types. Like `torch.library.custom_op`.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema or infer_schema(function, mutates_args=mutates_args)
        definition = Definition(name, text)
        definition.checks_aliases = True
        made = CustomOpDef(definition, function)
        register_kernel(made, device_types, function)
        return made

    return make if fn is None else make(fn)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """Sets the function for some kinds of devices (None: all); as a decorator or called with it."""
    kinds = [EVERYWHERE] if device_types is None else [device_types]
    if device_types is not None and not isinstance(device_types, str):
        kinds = list(device_types)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        _found(op).kernels.update(dict.fromkeys(kinds, function))
        return function

    return make if func is None else make(func)


def register_fake(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, **_: Any
) -> Any:
    """Sets the function that says which shape and type the result has."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        _found(op).fake = function
        return function

    return make if func is None else make(func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Sets an operator's derivative.

    `setup_context(ctx, inputs, output)` saves what `backward(ctx, *grads)` needs, which returns a
    gradient, or None, for each positional argument (a list for a list of tensors).
    """
    definition = _found(op)
    definition.backward, definition.setup = backward, setup_context
    if not definition.kernels:
        raise RuntimeError(f"{definition.qualified} has no function yet: register one first")


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Takes a rule for `vmap`, which does operators of one's own example by example here."""
    _found(op)
    return (lambda function: function) if func is None else func


def register_autocast(op: Any, device_type: str, cast_inputs: dtype, /, *, lib: Any = None) -> None:
    """Sets the type that floating arguments get under autocast."""
    definition = _found(op)
    definition.autocast = cast_inputs


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
            raise ValueError(ns, " is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names: list[str] = []

    def define(
        self, schema: str, alias_analysis: str = "", *, tags: Any = (), **_: Any
    ) -> str:
        """Adds an operator by its signature, `"twice(Tensor x) -> Tensor"`; returns its name."""
        name = schema[: schema.index("(")].strip()
        Definition(f"{self.ns}::{name.split('.')[0]}", schema[schema.index("(") :])
        self._names.append(name)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Sets the function of an operator for a key: CPU, CUDA, CompositeImplicitAutograd."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        name = op_name if isinstance(op_name, str) else op_name.__name__.split(".")[0]
        definition = _found(name if "::" in name else f"{self.ns}::{name}")
        if key in ("Meta", "Fake"):
            definition.fake = fn
        elif key.startswith("Autograd"):
            definition.kernels[COMPOSITE[0]] = fn
        else:
            definition.kernels[KEYS.get(key, key or COMPOSITE[0])] = fn

    def _destroy(self) -> None:
        for name in self._names:
            NAMESPACES.get(self.ns, {}).pop(name, None)


def define(
    qualname: str, schema: str | Sequence[Any], *, lib: Library | None = None, tags: Any = ()
) -> Any:
    """Adds an operator by name and signature: `define("my::f", "(Tensor x) -> Tensor")`."""
    _split(qualname)
    if not isinstance(schema, str):
        raise ValueError(f"define(qualname, schema): expected schema to be of type str, but got type {type(schema)}")  # fmt: skip
    Definition(qualname, schema)


def impl(
    qualname: Any, types: Any = None, func: Callable[..., Any] | None = None, *, lib: Library | None = None
) -> Any:
    """Sets the function of an operator for kinds of devices; as a decorator or called with it."""
    if isinstance(qualname, Library):  # the older form: impl(lib, name, key)
        library, name, key = qualname, types, func if isinstance(func, str) else ""

        def older(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key)
            return function

        return older
    kinds = [types] if isinstance(types, str) else list(types)

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            _found(qualname).kernels[KEYS.get(kind, kind)] = function
        return function

    return make if func is None else make(func)
