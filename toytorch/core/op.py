"""The op record: everything about one operation in one place.

A record names the op's signature, its kernel and its derivatives; the rest follows from them: the
function and the method, `mul_`, `out=`, the node class MulBackward0, and later the traced and fused
forms, the documentation and the tests. The parameter names of a derivative say what is saved for
it: `d_self=lambda g, other: g * other` saves `other` and nothing else. A derivative may name

    g                 the gradient of the result (for several results, `gs`, a list)
    result, result1   a result of the op
    <argument>        an argument of the op
    <tensor>_shape    the shape of a tensor argument; <tensor>_dtype its type; <tensor>_order
                      whether it is a matrix in column-major memory; <tensor>_layout its
                      shape, strides and offset; nothing is saved
    work              a dictionary for what the derivatives of one node have in common

A derivative that is plain arithmetic is written as a formula, `d_self="g * other"`: the engine then
computes it on bare arrays, without making tensors that nobody will see. A formula may use what
tensors and arrays spell alike (`g.T @ self`, `g.sum(0)`) and call records by name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from toytorch.backends import base, generic
from toytorch.core.formulas import (
    Derivative,
    FormulaKernel,
    formula_of,
    in_one_launch,
    kernel_of,
    one_kernel,
)
from toytorch.core.memory_order import ORDERS, in_order
from toytorch.core.node_class import held_apply, make_node_class
from toytorch.facts import state
from toytorch.facts.hints import ArrayModule, Fn
from toytorch.facts.node import BUILT_IN, Node, underived_class
from toytorch.facts.schema import NUMPY_WORDS, Schema, parse
from toytorch.loops.formula import Formula

registry: dict[str, Op] = {}
TRAITS = ("shape", "dtype", "order", "layout")  # of a tensor, which a derivative may name
KINDS = ("pointwise", "reduction", "view", "general", "layout")
# The forms of kinds that have not just a function, a method and out=, but for those of ops with such
# names: what is below the public functions has none, and what belongs to a package is no method.
FORMS = {"pointwise": "function method inplace out", "view": "function method"}
NAMED = {"_": "", "special_": "function out", "linalg_": "function out"}
WITHOUT_GRADIENT = ("indices", "info", "pivots", "exponent", "firsts", "P")  # such results
PROMOTION = ("default", "float", "count", "tensors", "none")
VARIANT = {"__slots__": (), "__module__": BUILT_IN}  # what an op's further node classes say
# Properties that follow from the derivatives and the kernel, and all that `using` replaces.
FOLLOWING = (
    "formulas", "derivatives", "needs", "keeps", "plan", "node", "held_apply", "on_cpu", "lying",
    "launch", "half_loop",
)  # fmt: skip
REPLACED = ("rules", "kernel", "_kernels", "_variants", *FOLLOWING)


@dataclass(eq=False, kw_only=True)
class Facts:
    """What a record says of an op as it is: `Op` has the meaning of each."""

    kind: str = "general"
    promotion: str = "default"
    holomorphic: bool = True
    of_reals: str = ""
    upcast: bool | Callable[..., Any] = True
    in_halves: bool = False
    of_pairs: bool = False
    wide_number: str = ""
    narrow: str = ""
    rounds_once: str = ""
    halves: str = ""
    reflected: str = ""
    results: tuple[bool, ...] = ()
    checks: Any = None
    variant: Any = None
    overlap: bool | str = False
    apart: bool | str | Fn = False
    out_type: str = ""
    out_needs: str = ""
    out_history: str = ""
    out_rows: bool | Callable[..., bool] = False
    memory: str = ""
    amp: str = ""
    overload: Any = None
    batch: str | Fn = ""
    names: str | Callable[[dict[str, Any]], tuple[Any, ...]] = ""
    sparse: str = ""
    flops: Callable[..., int] | None = None
    fresh: bool = False
    fused: str = ""
    data_dependent: bool = False
    identity: dict[str, float] = field(default_factory=dict)
    alone: str = ""
    own_inverse: bool = False
    absorbs: bool = False
    layer: bool = False
    transposed: str = ""
    lost: str = ""
    node_in_place: int = 0
    across: str = ""
    host_indices: bool = False
    older: bool | str = False
    spreads: str = ""
    elsewhere: str = ""
    on_card: str = ""
    one_backward: bool = False
    writes: Callable[..., int] | None = None


class Op(Facts):
    """One operation.

    kind        how arguments reach the kernel (see `toytorch.core.dispatch`); "layout" is
                "general" for ops that make sparse tensors of dense ones, which have no fast path
    kernel      a name looked up on the backend's array module, or a function of (xp, *arguments);
                ops with a formula have none of their own
    promotion   "default": operands meet in their common type; "float": integers become the default
                float first; "count": masks become integers; "tensors": they meet in the type of
                the tensors, whatever the numbers are; "none": the kernel sees the arrays as they are
    derivatives {argument: function or formula}; an argument that is missing gets no gradient
    holomorphic whether the derivative rules, written for real numbers, also hold for complex ones
                once conjugated (see Node.apply); False where a rule looks at the conjugate itself
    of_reals    what PyTorch calls it where it refuses gradients of complex results, though there are
                results
    formula     what a pointwise op computes for each element; the kernel follows from it, and what
                the fuser does (see `toytorch.loops.formula`)
    upcast      whether the kernel gets operands of half types in float32; otherwise as they are. A
                function is asked first for the result in float32 of an array as it is, which may be None
    plain       the array module's function that does the same where the options have their defaults
    results     which of them have a gradient, where their names do not tell (see WITHOUT_GRADIENT)
    checks      called with the common type of the operands and the arguments; raises where the op
                has no meaning. Of an op without a common type it is asked where operands of half
                types have become others, and is given None
    node_in_place  the number at the end of the node's name for the form in place, where it has its
                own (LeakyReluBackward1)
    variant     a function of the arguments: which of PyTorch's overloads this is, the number at the
                end of the node's name (PowBackward1)
    forms       how callers reach it, some of "function method inplace out": a function of the
                package, a method of Tensor, the form with an underscore that writes into its first
                argument, and `out=`; None is all that its kind has (see `FORMS`)
    overlap     whether the form in place may write where one place of memory is several elements (or a
                function of the arguments that says so; a text is what a warning then shows)
    apart       whether out= must have memory of its own, which arguments may share elsewhere
                ("own": and a place for each of its elements, also where it is to be resized;
                "in place": whether the first argument must, where it is written to, and out= have
                other memory than the others; "own in place": both; "first": asked before all else
                but the dimension; "views": as True, of views of the arguments; "partly": it may be
                an argument, but not lie over part of one; "never": it gets a copy; or a function
                that gives the operands as those of a pointwise op, which the result is made by)
    out_type    where out= must have the result's own type, or "given" gives it ("fractions": where it is
                of fractions, as the operand is), or its `checks` say so of out= too ("alike"): how the
                refusal is worded, a key of `core.write.OUT_TYPES`; otherwise the result is cast
                ("joined": cast, and refused as `cat` refuses; "stacked": so, once shapes agree;
                "found beside numbers": "found" where all other operands are numbers)
    out_needs   an argument without which there is no out=: a dimension, or one that must be a
                tensor then, though a number will do without
    out_history what out= has where an operand wants a gradient: "" is a refusal, "none" a node that
                has no derivative, "copied" the history of the result and of a copy
    out_rows    whether an out= that is given its shape lies in rows however results lie, since PyTorch
                copies the result there; or a function of the arguments that says so
    memory      how results lie (see `memory_order`): "rows", "like" the first argument where they
                have its shape, "kept" as a copy of that argument would, "format" as all tensors of
                a list, "columns" as LAPACK leaves matrices, "second" as for an op of the second
                operand and the first, "tensor first" in rows where the first operand is a
                number, or as the kernel leaves them; reductions give rows
    in_halves   whether numbers of half types are computed with as they are, with a rounding after
                each step, and not in float32
    of_pairs    whether complex numbers of half precision, too, are computed with (in complex64)
    wide_number the operand that may be a number of more digits than the half type beside it; others
                are rounded to that type first, as in PyTorch
    narrow      the option that is rounded so, too
    rounds_once the half types, "float16 bfloat16" or one of them, whose derivatives are computed in
                float32, as PyTorch's are where they are one kernel; others are rounded after each
                of their operations
    halves      the kernel of the backend (see `backends.generic.attempt`) that knows what PyTorch
                rounds on the way in half types; it is given the type and arrays of float32, and
                makes results of their final types
    spreads     the operand that PyTorch multiplies by a number even where that is 1 ("-": by -1), so
                that of a complex infinity both parts become NaN
    one_backward  whether PyTorch has one kernel for a derivative that is written with several ops
                here: it is one launch on devices that keep time
    writes      how often PyTorch, which composes the op, writes to what it returns: a function of the
                arguments, from which the count of writes begins
    elsewhere   an argument that only a form for other devices has, of which the CPU has no kernel
    words       {name: argument}: further names by which callers may give an argument, of a pointwise op
                the only one; where "self" is one, a number in the first place goes by it, and not
                by `input`

    What others know of an op:

    amp         autocast: its operands in "half" or "float32", or in the "widest" type among them
    batch       vmap: how a whole batch is done at once; "elementwise", "along" the dimensions that
                are named (counted one further), "leading" dimensions are a batch anyway, or a
                function (see `ops.batching`); "" example by example
    names       named tensors: the result has the "same" names as the first argument, or is
                "reduced", or what a function of the arguments says (see `ops.named_dims`)
    sparse      sparse tensors, where their backend has no kernel: "entries" (f(0) = 0: done on
                them once those of one place are added up), "sums" (f(a + b) = f(a) + f(b): done on
                them as they are), "strides" (a view that needs some), "" refused
    flops       the profiler: a function of the arguments, how many operations they take
    fresh       whether the results always lie in memory of their own
    fused       the loops of an op that is not pointwise, as lines of formulas: `sum(x)` and its kin
                go along `dim`, `count` is how many elements that are
    data_dependent  whether the results' shapes depend on elements
    identity    {operand: number}: where that operand is the number, the result is the other one, to
                the last bit (the sign of a zero counts)
    alone       whether PyTorch's overload of all dimensions is one of its own, so that keepdim= needs a
                dimension: "given", which may be None, or "no None"
    own_inverse whether doing it twice gives the operand back
    absorbs     whether doing it to its own result, with other arguments, is the same as doing it
                once with the last
    across      that its kernel takes arrays of different devices as they are: "always", or
                "between" devices that differ
    host_indices  whether its indices may be on the CPU, wherever its first operand is
    on_card     what PyTorch's errors on a card call it and its operands, in order, where they have
                other names than here; "types" where they name the operands' types
    older       whether its numbers may stand among its tensors, as once (see `core.older_forms`);
                "factor first" where of two numbers the first is alpha
    layer       whether it is linear in `weight` and `bias`, whose first dimension is the channels
                of the result, so that a batch norm behind it can be folded into them
    overload    what ATen calls the overload that a call is (see `ops.aten_calls`): a word, or a function
                of the arguments and of whether it writes to the first (`ops.aten_words`); None where
                it is "Tensor", of comparisons "Scalar" beside a number, or follows from `dim`
    lost        what PyTorch calls the form in place, where that has no derivative
    transposed  an operand that PyTorch saves as the transposed view, and names so in errors
    """

    def __init__(
        self,
        signature: str,
        kernel: Any = None,
        *,
        derivatives: dict[str, Any] | None = None,
        formula: str = "",
        plain: str = "",
        doc: str = "",
        forms: str | None = None,
        node: str = "",
        words: dict[str, str] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(**facts)
        kind = self.kind
        self.schema: Schema = parse(signature)
        self.words = self.schema.words()
        self.words.update({word: self.schema.index[name] for word, name in (words or {}).items()})
        self.spelled = {name: word for word, name in (words or {}).items() if name != "self"}
        if kind == "pointwise":  # whose operands have no names but PyTorch's
            for name in self.spelled:
                own = NUMPY_WORDS.get(name, ())
                self.words = {w: i for w, i in self.words.items() if w != name and w not in own}
        self.number_is_self = "self" in self.words
        self.name = self.schema.name
        if self.name in registry:
            raise ValueError(f"op {self.name!r} is defined twice")
        if kind not in KINDS or self.promotion not in PROMOTION:
            raise ValueError(
                f"op {self.name!r}: unknown kind {kind!r} or promotion {self.promotion!r}"
            )
        self.stated = formula
        if formula and kernel is not None:
            raise ValueError(f"op {self.name!r}: its kernel follows from its formula")
        if not formula:
            self.kernel, self.plain = kernel, plain
        self.doc = inspect.cleandoc(doc) if "\n" in doc else doc.strip()
        usual = [made for start, made in NAMED.items() if self.name.startswith(start)]
        usual.append(FORMS.get(kind, "function method out"))
        given = (usual[0] if forms is None else forms).split()
        self.has_function, self.has_method = "function" in given, "method" in given
        self.has_inplace, self.has_out = "inplace" in given, "out" in given
        self.count = len(self.schema.returns)
        names = self.schema.result_names or ("",) * self.count
        self.results = self.results or tuple(name not in WITHOUT_GRADIENT for name in names)
        self.many = self.count > 1 or self.schema.returns[0] == "Tensor[]"
        self.memory = self.memory or ("rows" if kind == "reduction" else "")
        self.batch = self.batch or ("elementwise" if kind == "pointwise" else "")
        self.names = self.names or ("reduced" if kind == "reduction" else "")
        self.fresh = self.fresh or kind in ("pointwise", "reduction")
        self.random = any(a.type.startswith("Generator") for a in self.schema.args)
        self._variants: dict[int | str, Any] = {}
        self.tensor_at = self.schema.tensors
        self.option_at = tuple(i for i in range(len(self.schema.args)) if i not in self.tensor_at)
        self.tensor_names = tuple((i, self.schema.args[i].name) for i in self.tensor_at)
        self.lists = any(a.is_tensor_list for a in self.schema.args)
        self.node_name = node or pascal(self.name) + "Backward0"
        self.rules = derivatives or {}  # as they were given: functions and formulas
        for argument, d in self.rules.items():
            self._check_names(argument, () if isinstance(d, str) else parameters(d))
        self._kernels: dict[ArrayModule, Any] = {}
        self.function: Any = None
        self.remember: Any = None  # of a view: makes its node, see `core.record.recorder`
        self.make_held: Any = None  # what makes `held_function`, from the layer above
        self.written: Any = None  # the form with an underscore
        self.generated: list[Any] = []  # its functions (see `toytorch.core.first_call`)
        registry[self.name] = self

    def _knows(self, name: str) -> bool:
        """Whether a derivative may name this."""
        argument, _, trait = name.rpartition("_")
        return (
            name in ("g", "gs", "work", "result")
            or name in self.schema.index
            or (argument in self.schema.index and trait in TRAITS)
            or (name.startswith("result") and name[6:].isdigit() and int(name[6:]) < self.count)
        )

    @property
    def differentiable(self) -> bool:
        """Whether any argument has a derivative."""
        return bool(self.rules)

    # What follows from the derivatives is made when it is first asked for: a program uses few ops.

    @functools.cached_property
    def formula(self) -> Formula | None:
        """What it computes for each element, read."""
        return formula_of(self.stated, self.schema) if self.stated else None

    @functools.cached_property
    def _stated_kernel(self) -> tuple[Any, str]:
        assert self.formula is not None, self.name  # ops without one were given their kernel
        return kernel_of(self.name, self.formula, self.schema)

    @functools.cached_property
    def kernel(self) -> Any:
        """What computes it, which follows from the formula if it was not given."""
        return self._stated_kernel[0]

    @functools.cached_property
    def plain(self) -> str:
        """The array module's function that does the same where the numbers have their defaults."""
        return self._stated_kernel[1]

    @functools.cached_property
    def formulas(self) -> dict[str, Derivative]:
        """The derivatives that are formulas, read."""
        return {
            n: Derivative(d, self.schema, self._knows, Late, f"{self.name}_backward")
            for n, d in self.rules.items()
            if isinstance(d, str)
        }

    @functools.cached_property
    def derivatives(self) -> dict[str, Any]:
        """The derivatives as functions of tensors."""
        own = {n: d for n, d in self.rules.items() if n not in self.formulas}
        if self.one_backward:
            name = f"{self.name}_backward"
            own = {n: in_one_launch(name, d) for n, d in own.items()}
        return {n: own[n] if n in own else self.formulas[n].of_tensors for n in self.rules}

    @functools.cached_property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """What each derivative names."""
        return {
            n: self.formulas[n].params if n in self.formulas else parameters(d)
            for n, d in self.derivatives.items()
        }

    @functools.cached_property
    def keeps(self) -> tuple[str, ...]:
        """What a node keeps, in order: names of arguments, of results, and of shapes and dtypes."""
        named = [n for names in self.needs.values() for n in names]
        return tuple(dict.fromkeys(n for n in named if n not in ("g", "gs", "work")))

    @functools.cached_property
    def plan(self) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
        """How to save each of them."""
        return tuple(self._keep_plan(n) for n in self.keeps)

    @functools.cached_property
    def node(self) -> type[Node]:
        """The node class, whose `apply` is generated from the derivatives."""
        return make_node_class(self)

    @functools.cached_property
    def held_apply(self) -> Fn | None:
        """The derivatives on arrays of devices to which whole calls are handed over."""
        return held_apply(self)

    @functools.cached_property
    def held_function(self) -> Fn:
        """Its function for tensors on simulated devices, where nothing is out of the ordinary: as with the
        fast path, nobody watches, and no field is replaced."""
        return self.make_held(self)

    @functools.cached_property
    def on_cpu(self) -> Fn:
        """The kernel over NumPy."""
        return self.kernel_on(np)

    @functools.cached_property
    def lying(self) -> Fn:
        """The same for a pointwise op, whose result lies in memory as PyTorch's does."""
        kernel, places = self.on_cpu, self.tensor_at

        def in_its_order(*args: Any) -> Any:
            return in_order(self, kernel(*args), [args[i] for i in places])

        return in_its_order

    @functools.cached_property
    def launch(self) -> Fn:
        """The kernel as a launch, where there are arrays of a device to which whole calls are handed over;
        it is told first of which backward pass it is a part."""
        pointwise = self.kind == "pointwise"
        kernel = self.lying if pointwise else self.on_cpu
        flops = None if pointwise else self.flops

        def launched(asker: Any, *args: Any) -> Any:
            operands, host, plain, queued = [], [], None, base.queued
            for a in args:
                kind: Any = a.__class__
                if kind in queued:
                    plain = queued[kind].plain
                    operands.append(a)
                    a = a.held
                host.append(a)
            if plain is None:
                return kernel(*host)
            if flops is None:
                return plain(self.name, kernel, host, operands, asker=asker)
            return plain(self.name, kernel, host, operands, flops(*host), True, (), asker)

        return launched

    def kernel_on(self, xp: ArrayModule) -> Fn:
        """The kernel over one array module, called with arrays and plain arguments."""
        found = self._kernels.get(xp)
        if found is None:
            kernel = self.kernel
            if hasattr(xp, "kernel_of"):  # sparse arrays: a table instead of an array module
                return xp.kernel_of(self)
            if isinstance(kernel, str):
                found = generic.named(xp, kernel)
                if xp is not np and self.formula is not None:
                    found = one_kernel(xp, self.formula, self.schema, found)
            elif isinstance(kernel, FormulaKernel):  # any array module answers to its functions
                found = kernel.on(xp)
            else:
                found = functools.partial(kernel, xp)
            found = ORDERS[self.memory](found) if xp is np else generic.guarded(xp, found)
            self._kernels[xp] = found
        return found

    @functools.cached_property
    def half_loop(self) -> Any:
        """The formula over arrays of half types; None where PyTorch rounds otherwise than once, or
        the kernel is another."""
        formula = self.formula
        if formula is None or not formula.known or self.kernel is not self._stated_kernel[0]:
            return None
        if self.halves or self.in_halves or len(self.schema.returns) > 1:
            return None
        from toytorch.loops.half_loop import HalfLoop  # few programs have half types

        return HalfLoop(formula, [a.name for a in self.schema.args])

    def takes_halves(self, xp: ArrayModule) -> bool:
        """Whether arrays of half types go to the kernel as they are: where a device computes the
        formula in one kernel, which widens what it reads and rounds once."""
        if xp is np or hasattr(xp, "kernel_of"):  # a table of kernels, as that of sparse arrays
            return False
        return bool(
            self.formula is not None
            and self.schema.returns == ("Tensor",)
            and generic.offers(xp, "formula")
            and self.formula.known
        )

    def into(self, xp: ArrayModule) -> Fn:
        """The ufunc that the op is where its numbers have their defaults, called with `out=`."""
        if not self.plain:
            return self.kernel_on(xp)
        ufunc = getattr(xp, self.plain)
        if xp is np or self.formula is None:
            return ufunc
        return one_kernel(xp, self.formula, self.schema, ufunc)

    @contextmanager
    def using(self, **fields: Any) -> Iterator[Op]:
        """Replaces the kernel (`kernel=`) or derivatives (`d_self=`) for a while: an injection point.

        >>> x = torch.tensor(3., requires_grad=True)
        >>> with torch.ops.mul.using(d_self=lambda g, other: g * 100):
        ...     (x * 2).backward()
        >>> x.grad
        tensor(100.)
        """
        self.source()  # its functions are made for the record's own fields
        before = {name: getattr(self, name) for name in REPLACED}  # which makes what was not yet
        rules = dict(self.derivatives)  # no formulas: a derivative from outside may want tensors
        kernel = self.kernel
        for key, value in fields.items():
            if key == "kernel":
                kernel = value
            elif key.startswith("d_") and key[2:] in self.schema.index:
                self._check_names(key[2:], parameters(value))
                rules[key[2:]] = value
            else:
                raise TypeError(
                    f"{self.name}.using() got an unexpected field {key!r}; it takes "
                    f"kernel and {', '.join('d_' + a for a in self.schema.index)}"
                )
        self.rules, self.kernel, self._kernels, self._variants = rules, kernel, {}, {}
        for name in FOLLOWING:
            del self.__dict__[name]
        try:
            with state.watching(self):  # the fast path was made for the old fields
                yield self
        finally:
            self.__dict__.update(before)

    def _check_names(self, argument: str, names: tuple[str, ...]) -> None:
        """Refuses a derivative of something else than an argument, or that names something else."""
        args = self.schema.index
        unknown = [n for n in names if not self._knows(n)]
        if argument not in args or unknown:
            raise ValueError(
                f"op {self.name!r}: derivative d_{argument} names {unknown or argument!r},"
                f" which is no argument of {self.schema}"
            )

    @functools.cached_property
    def asks_gradients(self) -> bool:
        """Whether PyTorch differentiates it at all, and so refuses `out=` where a graph is recorded."""
        if self.schema.returns[0] == "BoolTensor" or not self.rules or self.out_history:
            return False
        return not all(getattr(d, "underived", False) for d in self.rules.values())

    @functools.cached_property
    def underived(self) -> bool:
        """Whether what out= gets is a node that says that there is no derivative."""
        return self.node_name == "NotImplemented" or self.out_history == "none"

    def node_variant(self, number: int | str) -> Any:
        """The node class whose name ends in a number; a text: of an overload without derivatives,
        or the class's own name."""
        found = self._variants.get(number)
        if found is None and number.__class__ is str and number.endswith("Backward0"):
            found = self._variants[number] = type(number, (self.node,), VARIANT)
        elif found is None and number.__class__ is str:
            found = self._variants[number] = underived_class(f"aten::{self.name}")
        elif found is None:
            name = self.node_name.rstrip("0123456789") + str(number)
            found = self._variants[number] = type(name, (self.node,), VARIANT)
        return found

    @property
    def node_of_writes(self) -> Any:
        """The node class of the form in place, which some have their own of."""
        if self.node_name == "NotImplemented":
            name, dot, overload = self.name.partition(".")
            return underived_class(f"aten::{name}_{dot}{overload}")
        return self.node_variant(self.node_in_place) if self.node_in_place else self.node

    def _keep_plan(self, name: str) -> tuple[str, int, tuple[int, ...]]:
        """How to save `name`: its kind, its index, and which arguments' derivatives ask for it."""
        users = tuple([self.schema.index[a] for a, names in self.needs.items() if name in names])
        if name in self.schema.index:
            return "argument", self.schema.index[name], users
        if name.startswith("result"):
            return "result", int(name[6:] or -1), users
        argument, _, trait = name.rpartition("_")
        return trait, self.schema.index[argument], users

    def source(self) -> str:
        """The generated Python source of this op's node and functions."""
        return "\n\n".join([self.node.source, *(g.source() for g in self.generated)])

    def __call__(self, *args: Any, **kwargs: float) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.schema}>"


def parameters(function: Fn) -> tuple[str, ...]:
    """The names of a function's parameters."""
    if function.__class__ is not FunctionType or hasattr(function, "__wrapped__"):
        return tuple(inspect.signature(function).parameters)
    code = function.__code__  # a hundred times faster than `inspect`
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def pascal(name: str) -> str:
    """The name PyTorch's nodes are made of: "index_select" → "IndexSelect".

    >>> pascal("log_softmax"), pascal("max.dim"), pascal("avg_pool2d")
    ('LogSoftmax', 'Max', 'AvgPool2D')
    """
    return "".join(p.title() for p in name.split(".")[0].split("_"))


class Late:
    """A record's function by name, found when it is called: records may be defined later."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: object) -> Any:
        return registry[self.name].function(*args)

    @property
    def is_view(self) -> bool:
        """Whether it launches nothing on a device."""
        return registry[self.name].kind == "view"

    def on_arrays(self, *args: object) -> Any:
        """The record's kernel for the CPU."""
        return registry[self.name].on_cpu(*args)

    def on_held(self, *args: Any) -> Any:
        """The same for arrays of one device to which whole calls are handed over."""
        return registry[self.name].launch(state.local.backward_pass, *args)
