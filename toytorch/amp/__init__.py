"""Mixed precision: products in a half type, everything that needs the range in float32."""

from toytorch.amp.casting import *
from toytorch.amp.grad_scaler import GradScaler
from toytorch.facts.package import show as _show

_show(globals())
