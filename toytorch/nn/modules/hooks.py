"""Functions that a module calls before and after itself, on the way forward and on the way back."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from toytorch.autograd.function import Function
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.node import RemovableHandle, node_of
from toytorch.nn.modules.registration import REGISTRATION

if TYPE_CHECKING:
    from toytorch.autograd.function import FunctionCtx
    from toytorch.nn.modules.module import Module


class Hook(NamedTuple):
    """A hook on the way forward, and how to call it."""

    call: Any
    with_kwargs: bool = False
    always: bool = False


def entry(call: Any, with_kwargs: bool = False, always: bool = False) -> Any:
    """What a table holds of a hook: the function itself where there is no more to say, since
    programs look for their own among the values."""
    return Hook(call, with_kwargs, always) if with_kwargs or always else call


def as_hook(held: Any) -> Hook:
    """What a table holds, with how to call it."""
    return held if held.__class__ is Hook else Hook(held)


# Hooks of every module, by the moment of their call.
EVERYWHERE: dict[str, dict[int, Any]] = {
    "_forward_pre_hooks": {},
    "_forward_hooks": {},
    "_backward_pre_hooks": {},
    "_backward_hooks": {},
    "_node_hooks": {},
}


def add(table: dict[int, Any], hook: object, prepend: bool = False) -> RemovableHandle:
    """Enters a hook into a table, as the last or as the first."""
    before = dict(table)
    handle = RemovableHandle(table, hook)
    if prepend:
        new = {key: value for key, value in table.items() if key not in before}
        table.clear()
        table.update(new)
        table.update(before)
    return handle


def hooks_of(module: Module, moment: str) -> list[Any]:
    """The hooks of one moment: those of every module, then the module's own."""
    return [*EVERYWHERE[moment].values(), *getattr(module, moment).values()]


class BackwardHookFunction(Function):
    """Passes tensors on, and on the way back shows their gradients to a function."""

    @staticmethod
    def forward(ctx: Any, seen: Any, *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        return (None, *ctx.seen(grads))


def shown(seen: Fn, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    """The tensors; their gradients are shown to a function, at a node that counts as one with hooks."""
    made: tuple[Tensor, ...] = BackwardHookFunction.apply(seen, *tensors)
    for t in made:
        if t._grad_edge is not None:
            node_of(t._grad_edge).hooks_of("after")
    return made


class BackwardHooks:
    """Calls the hooks on the way back, for one pass through a module.

    before  hook(module, grad_output), which may replace grad_output
    after   hook(module, grad_input, grad_output), which may replace grad_input
    """

    def __init__(self, module: Module) -> None:
        self.module, self.watched = module, False
        self.grad_output: Any = None  # known between the hooks of a pass
        self.before = hooks_of(module, "_backward_pre_hooks")
        self.after = hooks_of(module, "_backward_hooks")

    def inputs(self, args: Args) -> tuple[Any, ...]:
        """The arguments, their tensors passed through that function."""
        self.size = len(args)
        self.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not any(args[i].requires_grad for i in self.places):
            return args
        self.watched = True
        result = list(args)
        passed = shown(self._on_inputs, [args[i] for i in self.places])
        for i, t in zip(self.places, passed):
            result[i] = t
        return tuple(result)

    def outputs(self, result: Tensor) -> Any:
        """The results, their tensors passed through that function."""
        many = isinstance(result, tuple)
        if not many and not isinstance(result, Tensor):
            warned.at_call(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}"
            )
        values = list(result) if many else [result]
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        if not any(values[i].requires_grad for i in places):
            return result
        for i, t in zip(places, shown(self._on_outputs, [values[i] for i in places])):
            values[i] = t
        if not many:
            return values[0]
        kind: Any = type(result)
        return kind(*values) if hasattr(kind, "_fields") else kind(values)

    def _on_outputs(self, grads: Any) -> Any:
        for hook in self.before:
            changed = hook(self.module, grads)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                if len(changed) != len(grads):
                    raise RuntimeError(
                        "Backward pre hook returned an invalid number of grad_output, got "
                        f"{len(changed)}, but expected {len(grads)}"
                    )
                grads = changed
        self.grad_output = grads
        if not self.watched:
            for hook in self.after:
                changed = hook(self.module, (None,) * self.size, grads)
                if changed is not None and any(
                    c is not None for c in (changed if isinstance(changed, tuple) else (changed,))
                ):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient "
                        "should always return None or None for all gradients."
                    )
        return grads

    def _on_inputs(self, grads: Any) -> Any:
        if self.grad_output is None:
            return grads  # they come by another way than the outputs, as in a second backward
        full = [None] * self.size
        for i, g in zip(self.places, grads):
            full[i] = g
        for hook in self.after:
            changed = hook(self.module, tuple(full), self.grad_output)
            if changed is not None:
                changed = list(changed) if isinstance(changed, tuple) else [changed]
                if len(changed) != self.size:
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, got "
                        f"{len(changed)}, but expected {self.size}"
                    )
                full = changed
        self.grad_output = None
        return [full[i] for i in self.places]


def first_tensor(result: Any) -> Any:
    """The first tensor in a result, to find the node of a module by."""
    while not isinstance(result, Tensor):
        values = list(result.values()) if isinstance(result, dict) else result
        result = next((v for v in values if isinstance(v, (Tensor, dict, list, tuple))), None)
        if result is None:
            return None
    return result


def call_with_hooks(module: Module, args: Args, kwargs: Kwargs) -> Any:
    """module.forward, and every hook at its moment."""
    called: set[int] = set()
    hooks, result = [], None
    try:
        for hook in map(as_hook, hooks_of(module, "_forward_pre_hooks")):
            changed = (
                hook.call(module, args, kwargs) if hook.with_kwargs else hook.call(module, args)
            )
            if changed is None:
                continue
            if not hook.with_kwargs:
                args = changed if isinstance(changed, tuple) else (changed,)
            elif isinstance(changed, tuple) and len(changed) == 2:
                args, kwargs = changed
            else:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, "
                    f"new_kwargs), but got {changed}."
                )
        back = (
            EVERYWHERE["_backward_hooks"]
            or EVERYWHERE["_backward_pre_hooks"]
            or module._backward_hooks
            or module._backward_pre_hooks
        )
        watch = BackwardHooks(module) if back else None
        if watch:
            args = watch.inputs(args)
        hooks = [as_hook(h) for h in hooks_of(module, "_forward_hooks")]
        result = module.forward(*args, **kwargs)
        for i, hook in enumerate(hooks):
            called.add(i)
            if hook.with_kwargs:
                changed = hook.call(module, args, kwargs, result)
            else:
                changed = hook.call(module, args, result)
            result = result if changed is None else changed
        result = watch.outputs(result) if watch else result
    except Exception:
        for i, hook in enumerate(hooks or map(as_hook, hooks_of(module, "_forward_hooks"))):
            if hook.always and i not in called:
                more = (kwargs,) if hook.with_kwargs else ()
                try:
                    hook.call(module, args, *more, result)
                except Exception as error:
                    warned.at_call(
                        "module forward hook with ``always_call=True`` raised an exception that "
                        f"was silenced as another error was raised in forward: {error}"
                    )
        raise
    legacy = hooks_of(module, "_node_hooks")
    found = first_tensor(result) if legacy else None
    if found is not None and found.grad_fn is not None:
        warn_of_node_hooks(args, result, found.grad_fn)
        for hook in legacy:
            call = functools.partial(hook, module)
            functools.update_wrapper(call, hook)
            found.grad_fn.register_hook(call)
    return result


def warn_of_node_hooks(args: Args, result: Any, node: Any) -> None:
    """Says what the older kind of hook, which hears of the last node alone, will miss."""
    results = result if isinstance(result, tuple) else (result,)
    ends = {r.grad_fn for r in results if isinstance(r, Tensor)}
    if not all(isinstance(r, Tensor) for r in results):
        words = (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a "
            "tuple of Tensors is deprecated and will be removed in future versions. This hook will "
            "be missing some of the grad_output."
        )
    elif not all(isinstance(a, Tensor) for a in args):
        words = (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor "
            "or a tuple of Tensors is deprecated and will be removed in future versions. This hook "
            "will be missing some of the grad_input."
        )
    elif len({e for e in ends if e is not None}) > 1:
        words = (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes "
            "is deprecated and will be removed in future versions. This hook will be missing some "
            "grad_output."
        )
    elif {a.grad_fn for a in args} != {n for n, _ in node.next_functions}:
        words = (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
            "deprecated and will be removed in future versions. This hook will be missing some "
            "grad_input."
        )
    else:
        return
    more = "Please use register_full_backward_hook to get the documented behavior."
    warned.at_call(f"{words} {more}", FutureWarning)


# -- hooks of every module ------------------------------------------------------------------------


def register_module_forward_pre_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(module, args) before the forward of every module."""
    return add(EVERYWHERE["_forward_pre_hooks"], hook)


def register_module_forward_hook(
    hook: Fn, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls hook(module, args, output) after the forward of every module."""
    return add(EVERYWHERE["_forward_hooks"], entry(hook, with_kwargs, always_call))


def register_module_parameter_registration_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(module, name, parameter) when a module gets one; it may give another instead."""
    return add(REGISTRATION["parameter"], hook)


def register_module_buffer_registration_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(module, name, buffer) when a module gets one; it may give another instead."""
    return add(REGISTRATION["buffer"], hook)


def register_module_module_registration_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(module, name, submodule) when a module gets one; it may give another instead."""
    return add(REGISTRATION["module"], hook)


def register_module_full_backward_pre_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(module, grad_output) before backward passes any module."""
    return add(EVERYWHERE["_backward_pre_hooks"], hook)


def register_module_full_backward_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(module, grad_input, grad_output) after backward passed any module."""
    if EVERYWHERE["_node_hooks"]:
        raise RuntimeError(BOTH)
    return add(EVERYWHERE["_backward_hooks"], hook)


def register_module_backward_hook(hook: Fn) -> RemovableHandle:
    """The older form: calls hook(module, ...) with the gradients of any module's last node alone."""
    if EVERYWHERE["_backward_hooks"]:
        raise RuntimeError(BOTH)
    return add(EVERYWHERE["_node_hooks"], hook)


BOTH = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
    "Please use only one of them."
)
