"""Channels in another order."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class ChannelShuffle(Module):
    """Channels dealt out to groups: (g, C/g) as (C/g, g); Zhang et al. 2018."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    extra_repr = shows("groups")
