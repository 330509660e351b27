"""What ops see as the array module of devices to which whole calls are handed over.

A record's kernel runs over NumPy on the memory that stands for the device's; `kernel_of` gives it
in that form. NumPy's own functions, by their names, are for what happens outside of ops.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from toytorch.backends.held import HeldArray
from toytorch.facts.hints import Array, Fn

OPERATORS = {
    "__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply,
    "__truediv__": np.true_divide, "__floordiv__": np.floor_divide, "__mod__": np.remainder,
    "__pow__": np.power, "__matmul__": np.matmul, "__lshift__": np.left_shift,
    "__rshift__": np.right_shift, "__and__": np.bitwise_and, "__or__": np.bitwise_or,
    "__xor__": np.bitwise_xor, "__lt__": np.less, "__le__": np.less_equal, "__gt__": np.greater,
    "__ge__": np.greater_equal, "__eq__": np.equal, "__ne__": np.not_equal,
}  # fmt: skip
BITS = ("lshift", "rshift", "and", "or", "xor")
REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", *BITS)
IN_PLACE = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", *BITS)
UNARY = {"__neg__": np.negative, "__invert__": np.invert, "__abs__": np.absolute}
DATA_DEPENDENT = ("nonzero", "argwhere", "flatnonzero", "unique")  # the host waits for the shape
MAKING = ("empty", "zeros", "ones", "full")
METHODS = (
    "all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot max mean min "
    "nonzero prod ravel repeat reshape round searchsorted sort std sum take trace var "
)


class Launcher(Protocol):
    """What runs a function on the arrays that stand for a device's."""

    @property
    def run(self) -> Fn:
        """run(name, function, args, kwargs): the results of `function(*args)`, on the device."""

    @property
    def refuse_too_large(self) -> Callable[..., None]:
        """Raises where no device could hold what a function would make of its arguments."""


class Functions:
    """NumPy, or one of its submodules, for device arrays."""

    is_array_module = True

    def __init__(
        self, launcher: Callable[[], Launcher], module: Any = np, name: str = "simulator"
    ) -> None:
        self._launcher, self._module, self.__name__ = launcher, module, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            made: Any = Functions(self._launcher, found, f"{self.__name__}.{name}")
        elif not callable(found) or (isinstance(found, type) and name != "ndarray"):
            return found  # a constant, or a type
        else:
            made = Launching(self._launcher, name, found)
        self.__dict__[name] = made
        return made

    def kernel_of(self, op: Any) -> Fn:
        """The kernel of an op whose arguments are device arrays."""
        kernel = op.kernel_on(np)
        if op.kind == "view":
            return functools.partial(_view, kernel)
        launcher = self._launcher

        def launched(*args: object) -> Any:
            return launcher().run(op.name, kernel, args)

        return launched


class Launching:
    """A function of NumPy's as a launch; `xp.add.at` and its kin are launches of their own."""

    def __init__(self, launcher: Callable[[], Launcher], name: str, function: Any) -> None:
        self._launcher, self.__name__, self._function = launcher, name, function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.__name__ in MAKING and (args or "shape" in kwargs):
            self._launcher().refuse_too_large(args, kwargs)
        target: Any = kwargs.get("out")
        target = target[0] if isinstance(target, tuple) else target
        waits = self.__name__ in DATA_DEPENDENT
        return self._launcher().run(
            self.__name__, self._function, args, kwargs, target=target, waits=waits
        )

    def at(self, array: HeldArray, *args: object) -> None:
        """As `numpy.ufunc.at`: writes into its first argument."""
        self._launcher().run(self.__name__, self._function.at, (array, *args), writes=[array])

    def __getattr__(self, name: str) -> Any:
        return Launching(self._launcher, f"{self.__name__}.{name}", getattr(self._function, name))


def _view(kernel: Fn, array: HeldArray, *args: object) -> Any:
    """A view, or a list of them: nothing is launched."""
    made = kernel(array.held, *args)
    if isinstance(made, (list, tuple)):
        return made.__class__(array.seen(m) for m in made)
    return array.seen(made)


def give_operators(
    kind: type[HeldArray], launcher: Callable[[], Launcher], to_host: Callable[[Any], Any]
) -> None:
    """Lets arrays of a class be added, cast, and written to, each as one launch."""
    for given in (
        arithmetic(launcher),
        protocols(launcher),
        subscripts(launcher),
        numbers(to_host),
    ):
        for name, function in given.items():
            setattr(kind, name, function)


def arithmetic(launcher: Callable[[], Launcher]) -> dict[str, Any]:
    """Python's operators, and the methods of NumPy's arrays."""

    def binary(name: str, function: Fn, swapped: bool = False) -> Any:
        def operate(self: HeldArray, other: object) -> Any:
            if not isinstance(other, (HeldArray, int, float, complex, np.generic, np.ndarray)):
                return NotImplemented
            pair = (other, self) if swapped else (self, other)
            return launcher().run(name.strip("_"), function, pair)

        return operate

    def in_place(name: str, function: Fn) -> Any:
        def operate(self: HeldArray, other: object) -> Any:
            def write(a: Array, b: object) -> Any:
                return function(a, b, out=a, casting="unsafe")

            launcher().run(name, write, (self, other), target=self)
            return self

        return operate

    def unary(name: str, function: Fn) -> Any:
        return lambda self: launcher().run(name.strip("_"), function, (self,))

    def method(name: str) -> Any:
        def call(self: HeldArray, *args: object, **kwargs: object) -> Any:
            def run(array: Array, *rest: object, **words: object) -> Any:
                return getattr(array, name)(*rest, **words)

            return launcher().run(name, run, (self, *args), kwargs, waits=name in DATA_DEPENDENT)

        return call

    return {
        **{name: binary(name, ufunc) for name, ufunc in OPERATORS.items()},
        **{f"__r{name}__": binary(name, OPERATORS[f"__{name}__"], True) for name in REFLECTED},
        **{f"__i{name}__": in_place(name, OPERATORS[f"__{name}__"]) for name in IN_PLACE},
        **{name: unary(name, ufunc) for name, ufunc in UNARY.items()},
        **{name: method(name) for name in METHODS.split()},
    }


def protocols(launcher: Callable[[], Launcher]) -> dict[str, Any]:
    """What NumPy asks when its own functions are given arrays of a device."""

    def ufunc_of_numpy(
        self: HeldArray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: object
    ) -> Any:
        """NumPy's functions reach the device, as CuPy has it, but not with arrays of the host."""
        if any(isinstance(a, np.ndarray) and a.ndim for a in inputs):
            raise TypeError(f"Unsupported type {np.ndarray} beside an array of a device")
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return Launching(launcher, ufunc.__name__, function)(*inputs, **kwargs)

    def function_of_numpy(
        self: HeldArray, function: Fn, types: object, args: Any, kwargs: Any
    ) -> Any:
        return Launching(launcher, function.__name__, function)(*args, **kwargs)

    return {"__array_ufunc__": ufunc_of_numpy, "__array_function__": function_of_numpy}


def subscripts(launcher: Callable[[], Launcher]) -> dict[str, Any]:
    """Reading and writing parts."""

    def get(self: HeldArray, where: object) -> Any:
        if _basic(where):
            return self.seen(self.held[_as_array(where)])
        return launcher().run("index", lambda a, w: a[w], (self, where))

    def put(self: HeldArray, where: object, value: object) -> None:
        def write(array: Array, place: object, new: object) -> Any:
            array[place] = new  # type: ignore[call-overload]  # as NumPy takes it
            return array

        if _basic(where):
            part = self.seen(self.held[_as_array(where)])
            launcher().run("copy", write, (part, Ellipsis, value), target=part)
        else:
            launcher().run("index_put", write, (self, where, value), target=self)

    def fill(self: HeldArray, value: object) -> None:
        put(self, Ellipsis, value)

    return {"__getitem__": get, "__setitem__": put, "fill": fill}


def numbers(to_host: Callable[[Any], Any]) -> dict[str, Any]:
    """Conversions to Python's numbers, for which the host waits."""

    def number(made: Callable[[Any], Any]) -> Any:
        return lambda self: made(to_host(self)[()])

    return {
        **{f"__{made.__name__}__": number(made) for made in (bool, int, float, complex)},
        "__index__": number(operator.index),
        "item": lambda self, *where: to_host(self).item(*where),
        "__hash__": object.__hash__,  # which __eq__ took away
    }


def _basic(where: object) -> bool:
    """Whether an index makes a view."""
    parts = where if isinstance(where, tuple) else (where,)
    return all(p is None or p is Ellipsis or isinstance(p, (int, slice, np.integer)) for p in parts)


def _as_array(where: object) -> Any:
    """The index that gives a 0-d array, where NumPy would give a scalar."""
    parts = where if isinstance(where, tuple) else (where,)
    return where if Ellipsis in parts else (*parts, Ellipsis)
