"""Batch norm: each channel in units of its own mean and deviation over the batch."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.composed import composed
from toytorch.facts.hints import Device, DType
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn.modules.lazy import LazyModuleMixin
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.normalization import _Affine
from toytorch.nn.parameter import UninitializedBuffer, UninitializedParameter
from toytorch.ops.creation.create import ones, zeros

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "SyncBatchNorm",
]  # fmt: skip


class _NormBase(_Affine):
    """Weight and bias for each channel, and running statistics, all of which may be absent."""

    _version = 2  # since 2 it counts batches
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        make: dict[str, Any] = {"device": device, "dtype": dtype}
        self._make_parameters(num_features, affine, bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **make) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **make) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", zeros((), dtype=types.int64, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets the batches seen: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, no batch seen."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    extra_repr = shows("=num_features eps momentum affine bias? track_running_stats")

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


@composed(reads="shape")
def check_dims(input: Tensor, *allowed: int) -> None:
    """Refuses inputs of other numbers of dimensions."""
    if input.dim() not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")


class _BatchNorm(_NormBase):
    """Batch norm over any number of dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain mean over all batches
                share = 1.0 / float(self.num_batches_tracked)
        kept = not self.training or self.track_running_stats
        mean = self.running_mean if kept else None
        var = self.running_var if kept else None
        training = self.training or self.running_mean is None
        return F.batch_norm(input, mean, var, self.weight, self.bias, training, share, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch norm of (B, C) or (B, C, L); Ioffe and Szegedy 2015.

        y = (x - mean)/√(var + ε)·weight + bias

    In training, mean and variance are the batch's, and the running ones move by `momentum`.

    >>> BatchNorm1d(1)(torch.tensor([[1.], [3.]]))
    tensor([[-1.0000],
            [ 1.0000]], grad_fn=<NativeBatchNormBackward0>)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        check_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of images (B, C, H, W); Ioffe and Szegedy 2015."""

    def _check_input_dim(self, input: Tensor) -> None:
        check_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch norm of volumes (B, C, D, H, W); Ioffe and Szegedy 2015."""

    def _check_input_dim(self, input: Tensor) -> None:
        check_dims(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch norm whose statistics are those of all processes; in one process, a batch norm."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """The module with every batch norm in it replaced by a synchronised one."""
        made = module
        if isinstance(module, _BatchNorm):
            how = module.eps, module.momentum, module.affine, module.track_running_stats
            has_bias = module.bias is not None
            made = cls(module.num_features, *how, process_group, bias=has_bias)
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A norm that takes num_features from its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        make: dict[str, Any] = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**make)
            if bias:
                self.bias = UninitializedParameter(**make)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**make)
            self.running_var = UninitializedBuffer(**make)
            self.num_batches_tracked = zeros((), dtype=types.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for name in ("weight", "bias", "running_mean", "running_var"):
                value = getattr(self, name)
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d, cls_to_become=BatchNorm1d):
    """A BatchNorm1d that takes num_features from its first input."""


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d, cls_to_become=BatchNorm2d):
    """A BatchNorm2d that takes num_features from its first input."""


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d, cls_to_become=BatchNorm3d):
    """A BatchNorm3d that takes num_features from its first input."""
