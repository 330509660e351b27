"""Operators of one's own, below `toytorch.library`: what is known of one, and how it is called."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NoReturn

from toytorch.autograd.function import Function
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Fn
from toytorch.facts.pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from toytorch.facts.schema import REQUIRED, Schema, parse
from toytorch.ops.namespaces import NAMESPACES, namespace

EVERYWHERE = "default"
COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "", "default")
PENDING: dict[str, list[Callable[[Definition], object]]] = {}  # for operators defined later


def read(qualified: str, text: str) -> Schema:
    """A signature with marks of writing left out, and `SymInt[2]` as `SymInt[]`."""
    text = re.sub(r"\((\w+!?|\w+ -> \*)\)", "", text.replace("-> ()", "-> None"))
    text = re.sub(r"\[\d+\]", "[]", text)
    name = qualified.replace("::", ".")
    return parse(re.sub(r"^\s*[\w:.]*\(", f"{name}(", text))


class Definition:
    """What is known of an operator, and how it is called."""

    def __init__(self, qualified: str, text: str) -> None:
        self.qualified, self.namespace, self.name = qualified, *split(qualified)
        text = text.strip()
        self.text = f"{qualified}{text[text.index('(') :]}"
        self.schema = read(qualified, self.text)
        self.kernels: dict[str, Fn] = {}
        self.fake: Fn | None = None
        self.backward: Fn | None = None
        self.setup: Fn | None = None
        self.checks_aliases = False
        self.autocast: dtype | None = None
        NAMESPACES.setdefault(self.namespace, {})[self.name] = self
        for complete in PENDING.pop(qualified, ()):
            complete(self)

    @functools.cached_property
    def packet(self) -> Packet:
        """What `torch.ops` shows of it."""
        return Packet(self)

    def bound(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[list[Any], dict[str, Any]]:
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

    @property
    def composite(self) -> bool:
        """Whether it is made of steps that are recorded themselves."""
        return not self.kernels or COMPOSITE[0] in self.kernels

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The operator's result; recorded as one step if an argument wants a gradient."""
        values, named = self.bound(args, kwargs)
        if self.composite:
            return self.run(values, named)
        leaves, spec = tree_flatten((values, named))
        if state.local.grad and any(isinstance(x, Tensor) and x._requires_grad for x in leaves):
            return self.function.apply(spec, *leaves)
        return self.run(values, named)

    def run(self, values: list[Any], named: dict[str, Any]) -> Any:
        """The result of the function for the device that the tensors are on."""
        tensors = [x for x in tree_leaves((values, named)) if isinstance(x, Tensor)]
        kind = tensors[0].device.type if tensors else "cpu"
        kernel = self.fake if kind == "meta" else self.kernels.get(kind)
        everywhere: tuple[str, ...] = (EVERYWHERE, *COMPOSITE)
        if kind == "meta" and self.checks_aliases:  # the function for all devices is for data
            everywhere = COMPOSITE[:3]
        kernel = kernel or next((self.kernels[k] for k in everywhere if k in self.kernels), None)
        if kernel is None and kind == "meta":
            self._refuse_meta()
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self.qualified}' with arguments from the '{kind.upper()}' backend: "
                "no function was registered for it."
            )
        result = kernel(*values, **named)
        if self.checks_aliases and kind != "meta":
            self._refuse_aliases(tensors, tree_leaves(result))
        return result

    def _refuse_meta(self) -> NoReturn:
        """Refuses tensors without data where nobody said what the result's shape is."""
        if self.checks_aliases:  # made of a function
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({self.qualified})>. This is "
                "necessary for torch.compile/export/fx tracing to work. Please use "
                f"`{self.name}.register_fake` to add an fake impl."
            )
        raise NotImplementedError(  # which PyTorch raises for an operator without such a kernel
            f"{self.qualified}: attempted to run this operator with Meta tensors, but there was no fake "
            "impl or Meta kernel registered."
        )

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

        def forward(ctx: Any, spec: TreeSpec, *leaves: object) -> Any:
            values, named = tree_unflatten(leaves, spec)
            output = operator.run(values, named)
            ctx._spec, wants = spec, ctx.needs_input_grad
            if operator.setup is not None:
                ctx.needs_input_grad = tuple(tree_unflatten(wants[1:], spec)[0])
                more = {"keyword_only_inputs": named} if named else {}
                operator.setup(ctx, tuple(values), output, **more)
                ctx.needs_input_grad = wants
            return output

        def backward(ctx: Any, *grads: Tensor) -> Any:
            if operator.backward is None:
                raise RuntimeError(
                    f"Trying to backward through {operator.namespace}.{operator.name}.default but no "
                    "autograd formula was registered. Please use register_autograd to add one."
                )
            places, _ = tree_unflatten(range(ctx._spec.num_leaves), ctx._spec)
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
        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type(name, (Function,), body)


def split(qualified: str) -> tuple[str, str]:
    """Namespace and name of `my::op`. Raises ValueError where it is not of that form."""
    names = qualified.split("::")
    if len(names) != 2:
        raise ValueError(
            f"Expected qualname to be of the form 'namespace::name', but got {qualified}. The qualname "
            "passed to the torch.library API must consist of a namespace and a name, e.g. aten::sin"
        )
    return names[0], names[1].split(".")[0]


def _fits(word: str, value: object) -> bool:
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


def found(op: object) -> Definition:
    """The definition of an operator that is given by name or as an object."""
    if hasattr(op, "_definition"):
        return op._definition
    space, name = split(str(op))
    return getattr(namespace(space), name)._definition


def when_defined(op: object, complete: Callable[[Definition], object]) -> None:
    """Adds to an operator's definition, as soon as there is one."""
    known = hasattr(op, "_definition")
    space, name = ("", "") if known else split(str(op))
    if known or name in NAMESPACES.get(space, {}):
        complete(found(op))
    else:
        PENDING.setdefault(f"{space}::{name}", []).append(complete)


class Overload:
    """`torch.ops.my.op.default`."""

    def __init__(self, definition: Definition) -> None:
        self._definition, self.__name__ = definition, f"{definition.name}.default"
        self._schema, self._namespace = definition.text, definition.namespace

    def __call__(self, *args: object, **kwargs: object) -> Any:
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

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._definition(*args, **kwargs)

    def overloads(self) -> list[str]:
        """The names of its overloads: there is one."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"
