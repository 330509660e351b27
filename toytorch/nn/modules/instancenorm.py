"""Instance norm: every channel of every image by itself."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import Device, DType
from toytorch.nn import functional as F
from toytorch.nn.modules.batchnorm import _LazyNormBase, _NormBase, check_dims


class _InstanceNorm(_NormBase):
    """Instance norm over any number of dimensions."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        raise NotImplementedError

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._get_no_batch_dim()
        check_dims(input, n, n + 1)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing: Any,
        unexpected: Any,
        errors: Any,
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            old = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if old:
                names = " and ".join(f'"{k}"' for k in old)
                errors.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    f"this may be expected because {type(self).__name__} does not track running "
                    "stats by default since 0.4.0. Please remove these keys from state_dict. If "
                    "the running stats are actually needed, instead set track_running_stats=True "
                    f"in {type(self).__name__} to enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for key in old:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing, unexpected, errors
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.ndim == self._get_no_batch_dim()
        channels = input.shape[0 if alone else 1]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={0 if alone else 1} to match "
                    f"num_features ({self.num_features}), but got: {channels}."
                )
            warned.at_call(
                f"input's size at dim={0 if alone else 1} does not match num_features. "
                "You can silence this warning by not passing in num_features, which is "
                "not used because affine=False"
            )
        made = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return made.squeeze(0) if alone else made


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of (B, C, L) or (C, L); Ulyanov et al. 2016."""

    def _get_no_batch_dim(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of (B, C, H, W) or (C, H, W); Ulyanov et al. 2016."""

    def _get_no_batch_dim(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of (B, C, D, H, W) or (C, D, H, W); Ulyanov et al. 2016."""

    def _get_no_batch_dim(self) -> int:
        return 4


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    """Takes num_features from the channels of a batch, or of one image."""

    def initialize_parameters(self, input: Tensor) -> None:
        self._check_input_dim(input)
        super().initialize_parameters(
            input if input.ndim > self._get_no_batch_dim() else input.unsqueeze(0)
        )


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d, cls_to_become=InstanceNorm1d):
    """An InstanceNorm1d that takes num_features from its first input."""


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d, cls_to_become=InstanceNorm2d):
    """An InstanceNorm2d that takes num_features from its first input."""


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d, cls_to_become=InstanceNorm3d):
    """An InstanceNorm3d that takes num_features from its first input."""
