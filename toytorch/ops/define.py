"""How records are written: one short function per family of ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

from toytorch.core.arguments import TAKES
from toytorch.core.function import attach
from toytorch.core.op import Op, registry
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.composed import composed
from toytorch.facts.hints import Fn
from toytorch.facts.package import findable
from toytorch.facts.schema import wrong_argument
from toytorch.ops.calls import Call

F = TypeVar("F", bound=Callable[..., Any])
CREATING: dict[str, Any] = {}  # functions that a mode may take over, by name (see `creating`)
PUBLIC: dict[str, Any] = {}  # composed functions by their public names: "linalg.cond", "diag"


def define(signature: str, kernel: Fn | str | None = None, **fields: Any) -> Op:
    """A record; keywords that start with d_ are its derivatives."""
    derivatives = {k[2:]: fields.pop(k) for k in list(fields) if k.startswith("d_")}
    return attach(Op(signature, kernel, derivatives=derivatives, **fields))


def pointwise(signature: str, kernel: Fn | str | None = None, **fields: Any) -> Op:
    """An op of each element by itself; operands broadcast and meet in their common type.

    It states a formula, or a kernel where none of the words of formulas will do.
    """
    return define(signature, kernel, kind="pointwise", **fields)


def of_floats(
    signature: str, kernel: Fn | str | None = None, promotion: str = "float", **fields: Any
) -> Op:
    """A pointwise op of floats; integers become floats first."""
    return pointwise(signature, kernel, promotion=promotion, **fields)


def comparison(name: str, sign: str, doc: str, **fields: Any) -> Op:
    """An op of two operands that answers yes or no for each element: whether `self sign other`."""
    return define(
        f"{name}(Tensor self, Operand other) -> BoolTensor",
        kind="pointwise",
        formula=f"self {sign} other",
        doc=doc,
        variant=lambda self, other: 1 if hasattr(other, "dtype") else 0,
        # Its result has no gradient, but what an in-place comparison destroys had one.
        d_self="0",
        d_other="0",
        **fields,
    )


def reduction(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """An op that takes dimensions together."""
    return define(signature, kernel, kind="reduction", **fields)


def view(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """An op that shows the same memory in another layout."""
    return define(signature, kernel, kind="view", **fields)


def general(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """An op whose kernel sees the arrays as they are, but half types in float32."""
    return define(signature, kernel, kind="general", **fields)


def in_own_type(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """A general op whose kernel gets half types as they are, such as one that only moves elements."""
    return general(signature, kernel, upcast=False, **fields)


def internal(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """A general op without a public form: a gradient, or what a composed function calls."""
    return general(signature, kernel, forms="", **fields)


def relayout(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """An internal op whose results are arrays of another class than its operands: no fast path."""
    return define(signature, kernel, kind="layout", forms="", upcast=False, **fields)


def decomposition(signature: str, kernel: Fn | str | None, **fields: Any) -> Op:
    """An op that takes matrices apart, or follows from that. Dimensions before the last two are a batch;
    results lie in columns, as LAPACK leaves them; under autocast halves become float32 first. The
    public function is composed around the record, which has the form out= alone."""
    family: dict[str, Any] = {
        "forms": "out",
        "upcast": False,
        "amp": "float32",
        "memory": "columns",
    }
    family |= {"batch": "leading", "out_type": "same"}
    return general(signature, kernel, **{**family, **fields})


def on_tensors(**methods: Any) -> None:
    """Gives tensors methods and properties, by their names."""
    for name, method in methods.items():
        setattr(Tensor, name, method)


class underived:
    """The derivative of an op that has none: refuses when a gradient arrives."""

    underived = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, g: Tensor) -> Any:
        raise RuntimeError(f"derivative for {self.name} is not implemented")


class underived_parts(underived):
    """The same for an op of several results."""

    def __call__(self, gs: Any) -> Any:
        return super().__call__(gs)


# -- functions composed of records ----------------------------------------------------------------


NO_TENSORS = set(TAKES) - {"Tensor"}  # what PyTorch's Python code, which begins so, does not ask


def public(
    *names: str,
    method: bool | str = False,
    tensor_first: bool = True,
    words: dict[str, str] | None = None,
    numbers: dict[str, str] | None = None,
    numpy: bool = True,
    one_by_one: bool = False,
    doc: str | None = None,
    **facts: Any,
) -> Callable[[F], F]:
    """Registers a composed function under public names such as "diag" or "linalg.cond".

    method        whether it is also a method of Tensor (or the method's name)
    tensor_first  whether the first argument must be a tensor, and is refused in PyTorch's words
    words         {name: parameter}: further names by which callers may give an argument
    numbers       {parameter: name}: what a number is called there, which is no tensor's name
    numpy         whether NumPy's are among them, as for all that is not Python code in PyTorch
    one_by_one    whether the method takes its list of integers as several arguments, too
    doc           the text of a function that another one has made, which gets the public name as its own
    facts         what the compiler knows of it (see `facts.composed`)
    """

    def register(function: F) -> F:
        name = names[0] if names else function.__name__
        if doc is not None:
            function.__name__ = function.__qualname__ = name.rpartition(".")[2]
            function.__doc__ = doc
        described = composed(**facts)(function)
        kinds = {"dtype"} if name.startswith("masked.") else TAKES if tensor_first else NO_TENSORS
        call = Call(described, name.replace(".", "_"), kinds, words, numbers, numpy, True)
        for known in names:
            made = call.of_tensor(known).made() if tensor_first else call.made()
            PUBLIC[known] = titled(made, known.rpartition(".")[2])
        if one_by_one:
            call = Call(described, name, kinds, words, numbers, numpy, True, one_by_one)
        if method:
            known = method if isinstance(method, str) else function.__name__
            setattr(Tensor, known, titled(call.made(), known))
        return function

    return register


def titled(function: F, name: str) -> F:
    """A function under the name that callers know it by."""
    function.__name__ = function.__qualname__ = name
    return function


def with_words(function: F, words: dict[str, str] | None = None, **how: Any) -> F:
    """The function as callers get it: see `Call`."""
    return cast(F, Call(function, words=words, **how).made())


def takes_words(**words: str) -> Callable[[F], F]:
    """Marks a function that is public under its own name; see `with_words`."""
    return lambda function: with_words(function, words, asked=True)


def asks(function: F) -> F:
    """A function of PyTorch's own Python code that hands its arguments on, whose types are asked there;
    texts and truths it reads itself."""
    return with_words(function, asked=True, numpy=False, kinds=set(TAKES) - {"str", "bool"})


def reads(function: F) -> F:
    """The same of a function that reads attributes of tensors itself, which other arguments lack."""
    return with_words(
        function, asked=True, numpy=False, kinds=set(TAKES) - {"str", "bool", "Tensor"}
    )


def creating(function: F, name: str = "") -> F:
    """A `watched` function that makes a tensor, of no random numbers, and does nothing else."""
    return watched(composed(creates=True)(function), name)


def watched(function: F, name: str = "") -> F:
    """A function that makes a tensor without an op: a mode with `on_create` may take the call over.

    The tracer does, because a fresh tensor must be made again in every run of a traced function.
    """
    call = Call(function, name, NO_TENSORS, creates=True)
    made = CREATING[call.called] = call.made()
    return cast(F, made)


def relaying(function: F) -> F:
    """A method that gives a tensor itself another layout: a mode for which that is an input of the
    user's takes the call over (`on_relaid`), since the caller sees it afterwards."""

    @functools.wraps(composed(reads="memory")(function))
    def relay(*args: object, **kwargs: object) -> Any:
        if state.fast_path is state.SLOW and (args or "self" in kwargs):
            args = args or (kwargs.pop("self"),)
            for mode in reversed(state.local.modes):
                stands_for_input = getattr(mode, "stands_for_input", None)
                if stands_for_input is not None and stands_for_input(args[0]):
                    with state.below(mode):
                        return mode.on_relaid(relay, args, kwargs)
        if args and not isinstance(args[0], Tensor):
            raise wrong_argument(function.__name__, "input", 1, "Tensor", args[0])
        return function(*args, **kwargs)

    return cast(F, relay)


def need_tensor(function: Any, name: str, kinds: Collection[str] = TAKES) -> Any:
    """The function, with PyTorch's words where its first argument is no tensor, or another is not of
    one of the `kinds` of type that PyTorch's parser looks at."""
    call = getattr(function, "call", None)
    if call is None or call.front is not function:
        call = Call(function, kinds=kinds)
    return call.of_tensor(name).made()


def tensor_first(function: F) -> F:
    """A function whose first argument must be a tensor, and is refused in PyTorch's words."""
    kinds = set(TAKES) - {"str"}  # which Python code reads itself
    return cast(F, need_tensor(function, function.__name__, kinds))


def package(prefix: str) -> dict[str, Any]:
    """The functions of a public package: `package("linalg")["cond"]`.

    Records whose names start with the package's name belong to it: linalg_solve is linalg.solve.
    """
    found = {
        name[len(prefix) + 1 :]: op.function
        for name, op in registry.items()
        if name.startswith(prefix + "_") and op.has_function
    }
    found.update(
        {
            name[len(prefix) + 1 :]: f
            for name, f in PUBLIC.items()
            if name.startswith(prefix + ".") and "." not in name[len(prefix) + 1 :]
        }
    )
    findable(found, f"toytorch.{prefix}")
    return found
