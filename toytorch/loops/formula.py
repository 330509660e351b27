"""Formulas: what an elementwise op computes, and its derivatives, each written once.

    >>> f = Formula("self if self > 0 else slope * self", tensors=("self",))
    >>> print(f.source("leaky_relu", ("self", "slope")))
    def leaky_relu(self, slope):
        return where(self > 0, self, slope * self)
    >>> f.function("leaky_relu", ("self", "slope"))(np.array([-1.0, 2.0]), 0.1)
    array([-0.1,  2. ])

A text is Python: assignments, one a line, and an expression at the end. Its words are the
primitives of the loop language. From one text come

- a function of arrays, or of tensors where the words are taken from the records (`function`),
- loops over memory, compiled for the arguments of a call (`OnePass`),
- steps of a fused kernel, in LLVM's code and in CUDA C (`straight`, read by `jit.fuser`).

A condition on tensors chooses for each element. A condition on other arguments, such as
`approximate == "tanh"` or `min is None`, is decided once a call.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import linecache
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from toytorch.facts import syntax
from toytorch.facts.hints import Args, Array, Fn, Sizes
from toytorch.loops import Recipe
from toytorch.loops.elementwise import Loop, order_in_memory
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.loops.language.parse import OPERATORS
from toytorch.loops.language.primitives import PRIMITIVES
from toytorch.loops.language.steps import RESERVED
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.loops.runtime.kernel import laid

FEW = 1 << 10  # elements, from which NumPy's functions one by one take longer than a loop's call
LARGE = 1 << 16  # elements, from which a loop is worth compiling for a single function
EXACT = {"add", "sub", "mul", "div", "neg", "abs", "where", "maximum", "minimum"}
EXACT |= {"straight", "eq", "ne", "lt", "le", "gt", "ge"}
MOST = 1024  # plans that are kept
CONSTANT = (bool, int, float, str, np.floating, np.integer)  # what a loop may be made for
LARGEST = 1e30  # of the numbers that float32 has, roughly
REMAINDERS = ("fmod", "remainder", "floordiv")  # for which NumPy takes thirty times as long
# Words for which NumPy takes several calls, or goes element by element.
SLOW = {*REMAINDERS, "sign", "hypot", "exp2", "rsqrt", "copysign"}
CONSTANTS = {"pi": math.pi, "inf": math.inf, "nan": math.nan}


def quotient(a: float, b: float) -> float:
    """a / b as a processor has it: of a division by 0 infinity, or NaN.

    >>> quotient(-3, 0), quotient(3, 2)
    (-inf, 1.5)
    """
    if b:
        return a / b
    with np.errstate(all="ignore"):
        return float(np.divide(a, b))


FOLDED: dict[type, Fn] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: quotient,
    ast.Pow: lambda a, b: a**b,
    ast.USub: lambda a: -a,
}


class Formula:
    """The text of a formula, read.

    text      assignments and an expression
    tensors   names that stand for tensors; the others are numbers, words or None
    units     names of numbers that are nearly always 1: a product with 1 is not computed
    """

    def __init__(self, text: str, tensors: Collection[str], units: Collection[str] = ()) -> None:
        self.text = "\n".join(line.strip() for line in text.strip().splitlines())
        *lines, last = syntax.parse(self.text).body
        if not isinstance(last, ast.Expr):
            raise SyntaxError(f"a formula ends with an expression, got {self.text!r}")
        self.tensors, self.units = frozenset(tensors), frozenset(units)
        self.lines: list[tuple[str, Any]] = []
        self.varying = set(tensors)  # names whose value differs from element to element
        for line in lines:
            if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name):
                raise SyntaxError(f"expected 'name = expression', got {ast.unparse(line)!r}")
            value = Constants().visit(line.value)
            self.lines.append((line.targets[0].id, value))
            if self.varies(value):
                self.varying.add(line.targets[0].id)
        self.result: Any = Constants().visit(last.value)

    def __str__(self) -> str:
        return self.text

    @property
    def trees(self) -> list[Any]:
        """The expressions in order."""
        return [*(value for _, value in self.lines), self.result]

    @property
    def names(self) -> list[str]:
        """The names that the text takes from outside, in the order of their first use."""
        own = {name for name, _ in self.lines} | {*CONSTANTS}
        return [n for n in dict.fromkeys(names_in(*self.trees)) if n not in own]

    @property
    def words(self) -> list[str]:
        """The functions that it calls."""
        calls = (n.func for tree in self.trees for n in ast.walk(tree) if isinstance(n, ast.Call))
        return list(dict.fromkeys(f.id for f in calls if isinstance(f, ast.Name)))

    @functools.cached_property
    def known(self) -> bool:
        """Whether loops have all that it says."""
        if any(isinstance(n, ast.MatMult) for tree in self.trees for n in ast.walk(tree)):
            return False
        fine = (
            ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp,
            ast.Call, ast.Load, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
        )  # fmt: skip
        nodes = [n for tree in self.trees for n in ast.walk(tree)]
        return all(isinstance(n, fine) for n in nodes) and all(w in PRIMITIVES for w in self.words)

    @property
    def cost(self) -> int:
        """Work per element, roughly, in additions."""
        return sum(PRIMITIVES[op].cost for op in self.primitives)

    @property
    def primitives(self) -> list[str]:
        """The primitives that it consists of, one for each operation."""
        found = []
        for node in (n for tree in self.trees for n in ast.walk(tree)):
            if isinstance(node, (ast.BinOp, ast.UnaryOp)) and self.varies(node):
                found.append(OPERATORS.get(type(node.op), "add"))
            elif isinstance(node, ast.Compare) and self.varies(node):
                found += [OPERATORS[type(op)] for op in node.ops]
            elif isinstance(node, ast.BoolOp) and self.varies(node):
                found += [OPERATORS[type(node.op)]] * (len(node.values) - 1)
            elif isinstance(node, ast.IfExp) and self.varies(node.test):
                found.append("where")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.append(node.func.id if node.func.id in PRIMITIVES else "add")
        return found

    @property
    def untyped(self) -> bool:
        """Whether some of its values are numbers alone, which have no type of their own."""
        choices = (n for tree in self.trees for n in ast.walk(tree) if isinstance(n, ast.IfExp))
        return any(not (self.varies(n.body) or self.varies(n.orelse)) for n in choices)

    def varies(self, tree: ast.expr) -> bool:
        """Whether an expression has another value for each element."""
        if isinstance(tree, ast.BoolOp):
            return any(map(self.varies, tree.values))
        if isinstance(tree, ast.Compare) and isinstance(tree.ops[0], (ast.Is, ast.IsNot)):
            return False  # whether there is a tensor is decided once a call
        return any(name in self.varying for name in names_in(tree))

    # -- functions ---------------------------------------------------------------------------------

    def source(
        self,
        name: str,
        params: Sequence[str],
        first: Sequence[str] = (),
        numbers: InType | None = None,
    ) -> str:
        """A Python function of arrays or tensors; `first` are lines before the formula's own.

        With `numbers`, which this fills, those of the text are arrays of the operands' type.
        """
        spelled = [f"{n} = {self.spelled(value, True, numbers)}" for n, value in self.lines]
        spelled.append(f"return {self.spelled(self.result, True, numbers)}")
        if numbers is not None and numbers.known:
            one, *others = (f"{p}.dtype" for p in params if p in self.tensors)
            alike = " is ".join([one, *others])
            names = "".join(f"{n}, " for n in numbers.names)
            kind = f"{one} if {alike} else None" if others else one
            spelled.insert(0, f"{names.strip()} = _numbers[{kind}]")
        return "\n    ".join([f"def {name}({', '.join(params)}):", *first, *spelled])

    def spelled(self, tree: ast.expr, asks: bool = False, numbers: InType | None = None) -> str:
        """An expression as a function of whole arrays says it; one that `asks` has the name `_truth`."""
        return ast.unparse(Spelling(self, asks, numbers).visit(copy.deepcopy(tree)))

    def function(
        self,
        name: str,
        params: Sequence[str],
        words: Mapping[str, Any] = FUNCTIONS,
        first: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
        in_type: bool = False,
    ) -> Any:
        """The function that `source` shows, with the meaning that `words` give its functions, and
        `more` what its first lines call; `in_type`: of NumPy's arrays, with numbers of their type."""
        numbers = InType() if in_type and not self.untyped else None
        source = self.source(name, params, first, numbers) + "\n"
        filename = f"<toytorch formula {name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        # By its __name__ it is ours, for which NumPy is silent.
        space: dict[str, Any] = {**CONSTANTS, **(more or {}), "__name__": __name__}
        space["_truth"], space["_numbers"] = np.bool_, numbers
        for word in ("where", "logical_not", *self.words):
            space[word] = words[word]
            space[f"number_{word}"] = getattr(math, word, None) or getattr(builtins, word, None)
        exec(compile(source, filename, "exec"), space)  # the text of a record
        return space[name]

    # -- one element -------------------------------------------------------------------------------

    def straight(self, given: Mapping[str, Any]) -> tuple[tuple[bool, ...], list[tuple[str, Any]]]:
        """The formula for the arguments that are no tensors: conditions on them are decided.

        Returns what was decided, and lines whose last has the name "".
        """
        decided = Decided(self, given)
        made = [(n, decided.visit(copy.deepcopy(e))) for n, e in [*self.lines, ("", self.result)]]
        used = {"", *names_in(made[-1][1])}
        for name, tree in reversed(made):  # an assignment that only another case needs is left out
            if name in used:
                used.update(names_in(tree))
        return tuple(decided.outcomes), [(n, e) for n, e in made if n in used]


def names_in(*trees: ast.AST) -> Iterator[str]:
    """The names of values in expressions; those of functions are not among them."""
    for tree in trees:
        functions = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        for n in ast.walk(tree):
            if isinstance(n, ast.Name) and id(n) not in functions:
                yield n.id


class Constants(ast.NodeTransformer):
    """Computes what consists of numbers only: `pi / 180`, `sqrt(2)`."""

    def visit_Name(self, node: ast.Name) -> Any:
        return ast.Constant(math.pi) if node.id == "pi" else node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        pair = (node.left, node.right)
        if all(isinstance(p, ast.Constant) for p in pair) and type(node.op) in FOLDED:
            return ast.Constant(FOLDED[type(node.op)](*(p.value for p in pair)))  # type: ignore[attr-defined]  # both are constants
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.operand, ast.Constant) and type(node.op) in FOLDED:
            return ast.Constant(FOLDED[type(node.op)](node.operand.value))
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        node.args = [self.visit(a) for a in node.args]
        if node.args and all(isinstance(a, ast.Constant) for a in node.args):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if hasattr(math, name):
                return ast.Constant(getattr(math, name)(*(a.value for a in node.args)))  # type: ignore[attr-defined]  # all are constants
        return node


class InType(dict[Any, tuple[Any, ...]]):
    """The numbers of a formula as arrays of no dimensions, by the type of its operands: NumPy takes
    0.3 us to make one of a Python number, in each call. The bits of results are the same.

    >>> numbers = InType()
    >>> numbers.name(0.5)
    'n0'
    >>> numbers[np.dtype("float32")], numbers[np.dtype("int64")]
    ((array(0.5, dtype=float32),), (0.5,))
    """

    def __init__(self) -> None:
        self.known: dict[str, float] = {}  # by how they are written: 1 is not 1.0, nor 0.0 -0.0

    @property
    def names(self) -> list[str]:
        return [f"n{k}" for k in range(len(self.known))]

    def name(self, value: float) -> str:
        """The name of a number."""
        self.known.setdefault(repr(value), value)
        return f"n{list(self.known).index(repr(value))}"

    def __missing__(self, kind: np.dtype[Any] | None) -> tuple[Any, ...]:
        made: tuple[Any, ...] = tuple(self.known.values())
        if kind is not None and kind.char in "fd":
            made = tuple(np.array(v, kind) for v in made)
        self[kind] = made
        return made


class Spelling(ast.NodeTransformer):
    """From an expression about one element to one about whole arrays."""

    def __init__(self, formula: Formula, asks: bool = False, numbers: InType | None = None) -> None:
        self.formula, self.asks, self.numbers = formula, asks, numbers

    def number(self, node: Any) -> Any:
        """An operand of arithmetic with arrays: a number by its name among `numbers`."""
        value: Any = node.value if isinstance(node, ast.Constant) else None
        if self.numbers is None or type(value) not in (int, float) or abs(value) > LARGEST:
            return node
        return ast.Name(self.numbers.name(value), ast.Load())

    def visit_Compare(self, node: ast.Compare) -> Any:
        varies = self.formula.varies(node)
        self.generic_visit(node)
        if varies:
            node.left = self.number(node.left)
            node.comparators = [self.number(c) for c in node.comparators]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        chosen, alike = self.formula.varies(node.test), self.asks and self.alike(node)
        self.generic_visit(node)
        if not chosen:
            return node
        node.body, node.orelse = self.number(node.body), self.number(node.orelse)
        if not alike:
            return call("where", node.test, node.body, node.orelse)
        test = ast.NamedExpr(ast.Name("_test", ast.Store()), node.test)
        known = ast.Name("_test", ast.Load())
        one = ast.Compare(
            ast.Attribute(test, "__class__", ast.Load()),
            [ast.Is()],
            [ast.Name("_truth", ast.Load())],
        )
        either = ast.IfExp(known, node.body, node.orelse)
        return ast.IfExp(one, either, call("where", known, node.body, node.orelse))

    def alike(self, node: ast.IfExp) -> bool:
        """Whether both branches are arithmetic of the same operands, one of which alone decides: where
        that is a number, only one of them has to be computed."""
        tests, *branches = (
            {n for n in names_in(tree) if n in self.formula.varying}
            for tree in (node.test, node.body, node.orelse)
        )
        plain = all(
            isinstance(n, (ast.BinOp, ast.Name, ast.Constant, ast.operator, ast.expr_context))
            for tree in (node.body, node.orelse)
            for n in ast.walk(tree)
        )
        return plain and len(tests) == 1 and tests < branches[0] == branches[1]

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        varies = self.formula.varies(node)
        self.generic_visit(node)
        if not varies:
            return node
        sign = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        made = node.values[0]
        for value in node.values[1:]:
            made = ast.BinOp(made, sign, value)  # Python's True and False are welcome, too
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        varies = self.formula.varies(node)
        self.generic_visit(node)
        return (
            call("logical_not", node.operand) if varies and isinstance(node.op, ast.Not) else node
        )

    def visit_Call(self, node: ast.Call) -> Any:
        varies = self.formula.varies(node)
        node.args = [self.visit(a) for a in node.args]
        if varies:
            node.args = [self.number(a) for a in node.args]
        if not varies and isinstance(node.func, ast.Name):  # a Python number must remain one
            return ast.Call(ast.Name(f"number_{node.func.id}", ast.Load()), node.args, [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        varies = self.formula.varies(node)
        self.generic_visit(node)
        if varies and not isinstance(node.op, ast.Pow):  # NumPy knows cheaper names of some powers
            node.left, node.right = self.number(node.left), self.number(node.right)
        if isinstance(node.op, ast.Mult):
            for unit, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(unit, ast.Name) and unit.id in self.formula.units:
                    test = ast.Compare(unit, [ast.Eq()], [ast.Constant(1)])
                    return ast.IfExp(test, other, node)
        return node


def call(name: str, *args: ast.expr) -> Any:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


class Decided(ast.NodeTransformer):
    """Replaces conditions on arguments that are no tensors by the case that holds."""

    def __init__(self, formula: Formula, given: Mapping[str, Any]) -> None:
        self.formula, self.given = formula, given
        self.outcomes: list[bool] = []

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if self.formula.varies(node.test):
            self.generic_visit(node)
            return node
        code = syntax.compiled(
            ast.Expression(ast.fix_missing_locations(node.test)), "formula", "eval"
        )
        holds = bool(eval(code, {"__builtins__": {}}, dict(self.given)))  # the text of a record
        self.outcomes.append(holds)
        return self.visit(node.body if holds else node.orelse)


class Renamed(ast.NodeTransformer):
    """Other names for values whose names mean something else in a loop."""

    def visit_Name(self, node: ast.Name) -> Any:
        return ast.Name(safe(node.id), node.ctx)

    def visit_Call(self, node: ast.Call) -> Any:
        node.args = [self.visit(a) for a in node.args]
        return node


def safe(name: str) -> str:
    taken = (name in RESERVED and name not in CONSTANTS) or name == "made"
    return f"{name}_" if taken else name


CHOICE = Recipe("a[i], b[i], c[i] bool -> y[i]\n y = where(c, a, b)")
CHOSEN = ("float32", "float64", "int64", "int32", "uint8")


class OnePass:
    """A formula as compiled loops: one for each outcome of its conditions on numbers.

    A call gives the result, or None where NumPy has to do it: for few elements, other types than
    float32 and float64. Tensors come before numbers. With `out` the result is written there, which may
    be an operand, but share no memory with others.
    """

    def __init__(self, formula: Formula, params: Sequence[str]) -> None:
        self.formula, self.params = formula, tuple(params)
        self.tensors = sum(p in formula.tensors for p in params)
        self.slow = is_slow(formula)
        # Whether a loop's bits are those of NumPy's functions, so that either may do it.
        self.exact = formula.known and set(formula.primitives) <= EXACT
        self.smallest = 0 if self.slow else smallest(formula, len(params) == self.tensors)
        asked, tested = conditions(formula)
        self.asked = [k for k, p in enumerate(params) if p in asked]  # whether there is a value
        self.tested = [k for k, p in enumerate(params) if p in tested]  # which value it is
        tree = formula.result
        # How operands of several shapes, with these numbers, are computed: by which call.
        self.plans: dict[tuple[Any, ...], tuple[tuple[int, ...], Any] | None] = {}
        self.chooses = (  # it is `a if condition else b` of its three tensors in order
            not formula.lines
            and isinstance(tree, ast.IfExp)
            and [getattr(e, "id", "") for e in (tree.test, tree.body, tree.orelse)] == list(params)
            and self.tensors == 3
        )
        # Where all operands are arrays, the kernel that ran last as a builtin function, by the
        # number of dimensions and the type of the first.
        self.quick: dict[tuple[int, str], Any] = {}
        self.kinds: dict[Any, Loop | None] = {}
        self.loops: dict[Any, tuple[Loop, list[int], list[int]]] = {}  # as calls look them up

    @staticmethod
    def serves(formula: Formula) -> bool:
        """Whether a loop of its own would be faster than NumPy's functions one by one."""
        primitives = formula.primitives if formula.known else []
        if len(primitives) != 1:
            return len(primitives) > 1
        (only,) = primitives
        # NumPy's power knows cheaper names of the usual exponents.
        chooses = only in ("maximum", "minimum", "where", "reciprocal") or only in SLOW
        return only != "pow" and (chooses or PRIMITIVES[only].cost > 4)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        like = args[0]
        if like.__class__ is not np.ndarray:
            return None
        if like.size < self.smallest:
            return self.spread(args, out) if self.tensors > 1 else None
        if not like.ndim:
            return self.of_one(args) if out is None else None
        if like.dtype.char not in "fd":
            chosen = self.chooses and like.dtype.char == "?" and out is None
            return self.choose(*args) if chosen else None
        if not like.flags.c_contiguous and out is None:
            order = order_in_memory(like.shape, like.strides, like.itemsize)
            if order is not None and all(
                a.__class__ is not np.ndarray or a.ndim in (0, like.ndim) for a in args
            ):  # in rows, but for the order of its dimensions
                return self.turned(order, args)
        quick = self.quick.get((like.ndim, like.dtype.char)) if out is None else None
        if quick is not None:
            made = np.empty_like(like)
            if quick(made, *args):  # it looks at the arrays itself
                return made
            del made
        given, shape = args, like.shape
        if self.tensors > 1 and not any(like.strides) and like.size:
            given = (like.item(0), *args[1:])  # one number everywhere: the gradient of a sum
        key = (
            *[a.ndim if a.__class__ is np.ndarray else a.__class__ for a in given],
            *[args[k] for k in self.tested],
        )
        found = self.loops.get(key)
        if found is not None:
            loop, arrays, numbers = found
            like = given[arrays[0]]
            made = np.empty_like(like) if out is None else out
            if like.shape == shape and loop(
                made, *[given[k] for k in arrays], *[float(given[k]) for k in numbers]
            ):
                return made
        made = self.by_kind(given, key, shape, out)
        if made is None and self.slow and out is None:
            rows = [np.ascontiguousarray(a) if a.__class__ is np.ndarray else a for a in given]
            made = self.by_kind(rows, key, shape)
        return self.spread(args, out) if made is None and self.tensors > 1 else made

    def turned(self, order: tuple[int, ...], args: Args) -> Any:
        """The result for operands seen in the order of the first one's memory, turned back."""
        rank = len(order)
        made = self(
            *[a.transpose(order) if a.__class__ is np.ndarray and a.ndim else a for a in args]
        )
        return None if made is None else made.transpose([order.index(d) for d in range(rank)])

    def spread(self, args: Args, out: Array | None) -> Any:
        """The result for operands of several shapes, by one loop, or None."""
        given, shape = args[: self.tensors], args[0].shape
        for a in given:
            if a.__class__ is not np.ndarray:
                return None
            if a.shape != shape:
                break
        else:
            return None  # the usual case is soon known
        if out is not None or any(a.__class__ is not np.ndarray for a in given):
            return None
        shapes, kind, rest = [a.shape for a in given], given[0].dtype, args[self.tensors :]
        if kind.char not in "fd" or any(a.dtype is not kind for a in given):
            return None
        if not all(a is None or isinstance(a, CONSTANT) for a in rest):
            return None
        key = (kind.char, *shapes, *rest)
        if key not in self.plans:
            if len(self.plans) >= MOST:
                self.plans.clear()
            self.plans[key] = self.plan(args, shapes, kind)
        plan = self.plans[key]
        if plan is None or not jit.works():
            return None
        shape, call = plan
        made = np.empty(shape, kind)
        call(made, *[a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in given])
        return made

    def plan(
        self, args: Args, shapes: list[Sizes], kind: np.dtype[Any]
    ) -> tuple[tuple[int, ...], Any] | None:
        """The shape of the result for operands in rows, and the loop as a call of it and these."""
        try:
            whole = np.broadcast_shapes(*shapes)
        except ValueError:
            return None  # which NumPy says
        if math.prod(whole) < self.smallest or not jit.works():
            return None
        sizes, owns = joined(whole, shapes)
        rest = zip(self.params[self.tensors :], args[self.tensors :])
        used = {p: a for p, a in rest if a is not None and not isinstance(a, str)}
        places = [",".join(f"d{d}" for d in own) for own in owns]
        inputs = [f"{safe(p)}[{place}]" for p, place in zip(self.params, places)]
        every = ",".join(f"d{d}" for d in range(len(sizes)))
        lines = self.lines(args).replace("\n", "\n ")
        recipe = Recipe(f"{', '.join([*inputs, *map(safe, used)])} -> made[{every}]\n {lines}")
        like = [np.empty(sizes, kind), *(np.empty([sizes[d] for d in own], kind) for own in owns)]
        return whole, laid(recipe, *like, numbers=tuple(map(float, used.values())))

    def of_one(self, args: Args) -> Any:
        """The result for operands without dimensions, or None."""
        arrays = [a for a in args if a.__class__ is np.ndarray]
        if any(a.ndim for a in arrays):
            return None
        made = self(*[a.reshape(1) if a.__class__ is np.ndarray else a for a in args])
        return None if made is None else made.reshape(())

    @staticmethod
    def choose(condition: Any, a: Any, b: Any) -> Any:
        """Elements of one array or the other, of any one type, or None."""
        for v in (a, b):
            if (
                v.__class__ is not np.ndarray
                or v.shape != condition.shape
                or v.dtype != a.dtype
                or not v.flags.c_contiguous
            ):
                return None
        if not condition.flags.c_contiguous or a.dtype.name not in CHOSEN or not jit.works():
            return None
        made = np.empty(a.shape, a.dtype)
        CHOICE(*(v.reshape(-1) for v in (made, a, b, condition)))
        return made

    def by_kind(
        self, given: Sequence[Any], key: tuple[object, ...], shape: tuple[int, ...], out: Any = None
    ) -> Any:
        """Finds or makes the loop for operands of these kinds: arrays, numbers, nothing."""
        args, like = list(given), None
        arrays, numbers = [], []  # places of operands
        for k, a in enumerate(args):
            if (
                a.__class__ is np.ndarray
                and a.ndim
                and ((a.size and not any(a.strides)) or (k and self.exact and a.size == 1))
                and repeats(a.shape, shape)
            ):
                a = args[k] = a[(0,) * a.ndim]  # one number everywhere
            if k < self.tensors and a.__class__ is np.ndarray and a.ndim:
                like = a if like is None else like
                if a.shape != like.shape:
                    return None
                arrays.append(k)
            elif isinstance(a, (bool, int, float, np.number, np.ndarray)):
                if isinstance(a, (np.number, np.ndarray)) and a.dtype.kind in "cb":
                    return None  # a truth for all elements is no number of a loop
                numbers.append(k)
            elif a is not None and not isinstance(a, str):
                return None
        if like is None or like.shape != shape:
            return None
        loop = self.loop(args, arrays, numbers)
        made = np.empty_like(like) if out is None else out
        if loop is None or not loop(
            made, *[args[k] for k in arrays], *[float(args[k]) for k in numbers]
        ):
            return None
        if all(a is b for a, b in zip(args, given)):
            self.loops[key] = loop, arrays, numbers
            if len(arrays) == len(args) and loop.order == sorted(loop.order):
                self.quick[like.ndim, like.dtype.char] = loop.last
        return made

    def lines(self, args: Sequence[Any]) -> str:
        """The formula as lines of a loop, without the conditions that these arguments decide."""
        return "\n".join(
            f"{safe(n) if n else 'made'} = {ast.unparse(Renamed().visit(copy.deepcopy(e)))}"
            for n, e in self.formula.straight(dict(zip(self.params, args)))[1]
        )

    def loop(self, args: list[Any], arrays: list[int], numbers: list[int]) -> Loop | None:
        """The loop over some of the operands as arrays and others as numbers."""
        choices = [args[k] is None for k in self.asked], [args[k] for k in self.tested]
        key = (tuple(arrays), tuple(numbers), *map(tuple, choices))
        if key not in self.kinds:
            text = self.lines(args)
            own, fixed = ([self.params[k] for k in places] for places in (arrays, numbers))
            varies = not {*names_in(ast.parse(text))}.isdisjoint(map(safe, own))
            names = " ".join(["made", *map(safe, own)])
            self.kinds[key] = (
                Loop(text, names, " ".join(map(safe, fixed)), self.smallest) if varies else None
            )
        return self.kinds[key]


def joined(whole: tuple[int, ...], shapes: Sequence[Sizes]) -> tuple[list[int], list[list[int]]]:
    """The sizes of a shape's dimensions, those that go together as one, and which of these each operand
    has that is broadcast to it.

    >>> joined((8, 4, 5), [(8, 4, 5), (4, 5), (5,)])
    ([8, 4, 5], [[0, 1, 2], [1, 2], [2]])
    >>> joined((8, 4, 5), [(8, 4, 5), (4, 5)])
    ([8, 20], [[0, 1], [1]])
    """
    sizes, owners = list[int](), list[tuple[bool, ...]]()
    for d, n in enumerate(whole):
        if n == 1:
            continue
        has = tuple([d - len(whole) + len(s) >= 0 and s[d - len(whole)] == n for s in shapes])
        if owners and owners[-1] == has:
            sizes[-1] *= n
        else:
            sizes.append(n)
            owners.append(has)
    return sizes, [[d for d, has in enumerate(owners) if has[k]] for k in range(len(shapes))]


def repeats(shape: Sizes, whole: tuple[int, ...]) -> bool:
    """Whether an array of one shape, broadcast against another, adds nothing to that.

    >>> repeats((5,), (2, 5)), repeats((5,), (5, 1)), repeats((1, 1), (5,))
    (True, False, False)
    """
    return shape == whole or (
        len(shape) <= len(whole)
        and all(n in (1, m) for n, m in zip(reversed(shape), reversed(whole)))
    )


def smallest(formula: Formula, of_arrays: bool) -> int:
    """The number of elements from which a loop is worth compiling; one `of_arrays` alone is called
    with less ado."""
    primitives = formula.primitives
    if not SLOW.isdisjoint(primitives):
        return FEW // 16 if of_arrays else SMALLEST
    if len(primitives) == 1 and formula.cost > 4:
        return LARGE
    return (FEW if len(primitives) < 3 else FEW // 4) if of_arrays else SMALLEST


def is_slow(formula: Formula) -> bool:
    """Whether it has words that NumPy lacks and that take many of its functions, such as erf."""
    words = [w for w in formula.words if w in PRIMITIVES and PRIMITIVES[w].cost > 10]
    return any(not isinstance(FUNCTIONS[w], np.ufunc) for w in words)


def conditions(formula: Formula) -> tuple[set[str], set[str]]:
    """What conditions that are decided once a call ask for: whether a name has a value, and which."""
    asked: set[str] = set()
    tested: set[str] = set()
    for node in (n for tree in formula.trees for n in ast.walk(tree)):
        if isinstance(node, ast.IfExp) and not formula.varies(node.test):
            for part in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
                is_none = isinstance(part, ast.Compare) and isinstance(
                    part.ops[0], (ast.Is, ast.IsNot)
                )
                (asked if is_none else tested).update(names_in(part))
    return asked, tested
