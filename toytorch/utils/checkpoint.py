"""Trading time for memory: what backward needs is computed again instead of being kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from toytorch import amp, autograd
from toytorch.autograd.function import FunctionCtx
from toytorch.core import random
from toytorch.core.tensor import Tensor
from toytorch.facts import state, warned
from toytorch.facts.hints import Fn
from toytorch.ops.creation.create import empty
from toytorch.utils.selective_checkpoint import CheckpointPolicy as CheckpointPolicy
from toytorch.utils.selective_checkpoint import (
    SelectiveCheckpointContext as SelectiveCheckpointContext,
)
from toytorch.utils.selective_checkpoint import (
    create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
)


class CheckpointError(RuntimeError):
    """The function did not do the same when it was run again."""


stops_early: bool | None = None  # what `set_checkpoint_early_stop` says, if anything


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether checkpoints made inside stop to compute again once they have what was saved.

    Like `torch.utils.checkpoint.set_checkpoint_early_stop`; it overrides their `early_stop=`.
    """
    global stops_early
    before, stops_early = stops_early, enable
    try:
        yield
    finally:
        stops_early = before


class _Stop(Exception):
    """All that is needed has been computed."""


def casting_now() -> Callable[[], contextlib.ExitStack]:
    """Makes contexts in which autocast is as it is now: what runs again has to give the same."""
    kinds = [
        (kind, amp.get_autocast_dtype(kind), amp.is_autocast_enabled(kind))
        for kind in ("cpu", "cuda")
    ]
    keep = amp.is_autocast_cache_enabled()

    def context() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        for kind, dtype, enabled in kinds:
            if enabled or amp.is_autocast_enabled(kind):
                stack.enter_context(amp.autocast(kind, dtype, enabled, keep))
        return stack

    return context


class Frame:
    """One checkpointed call: how to run it again, and what the second run saved."""

    def __init__(self, run: Fn, early_stop: bool, keep_rng: bool) -> None:
        self.run, self.early_stop = run, early_stop
        self.rng = random.get_rng_state() if keep_rng else None
        self.casting = casting_now()
        self.count = 0  # tensors saved in the first run
        self.completed = False  # the first run; gradients may be asked for in its midst
        self.shapes: list[Any] = []
        self.saved: dict[int, Any] = {}

    def pack(self, tensor: Tensor) -> int:
        """Keeps a number in place of the tensor."""
        self.shapes.append((tuple(tensor.shape), tensor.dtype, tensor.device))
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> Any:
        """The tensor of that number, after a second run if it is the first asked for."""
        if number not in self.saved:
            self.again()
        found = self.saved.pop(number)
        shape, dtype, device = self.shapes[number]
        if (tuple(found.shape), found.dtype, found.device) != (shape, dtype, device):
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\ntensor at position {number}:\n"
                f"saved metadata: {shape}, {dtype}\nrecomputed metadata: {tuple(found.shape)}, "
                f"{found.dtype}"
            )
        return found

    def again(self) -> None:
        """Runs the function once more and keeps what it saves."""
        made: list[Any] = []

        def keep(tensor: Tensor) -> Any:
            made.append(tensor.detach())
            if self.early_stop and len(made) == self.count:
                raise _Stop
            return made[-1]

        before = random.get_rng_state()
        if self.rng is not None:
            random.set_rng_state(self.rng)
        try:
            with (
                autograd.graph.saved_tensors_hooks(keep, lambda t: t),
                autograd.enable_grad(),
                self.casting(),
                contextlib.suppress(_Stop),
            ):
                self.run()
        finally:
            if self.rng is not None:
                random.set_rng_state(before)
        if len(made) != self.count and (self.completed or len(made) < self.count):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{self.count}\nNumber of tensors saved during recomputation: {len(made)}."
            )
        self.saved = dict(enumerate(made))


class _Inputs(autograd.Function):
    """Keeps the tensors that a function is given as a node keeps what it saves: writes are noticed."""

    @staticmethod
    def forward(ctx: FunctionCtx, marker: Tensor, *args: Any) -> Any:
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        return marker.new_empty(0)


class CheckpointFunction(autograd.Function):
    """The older way: a node whose backward runs forward and backward of the function."""

    @staticmethod
    def forward(ctx: FunctionCtx, function: Fn, keep_rng: bool, *args: Tensor) -> Any:
        ctx.function, ctx.args = function, args
        ctx.rng = random.get_rng_state() if keep_rng else None
        ctx.casting = casting_now()
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        if state.local.backward_pass is not None and state.local.backward_pass.chosen:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        args = list(ctx.args)
        for i, saved in zip(ctx.places, ctx.saved_tensors):
            args[i] = saved.detach().requires_grad_(saved.requires_grad)
        before = random.get_rng_state()
        if ctx.rng is not None:
            random.set_rng_state(ctx.rng)
        with autograd.enable_grad(), ctx.casting():
            outs = ctx.function(*args)
        if ctx.rng is not None:
            random.set_rng_state(before)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))


def noop_context_fn() -> tuple[Any, Any]:
    """The contexts that the first and the second run are made in by default: none."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Fn,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: object,
) -> Any:
    """function(*args), whose saved tensors are computed again in backward.

    Like `torch.utils.checkpoint.checkpoint`; Chen et al. 2016.

    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(lambda t: t.exp().sum(), x, use_reentrant=False).backward(); x.grad
    tensor([2.7183, 2.7183])
    """
    if use_reentrant is None:
        warned.at_call(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed "
            "explicitly. Starting in PyTorch 2.9, calling checkpoint without use_reentrant will "
            "raise an exception. use_reentrant=False is recommended, but if you need to preserve "
            "the current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants."
        )
        use_reentrant = True
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], got {determinism_check}"
        )
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        if state.local.grad and not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warned.at_call("None of the inputs have requires_grad=True. Gradients will be None")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    outer, inner = context_fn()
    kept = _Inputs.apply(empty(0, requires_grad=True), *args).grad_fn
    if kept is None:  # gradients are off
        return function(*args, **kwargs)
    context, kept.context = kept.context, None  # no circle

    def run() -> Any:
        tensors = iter(context.saved_tensors)
        with inner:
            given = [next(tensors) if isinstance(a, Tensor) else a for a in args]
            return function(*given, **kwargs)

    early_stop = early_stop if stops_early is None else stops_early
    frame = Frame(run, early_stop, preserve_rng_state)
    with autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack), outer:
        made = function(*args, **kwargs)
    frame.completed = True
    return made


def checkpoint_sequential(
    functions: Any, segments: int, input: Tensor, use_reentrant: Any = None, **kwargs: Any
) -> Any:
    """A sequence of modules, checkpointed in segments; the last one is kept as it is."""
    if use_reentrant is None:
        warned.at_call(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants."
        )
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(parts) // segments

    def runner(start: int, end: int) -> Any:
        def forward(x: object) -> Any:
            for part in parts[start:end]:
                x = part(x)
            return x

        return forward

    for start in range(0, size * (segments - 1), size):
        part = runner(start, start + size)
        again = True if use_reentrant is None else use_reentrant
        input = checkpoint(part, input, use_reentrant=again, **kwargs)
    return runner((segments - 1) * size, len(parts))(input)
