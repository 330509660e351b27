"""From the formulas of a record to functions: its kernel, and its derivatives on tensors and arrays."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.generic import attempt, offers
from toytorch.backends.sparse import TABLES
from toytorch.core.memory_order import kept
from toytorch.core.tensor import Tensor
from toytorch.facts import state, syntax
from toytorch.facts.hints import Args, Array, ArrayModule, Fn
from toytorch.facts.schema import REQUIRED, Schema
from toytorch.loops.formula import Formula, OnePass
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.loops.language.parse import OPERATORS
from toytorch.loops.language.primitives import PRIMITIVES

REAL = ("Scalar", "float", "Scalar?", "float?")  # arguments that meet the elements in arithmetic


def formula_of(text: str, schema: Schema) -> Formula:
    """What a record computes for each element."""
    tensors = [a.name for a in schema.args if a.is_tensor]
    return Formula(text, tensors, units(schema))


def units(schema: Schema) -> list[str]:
    """The numbers that are 1 unless somebody says otherwise, such as alpha of `add`."""
    return [a.name for a in schema.args if a.type == "Scalar" and a.default == 1]


def kernel_of(name: str, formula: Formula, schema: Schema) -> tuple[Any, str]:
    """The kernel that a formula states: a ufunc's name, or a function of (xp, *arguments).

    The second value is the ufunc that does the same where the numbers have their defaults.
    """
    params = [a.name for a in schema.args]
    if not formula.lines and (single := one_ufunc(formula.result, params)):
        return single, ""
    tensors = [a.name for a in schema.args if a.is_tensor]
    plain = one_ufunc(
        WithoutUnits(formula).visit(syntax.parse(formula.text).body[-1].value), tensors
    )
    return FormulaKernel(name, formula, schema), plain


class FormulaKernel:
    """What a formula computes on arrays: by NumPy's functions, or for many elements in one pass."""

    def __init__(self, name: str, formula: Formula, schema: Schema) -> None:
        self.name, self.formula, self.schema = name, formula, schema
        params = [
            a.name if a.default is REQUIRED or a.is_tensor else f"{a.name}={a.default!r}"
            for a in schema.args
        ]
        self.named = name.replace(".", "_") + "_of_arrays", params
        self.one_pass: OnePass | None = None
        if OnePass.serves(formula) and schema.returns == ("Tensor",):
            self.one_pass = OnePass(formula, [a.name for a in schema.args])
        # Operands may be numbers, but the only one is not.
        self.of_arrays = self.function(in_type=len(formula.tensors) == 1)

    def function(self, in_type: bool) -> Any:
        """The function of arrays; `in_type`: of NumPy's, with the formula's numbers in their type."""
        first, more = typed_numbers(self.schema), dict[str, Any]()
        if self.one_pass is not None:
            more["one_pass"] = self.one_pass
            first = [*many(self.one_pass.smallest, [a.name for a in self.schema.args]), *first]
        arrays = self.formula.function(*self.named, first=first, more=more, in_type=in_type)
        if not self.formula.untyped:
            return arrays
        # Numbers in all branches: they take the type of the operands.
        return lambda a, *rest: arrays(a, *rest).astype(a.dtype, copy=False)

    @functools.cached_property
    def of_any(self) -> Any:
        """The function of arrays of any module."""
        return self.function(in_type=False)

    def on(self, xp: ArrayModule) -> Any:
        """The function for arrays of a module: NumPy's, or one that tries the backend's kernel."""
        return (
            self.of_arrays if xp is np else one_kernel(xp, self.formula, self.schema, self.of_any)
        )

    def __call__(self, xp: ArrayModule, *args: object) -> Any:
        return self.on(xp)(*args)

    def into(self, target: Array, args: list[Any]) -> Any:
        """The result in the memory of a target that may be one of the operands; None where it has
        to be made elsewhere first."""
        if self.one_pass is None or len(args) != len(self.schema.args):
            return None
        for a in args:
            if isinstance(a, np.ndarray) and a is not target and np.may_share_memory(a, target):
                return None
        return self.one_pass(*args, out=target)


def one_kernel(xp: ArrayModule, formula: Formula, schema: Schema, otherwise: Fn) -> Fn:
    """The function that tries a device's kernel for formulas before the array module's functions.

    The kernel takes half types as they are (`Op.takes_halves`); for the functions they are made float32,
    since each of them would round.
    """
    if schema.returns != ("Tensor",) or not offers(xp, "formula"):
        return otherwise
    params = [a.name for a in schema.args]
    defaults = tuple(a.default for a in schema.args)

    def chosen(*args: Any, out: Array | None = None) -> Any:
        made = attempt(xp, "formula", formula, params, (*args, *defaults[len(args) :]), out)
        if made is not None:
            return made
        wide = [a.astype(np.float32) if is_half(a) else a for a in args]
        if out is None:
            return otherwise(*wide)
        if not is_half(out):
            return otherwise(*wide, out=out)
        out[...] = otherwise(*wide)
        return out

    return chosen


def is_half(a: object) -> bool:
    """Whether something is an array of float16 or bfloat16.

    >>> is_half(np.ones(2, "float16")), is_half(np.ones(2, "int16")), is_half(0.5)
    (True, False, False)
    """
    dtype = getattr(a, "dtype", None)
    return dtype is not None and dtype.itemsize == 2 and dtype.kind in "fV"


def many(smallest: int, params: list[str]) -> list[str]:
    """Lines that leave many elements to the loop which does them in one pass, where it can."""
    return [
        f"if {params[0]}.size >= {smallest}:",
        f"    made = one_pass({', '.join(params)})",
        "    if made is not None:",
        "        return made",
    ]


def typed_numbers(schema: Schema) -> list[str]:
    """Lines that bring numbers to the type of integers, as C does; NumPy would make them floats."""
    numbers = [a for a in schema.args if a.type in REAL]
    if not numbers:
        return []
    lines = [
        f"    {a.name} = {a.name} if {a.name} is None else kind({a.name})"
        if a.is_optional
        else f"    {a.name} = kind({a.name})"
        for a in numbers
    ]
    first = next(a.name for a in schema.args if a.is_tensor)
    return [f"kind = {first}.dtype.type", f"if {first}.dtype.kind in 'iub':", *lines]


class WithoutUnits(ast.NodeTransformer):
    """Leaves out products with numbers that are 1."""

    def __init__(self, formula: Formula) -> None:
        self.units = formula.units

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult):
            for unit, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(unit, ast.Name) and unit.id in self.units:
                    return other
        return node


def one_ufunc(tree: ast.expr, params: list[str]) -> str:
    """The name of the cheap ufunc that a formula is, called with just these arguments in order."""
    if isinstance(tree, ast.BinOp):
        word, args = OPERATORS.get(type(tree.op), ""), [tree.left, tree.right]
    elif isinstance(tree, ast.UnaryOp):
        word, args = OPERATORS.get(type(tree.op), ""), [tree.operand]
    elif isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        word, args = OPERATORS.get(type(tree.ops[0]), ""), [tree.left, tree.comparators[0]]
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        word, args = tree.func.id, tree.args
    else:
        return ""
    ufunc = FUNCTIONS.get(word)
    same = [a.id if isinstance(a, ast.Name) else "" for a in args] == params
    return ufunc.__name__ if same and isinstance(ufunc, np.ufunc) and not expensive(word) else ""


def expensive(word: str) -> bool:
    """Whether a compiled loop of one function is faster than NumPy's on large arrays."""
    return word in PRIMITIVES and PRIMITIVES[word].cost > 4


# -- derivatives ----------------------------------------------------------------------------------


class Derivative:
    """The formula of a derivative, as functions of tensors and of arrays.

    params  what the formula names: `g`, results, arguments, facts of arguments (`self_shape`)
    late    of a record's name, its function, which is looked up when it is called
    name    of its kernel
    """

    def __init__(
        self, text: str, schema: Schema, known: Callable[[str], bool], late: type, name: str
    ) -> None:
        first = [n for n in Formula(text, ()).names if known(n)]
        tensors = [n for n in first if n == "g" or n.startswith("result") or is_tensor(n, schema)]
        tensors.sort(key=lambda n: n != "g")
        self.formula = Formula(text, tensors, units(schema))
        self.params = (*tensors, *(n for n in first if n not in tensors))
        constant = not self.formula.varies(self.formula.result) and not self.formula.lines
        if constant:
            self.formula = Formula(f"filled(g, {text})", ("g",))
            self.params = ("g",)
        self.late, self.text = late, inspect.cleandoc(text)
        # Whether all tensors are arrays: where a record has several, numbers stand for some.
        of_record = {a.name for a in schema.args if a.is_tensor}
        self.given = len(of_record) == 1 or of_record.isdisjoint(self.formula.tensors)
        tensor_words = Words(lambda word: of_tensors(word, late), {"filled": filled_tensor})
        function = self.formula.function("derivative", self.params, tensor_words)
        one = self.formula.known and not constant
        self.composed = function  # of records, one after the other
        self.of_tensors = self.in_one_kernel(name) if one else function

    def __str__(self) -> str:
        return self.text

    def of_arrays(self) -> Any:
        """The derivative of bare arrays, in one pass where that pays."""
        first, more = list[str](), dict[str, Any]()
        if OnePass.serves(self.formula):
            more["one_pass"] = loop = OnePass(self.formula, self.params)
            first = many(loop.smallest, list(self.params))
        words = self.array_words()
        return self.formula.function(
            "derivative", self.params, words, first, more, in_type=self.given
        )

    def in_one_kernel(self, name: str) -> Any:
        """The derivative of tensors as one kernel on devices which compute formulas or keep time,
        where nobody differentiates it; elsewhere its records, one after the other."""
        otherwise, launched = self.composed, in_one_launch(name, self.on_host)

        @functools.wraps(otherwise)  # with its parameters, by which a node knows what to keep
        def derivative(g: Any, *args: Any) -> Any:
            array = getattr(g, "_array", None)
            if array is None or state.is_grad_enabled():
                return otherwise(g, *args)
            if array.__class__ is np.ndarray:  # within a launch, or of the CPU
                return otherwise(g, *args) if state.local.place is None else self.on_host(g, *args)
            if array.__class__ in base.queued:  # who watches hears of the records
                return otherwise(g, *args) if state.local.modes else launched(g, *args)
            made = of_device(self.formula, self.params, (g, *args))
            return otherwise(g, *args) if made is None else made

        return derivative

    @functools.cached_property
    def kernel(self) -> Any:
        """`of_arrays`, once for all calls."""
        return self.of_arrays()

    def on_host(self, *args: Any) -> Any:
        """The derivative of tensors on the host, as a pass over bare arrays has it where they are of
        one full type."""
        from toytorch.core.tensor import Tensor, wrap  # which imports records' modules

        kinds = {a.dtype for a in args if isinstance(a, Tensor)}
        if len(kinds) > 1 or not next(iter(kinds)).plain:
            return self.composed(*args)
        made = self.kernel(*[a._array if isinstance(a, Tensor) else a for a in args])
        return wrap(np.asarray(made))

    def array_words(self) -> Mapping[str, Any]:
        return Words(
            lambda word: FUNCTIONS.get(word) or self.late(word).on_arrays, {"filled": np.full_like}
        )

    @property
    def inline(self) -> str:
        """The expression, where it is as good as a call; "" where a function is better."""
        simple = not self.formula.lines and not OnePass.serves(self.formula)
        return self.formula.spelled(self.formula.result) if simple else ""


def in_one_launch(name: str, function: Fn) -> Fn:
    """A function of tensors that is one launch where a device keeps time, as PyTorch has a kernel
    for it; and where nobody differentiates it, or watches the ops that it consists of."""

    @functools.wraps(function)  # with its parameters, by which a node knows what to keep
    def one(*args: Any) -> Any:
        if base.queued and not (state.local.grad or state.local.modes):
            made = launched_whole(name, function, args)
            if made is not NotImplemented:
                return made
        return function(*args)

    return one


def launched_whole(name: str, function: Fn, args: Args) -> Any:
    """What a function makes of tensors, as one launch of the backend that keeps their time;
    NotImplemented where none does."""
    from toytorch.core.tensor import Tensor, wrap_result  # which imports records' modules

    host, reads, backend = [], [], None
    for a in args:
        if isinstance(a, Tensor):
            a = a._array
            found = base.queued.get(a.__class__)
            if found is not None and found.plain is not None:
                reads.append(a)
                a, backend = a.held, found
        host.append(a)
    if backend is None:
        return NotImplemented
    kind: Any = None

    def kernel(*arrays: Any) -> Any:
        nonlocal kind
        made = function(*[dressed(new, old) for new, old in zip(arrays, args)])
        kind = made.dtype
        return made._array

    made = wrap_result(backend.plain(name, kernel, host, reads, asker=state.local.backward_pass))
    made._dtype = kind
    return made


def dressed(value: Any, like: Any) -> Any:
    """An argument with tensors where `like` has them."""
    from toytorch.core.tensor import Tensor, wrap_result  # which imports records' modules

    if isinstance(like, Tensor):
        tensor = wrap_result(value)
        tensor._dtype = like._dtype
        return tensor
    if like.__class__ in (list, tuple) and any(isinstance(v, Tensor) for v in like):
        return like.__class__(dressed(v, old) for v, old in zip(value, like))
    return value


def of_device(formula: Formula, params: Sequence[str], args: Args) -> Any:
    """What the kernel of a formula makes of tensors, as a tensor; None where there is none."""
    from toytorch.core.tensor import Tensor, wrap_result  # which imports records' modules

    arrays = [a._array if a.__class__ is Tensor else a for a in args]
    if any(isinstance(a, Tensor) for a in arrays):  # of a subclass, which sees what is done to it
        return None
    backend = None if arrays[0].__class__ in TABLES else base.of_array(arrays[0])
    if backend is None or "formula" not in backend.kernels:
        return None
    made = backend.kernels["formula"](formula, params, tuple(arrays))
    return None if made is None else wrap_result(made)


# Primitives whose records have other names, and those of two operands where one is a number.
RECORDS = {"sign": "sgn", "floordiv": "div.floor", "truncdiv": "div.trunc"}
WITH_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}


class Words(dict[str, Any]):
    """The functions that a formula's words mean, found when they are asked for."""

    def __init__(self, find: Callable[[str], Any], more: dict[str, Any]) -> None:
        super().__init__(more)
        self.find = find

    def __missing__(self, word: str) -> Any:
        return self.find(word)


def of_tensors(word: str, late: type) -> Any:
    """The record's function that a word means."""
    function = late(RECORDS.get(word, word))
    if word not in WITH_NUMBER:
        return function
    limit = late(WITH_NUMBER[word])
    return lambda a, b: function(a, b) if hasattr(b, "dtype") else limit(a, b)


def filled_tensor(g: Tensor, value: int) -> Any:
    """A gradient that is one number everywhere, and lies as the other one does."""
    made = g.new_full(g.shape, value)
    if made._array.__class__ is g._array.__class__ is np.ndarray and made.shape == g.shape:
        made._array = kept(made._array, g._array)
    return made


def is_tensor(name: str, schema: Schema) -> bool:
    at = schema.index.get(name)
    return at is not None and schema.args[at].is_tensor
