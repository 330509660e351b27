"""Windows that taper a signal, like `torch.signal.windows`."""

from toytorch.facts.package import show as _show
from toytorch.ops.signal.windows import *

_show(globals())
