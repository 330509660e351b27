"""Helpers for modules and their parameters."""

from toytorch.facts.package import show as _show
from toytorch.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from toytorch.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from toytorch.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from toytorch.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from toytorch.nn.utils.init import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
    skip_init,
)
from toytorch.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from toytorch.nn.utils.weight_norm import remove_weight_norm, weight_norm

__path__.append(f"{__path__[0]}/../../compat/nn/utils")  # what only other libraries ask for
_show(globals(), "parametrizations", "parametrize", "prune", "rnn", "stateless")
