"""The tracer: a mode that writes down every op a function calls, as a graph.

What a value of the graph stands for is recognised by the array under the tensor: it is the same
object for a tensor and for what a node of the backward pass saved of it, so a traced backward pass
finds the values of the forward pass again.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.backends.sparse import TABLES
from toytorch.core import dispatch, write
from toytorch.core.op import Op
from toytorch.core.subclasses import disabled_torch_function_impl
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state, warned
from toytorch.facts.composed import called
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.package import is_ours
from toytorch.facts.pytree import tree_leaves
from toytorch.facts.size import Size
from toytorch.jit import types
from toytorch.jit.builtins import BUILTINS
from toytorch.jit.ir import Block, Graph, Node, Source, Value
from toytorch.ops.creation import convert, from_data
from toytorch.ops.creation.memory import resize_laid, resize_out
from toytorch.ops.shaping import copies


class TracerWarning(Warning):
    """Something that a trace cannot follow was frozen into it."""


class GraphBreak(RuntimeError):
    """A function that has to become one graph looks at the elements of a tensor."""


class Tracer:
    """Records the ops of this thread into a graph, between `with state.watching(tracer)`.

    seen    whether results show the user's program what a trace cannot follow (Traced); the
            compiler's own traces need none of that
    """

    def __init__(self, graph: Graph | None = None, seen: bool = False) -> None:
        self.graph = graph or Graph()
        self.block: Block = self.graph
        self.seen = seen
        self.values: dict[int, tuple[Value, Any]] = {}  # by id of the array, which is kept alive
        self.numbers: dict[Any, Value] = {}  # constants, by type and value
        # Attributes: id of the array: (module, name, tensor).
        self.owners: dict[int, tuple[Value, str, Tensor]] = {}
        self.scopes: list[str] = []
        self.recording = seen and state.local.grad  # whether no_grad inside has to be written down
        self.traced_tensors: list[Tensor] = []
        # Tensors from outside that became inputs (see `compile`); None where they become constants.
        self.captured: list[Tensor] | None = None
        self.external: dict[int, Tensor] = {}  # those and the arguments, by id of the array
        self.leaves: list[Tensor] = []  # which stand for leaves of the caller's
        self.given: list[Tensor] = []  # which stand for the caller's own tensors
        self.replaced_arrays: list[tuple[Tensor, Any]] = []  # of tensors that have another now
        self.reason = ""  # why such a trace has ended; calls are no longer written down
        self.strict = False  # whether that is an error
        self.frozen = 0  # how often `data` was asked for
        self.constants: list[Tensor] = []  # what `data` gave, or is to give: an earlier trace's
        self.read: list[Any] = []  # Python's values of tensors, which a later trace finds unchanged
        self.to_read: list[
            Any
        ] = []  # those of an earlier trace that are still to come, the last first
        self.refusing: tuple[str, Sequence[Any]] = "", ()  # an op, and the out= that it may refuse

    # -- values --------------------------------------------------------------------------------

    def push_scope(self, name: str) -> None:
        """What is recorded from here on stands in this scope of the one around it."""
        self.scopes.append(f"{self.scopes[-1]}/{name}" if self.scopes else name)

    def pop_scope(self) -> None:
        """Leaves the scope entered last."""
        self.scopes.pop()

    def input(self, value: Any, name: str = "") -> Value:
        """An input of the graph, for a tensor at hand."""
        made = self.graph.add_input(types.of(value), name)
        if isinstance(value, Tensor):
            self.bind(value, made)
        return made

    def bind(self, tensor: Tensor, value: Value) -> None:
        """Lets a tensor stand for a value from now on."""
        self.values[id(tensor._array)] = value, tensor._array
        if self.seen and tensor.__class__ is Tensor:
            tensor.__class__ = Traced
            self.traced_tensors.append(tensor)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Tensors stand for what they stood for where a call meanwhile moves the memory they lie in."""
        before = [(t, t._array) for t in self.traced_tensors]
        yield
        for tensor, array in before:
            if tensor._array is not array and id(array) in self.values:
                self.values[id(tensor._array)] = self.values[id(array)][0], tensor._array

    def value_of(self, item: object) -> Value:
        """The value in the graph for what a function was called with."""
        if isinstance(item, Tensor):
            found = self.values.get(id(item._array))
            owner = self.owners.get(id(item._array))
            if owner is not None and owner[2]._requires_grad and not item._requires_grad:
                return self.without_history(item, owner[2])
            if found is None or (self.captured is not None and self.give_own_array(item)):
                return self.outside(item)
            return found[0]
        if isinstance(item, TracedInt):
            return item.value
        if item.__class__ is Size:
            item = tuple(item)
        if item.__class__ in (list, tuple) and any(map(is_traced, item)):
            kind = "prim::ListConstruct" if item.__class__ is list else "prim::TupleConstruct"
            parts = [self.value_of(i) for i in item]
            made = types.of(item)
            return self.add(self.graph.make(kind, parts, [made])).output
        return self.constant(item)

    def without_history(self, item: Tensor, owner: Tensor) -> Value:
        """What `data` gave of a parameter: another value, through which no gradient goes."""
        made = self.whole("aten::detach", convert.detach, [owner], types.of_tensor(item))
        self.replaced_arrays.append((item, item._array))
        item._memory()
        item._array = another(item._array)
        self.values[id(item._array)] = made, item._array
        return made

    def give_own_array(self, item: Tensor) -> bool:
        """Gives a tensor from outside an array object of its own until the trace ends, if it has
        that of another, of which it is what `detach` or `data` gave."""
        other = self.external.get(id(item._array))
        if (
            other is None
            or other is item
            or item._requires_grad is other._requires_grad
            or item._grad_edge is not None
        ):
            return False
        self.replaced_arrays.append((item, item._array))
        item._memory()
        item._array = another(item._array)
        return True

    def constant(self, item: object) -> Value:
        """A constant; equal ones are one value."""
        item = tuple(item) if isinstance(item, tuple) else item
        key: Any = (item.__class__, repr(item))
        if isinstance(item, (int, float, bool, str, type(None), tuple)) and key in self.numbers:
            return self.numbers[key]
        made = self.add(self.graph.constant(item)).output
        self.numbers[key] = made
        return made

    def outside(self, tensor: Tensor) -> Value:
        """A tensor that no traced op made: a module's, or a constant."""
        owner = self.owners.get(id(tensor._array))
        if owner is not None:
            module, name, _ = owner
            node = self.graph.make(
                "prim::GetAttr", [module], [(types.of_tensor(tensor), name)], {"name": name}
            )
        elif self.captured is not None:
            self.captured.append(tensor)
            self.external[id(tensor._array)] = tensor
            made = self.graph.add_input(types.of_tensor(tensor))
            self.values[id(tensor._array)] = made, tensor._array
            return made
        elif tensor._requires_grad and self.seen:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider "
                "making it a parameter or input, or detaching the gradient\n"
                f"Tensor:\n{tensor}"
            )
        else:
            node = self.graph.constant(tensor)
            self.given.append(tensor)
        made = self.add(node).output
        self.values[id(tensor._array)] = made, tensor._array
        return made

    def add(self, node: Node) -> Node:
        """One more node, with the place in the user's program it comes from."""
        if self.recording and not state.local.grad and node.kind.startswith("aten::"):
            node.attributes["no_grad"] = True
        if self.seen and node.source is None:
            node.source = where()
            if self.scopes:
                node.attributes["_scope"] = self.scopes[-1]
        self.block.nodes.append(node)
        return node

    def stop(self, why: str) -> None:
        """Ends a trace that has to be one graph: the function goes on, as itself."""
        if self.strict:
            raise GraphBreak(why)
        self.reason = self.reason or why

    def leave(self, why: str) -> bool:
        """Whether a recorded call of a function that may stay Python is given up: what it does is
        rare, and to the letter only Python does it."""
        if self.captured is None or self.strict:
            return False
        self.stop(why)
        return True

    # -- what the dispatcher tells -------------------------------------------------------------

    def on_effect(self, what: str) -> None:
        """Something happened that is no op."""
        if self.captured is not None:
            self.stop(what)

    def on_frozen(self, text: str, what: str) -> None:
        """A Python value was made of a tensor, or a tensor of Python values."""
        if self.captured is None:
            warned.at_call((FROZEN if text == "value" else CONSTANT).format(what), TracerWarning)

    def on_call(self, op: Op, args: Args, out: Any) -> Any:
        """An op was called."""
        if self.reason:
            return dispatch.call(op, plain(args), out)
        if op.data_dependent and self.captured is not None:
            self.stop(f"the shape of what {op.name} gives depends on elements")
            return dispatch.call(op, plain(args), out)
        if out is not None:
            return self.into(op, args, out)
        result = dispatch.call(op, plain(args))
        self.record(op, "aten::" + op.name, args, result)
        return result

    def into(self, op: Op, args: Args, out: Any) -> Any:
        """A call with out=: the op, and a write into what was given."""
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if op.asks_gradients:
            write.refuse_grad(op.name, [args[i] for i in op.tensor_at], out)
        elif op.out_history == "copied":
            for o in outs:
                self.refuse_leaf(o)
        if op.out_type == "given":
            args = dispatch.in_type_of(op, args, out)
        shared = [  # memory that others see, as that of a view
            getattr(o, "_storage", None) is not None or o._requires_grad for o in outs
        ]
        if op.underived and state.local.grad:
            for o in outs:
                write.refuse_leaf(op.name, o, self.stands_for_leaf(o))
            if any(t._requires_grad for t in tensors_of([*args, *outs])) and self.leave(
                f"out= of {op.name} takes part in gradients"
            ):
                return dispatch.call(op, plain(args), out)
        targets, before = [self.value_of(o) for o in outs], [o._array for o in outs]
        try:
            computed = dispatch.call(op, plain(args))
        except (RuntimeError, IndexError, ValueError, TypeError):
            dispatch.call(op, plain(args), out)  # which may be refused for another reason
            raise
        shapes = [t._array.shape for t in (computed if op.many else [computed])]
        if shapes != [a.shape for a in before] and self.leave("out= gets another shape"):
            return dispatch.call(op, plain(args), out)
        start = len(self.block.nodes)
        self.record(op, "aten::" + op.name, args, computed)
        for node in self.block.nodes[start:]:
            if node.op is op:
                node.attributes["_out"] = True  # which is refused where a gradient is wanted
        with self.following():
            result = dispatch.call(op, plain(args), out)
        made_of = computed if op.many else [computed]
        for o, target, old, new, seen in zip(outs, targets, before, made_of, shared):
            made = self.values[id(new._array)][0]
            if o._array is not old and new.dtype is not o.dtype:
                cast = dispatch.call(copies.cast, (new, o.dtype))
                self.record(copies.cast, "aten::_to_copy", (new, o.dtype), cast)
                made = self.values[id(cast._array)][0]
            seen = seen or self.stands_for_input(o)
            if seen and o._array is not old:
                rows = op.out_history == "copied" or write.in_rows(op, plain(args))
                target = self.resized(target, made, o, resize_out if rows else resize_laid)
            if o._array is old or seen:
                inputs = [target, made, self.constant(False)]
                node = self.graph.make("aten::copy_", inputs, [types.of(o)])
                if op.asks_gradients:
                    node.attributes["_refuses"] = op.name
                elif op.out_history != "copied":  # then a leaf may be written to, which stays one
                    node.attributes["no_grad"] = True
                made = self.add(node).output
            self.bind(o, made)
            if op.underived and state.local.grad:
                self.on_underived(f"aten::{op.name}", o)
        return result

    def on_refusal(self, name: str, out: Any) -> None:
        """A composed function refuses gradients before it writes to out=, as a run has to, too."""
        self.refusing = name, out if isinstance(out, (tuple, list)) else (out,)

    def on_underived(self, kind: object, result: Tensor) -> None:
        """The last write was an op's without a derivative, as a run has to say, too: it may be told of
        gradients that the trace did not meet."""
        last = self.block.nodes[-1] if self.block.nodes and not self.reason else None
        if last is not None and last.kind == "aten::copy_" and self.value_of(result) is last.output:
            last.attributes["_underived"] = kind

    def on_inplace(self, op: Op, args: Args) -> Any:
        """An op wrote into its first argument."""
        if self.reason:
            return write.inplace(op, plain(args))
        inputs = [self.value_of(a) for a in args]
        if op.derivatives or op.schema.returns[0] != "BoolTensor":
            self.refuse_leaf(args[0])
        result = write.inplace(op, plain(args))
        name, dot, overload = op.name.partition(".")
        node = self.add(
            self.graph.make(
                f"aten::{name}_{dot}{overload}", inputs, [types.of(result)], function=op
            )
        )
        if op is copies.copy and any(result is o for o in self.refusing[1]):
            node.attributes["_refuses"] = self.refusing[0]
        self.bind(result, node.output)
        return result

    def stands_for_input(self, item: object) -> bool:
        """Whether a tensor stands for one of the caller's, or is one itself that the function holds:
        who has it, and the next run, see a new layout of it."""
        if self.captured is None and isinstance(item, Tensor):
            self.value_of(item)  # a constant, if no traced op made it
        return not self.reason and any(item is t for t in self.given)

    def stands_for_leaf(self, item: object) -> bool:
        """Whether a tensor stands for a leaf of the caller's that wants gradients, or is a view of
        what does: here it has a history."""
        base = getattr(item, "_base", None)
        return any((item is t or base is t) and t._requires_grad for t in self.leaves)

    def on_relaid(self, method: Fn, args: Args, kwargs: Kwargs) -> Any:
        """An input was given another layout, as by `squeeze_`: only a run can do that again."""
        if self.leave("a tensor is given another layout"):
            return method(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        given = [self.value_of(a) for a in (*args, *kwargs.values())]
        if getattr(method, "writes", False):
            self.refuse_leaf(args[0])
        with self.following():
            result = method(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        attributes = {"_names": tuple(kwargs)} if kwargs else {}
        node = self.graph.make(
            "aten::" + method.__name__, given, [types.of(result)], attributes, function=method
        )
        self.bind(result, self.add(node).output)
        return result

    def resized(self, target: Value, made: Value, out: Tensor, resize: Fn) -> Value:
        """What stands for an out= whose shape has become that of another value."""
        node = self.graph.make("aten::resize_as_", [target, made], [types.of(out)], function=resize)
        return self.add(node).output

    def refuse_leaf(self, target: Any) -> None:
        """Refuses a write to a leaf of the caller's, which has a history here, or to a view of it."""
        base = getattr(target, "_base", None)
        if not state.local.grad:
            return
        for leaf in self.leaves:
            if (target is leaf or base is leaf) and leaf._requires_grad:  # `detach_` may have been
                what = "a view of a leaf" if base is leaf else "a leaf"
                raise RuntimeError(
                    f"{what} Variable that requires grad is being used in an in-place operation."
                )

    def on_conjugates(self, function: Callable[[Tensor], Tensor], source: Tensor) -> Tensor:
        """A tensor is seen conjugated: what is written to either, the other has to show."""
        with state.below(self):
            return self.on_create(function, (source,), {})

    def on_create(self, function: Fn, args: Args, kwargs: Kwargs) -> Any:
        """A tensor was made of none: it is made again in every run, in `out` if that is given."""
        out = kwargs.get("out")
        takes = inspect.signature(function).parameters
        if "out" in kwargs and "out" not in takes and "kwargs" not in takes:
            return function(*plain(args), **{k: plain(v) for k, v in kwargs.items()})  # refuses it
        if function is from_data.tensor and not is_library(caller_of(function)):
            self.on_frozen("constant", "torch.tensor")
        if self.reason or (out is not None and self.leave("a new tensor is made in out=")):
            return function(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        if out is not None:  # written to as it lies, and with its history: only a run can do that
            write.refuse_leaf(function.__name__, out, self.stands_for_leaf(out))
        given = [self.value_of(a) for a in (*args, *kwargs.values())]
        with self.following():
            result = function(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        made = tensors_of(result)
        for tensor in made:
            if out is None and id(tensor._array) in self.values:
                tensor._array = another(tensor._array)  # detach: the same memory is another value
        attributes = {"_names": tuple(kwargs)} if kwargs else {}
        node = self.add(
            self.graph.make(
                "aten::" + function.__name__,
                given,
                [types.of(r) for r in made],
                attributes,
                function=function,
            )
        )
        for value in given:
            constant = value.node.attributes.get("value") if value.node is not None else None
            if isinstance(constant, Tensor):  # out=, which has the shape of what it was given
                value.type = types.of_tensor(constant)
        for tensor, value in zip(made, node.outputs):
            self.bind(tensor, value)
        return result

    def keeps(self, graph: Graph) -> bool:
        """Whether a call of a scripted function stays a call: its branches and loops, which a trace
        would freeze, are in the graph then."""
        return (
            self.captured is None
            and (state.local.grad or not self.recording)
            and (
                isinstance(graph.outputs[0].type, types.Tensor)
                and any(
                    n.kind in ("prim::If", "prim::Loop", "prim::CallFunction") for n in graph.walk()
                )
            )
        )

    def called(self, graph: Graph, inputs: list[Any], run: Any) -> Any:
        """A call of a scripted function, as one node."""
        given = [self.value_of(v) for v in inputs]
        with state.below(self):
            result = run(graph, inputs)
        node = self.add(
            self.graph.make(
                "prim::CallFunction",
                given,
                [types.of(result)],
                {"name": graph.name, "Subgraph": graph},
            )
        )
        self.bind(result, node.output)
        return result

    def on_function(self, function: Any, inputs: tuple[Any, ...]) -> Any:
        """A Function of the user's own was applied: one node, which applies it in every run.

        Its operations are not written down. Forward runs without gradients, and what it leaves for
        backward, which is Python too, is no value of the graph.
        """
        result = function._run(tuple(map(plain, inputs)))
        if self.reason:
            return result
        places = [i for i, v in enumerate(inputs) if is_traced(v)]
        given = [self.value_of(inputs[i]) for i in places]
        rest = [None if i in places else v for i, v in enumerate(inputs)]
        unrecorded = self.recording and not state.local.grad

        def apply(*values: object) -> Any:
            filled = list(rest)
            for i, v in zip(places, values):
                filled[i] = v
            with no_grad() if unrecorded else contextlib.nullcontext():
                made = tensors_of(function.apply(*filled))
            return made[0] if len(made) == 1 else tuple(made)

        made = tensors_of(result)
        for tensor in made:
            if id(tensor._array) in self.values and not any(tensor is v for v in inputs):
                tensor._array = another(tensor._array)  # a view of everything is a value of its own
        node = self.add(
            self.graph.make(
                "prim::CallFunction",
                given,
                [types.of(r) for r in made],
                {"name": function.__name__},
                function=apply,
            )
        )
        for tensor, value in zip(made, node.outputs):
            self.bind(tensor, value)
        return result

    def record(self, op: Op, kind: str, args: Args, result: Any) -> None:
        """Adds the node of a call and binds its results."""
        inputs = [self.value_of(a) for a in args]
        for made in result if op.many else [result]:
            held = self.values.get(id(made._array))
            if held is not None and held[1] is made._array and not any(made is a for a in args):
                made._array = another(made._array)  # a view of everything is a value of its own
        if not op.many:
            node = self.add(self.graph.make(kind, inputs, [types.of(result)], function=op))
            self.bind(result, node.output)
            return
        if op.schema.returns[0] == "Tensor[]":
            listed = self.add(
                self.graph.make(kind, inputs, [types.List(types.TENSOR)], function=op)
            ).output
            node = self.add(
                self.graph.make("prim::ListUnpack", [listed], [types.of(r) for r in result])
            )
        else:
            node = self.add(
                self.graph.make(kind, inputs, [types.of(r) for r in result], function=op)
            )
        for tensor, value in zip(result, node.outputs):
            self.bind(tensor, value)

    def whole(self, name: str, function: Any, inputs: list[Any], result: types.Type) -> Value:
        """A node of an operation that gives no tensor: a size, a sum of integers."""
        return self.add(
            self.graph.make(name, [self.value_of(i) for i in inputs], [result], function=function)
        ).output

    def end(self) -> None:
        """Tensors that outlive the trace are ordinary ones again."""
        for tensor in self.traced_tensors:
            if tensor.__class__ is Traced:
                tensor.__class__ = Tensor  # type: ignore[assignment]  # they have one layout
        self.traced_tensors.clear()
        for tensor, array in self.replaced_arrays:
            if tensor._array.base is not None and tensor._array.shape == array.shape:
                tensor._array = array
        self.replaced_arrays.clear()


def another(array: Any) -> Any:
    """Another object over the same memory, by which a tensor is told apart."""
    return copy.copy(array) if array.__class__ in TABLES else array[...]


def tensors_of(result: object) -> list[Tensor]:
    """The tensors that a call gave."""
    return [r for r in tree_leaves(result) if isinstance(r, Tensor)]


def is_traced(item: object) -> bool:
    """Whether something holds a value of a trace."""
    return isinstance(item, (Tensor, TracedInt)) or (
        item.__class__ in (list, tuple, Size) and any(map(is_traced, item))
    )


def plain(item: object) -> Any:
    """What an op is called with, traced numbers as ordinary ones."""
    if item.__class__ is TracedInt:
        return int.__int__(item)
    if item.__class__ is Size:
        return Size(map(plain, item))
    if item.__class__ in (tuple, list):
        return item.__class__(map(plain, item))
    return item


def running() -> Tracer | None:
    """The tracer of this thread that shows itself, if there is one."""
    for mode in reversed(state.local.modes):
        if isinstance(mode, Tracer):
            return mode if mode.seen else None
    return None


def following() -> Tracer | None:
    """The same, if it writes sizes down: `compile` makes a graph for each set of sizes."""
    tracer = running()
    return None if tracer is None or tracer.captured is not None else tracer


def where() -> Source | None:
    """The line of the user's program that is running."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_library(frame):
        frame = frame.f_back
    if frame is None:
        return None
    return Source(frame.f_code.co_filename, frame.f_lineno)


def is_library(frame: Any) -> bool:
    """Whether a frame runs code of toytorch."""
    return is_ours(frame.f_globals.get("__name__"))


def caller_of(function: Fn) -> Any:
    """The frame that called a running function, whose first call has a frame of its own for writing it."""
    frame: Any = sys._getframe(1)
    while frame.f_globals is not function.__globals__:
        frame = frame.f_back
    while frame.f_globals is function.__globals__:
        frame = frame.f_back
    return frame


# -- what the function sees while it is traced ----------------------------------------------------

FROZEN = (
    "{} might cause the trace to be incorrect. We can't record the data flow of Python "
    "values, so this value will be treated as a constant in the future. This means that the "
    "trace might not generalize to other inputs!"
)


OF_THIS_SHAPE = (
    "{} might cause the trace to be incorrect. {}Passing a tensor of different shape {}might lead to "
    "errors or silently give incorrect results{}."
)
LENGTH = OF_THIS_SHAPE.format(
    "Using len to get tensor shape", "Recommended usage would be tensor.shape[0]. ", "", ""
)
PARTS = OF_THIS_SHAPE.format(
    "Iterating over a tensor", "", "won't change the number of iterations executed (and ", ")"
)
CONSTANT = (
    "{} results are registered as constants in the trace. You can safely ignore this warning if you "
    "use this function to create tensors out of constant variables that would be the same every time "
    "you call this function. In any other case, this might cause the trace to be incorrect."
)


def warn(what: str, size: bool = False, words: str = FROZEN) -> None:
    """Tells the user that something is frozen, unless toytorch itself looks, or it is a size for
    which there will be a graph of its own."""
    tracer, frame = running(), sys._getframe(2)
    if tracer is None:
        return
    if tracer.captured is not None and not size:  # of sizes, there is a graph for each
        tracer.stop(f"{what} at {frame.f_code.co_filename}:{frame.f_lineno}")
        return
    if is_library(frame):
        return  # a new shape is traced anew
    warnings.warn(words.format(what), TracerWarning, stacklevel=3)


def _told(name: str, what: str, size: bool = False, words: str = FROZEN) -> Any:
    """A method of Tensor's whose result is frozen, which it says."""
    own = getattr(Tensor, name)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        warn(what, size, words)
        tracer = running()
        if size or tracer is None or tracer.captured is not None or is_library(sys._getframe(1)):
            return own(self, *args, **kwargs)
        value = tracer.to_read.pop() if tracer.to_read else own(self, *args, **kwargs)
        tracer.read.append(value)
        return value

    return called(name, own.__doc__, method)


class TracedInt(int):
    """A size that the graph computes; arithmetic with it is written down too."""

    value: Value

    @classmethod
    def of(cls, number: int, value: Value) -> TracedInt:
        """A number that stands for a value."""
        made = cls(number)
        made.value = value
        return made


def _arithmetic(name: str, method: str) -> None:
    plain = getattr(int, method)
    reverse = method.startswith("__r") and method != "__rshift__"

    def traced(self: TracedInt, *others: object) -> Any:
        result = plain(self, *others)
        tracer = running()
        if tracer is None or result is NotImplemented or not isinstance(result, int):
            return result
        inputs = [*reversed((self, *others))] if reverse else [self, *others]
        kind = f"aten::{name}.int"
        return TracedInt.of(result, tracer.whole(kind, BUILTINS[kind[6:]], inputs, types.INT))

    setattr(TracedInt, method, traced)


for _name, _sign in (
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("floordiv", "floordiv"),
    ("remainder", "mod"),
):
    _arithmetic(_name, f"__{_sign}__")
    _arithmetic(_name, f"__r{_sign}__")
_arithmetic("neg", "__neg__")


def _comparison(method: str) -> None:
    plain = getattr(int, method)

    def compared(self: TracedInt, *others: object) -> Any:
        warn("Converting a tensor to a Python boolean", size=True)
        return plain(self, *others)

    setattr(TracedInt, method, compared)


for _sign in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__"):
    _comparison(_sign)


def _conversion(kind: str) -> None:
    plain = getattr(int, f"__{kind}__")

    def converted(self: TracedInt) -> Any:
        warn(f"Converting a tensor to a Python {'integer' if kind == 'int' else kind}", size=True)
        return plain(self)

    setattr(TracedInt, f"__{kind}__", converted)


_conversion("float")
_conversion("int")
TracedInt.__hash__ = int.__hash__  # type: ignore[method-assign]  # __eq__ took it away


class Traced(Tensor):
    """A tensor of a function that is being traced: its sizes are values of the graph, and asking
    for its contents warns."""

    __slots__ = ()
    # Results are plain ones also in programs that have subclasses of their own.
    __torch_function__: Any = disabled_torch_function_impl

    @property
    def shape(self) -> Any:
        sizes = Tensor.shape.fget(self)  # type: ignore[attr-defined]  # a property
        tracer = following()
        if tracer is None:
            return sizes
        return sizes.__class__(self.size(i) for i in range(len(sizes)))

    def size(self, dim: Any = None, **more: int | None) -> Any:
        if more:
            return super().size(dim, **more)
        tracer = following()
        if dim is None:
            return self.shape
        number = Tensor.size(self, dim)
        if tracer is None:
            return number
        return TracedInt.of(
            number,
            tracer.whole("aten::size.int", BUILTINS["size.int"], [self, int(dim)], types.INT),
        )

    def numel(self) -> Any:
        tracer, number = following(), Tensor.numel(self)
        if tracer is None:
            return number
        return TracedInt.of(
            number, tracer.whole("aten::numel", BUILTINS["numel"], [self], types.INT)
        )

    nelement = numel

    @property
    def data(self) -> Any:
        """The elements of now, a constant of a trace; what is compiled reads them in every run."""
        tracer = following()
        if tracer is None:
            return self.detach()
        if tracer.frozen < len(tracer.constants):
            made = tracer.constants[tracer.frozen]
        else:
            made = wrap(another(self._array), self.dtype)
            made._storage = self._memory().counted_anew(0)
            tracer.constants.append(made)
        tracer.frozen += 1
        made.__class__ = Frozen
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        tracer = following()
        with contextlib.nullcontext() if tracer is None else tracer.following():
            Tensor.data.fset(self, value)  # type: ignore[attr-defined]  # a property

    def __index__(self) -> Any:
        tracer, number = running(), Tensor.__index__(self)
        if tracer is None or not is_library(sys._getframe(1)):
            warn("Converting a tensor to a Python index")
            return number
        return TracedInt.of(
            number, tracer.whole("aten::Int.Tensor", BUILTINS["Int.Tensor"], [self], types.INT)
        )

    __len__ = _told("__len__", "Using len to get tensor shape", True, LENGTH)
    __iter__ = _told("__iter__", "Iterating over a tensor", True, PARTS)
    __bool__ = _told("__bool__", "Converting a tensor to a Python boolean")
    __int__ = _told("__int__", "Converting a tensor to a Python integer")
    __float__ = _told("__float__", "Converting a tensor to a Python float")
    item = _told("item", "Converting a tensor to a Python number")
    tolist = _told("tolist", "Converting a tensor to a Python list")
    numpy = _told("numpy", "Converting a tensor to a NumPy array")
    __array__ = _told("__array__", "Converting a tensor to a NumPy array")


Traced.__name__ = Tensor.__name__  # what programs print that ask for the class


class Frozen(Tensor):
    """What `data` gives while a function is traced, until a call asks what it holds: from then on it
    has taken part in what is written down, and is an ordinary tensor."""

    __slots__ = ()

    @property
    def data(self) -> Any:
        """The same once more."""
        return self

    @data.setter
    def data(self, value: Tensor) -> None:
        vars(Tensor)["data"].__set__(self, value)

    def conj(self) -> Any:
        """Of real numbers it is the tensor itself, which no call of an op is."""
        real = not vars(Tensor)["_dtype"].__get__(self).is_complex
        return self if real else vars(Tensor)["conj"](self)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """The tensor itself, which no call of an op is."""
        return super().requires_grad_() if requires_grad else self


def _asked(name: str) -> property:
    """A slot of a frozen tensor's, by which a call asks what it holds."""
    slot = getattr(Tensor, name)

    def get(self: Any) -> Any:
        self.__class__ = Tensor
        return slot.__get__(self)

    def put(self: Any, value: Any) -> None:
        self.__class__ = Tensor
        slot.__set__(self, value)

    return property(get, put)


for _name in ("_array", "_dtype", "_storage"):
    setattr(Frozen, _name, _asked(_name))
