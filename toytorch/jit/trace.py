"""`jit.trace`: a graph from watching a function run once."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core import random
from toytorch.core.tensor import Tensor, new, wrap
from toytorch.facts import state, warned
from toytorch.facts.device import strided
from toytorch.facts.dtype import int64
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from toytorch.jit import switch, types
from toytorch.jit.failures import as_failed
from toytorch.jit.function import TracedFunction, signature
from toytorch.jit.ir import Graph, Pass, Value
from toytorch.jit.module import TopLevelTracedModule, TracedModule
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.script.annotations import spelled
from toytorch.jit.specialise import copied
from toytorch.jit.tracer import Frozen, TracedInt, Tracer, TracerWarning, another, running
from toytorch.nn import Module
from toytorch.ops.creation.create import full


class TracingCheckError(Exception):
    """A traced function that does not do what the function does."""


def trace(
    func: Any,
    example_inputs: Tensor | tuple[Any, ...] | None = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
    *,
    passes: Sequence[Pass] | None = None,
) -> Any:
    """The graph of what `func` (a function, a module or its method) does with `example_inputs`.

    Control flow and Python numbers are frozen as they were; where they hang on tensors, a
    TracerWarning says so. `check_trace` runs both once more and compares the results. Like
    `torch.jit.trace`; `passes` (functions from a graph to a graph, from `toytorch.jit.passes` or of
    one's own) take the place of the compiler's, which the checker watches in the same way.

    >>> f = torch.jit.trace(lambda x, y: torch.tanh(x * y), (torch.ones(2), torch.ones(2)))
    >>> [node.kind for node in f.graph.nodes]
    ['aten::mul', 'aten::tanh']
    >>> f(torch.zeros(3), torch.ones(3))
    tensor([0., 0., 0.])
    """
    if not switch.enabled:
        return func
    if isinstance(func, (TracedFunction, TracedModule)):
        warned.at_call(
            "The input to trace is already a ScriptModule, tracing it is a no-op. "
            "Returning the object as is."
        )
        return func
    kwargs = dict(example_kwarg_inputs or {})
    if example_inputs is None and not kwargs:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    args = () if example_inputs is None else as_args(example_inputs)
    if kwargs:
        args = by_position(func, args, kwargs)
    owner, called = func, "forward"
    if not isinstance(func, Module):
        owner, called = getattr(func, "__self__", None), getattr(func, "__name__", "")
    if isinstance(owner, Module):
        if called != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions.\n"
                "Please use trace_module"
            )
        checks = [m if isinstance(m, dict) else {"forward": m} for m in check_inputs or ()]
        how = optimize, check_trace, checks, check_tolerance, strict
        return trace_module(owner, {called: args}, *how, passes=passes)
    name = getattr(func, "__name__", type(func).__name__)
    name = "forward" if name == "<lambda>" else name
    traced = traced_function(func, args, name, None, strict)
    traced.executor.passes = passes
    if check_trace:
        verify(traced, func, args, check_tolerance, map(as_args, check_inputs or ()))
    return traced


def as_args(given: Any) -> tuple[Any, ...]:
    """Arguments given as a tuple, a list, or one alone."""
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def verify(
    traced: TracedFunction, run: Fn, args: Args, tolerance: float, others: Iterable[Args]
) -> None:
    """Compares a traced function with the one it was made of, for its arguments and for others."""
    warn_of_chance(traced)
    check(traced, run, args, tolerance)
    for again in others:
        check(traced, run, again, tolerance)
        check_graph(traced, again)


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    passes: Sequence[Pass] | None = None,
    **unused: Any,
) -> TopLevelTracedModule:
    """A module whose methods named in `inputs` are traced, like `torch.jit.trace_module`."""
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    refuse_backward_hooks(mod)
    methods: dict[str, Any] = {}
    for name, args in inputs.items():
        args = as_args(args)
        run = mod if name == "forward" else getattr(mod, name)
        methods[name] = traced_function(run, args, name, mod, strict)
        methods[name].executor.passes = passes
        if check_trace:
            others = (more[name] for more in check_inputs or () if name in more)
            verify(methods[name], run, args, check_tolerance, map(as_args, others))
    return TopLevelTracedModule(mod, methods)


def refuse_backward_hooks(mod: Module) -> None:
    """Raises where a module wants to see gradients, which a graph would pass by."""
    if any(m._backward_hooks or m._node_hooks for m in mod.modules()):
        raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {mod}")


def _followed(tracer: Tracer, args: Args, flat: list[Any], names: list[str]) -> list[Tensor]:
    """The tensors that stand for inputs while a function is traced."""
    leaves = []
    for i, item in enumerate(flat):
        if not isinstance(item, Tensor):
            raise RuntimeError(
                "Type '" + spelled(types.of(args)) + "' cannot be traced. Only Tensors "
                "and (possibly nested) Lists, Dicts, and Tuples of Tensors can be "
                "traced"
            )
        shown = alias_of(item)
        shown._array = another(item._array)  # the item may be another input, or a parameter
        leaves.append(shown)
        tracer.given.append(shown)
        if item._requires_grad and item.is_leaf:
            tracer.leaves.append(shown)
        made = tracer.graph.add_input(types.of_tensor(item), names[i] if names else "")
        tracer.bind(shown, made)
    return leaves


def traced_function(
    func: Fn,
    args: Args,
    name: str,
    owner: Module | None,
    strict: bool,
    constants: Sequence[Tensor] = (),
    read: Sequence[Any] = (),
) -> TracedFunction:
    """Runs a function under the tracer; `constants` are what `data` gives, of an earlier trace, and
    `read` what conversions to Python's values do."""
    flat, spec = tree_flatten(args)
    tracer = Tracer(Graph(name), seen=True)
    tracer.constants += constants
    tracer.to_read += reversed(read)
    if owner is not None:
        class_type = types.Class(type(owner).__name__)
        register(tracer, owner, tracer.graph.add_input(class_type, "self"))
    names = parameter_names(func, len(args)) if len(flat) == len(args) else []
    leaves = _followed(tracer, args, flat, names)
    try:
        with state.watching(tracer), scoping(tracer, owner):
            result = func(*tree_unflatten(leaves, spec))
            result = tree_map(as_output, result)
            outputs, out_spec = outputs_of(result, strict)
            tracer.graph.outputs = [output_value(tracer, v) for v in outputs]
    finally:
        tracer.end()
    graph, constants = eliminate_dead_code(tracer.graph), tracer.constants

    def again(*more: object, read: Sequence[Any] = tracer.read) -> TracedFunction:
        """A trace for other shapes, on copies: the call itself is still to come, and a trace that
        it belongs to sees nothing of this one."""
        outer = running()
        hidden = contextlib.nullcontext() if outer is None else state.below(outer)
        with warnings.catch_warnings(), untouched(owner, constants), hidden:
            warnings.simplefilter("ignore", TracerWarning)
            for copy in (copy_of, copy_with_memory):  # `as_strided` may reach beyond the tensor
                try:
                    given = tree_map(copy, more)
                    return traced_function(func, given, name, owner, strict, constants, read)
                except Exception as error:
                    failed = error
                if not any(isinstance(t, Tensor) and is_part(t) for t in tree_flatten(more)[0]):
                    break
        try:
            func(*more)  # which fails, too, but what it has written before stays written
        except Exception as error:
            raise as_failed(error, []) from error
        if any(node.writes for node in graph.nodes):
            raise failed
        return made  # what fails, constants of the first call, may be what nobody uses

    plain = isinstance(result, Tensor) or (
        isinstance(result, tuple) and len(result) > 1 and all(isinstance(r, Tensor) for r in result)
    )
    shape, nested = None if plain else out_spec, not all(isinstance(a, Tensor) for a in args)
    made = TracedFunction(name, graph, shape, owner, again, signature(flat), nested=nested)
    made.names = parameter_names(func, len(args))
    return made


def copy_of(item: object) -> Any:
    """A tensor of its own like this one, and a leaf where it is one."""
    if not isinstance(item, Tensor):
        return item
    if item._array.__class__ is np.ndarray:  # with the same strides, which the function may ask for
        made = copied(item)
    else:
        made = item.detach().clone().requires_grad_(item._requires_grad)
    # It lies in memory as that does.
    return made if item._grad_edge is None or not state.local.grad else alias_of(made)


def is_part(item: Tensor) -> bool:
    """Whether a tensor's memory holds more than its elements."""
    array = item._array
    return array.__class__ is np.ndarray and base.of_array(array).flat(array).size > array.size


def copy_with_memory(item: object) -> Any:
    """`copy_of`, with all of the memory that the tensor is part of."""
    if not isinstance(item, Tensor) or not is_part(item):
        return copy_of(item)
    memory = item.detach().as_strided((item.untyped_storage().nbytes() // item.itemsize,), (1,), 0)
    made: Tensor = wrap(
        memory.clone().as_strided(item.shape, item.stride(), item.storage_offset())._array,
        item.dtype,
    )
    made._requires_grad = item._requires_grad
    return made if item._grad_edge is None or not state.local.grad else alias_of(made)


@contextlib.contextmanager
def untouched(owner: Module | None, constants: Sequence[Tensor]) -> Iterator[None]:
    """Gives random numbers, constants and a module's buffers back as they were; the buffers are
    copies meanwhile."""
    places = random.places()
    elements = [(c, c._array, c._array.copy()) for c in constants]
    held = [] if owner is None else [(m._buffers, dict(m._buffers)) for m in owner.modules()]
    for buffers, before in held:
        buffers.update({k: copy_of(b) for k, b in before.items()})
    try:
        yield
    finally:
        random.go_back(places)
        for constant, array, copy in elements:
            constant._array = array
            array[...] = copy
        for buffers, before in held:
            buffers.update(before)


CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect,"
    " this is only valid if the container structure does not change based on the module's "
    "inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` "
    "instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know"
    " the side effects, pass strict=False to trace() to allow this behavior."
)


def outputs_of(result: Tensor, strict: bool) -> tuple[list[Any], Any]:
    """The tensors of a result; dictionaries only where the user allows them."""
    if strict and any(isinstance(part, dict) for part in parts_of(result)):
        raise RuntimeError(CONTAINER.format("dict"))
    if isinstance(result, dict) and not all(
        isinstance(p, Tensor) for p in tree_leaves(list(result.values()))
    ):
        raise RuntimeError(
            f"output 1 ({result}) of traced region cannot be understood by the tracer, only outputs "
            "matching dict[Union[str, Tensor], Union[Tensor, Tuple[Tensor, ...]]] can be a dictionary "
            "output of a traced function"
        )
    if isinstance(result, list) and any(isinstance(item, list) for item in result):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output "
            "from traced functions, but got a list of lists"
        )
    if strict and any(isinstance(part, list) for part in parts_of(result)):
        warned.at_call(CONTAINER.format("list"), TracerWarning)
    return tree_flatten(result)


def parts_of(result: object) -> Iterator[object]:
    """A result, and what its tuples hold."""
    yield result
    for part in result if isinstance(result, tuple) else ():
        yield from parts_of(part)


def as_output(item: Any) -> Any:
    """What a traced function gives for a result: a tensor for a size."""
    return full((), item, dtype=int64) if isinstance(item, TracedInt) else item


def output_value(tracer: Tracer, item: Tensor) -> Value:
    """The value of a result."""
    if not isinstance(item, Tensor):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be"
            " output from traced functions"
        )
    if item.__class__ is Frozen:
        item._memory()  # an ordinary tensor, which can be shown
        raise RuntimeError(
            f"output 1 ({item}) of traced region did not have observable data dependence with trace "
            "inputs; this probably indicates your program cannot be understood by the tracer."
        )
    return tracer.value_of(item)


def alias_of(tensor: Tensor) -> Tensor:
    """The same memory and history under another tensor, which the tracer may mark as its own."""
    made: Tensor = new(Tensor)
    made._array, made._dtype = tensor._array, tensor._dtype
    made._requires_grad = tensor._requires_grad
    made._grad_edge = (
        None if not tensor._requires_grad else tensor._grad_edge or tensor._accumulator()
    )
    made._storage = tensor._memory()
    if tensor._base is not None:
        made._base = tensor._base
    return made


def register(tracer: Tracer, module: Module, value: Value) -> None:
    """Tells the tracer which tensors belong to a module and those below it."""
    graph = tracer.graph
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is not None:
            tracer.owners.setdefault(id(tensor._array), (value, name, tensor))
    for name, child in module._modules.items():
        if child is not None:
            result = types.Class(type(child).__name__), name
            node = graph.make("prim::GetAttr", [value], [result], {"name": name})
            tracer.block.nodes.append(node)
            register(tracer, child, node.output)


class scoping:
    """Lets nodes know the modules they come from: `__module.seq/__module.seq.0`, and nothing for the outermost."""

    def __init__(self, tracer: Tracer, owner: Module | None) -> None:
        self.tracer, self.owner, self.handles = tracer, owner, []  # type: ignore[var-annotated]  # hooks' handles

    def __enter__(self) -> None:
        if self.owner is None:
            return
        for name, module in self.owner.named_modules():
            if not name:
                continue
            # Those that are compiled refuse hooks of their users, not these.
            enter = functools.partial(self.enter, f"__module.{name}")
            self.handles.append(Module.register_forward_pre_hook(module, enter, prepend=True))
            self.handles.append(Module.register_forward_hook(module, self.leave, always_call=True))

    def enter(self, scope: str, module: Any, args: tuple[Tensor, ...]) -> None:
        """A module's forward begins."""
        self.tracer.push_scope(scope)

    def leave(self, module: Any, args: tuple[Tensor, ...], result: Tensor) -> None:
        """A module's forward ends."""
        self.tracer.pop_scope()

    def __exit__(self, *exc: object) -> None:
        for handle in self.handles:
            handle.remove()


def by_position(func: Any, args: Args, kwargs: Kwargs) -> tuple[Any, ...]:
    """Arguments given by name, in the order of the function's parameters."""
    target = func.forward if isinstance(func, Module) else func
    bound = inspect.signature(target).bind(*args, **kwargs)
    return tuple(bound.arguments.values())


def parameter_names(func: Any, count: int) -> list[str]:
    """The names of a function's parameters, for its graph's inputs."""
    target = func.forward if isinstance(func, Module) else func
    try:
        found = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return []
    if len(found) < count or any(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found[:count]
    ):
        return []
    return [p.name for p in found[:count]]


def check(traced: TracedFunction, func: Any, args: Args, tolerance: float) -> None:
    """Runs both once more with the same random numbers; a difference is an error or a warning."""
    places = random.places()
    copies = [tree_clone(args) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        wanted = func(*copies[0])
        random.go_back(places)
        given = traced(*copies[1])
    random.go_back(places)
    for i, (a, b) in enumerate(zip(tree_leaves(wanted), tree_leaves(given)), 1):
        if not isinstance(a, Tensor) or a.is_meta:
            continue
        dense = [t if t.layout is strided else t.detach().to_dense() for t in (a, b)]
        x, y = (t.detach().cpu()._array for t in dense)
        same = x.shape == y.shape and np.allclose(
            np.asarray(x, complex if x.dtype.kind == "c" else float),
            np.asarray(y, complex if y.dtype.kind == "c" else float),
            rtol=tolerance,
            atol=1e-5,
            equal_nan=True,
        )
        if not same:
            text = (
                f"Output nr {i}. of the traced function does not match the corresponding "
                "output of the Python function. Detailed error:\n"
                + (
                    "Tensor-likes are not close!"
                    if x.shape == y.shape
                    else f"The shapes {tuple(x.shape)} and {tuple(y.shape)} differ"
                )
            )
            warned.at_call(text, TracerWarning)


def warn_of_chance(traced: TracedFunction) -> None:
    """Warns of operations that give something else each time, so that results cannot be compared."""
    # Of what makes tensors, the tracer writes functions down; those that draw are not marked.
    found = [
        n
        for n in traced.inlined_graph.walk()
        if n.is_random
        or (
            n.record is None
            and n.kind.startswith("aten::")
            and not (n.pure or n.facts.creates or n.facts.shares or n.writes)
        )
    ]
    if found:
        shown = "".join(f"\t{str(n).splitlines()[0].strip()}\n" for n in found[:20])
        warned.at_call(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
            f"{shown}This may cause errors in trace checking. To disable trace checking, pass "
            "check_trace=False to torch.jit.trace()",
            TracerWarning,
        )


def check_graph(traced: TracedFunction, args: Args) -> None:
    """Traces once more: the operations must be the same."""
    if traced.again is None:
        return
    other = traced.again(*args, read=())
    first, second = ([n.kind for n in g.walk()] for g in (traced.graph, other.graph))
    if first != second:
        raise TracingCheckError(
            "Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n"
            f"\tGraph diff:\n{traced.graph}\n{other.graph}"
        )


def tree_clone(tree: tuple[Tensor, ...]) -> Any:
    """Copies of all tensors, with the same wish for gradients."""
    return tree_map(
        lambda t: (
            t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t
        ),
        tree,
    )
