"""CUDA graphs: launches are written down once and done again in one call. Like `torch.cuda.graphs`.

A replay works in the memory of the capture: new inputs are copied into the old ones first.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence
from typing import Any

from toytorch.autograd.api import grad as gradients
from toytorch.autograd.function import Function
from toytorch.core.random import Generator, generators
from toytorch.core.tensor import Tensor
from toytorch.cuda.devices import is_available, runtime, synchronize
from toytorch.cuda.memory import empty_cache
from toytorch.cuda.streams import Stream, StreamContext, current_stream
from toytorch.facts import state
from toytorch.facts.hints import Fn
from toytorch.facts.pytree import tree_leaves, tree_map

_pools = itertools.count(1 << 20)


def graph_pool_handle() -> tuple[int, int]:
    """A handle of memory that several graphs may share."""
    runtime()
    return 0, next(_pools)


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return is_available() and bool(runtime().capturing())


class CUDAGraph:
    """A graph of launches: `capture_begin`, work, `capture_end`, then `replay` as often as wanted."""

    def __init__(self, keep_graph: bool = False) -> None:
        runtime("Tried to instantiate dummy base class CUDAGraph")
        self._capture: Any = None
        self._made: Any = None
        self._draws: list[tuple[Generator, Tensor]] = []  # where the generators stood

    def capture_begin(
        self,
        pool: Any = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Writes down what the current stream is given from now on."""
        if self._capture is not None or self._made is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph")
        handle = pool[1] if isinstance(pool, tuple) else pool
        self._draws = [(g, g.get_state()) for g in generators("cuda")]
        self._capture = runtime().begin_capture(current_stream()._handle, handle)
        state.capturing = True

    def capture_end(self) -> None:
        """Ends the capture."""
        if self._capture is None:
            raise RuntimeError("capture_end() was called before capture_begin()")
        self._made, self._capture = runtime().end_capture(self._capture), None
        state.capturing = False
        for generator, before in self._draws:  # the replays draw, and not the capture
            generator.set_state(before)

    def replay(self) -> None:
        """Does all of it again, on the current stream."""
        if self._made is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        runtime().replay(self._made)

    def reset(self) -> None:
        """Forgets the graph."""
        self._made = self._capture = None

    def instantiate(self) -> None:
        """Makes the graph ready to be launched, which it is once it was captured."""
        if self._made is None:
            raise RuntimeError("Called CUDAGraph::instantiate() without a preceding capture.")

    def enable_debug_mode(self) -> None:
        """Keeps what `debug_dump` needs, which is always kept."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the launches of a simulated device's graph to a file, as a graph for Graphviz."""
        names = [
            kernel[0] for piece in getattr(self._made, "pieces", ()) for kernel in piece.kernels
        ]
        lines = [f'  n{k} [label="{name}"];' for k, name in enumerate(names)]
        lines += [f"  n{k} -> n{k + 1};" for k in range(len(names) - 1)]
        with open(debug_path, "w", encoding="utf-8") as file:
            file.write("\n".join(["digraph {", *lines, "}", ""]))

    def pool(self) -> tuple[int, int]:
        """The handle of the memory it works in."""
        if self._made is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return 0, self._made.pool


class graph:
    """A context that captures its work into a `CUDAGraph`, on a stream of its own."""

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = Stream() if stream is None else stream
        self.stream_ctx = StreamContext(self.capture_stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(self, *exc: object) -> None:
        self.cuda_graph.capture_end()
        self.stream_ctx.__exit__(*exc)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Callables (functions or modules) whose forward and backward passes are graphs.

    `sample_args` have the shapes, and the `requires_grad`, that calls will have. A module keeps its
    class; only its `forward` changes while it is in the mode that it has now.
    """
    several = isinstance(callables, tuple)
    chosen = callables if several else (callables,)
    samples = sample_args if several else (sample_args,)
    pool = graph_pool_handle() if pool is None else pool
    made = tuple(
        _graphed(function, tuple(sample), num_warmup_iters, allow_unused_input, pool)
        for function, sample in zip(chosen, samples)
    )
    return made if several else made[0]


def _graphed(function: Fn, sample: tuple[Any, ...], warm: int, unused: bool, pool: object) -> Any:
    inputs = [t for t in tree_leaves(sample) if isinstance(t, Tensor)]
    module: Any = function if hasattr(function, "parameters") else None
    weights = [] if module is None else list(module.parameters())
    wanted = [t for t in (*inputs, *weights) if t.requires_grad]
    stream = Stream()
    stream.wait_stream(current_stream())
    with StreamContext(stream):
        for _ in range(warm):
            outputs = _tensors(function(*sample))
            if wanted:
                gradients(
                    outputs, wanted, [o.new_ones(o.shape) for o in outputs], allow_unused=unused
                )
    current_stream().wait_stream(stream)
    forward, backward = CUDAGraph(), CUDAGraph()
    with graph(forward, pool):
        result = function(*sample)
    outputs = _tensors(result)
    arriving = [o.new_ones(o.shape) for o in outputs]
    leaving: Sequence[Any] = ()
    if wanted:
        with graph(backward, pool):
            leaving = gradients(outputs, wanted, arriving, allow_unused=unused)
    held = [o.detach() for o in outputs]

    class Graphed(Function):
        """The graphs as one step of a larger graph of derivatives."""

        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            for static, new in zip(inputs, given):
                if static is not new:
                    static.detach().copy_(new)
            forward.replay()
            return tuple(o.detach() for o in held)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            for static, new in zip(arriving, grads):
                if new is not None:
                    static.copy_(new)
            backward.replay()
            found = iter(leaving)
            return tuple(
                (lambda g: None if g is None else g.detach())(next(found))
                if t.requires_grad
                else None
                for t in (*inputs, *weights)
            )

    def run(*args: object) -> Any:
        given = [t for t in tree_leaves(args) if isinstance(t, Tensor)]
        answers = iter(Graphed.apply(*given, *weights))
        return tree_map(lambda v: next(answers) if isinstance(v, Tensor) else v, result)

    if module is None:
        return run
    mode, plain = module.training, module.forward

    def forward_of_module(*args: object) -> Any:
        return run(*args) if module.training == mode else plain(*args)

    module.forward = forward_of_module
    return module


def _tensors(result: object) -> list[Tensor]:
    return [t for t in tree_leaves(result) if isinstance(t, Tensor)]
