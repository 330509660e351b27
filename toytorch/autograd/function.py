"""Ops of one's own: a class with a forward and a backward, like `torch.autograd.Function`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

from toytorch.autograd.function_results import (
    NO_INPUT,
    NOT_RETURNED,
    is_input,
    itself,
    rebase_view,
    refuse_dirty,
)
from toytorch.core.inplace import bump, protect
from toytorch.core.node_class import fit, revive
from toytorch.core.record import edge
from toytorch.core.tensor import Tensor, alias
from toytorch.core.views import CUSTOM_VIEW, MANY_VIEWS, NO_GRAD_VIEW, maker
from toytorch.facts import state, warned
from toytorch.facts.hints import Fn
from toytorch.facts.node import SAVED_TWICE, Node, Output, Packed, check_version, remember, sequence
from toytorch.facts.package import is_ours
from toytorch.ops.creation.create import zeros


def refuse_transforms(cls: type) -> None:
    """Refuses a program's function without `setup_context` where `vmap`, `grad` and the like run."""
    if state.local.transforms and not is_ours(cls.__module__):
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, "
            "jvp, jacrev, ...), it must override the setup_context staticmethod. For more "
            "details, please see https://pytorch.org/docs/main/notes/extending.func.html"
        )


class FunctionCtx:
    """What forward leaves for backward."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True
        self._to_save: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._saved: Any = ()  # what the node saves: the node keeps this, and not this the node
        self._versions: Any = ()
        self._recorded: Callable[[], Any] = lambda: None  # a weak reference to the node
        self._for_forward: tuple[Tensor, ...] = ()
        self._pushing = False  # whether `jvp` runs
        self._materialize_non_diff_grads = True
        self._device: Any = None  # of the results

    if TYPE_CHECKING:  # forward leaves what it likes

        def __setattr__(self, name: str, value: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        """What nodes have: in PyTorch, context and node are one object."""
        node = self._recorded() if name in OF_NODES else None
        if node is None:
            raise AttributeError(f"'{self.__class__.__name__}' object has no attribute '{name}'")
        return getattr(node, name)

    def save_for_backward(self, *tensors: object) -> None:
        """Saves inputs or outputs; read them as `saved_tensors`."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type"
                    f" {type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor) -> None:
        """Saves inputs or outputs for `jvp`, which reads them as `saved_tensors`."""
        if not all(t is None or isinstance(t, Tensor) for t in tensors):
            raise AssertionError(
                "save_for_forward expects all arguments to be tensors; you should save "
                "non-tensors as attributes on ctx."
            )
        self._for_forward = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs get no gradient."""
        self._non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs were written to."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients arrive as zeros (the default) or as None."""
        self.materialize_grads = value

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """`saved_tensors` under the name it once had."""
        warned.at_call("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        node = self._recorded()
        if node is None or self._saved is None:
            raise RuntimeError(SAVED_TWICE)
        from toytorch.facts.saved import saved_in  # seldom needed

        return tuple(saved_in(node, i) for i in range(len(self._saved)))

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors; RuntimeError once they were freed or if one was written to."""
        if self._pushing:
            return self._for_forward
        if self._saved is None:
            raise RuntimeError(SAVED_TWICE)
        node, found = self._recorded(), list[Any]()
        for i, (value, seen) in enumerate(zip(self._saved, self._versions)):
            if value is None:
                found.append(None)
                continue
            kind, tensor = value
            if tensor.__class__ is Packed:
                found.append(tensor.open())
                continue
            check_version("saved", f"{i}", tensor, seen, node, True)
            found.append(tensor if kind < 0 or node is None else revive(tensor, node, kind))
        return tuple(found)


OF_NODES = {
    *("_sequence_nr", "metadata", "name", "next_functions", "register_hook", "register_prehook")
}


def in_context(name: str) -> Any:
    """What a node reads and writes in its context."""

    def read(node: FunctionNode) -> Any:
        return getattr(node.context, name)

    def write(node: FunctionNode, value: object) -> None:
        setattr(node.context, name, value)

    return property(read, write)


class FunctionNode(Node):
    """The node of a user's Function; its class is made per Function."""

    __slots__ = ("context",)
    context: FunctionCtx
    _forward_cls: Any = None
    takes_undefined = True
    saved, versions = in_context("_saved"), in_context("_versions")

    def apply(self, grad: Any) -> Any:
        grads = grad if self.many else [grad]
        context = self.context
        if context.materialize_grads:
            metas = self.meta if self.many else [self.meta]
            grads = [
                zeros(m[0], dtype=m[1], device=context._device)
                if g is None and m[1] is not None
                else g
                for g, m in zip(grads, metas)
            ]
        result = self._forward_cls._pull()(context, *grads)
        result = result if isinstance(result, tuple) else (result,)
        inputs = self.__dict__["inputs"]
        if (len(result) > inputs and any(r is not None for r in result[inputs:])) or len(
            result
        ) < inputs:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {inputs}, got {len(result)})"
            )
        fitted = []
        for i, target in zip(self.__dict__["places"], self.edges):
            g = result[i]
            if g is not None and target is not None:
                if not isinstance(g, Tensor):
                    raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
                shape, dtype = target.meta[:2]
                if g._array.shape != shape and not _broadcasts(shape, g._array.shape):
                    raise RuntimeError(
                        f"Function {self.name()} returned an invalid gradient at index {i} - got "
                        f"{list(g.shape)} but expected shape compatible with {list(shape)}"
                    )
                g = fit(g, shape, dtype)
            fitted.append(g)
        return tuple(fitted)

    def __getattr__(self, name: str) -> Any:
        """What forward left in its context: in PyTorch, context and node are one object."""
        if name == "context" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.context, name)

    def saved_items(self) -> list[tuple[str, Any]]:
        return [("tensors", self.context.saved_tensors)]


def _broadcasts(shape: Any, to: Any) -> bool:
    lead = len(to) - len(shape)
    return lead >= 0 and all(m in (1, n) for m, n in zip(shape, to[lead:]))


class Function:
    """An op of one's own: `forward(ctx, *inputs)` and `backward(ctx, *grads)`, called by `apply`.

    >>> class Double(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = torch.ones(1, requires_grad=True)
    >>> Double.apply(x)
    tensor([2.], grad_fn=<DoubleBackward>)
    """

    _backward_cls: Any = FunctionNode  # the class of the nodes of a Function, its own

    def __init__(self, *args: object, **kwargs: object) -> None:
        warned.at_call(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so "
            "you should invoke them on the class itself. Instantiating an autograd function will raise "
            "an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        of_its_own = {"__slots__": (), "__module__": "torch.autograd.function", "_forward_cls": cls}
        cls._backward_cls = type(f"{cls.__name__}Backward", (FunctionNode,), of_its_own)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves for backward, where forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    generate_vmap_rule = False  # `vmap` shows forward and backward one example each, in any case

    @classmethod
    def _pull(cls) -> Fn:
        """What computes the gradients: `backward`, or `vjp`, its other name."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return cls.vjp

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Computes a whole batch; a Function that has none is run on one example, or on all."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Computes the tangents of the outputs, for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom "
            "autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Computes the gradients of the inputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your "
            "custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    def __call__(self, *inputs: Tensor) -> Any:
        """Refuses: a Function is not made and called, its `apply` is called."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Calls forward and records the step."""
        for mode in reversed(state.local.modes):
            take_over = getattr(mode, "on_function", None)
            if take_over is not None:
                with state.below(mode):
                    return take_over(cls, inputs)
        return cls._run(inputs)

    @classmethod
    def _run(cls, inputs: tuple[Any, ...]) -> Any:
        """`apply` below the modes."""
        context = FunctionCtx()
        if state.local.contexts is not None:
            state.local.contexts.append(context)
        recording = state.local.grad
        context.needs_input_grad = tuple(
            recording and isinstance(x, Tensor) and x._requires_grad for x in inputs
        )
        state.set_grad(False)
        try:
            if cls.setup_context is not Function.setup_context:
                if any(
                    p.default is not p.empty for p in signature(cls.forward).parameters.values()
                ):
                    bound = signature(cls.forward).bind(*inputs)
                    bound.apply_defaults()
                    inputs = bound.args
                    context.needs_input_grad += (False,) * (
                        len(inputs) - len(context.needs_input_grad)
                    )
                outputs = cls.forward(*inputs)
                cls.setup_context(context, inputs, outputs)
            else:
                refuse_transforms(cls)
                outputs = cls.forward(context, *inputs)
        finally:
            state.set_grad(recording)
        for t in context._dirty:
            bump(t)
            if not is_input(t, outputs if isinstance(outputs, tuple) else (outputs,)):
                raise RuntimeError(NOT_RETURNED)
        if any(context.needs_input_grad):
            return cls._record(context, inputs, outputs)
        return cls._guarded(context, inputs, outputs)

    @classmethod
    def _record(
        cls, context: FunctionCtx, inputs: tuple[Any, ...], outputs: Tensor | tuple[Tensor, ...]
    ) -> Any:
        many = isinstance(outputs, tuple)
        results = list(outputs) if many else [outputs]
        node: Any = object.__new__(cls._backward_cls)
        places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
        node.edges = tuple(edge(inputs[i]) for i in places)
        node.seq, node.context, context._recorded = next(sequence), context, weakref.ref(node)
        count = len(results)
        node.__dict__.update(inputs=len(inputs), places=places, count=count, many=count > 1)
        metas: list[Any] = []
        written: Tensor | None = None  # a view, whose base gets the node in its history
        for i, r in enumerate(results):
            if not isinstance(r, Tensor):
                metas.append(((), None))
                continue
            kept = is_input(r, context._non_differentiable)
            dirty = is_input(r, context._dirty)
            if dirty and is_input(r, inputs):
                refuse_dirty(r, len(results))
            elif dirty:
                warned.at_call(NO_INPUT)
            elif is_input(r, inputs):
                r = results[i] = itself(r)
            context._device = r.device
            filled = not kept or context._materialize_non_diff_grads
            metas.append((r._array.shape, r.dtype if filled else None))
            if r.dtype.rank < 2 or kept:
                continue
            if dirty and r._base is not None:
                written = r
                continue
            if not dirty and r._base is not None:
                one = f"Output {i} of {maker(node.name())} is a view and is being modified"
                words = CUSTOM_VIEW if len(results) == 1 else MANY_VIEWS.partition("inplace. ")[2]
                protect(r, f"{one} inplace. {words}")
            r._requires_grad, r._grad_edge = (True, node if len(results) == 1 else Output(node, i))
            r._ignores_grad = False
        node.meta = metas if len(results) > 1 else metas[0]
        hooks = state.local.saved_hooks
        if state.anomaly is not None:
            remember(node)
        saved: list[Any] = []
        versions: list[int | None] = []
        outs = outputs if isinstance(outputs, tuple) else (outputs,)
        for t in context._to_save:
            if t is None:
                saved.append(None)
                versions.append(None)
                continue
            index = -1
            if not is_input(t, inputs) or is_input(t, context._dirty):
                for i, r in enumerate(results):
                    if r is t or outs[i] is t:
                        index = i
                        break
            value = t if index < 0 else alias(t)
            versions.append(0 if value._storage is None else value._storage.version)
            saved.append((index, Packed(value, hooks[-1]) if hooks else value))
        context._to_save = ()
        node.saved, node.versions = tuple(saved), tuple(versions)
        if written is not None:
            rebase_view(written, node, [inputs[i] for i in places])
        return tuple(results) if many else results[0]

    @classmethod
    def _guarded(
        cls, context: FunctionCtx, inputs: tuple[Any, ...], outputs: Tensor | tuple[Tensor, ...]
    ) -> Any:
        """The outputs of a step that is not recorded: views among them must not be written to."""
        many = isinstance(outputs, tuple)
        results = list(outputs) if many else [outputs]
        for i, r in enumerate(results):
            if not isinstance(r, Tensor):
                continue
            if is_input(r, context._dirty):
                continue
            if is_input(r, inputs):
                r = results[i] = itself(r)
            if r._base is not None and r.dtype.rank > 1:
                protect(r, NO_GRAD_VIEW.partition("enabled. ")[0] + "enabled. " + CUSTOM_VIEW)
        return tuple(results) if many else results[0]


def once_differentiable(backward: Fn) -> Any:
    """Marks a backward whose own result has no derivative: whoever asks for one gets an error."""

    @functools.wraps(backward)
    def wrapper(ctx: FunctionCtx, *grads: Tensor) -> Any:
        before = state.local.grad
        state.set_grad(False)
        try:
            results = backward(ctx, *grads)
        finally:
            state.set_grad(before)
        if not before or not any(isinstance(g, Tensor) and g._requires_grad for g in grads):
            return results
        from toytorch.core.barriers import ONCE, DelayedError  # seldom needed

        refused = []
        for r in results if isinstance(results, tuple) else (results,):
            if isinstance(r, Tensor):  # a leaf, so that the error has something to be asked for
                r = alias(r).detach()
                r._requires_grad = r.dtype.rank > 1
            refused.append(r)
        told = DelayedError(ONCE, len(refused))(*refused)
        return told if len(refused) > 1 else (told,)

    return wrapper
