"""How records are written: one short function per family of ops."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

import numpy as np

from toytorch.backends.base import raise_too_large
from toytorch.core import subclasses
from toytorch.core.arguments import SAID, TAKES, all_int, no_ints, not_ints, spread, takes
from toytorch.core.function import attach
from toytorch.core.op import Op, registry
from toytorch.core.subclasses import ask, foreign
from toytorch.core.tensor import Tensor, as_dtype
from toytorch.core.write import need_out
from toytorch.facts import state
from toytorch.facts.composed import composed
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.schema import NUMPY_WORDS, SIZE_WORDS, wrong_argument

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
        asked = not tensor_first or bool(method)  # by callers, not by `need_tensor` alone
        called = names[0] if names else function.__name__
        if doc is not None:
            function.__name__ = function.__qualname__ = called.rpartition(".")[2]
            function.__doc__ = doc
        described = composed(**facts)(function)
        kinds = {"dtype"} if called.startswith("masked.") else TAKES if tensor_first else NO_TENSORS
        named = with_words(described, words, asked, called.replace(".", "_"), numpy, numbers, kinds)
        for name in names:
            PUBLIC[name] = need_tensor(named, name) if tensor_first else named
        if one_by_one:
            named = with_words(described, words, asked, called, numpy, numbers, kinds, True)
        if method:
            setattr(Tensor, method if isinstance(method, str) else function.__name__, named)
        return function

    return register


def plain_integer(value: Any) -> Any:
    """The number that stands for one integer in a tensor or of NumPy's; anything else as it is."""
    single = isinstance(value, (Tensor, np.ndarray, np.generic)) and not value.ndim
    return int(value) if single else value


# The types of the schemas that annotations stand for.
HINTED = {"builtins.bool": "bool", "Sequence[Tensor]": "Tensor[]"}
HINTED["Sequence[str]"] = "str[]"  # names of dimensions
HINTED |= {"float": "Scalar", complex.__name__: "Scalar"}  # a float may be complex at first
SIZES = ("Ints", "Shape", "Sizes", "Sequence[int]", "tuple[int, ...]", "list[int]")
HINTED.update(dict.fromkeys(SIZES, "int[]"))
HINTED |= {"DType": "dtype", "types.dtype": "dtype", "MemoryFormat": "memory_format"}
HINTED |= {"Layout": "layout", "Device": "Device"}
# The classes of values that are looked at no further.
USUAL: dict[str, tuple[Any, ...]] = {
    "Tensor": (Tensor,),
    "int": (int,),
    "int[]": (int,),
    "bool": (bool,),
    "Scalar": (int, float, bool, complex),
    "None": (type(None),),
}
# What is made of values that stand for others: tensors of one integer, NumPy's numbers, Python's types.
MEANT: dict[str, Callable[[Any], Any]] = {"dtype": as_dtype, "int": plain_integer}
MEANT["int[]"] = plain_integer
READ = ("size_average", "reduce")  # truths that PyTorch's own Python code reads, whatever they are
MAY_BE_NONE = (
    "requires_grad",
    "pin_memory",
    "device",
    "dtype",
    "layout",
)  # whatever annotations say
Settle = Callable[[Args, Kwargs], Args]


def asker(function: Fn, kinds: Collection[str], first: int = 1) -> Settle:
    """What refuses the first argument of a call that has another type than a function's annotations say,
    and gives the arguments with numbers for what stands for integers (tensors of one integer,
    NumPy's). `kinds` are the types that PyTorch's parser looks at, `first` is where it begins to count."""
    own = inspect.unwrap(function)
    hints, code = own.__annotations__, own.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    wanted: dict[str, list[str]] = {}
    for i, name in enumerate(known):
        found = [HINTED.get(k, k) for k in str(hints.get(name, "")).split(" | ")]
        asked = {*kinds, "None", *["Tensor"] * (i > 0 and "int" in kinds)}
        read = name == "out" or (name in READ and "bool" in found)
        if not read and asked.issuperset(found):
            wanted[name] = found + ["None"] * (name in MAY_BE_NONE)
    usual = {n: frozenset(c for k in ks for c in USUAL.get(k, ())) for n, ks in wanted.items()}
    places = [(i, usual[n]) for i, n in enumerate(known[: code.co_argcount]) if n in wanted]

    def settle(args: Args, kwargs: Kwargs) -> Args:
        count = len(args)
        for i, classes in places:
            if i >= count:
                break
            if args[i].__class__ not in classes:
                settled = as_asked(function, known[i], i + first, wanted[known[i]], args[i])
                if settled is not args[i]:
                    args = (*args[:i], settled, *args[i + 1 :])
        for name, value in kwargs.items():
            if name in usual and value.__class__ not in usual[name]:
                kwargs[name] = as_asked(function, name, 0, wanted[name], value)
        return args

    return settle


def as_asked(function: Fn, name: str, place: int, wanted: list[str], value: object) -> Any:
    """A value that is of one of the types `wanted`, as a number where it stands for an integer."""
    if value.__class__ is tuple and "int[]" in wanted and all_int(value):
        return value
    if "Tensor" in wanted and isinstance(value, Tensor):
        return value
    for kind in wanted:
        if kind != "None" and takes(kind, name, value):
            return MEANT[kind](value) if kind in MEANT else value
    if foreign((value,)):
        return value
    if (
        "int[]" in wanted
        and isinstance(value, (tuple, list))
        and value
        and takes("int", name, value[0])
    ):
        raise TypeError(no_ints((), tuple(value), function.__name__, name))
    said = SAID.get(wanted[0], wanted[0])
    raise wrong_argument(function.__name__, name, place, said, value)


def with_words(
    function: F,
    words: dict[str, str] | None = None,
    asked: bool = False,
    called: str = "",
    numpy: bool = True,
    numbers: dict[str, str] | None = None,
    kinds: Collection[str] = TAKES,
    one_by_one: bool = False,
) -> F:
    """A function that takes further names for its parameters: these, and NumPy's (`axis=`).

    A size of several numbers, which Python takes by position only, may be given by name too. What
    is given as `out` must be what its annotation says.
    """
    code = inspect.unwrap(function).__code__  # `inspect.signature` takes a hundred times longer
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return function
    positional = code.co_argcount
    count = positional + code.co_kwonlyargcount
    known = list(code.co_varnames[:count])
    renamed = dict(words or {})
    numbers = numbers or {}
    renamed.update({word: name for name, word in numbers.items()})
    for name, spelled in zip(known, spelled_by_callers(function, known)):
        for word in (spelled, *(NUMPY_WORDS.get(spelled, ()) if numpy else ())):
            if word not in known:
                renamed.setdefault(word, name)
    if code.co_flags & inspect.CO_VARARGS and code.co_varnames[count] != "tensors":
        sizes = {code.co_varnames[count], *SIZE_WORDS}.difference(known)
        renamed.update(dict.fromkeys(sizes, "*"))

    # Words that say whether what they name is a tensor.
    telling = {
        w: w != numbers.get(n) for w in (*numbers, *renamed) if (n := renamed.get(w, w)) in numbers
    }

    outs = outs_of(function)
    alone = not called and known[:1] == ["self"]  # a method, whose first argument is not counted
    settle = asker(function, kinds, 0 if alone else 1)
    called = called or function.__name__

    def amiss(error: Exception, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Asks an operand that is no tensor of ours, or raises an error again, in better words."""
        given_ints = len(args) > 2 or (args and args[-1].__class__ is int)
        if one_by_one and given_ints and isinstance(error, TypeError):  # no other call asks
            word = next(iter(words or ()), known[1])
            return run(args[0], spread(args[1:], called, word), **kwargs)
        if isinstance(error, (MemoryError, ValueError)):
            raise_too_large(error)
        elif (
            asked
            and isinstance(error, (TypeError, AttributeError))
            and foreign((*args, *kwargs.values()))
        ):
            return ask(run, args, **kwargs)
        raise error

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        if not kwargs:
            args = settle(args, kwargs)
            try:
                return function(*args)
            except Exception as error:
                return amiss(error, args, kwargs)
        if outs and kwargs.get("out") is not None:
            need_out(called, kwargs["out"], outs)
        for word in telling.keys() & kwargs.keys():
            if telling[word] is not isinstance(kwargs[word], Tensor):
                raise TypeError(f"{called}() received an invalid combination of arguments")
        if "self" in kwargs and renamed.get("input") == "self":
            raise TypeError(f'{called}() missing 1 required positional arguments: "input"')
        for word in renamed.keys() & kwargs.keys():
            name = renamed[word]
            if name in kwargs or (name in known and known.index(name) < len(args)):
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument '{word}'"
                )
            kwargs[name] = kwargs.pop(word)
            if name == "*" and not isinstance(kwargs[name], (tuple, list)):
                raise not_ints(called, word, kwargs[name])
        if "*" in kwargs:
            before = [kwargs.pop(name) for name in known[len(args) : positional] if name in kwargs]
            args = (*args, *before, kwargs.pop("*"))
        args = settle(args, kwargs)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return amiss(error, args, kwargs)

    run.__dict__["within"] = function, amiss, settle
    return cast(F, run) if asked or renamed or outs or "dtype" in known else function


def outs_of(function: Fn) -> int:
    """How many tensors `out` must be, as its annotation says: `Tensor | None` is one,
    `tuple[Tensor, Tensor] | None` two; 0 where that depends on the call, or there is none."""
    text = inspect.unwrap(function).__annotations__.get("out", "")
    if text.startswith("tuple["):
        return int(text.count("Tensor"))
    return int(text == "Tensor | None")


def spelled_by_callers(function: Any, known: list[str]) -> list[str]:
    """PyTorch's names of parameters: the first tensor is called `input`."""
    own = inspect.unwrap(function).__code__
    first = known[0] if own.co_argcount > own.co_posonlyargcount == 0 else ""
    return ["input", *known[1:]] if first == "self" and "input" not in known else known


def takes_words(**words: str) -> Callable[[F], F]:
    """Marks a function that is public under its own name; see `with_words`."""
    return lambda function: with_words(function, words, asked=True)


def asks(function: F) -> F:
    """A function of PyTorch's own Python code that hands its arguments on, whose types are asked there;
    texts and truths it reads itself."""
    return with_words(function, asked=True, numpy=False, kinds=set(TAKES) - {"str", "bool"})


def creating(function: F, name: str = "") -> F:
    """A `watched` function that makes a tensor, of no random numbers, and does nothing else."""
    return watched(composed(creates=True)(function), name)


def watched(function: F, name: str = "") -> F:
    """A function that makes a tensor without an op: a mode with `on_create` may take the call over.

    The tracer does, because a fresh tensor must be made again in every run of a traced function.
    """

    settle = asker(function, NO_TENSORS)
    by_place = inspect.unwrap(function).__code__.co_argcount > 0

    @functools.wraps(function)
    def make(*args: object, **kwargs: object) -> Any:
        if kwargs or by_place:
            args = settle(args, kwargs)
        if kwargs and kwargs.get("out") is not None:
            need_out(make.__name__, kwargs["out"], 1)
        if state.fast_path is state.SLOW:
            for mode in reversed(state.local.modes):
                take_over = getattr(mode, "on_create", None)
                if take_over is not None:
                    with state.below(mode):
                        return take_over(make, args, kwargs)
            if subclasses.below is not None:
                made = subclasses.below.create(make, args, kwargs)
                if made is not NotImplemented:
                    return made
        return function(*args, **kwargs)

    make.__name__ = name or function.__name__
    CREATING[make.__name__] = make
    return cast(F, make)


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


FIRST = ("input", *NUMPY_WORDS["input"])  # the words for a first argument


def need_tensor(function: Any, name: str, kinds: Collection[str] = TAKES) -> Any:
    """The function, with PyTorch's words where its first argument is no tensor, or another is not of
    one of the `kinds` of type that PyTorch's parser looks at."""
    seen_as = "aten::" + name.replace(".", "_")
    # As `with_words` has them.
    within, amiss, settle = getattr(function, "within", (function, None, asker(function, kinds)))
    named = within is not function

    @functools.wraps(function)
    def checked(*args: object, **kwargs: object) -> Any:
        if not (args and isinstance(args[0], Tensor)):
            given = args[:1] or tuple(kwargs[word] for word in FIRST if word in kwargs)
            if given and not isinstance(given[0], Tensor):
                if foreign(given):
                    return ask(checked, args, **kwargs)
                raise wrong_argument(name.rpartition(".")[2], "input", 1, "Tensor", given[0])
        if state.profiler is not None:
            return state.profiler.around(seen_as, args, function, *args, **kwargs)
        if kwargs and named:
            return function(*args, **kwargs)
        args = settle(args, kwargs)
        if amiss is None:
            return within(*args, **kwargs)
        try:
            return within(*args, **kwargs)
        except Exception as error:
            return amiss(error, args, kwargs)

    return checked


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
    return found
