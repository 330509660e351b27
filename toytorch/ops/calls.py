"""How a function that is composed of records is called: by which words, with what types.

The usual call gives tensors and plain numbers by place. `Call.source` asks for just that in one line,
written from the function's annotations at its first call, and runs the function. Any other call goes
to `Call.general`, which knows NumPy's words (`axis=`), takes what stands for a number, and refuses the
rest in PyTorch's words.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.base import raise_too_large
from toytorch.core import subclasses
from toytorch.core.arguments import (
    SAID,
    TAKES,
    all_int,
    as_int,
    no_ints,
    not_ints,
    plain_ints,
    spread,
    takes,
    too_large,
)
from toytorch.core.first_call import Generated
from toytorch.core.subclasses import ask, foreign
from toytorch.core.tensor import Tensor, as_dtype
from toytorch.core.write import need_out
from toytorch.facts import state
from toytorch.facts.device import device, layout, memory_format
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.schema import NOT_GIVEN, NUMPY_WORDS, SIZE_WORDS, class_of, wrong_argument

ABSENT = object()  # an argument that was not given
FRONT = """\
def {name}({params}**words):
    if {usual}:
        try:
            return {run}
        except Exception as error:
            return amiss(error, {group}, {words})
    return general(*written({words}, {written}), **words)
"""
# What the usual call is asked of an argument that is of one of these types.
IS = {
    "Tensor": "{0}.__class__ is Tensor or isinstance({0}, Tensor)",
    "int": "{0}.__class__ is int",
    "int[]": "{0}.__class__ is int or {0}.__class__ is tuple and all_int({0})",
    "bool": "{0}.__class__ is bool",
    "str": "{0}.__class__ is str",
    "Scalar": "{0}.__class__ is float or {0}.__class__ is int",
    "None": "{0} is None",
    "dtype": "{0}.__class__ is dtype_class",
}
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
    "Tensor": (Tensor,), "int": (int,), "int[]": (int,), "bool": (bool,), "str": (str,),
    "Scalar": (int, float, bool, complex), "None": (type(None),), "dtype": (dtype,),
    "Device": (device, str), "layout": (layout,), "memory_format": (memory_format,),
}  # fmt: skip
READ = ("size_average", "reduce")  # truths that PyTorch's own Python code reads, whatever they are
# Whatever annotations say, these may be None.
MAY_BE_NONE = ("requires_grad", "pin_memory", "device", "dtype", "layout")
FIRST = ("input", *NUMPY_WORDS["input"])  # the words for a first argument


def plain_integer(value: Any) -> Any:
    """The number that stands for one integer in a tensor or of NumPy's; anything else as it is."""
    if value.__class__ is int:
        return value
    return as_int(value) if isinstance(value, (Tensor, np.ndarray, np.generic)) else value


# What is made of values that stand for others: tensors of one integer, NumPy's numbers, Python's types.
MEANT: dict[str, Callable[[Any], Any]] = {"dtype": as_dtype, "int": plain_integer}
MEANT["int[]"] = plain_ints


class Call:
    """A composed function, and what is known of its calls.

    function    what runs
    called      its name in errors
    kinds       the types that PyTorch's parser looks at, where it has one for the function
    words       {word: parameter}: further names for arguments
    numbers     {parameter: word}: what a number is called there, which is no tensor's name
    numpy       whether NumPy's words are among them
    asked       whether operands of other packages may answer for it (`__torch_function__`)
    one_by_one  whether integers of a list may be given as several arguments
    first       its public name, if its first argument must be a tensor
    creates     whether a mode may take the call over (`on_create`)
    overloads   parameters by name alone that say which of the overloads is meant, and have no default
    forms       the signatures that PyTorch's function has, where it has several
    """

    first = single = ""

    def __init__(
        self,
        function: Fn,
        called: str = "",
        kinds: Collection[str] = TAKES,
        words: dict[str, str] | None = None,
        numbers: dict[str, str] | None = None,
        numpy: bool = True,
        asked: bool = False,
        one_by_one: bool = False,
        creates: bool = False,
    ) -> None:
        self.function, self.asked, self.creates = function, asked, creates
        self.called = called or function.__name__
        self.own = own = inspect.unwrap(function)
        self.forms: str = own.__dict__.get("forms", "")
        code = own.__code__  # `inspect.signature` takes a hundred times longer
        self.positional, self.by_place = code.co_argcount, code.co_posonlyargcount
        defaults = own.__defaults__ or ()
        self.defaults = (ABSENT,) * (self.positional - len(defaults)) + defaults
        count = code.co_argcount + code.co_kwonlyargcount
        self.known = known = list(code.co_varnames[:count])
        self.rest = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
        self.counted = not (not called and known[:1] == ["self"])  # else a method: `self` is none
        self.outs = 1 if creates else outs_of(function)
        self.renamed = renamed = dict(words or {})
        numbers = numbers or {}
        renamed.update({word: name for name, word in numbers.items()})
        for name, spelled in zip(known, spelled_by_callers(own, known)):
            for word in (spelled, *(NUMPY_WORDS.get(spelled, ()) if numpy else ())):
                if word not in known:
                    renamed.setdefault(word, name)
        if self.rest and self.rest != "tensors":  # a size of several numbers may be given by name
            sizes = {self.rest, *SIZE_WORDS}.difference(known)
            renamed.update(dict.fromkeys(sizes, "*"))
        self.reads = bool(code.co_flags & inspect.CO_VARKEYWORDS)  # the words, itself
        if self.reads:
            self.outs, self.renamed = int(creates), {}
        # Words that say whether what they name is a tensor.
        self.telling = {
            w: w != numbers.get(n)
            for w in (*numbers, *renamed)
            if (n := renamed.get(w, w)) in numbers
        }
        if one_by_one:
            self.single = next(iter(words or ()), known[1])
        self.plain = frozenset(known) - {"self", "out", *self.telling}
        self.wanted = {n: w for n in known if (w := self.types_of(n, kinds))}
        self.usual = {
            n: frozenset(c for k in ks for c in USUAL.get(k, ())) for n, ks in self.wanted.items()
        }
        by_name = own.__kwdefaults__ or {}
        self.overloads = [n for n in by_name if by_name[n] is NOT_GIVEN and n in self.usual]
        self.options = {
            n: self.usual.get(n, ())
            for n in known[self.positional :]
            if n in self.plain and n not in self.overloads
        }
        if "pin_memory" in self.options:  # True goes the longer way, which refuses it
            self.options["pin_memory"] = frozenset({type(None)})
        self.front: Any = None

    def types_of(self, name: str, kinds: Collection[str]) -> list[str]:
        """The types of which an argument must be, by the annotation; none where nobody asks."""
        hint = str(self.own.__annotations__.get(name, ""))
        found = [HINTED.get(k, k) for k in hint.split(" | ")]
        later = name != self.known[0] and "int" in kinds
        read = name == "out" or (name in READ and "bool" in found)
        if read or not {*kinds, "None", *["Tensor"] * later}.issuperset(found):
            return []
        return found + ["None"] * (name in MAY_BE_NONE)

    def of_tensor(self, name: str) -> Call:
        """The same of a function whose first argument must be a tensor."""
        made = copy.copy(self)
        made.first = name
        return made

    def made(self) -> Any:
        """The function that callers get."""
        name = self.function.__name__
        generated = Generated(name, f"call of {self.first or name}", self.source)
        self.front = functools.update_wrapper(generated.function, self.function)
        self.front.__globals__["__name__"] = __name__  # where readers of tracebacks find it
        self.front.__dict__["call"] = self
        if self.creates:
            self.front.__name__ = self.called
        return self.front

    def source(self) -> tuple[str, dict[str, Any]]:
        """The text of `front`, and what its names stand for."""
        within = getattr(self.function, "call", None)
        if within is None or within.front is not self.function or not within.creates:
            within = self  # else what it asks is asked here
        space: dict[str, Any] = {
            "function": within.function, "general": self.general, "amiss": self.amiss,
            "written": self.written, "fine": self.fine, "more": more, "state": state,
            "SLOW": state.SLOW,
            "Tensor": Tensor, "dtype_class": dtype, "all_int": all_int,
        }  # fmt: skip
        taken = {*space, "words", "further"}
        names = [n + "_" * (n in taken) for n in self.known[: self.positional]]
        asked = ["(not words or fine(words))" if self.options else "not words"]
        if self.reads and not (self.options or self.outs):
            asked = []
        asked += ["state.profiler is None"] * bool(self.first)
        asked += ["state.fast_path is not SLOW"] * within.creates
        defaults = (*self.defaults, *[NOT_GIVEN] * len(self.overloads))
        spelled = [*self.known[: self.positional], *self.overloads]
        for i, name in enumerate([*names, *self.overloads]):
            space[f"default_{name}"] = defaults[i]
            kinds = ["Tensor"] if self.first and not i else self.wanted.get(spelled[i], ())
            if kinds:
                known = [f"{name} is default_{name}"] * (defaults[i] is NOT_GIVEN)
                known += [IS[kind] for kind in dict.fromkeys(kinds) if kind in IS]
                asked.append(f"({' or '.join(known) or False})".format(name))
            elif defaults[i] is ABSENT or (self.reads and not i):
                asked.append(f"{name} is not default_{name}")
        if self.first and not names:
            asked.append("further and isinstance(further[0], Tensor)")
        asked += ["not further"] * bool(self.single)
        rest = ["*further"] * bool(self.rest or self.single)
        params = [f"{n}=default_{n}" for n in names]
        told = self.telling or self.creates  # how each argument was given
        if names and (self.known[0] == "self" or self.by_place or told):  # callers say `input`
            params.insert(len(names) if told else max(1, self.by_place), "/")
        params += rest or ["*"] * bool(self.overloads)
        params += [f"{n}=default_{n}" for n in self.overloads]
        group = "".join(f"{n}, " for n in names)
        named = [f"{n}={n}" for n in self.overloads]
        passed = [*names, *rest * (not self.single), *named]
        run = f"function({', '.join(passed)})"
        if self.options or self.reads:  # `**words` takes its time, though there is no word
            run = f"function({', '.join([*passed, '**words'])}) if words else {run}"
        text = FRONT.format(
            name=self.function.__name__,
            params="".join(f"{p}, " for p in params),
            usual=" and ".join(asked) or "True",
            run=run,
            group=f"({group}{''.join(f'{r}, ' for r in rest)})",
            words=f"more(words, {', '.join(named)})" if named else "words",
            written=f"({group})" + ", further" * bool(rest),
        )
        return text, space

    def fine(self, words: Kwargs) -> bool:
        """Whether options given by name are of their usual types."""
        options = self.options
        for name, value in words.items():
            classes = options.get(name)
            if classes is None or (classes and value.__class__ not in classes):
                return False
        return True

    def written(self, words: Kwargs, values: Args, further: Args = ()) -> Args:
        """The arguments that a caller has written, by place as far as possible: not the defaults of
        their parameters, which stand for none. Others go to `words`."""
        if further:
            return (*values, *further)
        given = [v is not d for v, d in zip(values, self.defaults)]
        count = len(given) - [*reversed(given), True].index(True)
        lacking = any(v is ABSENT for v in values[:count]) or (count and not given[0])
        if words or lacking:
            count = [*given, False].index(False)
        words.update(
            (n, v) for n, v, g in zip(self.known[count:], values[count:], given[count:]) if g
        )
        return values[:count]

    def general(self, /, *args: object, **kwargs: object) -> Any:
        """A call with words, with what stands for an argument, or with what is wrong."""
        if self.forms:
            self.refuse_other_forms(args, kwargs)
        if not self.first:
            return self.run(*args, **kwargs)
        if not (args and isinstance(args[0], Tensor)):
            first = args[:1] or tuple(kwargs[word] for word in FIRST if word in kwargs)
            if first and not isinstance(first[0], Tensor):
                if foreign(first):
                    return ask(self.front, args, **kwargs)
                raise wrong_argument(self.first.rpartition(".")[2], "input", 1, "Tensor", first[0])
        if state.profiler is None:
            return self.run(*args, **kwargs)
        seen_as = "aten::" + self.first.replace(".", "_")
        return state.profiler.around(seen_as, args, self.run, *args, **kwargs)

    def refuse_other_forms(self, args: Args, kwargs: Kwargs) -> None:
        """Refuses arguments that fit none of several signatures in words that name them all."""
        try:
            self.settle(args, dict(kwargs))
        except TypeError:
            # Layers give the last, too, which looks like a default.
            if len(args) == self.positional - 1:
                args = (*args, self.defaults[-1])
            got = [*map(class_of, args), *(f"{k}={class_of(v)}" for k, v in kwargs.items())]
            raise TypeError(
                f"{self.called}() received an invalid combination of arguments - got ({', '.join(got)}), "
                f"but expected one of:{self.forms}"
            ) from None

    def run(self, /, *args: object, **kwargs: object) -> Any:
        """The same without a question for the first argument."""
        if not kwargs.keys() <= self.plain:
            args = self.in_place(args, kwargs)
        args = self.settle(args, kwargs)
        if kwargs.get("pin_memory") is True and not base.of_kind("cuda").is_available():
            raise RuntimeError(
                "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory "
                "allocator is available on this system."
            )
        if self.creates and state.fast_path is state.SLOW:
            made = self.taken_over(args, kwargs)
            if made is not NotImplemented:
                return made
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            return self.amiss(error, args, kwargs)

    def in_place(self, args: Args, kwargs: Kwargs) -> Args:
        """The arguments with further words in the place of the parameters that they name."""
        called, known, renamed = self.called, self.known, self.renamed
        if self.outs and kwargs.get("out") is not None:
            need_out(called, kwargs["out"], self.outs)
        for word in self.telling.keys() & kwargs.keys():
            if self.telling[word] is not isinstance(kwargs[word], Tensor):
                raise TypeError(f"{called}() received an invalid combination of arguments")
        if "self" in kwargs and renamed.get("input") == "self":
            raise TypeError(f'{called}() missing 1 required positional arguments: "input"')
        for word in renamed.keys() & kwargs.keys():
            name = renamed[word]
            if name in kwargs or (name in known and known.index(name) < len(args)):
                own = self.function.__name__
                raise TypeError(f"{own}() got an unexpected keyword argument '{word}'")
            kwargs[name] = kwargs.pop(word)
            if name == "*" and not isinstance(kwargs[name], (tuple, list)):
                raise not_ints(called, word, kwargs[name])
        if "*" in kwargs:
            first = known[len(args) : self.positional]
            before = [kwargs.pop(name) for name in first if name in kwargs]
            args = (*args, *before, kwargs.pop("*"))
        return args

    def settle(self, args: Args, kwargs: Kwargs) -> Args:
        """Refuses the first argument that has another type than the annotations say, and gives the
        arguments with numbers for what stands for integers (tensors of one integer, NumPy's)."""
        known, usual = self.known, self.usual
        for i in range(min(len(args), self.positional)):
            name = known[i]
            if name in usual and args[i].__class__ not in usual[name]:
                settled = self.as_asked(name, i + self.counted, args[i])
                if settled is not args[i]:
                    args = (*args[:i], settled, *args[i + 1 :])
        for name, value in kwargs.items():
            if name in usual and value.__class__ not in usual[name]:
                kwargs[name] = self.as_asked(name, 0, value)
        return args

    def as_asked(self, name: str, place: int, value: Any) -> Any:
        """A value that is of one of the types asked for, as a number where it stands for an integer."""
        wanted, function = self.wanted[name], self.function.__name__
        if value.__class__ is tuple and "int[]" in wanted and all_int(value):
            return value
        if "Tensor" in wanted and isinstance(value, Tensor):
            return value
        for kind in wanted:
            if kind != "None" and takes(kind, name, value):
                return MEANT[kind](value) if kind in MEANT else value
        if foreign((value,)):
            return value
        listed = isinstance(value, (tuple, list)) and value and "int[]" in wanted
        if listed and takes("int", name, value[0]):
            raise TypeError(no_ints((), tuple(value), function, name))
        raise wrong_argument(function, name, place, SAID.get(wanted[0], wanted[0]), value)

    def amiss(self, error: Exception, args: Args, kwargs: Kwargs) -> Any:
        """Asks an operand that is no tensor of ours, or raises an error again, in better words."""
        if self.single and isinstance(error, TypeError) and (args[2:] or args[-1].__class__ is int):
            return self.run(args[0], spread(args[1:], self.called, self.single), **kwargs)
        for name, value in (*zip(self.known, args), *kwargs.items()):
            kinds, said = (
                self.wanted.get(name, ()),
                f"{self.function.__name__}(): argument '{name}'",
            )
            large = [too_large(kind, value, said) for kind in kinds if kind in ("int", "int[]")]
            if large and large[0] is not None:
                raise large[0]
        if isinstance(error, (MemoryError, ValueError)):
            raise_too_large(error)
        elif (
            self.asked
            and isinstance(error, (TypeError, AttributeError))
            and foreign((*args, *kwargs.values()))
        ):
            return ask(self.front, args, **kwargs)
        raise error

    def taken_over(self, args: Args, kwargs: Kwargs) -> Any:
        """What a mode with `on_create` makes in the place of the function; NotImplemented without one.

        The tracer does, because a fresh tensor must be made again in every run of a traced function."""
        for mode in reversed(state.local.modes):
            take_over = getattr(mode, "on_create", None)
            if take_over is not None:
                with state.below(mode):
                    return take_over(self.front, args, kwargs)
        if subclasses.below is not None:
            return subclasses.below.create(self.front, args, kwargs)
        return NotImplemented


def more(words: Kwargs, **overloads: object) -> Kwargs:
    """The words of a call with those that chose between overloads."""
    words.update((n, v) for n, v in overloads.items() if v is not NOT_GIVEN)
    return words


def outs_of(function: Fn) -> int:
    """How many tensors `out` must be, as its annotation says: `Tensor | None` is one,
    `tuple[Tensor, Tensor] | None` two; 0 where that depends on the call, or there is none."""
    text = inspect.unwrap(function).__annotations__.get("out", "")
    if text.startswith("tuple["):
        return int(text.count("Tensor"))
    return int(text == "Tensor | None")


def spelled_by_callers(own: Any, known: list[str]) -> list[str]:
    """PyTorch's names of parameters: the first tensor is called `input`."""
    first = known[0] if own.__code__.co_argcount > own.__code__.co_posonlyargcount == 0 else ""
    return ["input", *known[1:]] if first == "self" and "input" not in known else known
