"""A softmax over very many classes, the rare ones in clusters of their own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType
from toytorch.nn import functional as F
from toytorch.nn.modules.container import ModuleList, Sequential
from toytorch.nn.modules.linear import Linear
from toytorch.nn.modules.module import Module
from toytorch.ops.shaping.rearrange import cat


class ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax; Grave et al. 2017.

    Classes below the first cutoff stand in the head, together with one entry for each cluster of
    rarer classes; the probability of a rare class is that of its cluster times its own in it.
    Cluster i is projected to in_features/div_valueⁱ⁺¹ first.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = all(a < b for a, b in pairwise([0, *cutoffs, n_classes]))
        if not rising or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in "
                "an increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        make: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, head_bias, **make)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, False, **make),
                    Linear(width, end - start, False, **make),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new starting values."""
        self.head.reset_parameters()
        for layer in self.modules():
            if isinstance(layer, Linear) and layer is not self.head:
                layer.reset_parameters()

    @staticmethod
    def _check(input: Tensor, target: Tensor) -> None:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.ndim == 1 and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.ndim != target.ndim + 1:
            raise RuntimeError(
                f"{target.ndim}D target tensor expects {target.ndim + 1}D input "
                f"tensors, but found inputs with size {input.size()}"
            )

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """The log-probabilities of the targets, and their mean as a loss."""
        self._check(input_, target_)
        batched = target_.ndim > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if int(target.min()) < 0 or int(target.max()) >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        place = target.clone()  # of each target in the head: itself, or its cluster
        output = input.new_zeros(target.shape[0])
        for i, (start, end) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            place = place.index_fill(0, rows, self.shortlist_size + i)
            logs = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            own = (target.index_select(0, rows) - start).unsqueeze(1)
            output = output.index_copy(0, rows, logs.gather(1, own).squeeze(1))
        logs = F.log_softmax(self.head(input), dim=1)
        output = output + logs.gather(1, place.unsqueeze(1)).squeeze(1)
        return ASMoutput(output if batched else output.squeeze(0), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (B, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        n = self.shortlist_size
        parts = [head[:, :n]]
        for i, projection in enumerate(self.tail):
            parts.append(F.log_softmax(projection(input), dim=1) + head[:, n + i].unsqueeze(1))
        return cat.function(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each sample."""
        return self.log_prob(input).argmax(1)
