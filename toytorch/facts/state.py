"""The two questions every call asks first: are gradients wanted, and does anyone watch?

`fast_path` is read by the fast path of every op, so it is one global with three kinds of value:

    None          gradients are wanted in every thread and nothing watches: take the fast path
    a thread id   only that thread has switched gradients off: fast path there, without a graph
    SLOW          anything else: the general path, which looks at the thread's own state
"""

from __future__ import annotations

import threading
from _thread import get_ident
from contextlib import contextmanager
from typing import Any

SLOW = "general path"
fast_path: Any = None


class ThreadState(threading.local):
    """What each thread has set."""

    grad = True  # whether graphs are recorded
    inference = False
    transforms: tuple[Any, ...] = ()  # of `torch.func`, that run; printing asks what they wrap
    modes: tuple[Any, ...] = ()  # what watches or takes over calls; the last one is asked first
    saved_hooks: tuple[Any, ...] = ()  # (pack, unpack) for tensors that nodes save
    mutation: Any = None  # what saved tensors are copied to before they are written to, if anything
    no_saved_hooks: str | None = None  # why there may be none, if so
    multithreading: bool = True  # what `set_multithreading_enabled` was told
    contexts: Any = None  # where calls of Functions leave their context, if somebody asks for it
    unnamed = False  # whether names of dimensions are left alone (see ops/named_dims.py)
    leaving: Any = None
    default_device: Any = None  # where new tensors go for which no device is named; the CPU if None
    outer_devices: tuple[Any, ...] = ()  # what it was outside of `with torch.device(…)`
    backward = 0  # how many backward passes run, one inside of the other
    backward_pass: Any = None  # the innermost of them
    place: Any = None  # the device whose kernel runs on the host just now


class _Leaving:
    """Forgets a thread that ended with gradients off: its id may be given to another."""

    def __init__(self, ident: int) -> None:
        self.ident = ident

    def __del__(self) -> None:
        if _without_grad is not None and self.ident in _without_grad:  # None while Python ends
            _without_grad.discard(self.ident)
            _update()


local = ThreadState()
_lock = threading.RLock()  # a tensor that ends while it is held may count itself out
_without_grad: set[int] = set()
_watching = 0  # how many modes are in force, in all threads
everywhere: Any = None  # a mode of all threads, asked after each thread's own
asked_below = (
    0  # how many tensors there are whose classes are asked about ops (see core/subclasses.py)
)
capturing = False  # whether a CUDA graph takes in what is launched
# When data of another shape or type were last given to a leaf, as nodes of graphs are counted: graphs
# from before may meet arrays that do not fit.
data_changed = -1
anomaly: Any = None  # None, or what `detect_anomaly` was told
# None, or who runs the calls of all threads between two looks at the clock. Whoever stands here
# also calls `watch`, so that only the general path has to ask:
#     around(name, args, function, *arguments)    runs function(*arguments)
#     backward(node, grad, function, *arguments)  the same for a node of the backward pass
profiler: Any = None


def _update() -> None:
    global fast_path
    if _watching or len(_without_grad) > 1:
        fast_path = SLOW
    else:
        fast_path = next(iter(_without_grad)) if _without_grad else None


def is_grad_enabled() -> bool:
    """Whether ops called by this thread record a graph."""
    return local.grad


def set_grad(enabled: bool) -> None:
    """Switches recording for this thread."""
    if local.grad is enabled:
        return
    local.grad = enabled
    leaving = local.leaving
    if leaving is None:
        leaving = local.leaving = _Leaving(get_ident())
    with _lock:
        if enabled:
            _without_grad.discard(leaving.ident)
        else:
            _without_grad.add(leaving.ident)
        _update()


def watch(change: int) -> None:
    """Counts modes: while there are any, every call takes the general path."""
    global _watching
    with _lock:
        _watching += change
        _update()


def count_asked(change: int) -> None:
    """Counts tensors whose classes are asked about ops."""
    global asked_below
    with _lock:
        asked_below += change
    watch(change)


def watched() -> bool:
    """Whether anybody watches the calls of this thread: a question for the general path alone, where
    it need not be so."""
    return bool(local.modes or everywhere or profiler)


def watched_or_asked() -> bool:
    """Whether anybody watches, or there are tensors whose classes are asked about ops."""
    return bool(asked_below or watched())


@contextmanager
def watching(mode: object) -> Any:
    """Sends every call of this thread through the general path, which hands it to `mode`.

    A mode may define `on_call(op, args, out)` and `on_inplace(op, args)`; while they run, the mode
    and those inside it are not in force (see `below`).
    """
    local.modes = (*local.modes, mode)
    watch(1)
    try:
        yield mode
    finally:
        # Others may have come and stayed, so it is not what was in force before that is put back.
        places = [k for k, found in enumerate(local.modes) if found is mode]
        if places:  # none where another thread ends it
            local.modes = local.modes[: places[-1]] + local.modes[places[-1] + 1 :]
        watch(-1)


@contextmanager
def transforming(transform: object) -> Any:
    """Tells printing of a transform while its function runs.

    `transform.within(tensor)` gives the name of PyTorch's wrapper and the tensor in it, or None.
    """
    before = local.transforms
    local.transforms = (*before, transform)
    try:
        yield
    finally:
        local.transforms = before


@contextmanager
def below(mode: object) -> Any:
    """The modes outside of `mode` only."""
    before = local.modes
    local.modes = before[: before.index(mode)]
    try:
        yield
    finally:
        local.modes = before


def frozen(kind: str, what: str) -> None:
    """Tells the modes with `on_frozen` of a Python "value" made of a tensor, or of a function that
    makes a "constant" of Python values."""
    for mode in local.modes:
        tell = getattr(mode, "on_frozen", None)
        if tell is not None:
            tell(kind, what)


def beside(what: str) -> None:
    """Tells the modes with `on_effect` of something that calls of ops do not show, such as
    gradients put into leaves."""
    for mode in local.modes:
        tell = getattr(mode, "on_effect", None)
        if tell is not None:
            tell(what)
