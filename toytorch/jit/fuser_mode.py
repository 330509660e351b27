"""Switches of the compiler: which passes run, and how many shapes a function is compiled for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from toytorch.jit.fuser.group import fuse
from toytorch.jit.ir import Pass
from toytorch.jit.passes import pipeline

USUAL = [("STATIC", 2), ("DYNAMIC", 10)]  # what PyTorch says before anything is set
PLENTY = 64
FUSERS = ("fuser0", "fuser1", "fuser2", "fuser3", "none")


class Switches:
    """What is in force now: `fusing` and `optimising`, and the strategy of specialisation."""

    def __init__(self) -> None:
        self.fusing = self.optimising = True
        self.key = (True, True)  # both of them, for the keys of plans
        self.strategy = USUAL

    def chosen(self, passes: Sequence[Pass] | None) -> Sequence[Pass] | None:
        """The passes to run where a function asks for `passes` (None: the pipeline's own)."""
        if not self.optimising:
            return ()
        if self.fusing:
            return passes
        usual = [*pipeline.SPECIALISED, *pipeline.FUSING]
        return [p for p in (usual if passes is None else passes) if p is not fuse]

    def set(self, *, fusing: bool | None = None, optimising: bool | None = None) -> None:
        """Turns one of them on or off."""
        self.fusing = self.fusing if fusing is None else fusing
        self.optimising = self.optimising if optimising is None else optimising
        self.key = self.fusing, self.optimising


switches = Switches()


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Turns fusion on or off inside the block, like `torch.jit.fuser`.

    There is one fuser here, for all devices: "fuser0" to "fuser3" name it, "none" turns it off.
    Raises Exception for other names, as PyTorch does.

    >>> f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(2))
    >>> with torch.jit.fuser("none"):
    ...     [node.kind for node in f.graph_for(torch.ones(2)).nodes][1:]
    ['aten::mul', 'aten::tanh']
    """
    if name not in FUSERS:
        raise Exception(f"unrecognized fuser option (name: {name})")  # PyTorch's class
    before = switches.fusing
    switches.set(fusing=name != "none")
    try:
        yield
    finally:
        switches.set(fusing=before)


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Whether graphs are optimised before they run, inside the block; like PyTorch's."""
    before = switches.optimising
    switches.set(optimising=bool(should_optimize))
    try:
        yield
    finally:
        switches.set(optimising=before)


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sets how many kinds of inputs a function is compiled for; gives back what was set before.

    Pairs of "STATIC" or "DYNAMIC" and a number, like `torch.jit.set_fusion_strategy`. Kernels here
    are made for one shape each, so the numbers are added: beyond them the plan that was made first
    is dropped. Raises ValueError for other words.

    >>> before = set_fusion_strategy([("DYNAMIC", 3)])
    >>> set_fusion_strategy(before)
    [('DYNAMIC', 3)]
    """
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
        if depth.__class__ is not int or depth < 0:
            raise ValueError(f"expected a number of specializations, got {depth!r}")
    before, switches.strategy = switches.strategy, [(kind, depth) for kind, depth in strategy]
    return before


def limit() -> int:
    """How many plans a function keeps: as many as was asked for, else plenty."""
    if switches.strategy is USUAL:
        return PLENTY
    return max(1, sum(depth for _, depth in switches.strategy))
