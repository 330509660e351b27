"""Checkpoints that keep some results: a policy says of every op whether its result is saved.

The first run's mode asks the policy and keeps results in the order of calls; the second run's mode
puts a kept result in the place of the call, with its node and without its kernel.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from toytorch.core import dispatch, write
from toytorch.core.op import Op
from toytorch.core.record import record, wants_grad
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Args, Fn
from toytorch.ops import aten
from toytorch.ops import aten_calls as calls


class CheckpointPolicy(enum.Enum):
    """What becomes of an op's result: saved, computed again, or moved to the host until then.

    The compiler may override what is only preferred; run eagerly, both mean the same. Results
    that go to the CPU are where they are already, if this is where they were made.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEPT = ("MUST_SAVE", "PREFER_SAVE", "MUST_CPU_OFFLOAD", "PREFER_CPU_OFFLOAD")


class SelectiveCheckpointContext:
    """What a policy hears of a call beside the op and its arguments: what came out of it."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def hidden(op: Op) -> bool:
    """Whether a policy is not asked: `detach` makes no history, and happens where nobody calls it."""
    return op.kind == "view" and not op.derivatives


class Kept:
    """One result that was saved, and how often it had been written to."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()
        self.version = self.tensor._version

    def get(self, may_change: bool) -> Tensor:
        """The result, for a new node."""
        if self.tensor._version != self.version and not may_change:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.tensor.detach()


USED: list[Kept] = []  # in the place of results that a second run has taken


class Watching:
    """A mode that can be entered again and again."""

    def __enter__(self) -> None:
        self.before = state.local.modes
        state.local.modes = (*self.before, self)
        state.watch(1)

    def __exit__(self, *_: object) -> None:
        state.local.modes = self.before
        state.watch(-1)


class Caching(Watching):
    """The first run: asks the policy about every call."""

    def __init__(self, policy: Fn, calls: list[list[Kept] | None]) -> None:
        self.policy, self.calls = policy, calls

    def saves(self, op: Op, args: Args, made: Any, written: bool = False) -> bool:
        """What the policy says."""
        context = SelectiveCheckpointContext(is_recompute=False, op_output=made)
        said = self.policy(context, calls.overload(op, args, written), *calls.given(op, args))
        return said if isinstance(said, bool) else said.name in KEPT

    def on_call(self, op: Op, args: Args, out: Tensor | None) -> Any:
        """A call: its results may be kept. Views cost nothing and are made again."""
        made = dispatch.call(op, args, out)
        if hidden(op):
            return made
        keep = self.saves(op, args, made) and out is None and op.kind != "view"
        results = made if op.many else [made]
        self.calls.append([Kept(r) for r in results] if keep else None)
        return made

    def on_inplace(self, op: Op, args: Args) -> Tensor:
        """A write is done again."""
        made = write.inplace(op, args)
        self.saves(op, args, made, written=True)
        return made


class Cached(Watching):
    """The second run: results that were kept take the place of calls."""

    def __init__(self, calls: list[list[Kept] | None], may_change: bool) -> None:
        self.calls, self.may_change = calls, may_change

    def __enter__(self) -> None:
        self.next = 0
        super().__enter__()

    def on_call(self, op: Op, args: Args, out: Tensor | None) -> Any:
        """A call, or what came out of it the first time."""
        if hidden(op):
            return dispatch.call(op, args, out)
        if self.next >= len(self.calls):
            raise RuntimeError(
                f"{calls.overload(op, args)!r} encountered during backward, but not found in storage"
            )
        kept, self.next = self.calls[self.next], self.next + 1
        if kept is None:
            return dispatch.call(op, args, out)
        if kept is USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once "
                "on any region computed under selective activation checkpoint."
            )
        made: Any = [k.get(self.may_change) for k in kept]
        self.calls[self.next - 1] = USED
        made = made if op.many else made[0]
        if op.derivatives and state.local.grad and wants_grad(op, args):
            record(op, args, made)
        return made


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Fn | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The contexts of a checkpoint's two runs, for `checkpoint(…, context_fn=…)`.

    The policy is a list of ops whose results are saved, such as `torch.ops.aten.mm.default`, or a
    function (context, op, *args, **kwargs) that gives a `CheckpointPolicy` or whether to save.
    Raises TypeError where it is neither, and in backward a RuntimeError where a saved result was
    written to, unless `allow_cache_entry_mutation`. Like the function of this name in
    `torch.utils.checkpoint`.

    >>> from toytorch.utils.checkpoint import checkpoint
    >>> x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    >>> def contexts():
    ...     return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])
    >>> y = checkpoint(lambda x: (x @ w).exp().sum(), x, use_reentrant=False, context_fn=contexts)
    >>> y.backward(); x.grad
    tensor([[14.7781, 14.7781],
            [14.7781, 14.7781]])
    """
    policy: Fn
    if isinstance(policy_fn_or_list, list):
        ops = policy_fn_or_list
        for op in ops:
            if isinstance(op, aten.OpOverloadPacket) or not hasattr(op, "overloadpacket"):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload."
                    "For example, if you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, aten.OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {extra}"
                )

        def policy(
            context: SelectiveCheckpointContext, op: object, *_: object, **__: object
        ) -> Any:
            found = op in ops
            return CheckpointPolicy.MUST_SAVE if found else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    calls: list[list[Kept] | None] = []
    return Caching(policy, calls), Cached(calls, allow_cache_entry_mutation)
