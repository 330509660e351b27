"""How far one distribution is from another: KL(p‖q) = E_p[log p(x) - log q(x)].

>>> from toytorch.distributions import Normal
>>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
tensor(0.5000)
"""

from toytorch.distributions.kl import across, alike  # they register what they have
from toytorch.distributions.kl.alike import _kl_expfamily_expfamily
from toytorch.distributions.kl.registry import (
    _KL_MEMOIZE,
    _KL_REGISTRY,
    _dispatch_kl,
    kl_divergence,
    register_kl,
)

__all__ = ["kl_divergence", "register_kl"]
