"""Mixed precision: products in a half type, everything that needs the range in float32."""

from toytorch.amp.casting import (
    autocast,
    clear_autocast_cache,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from toytorch.amp.grad_scaler import GradScaler
from toytorch.facts.package import show as _show

_show(globals())
