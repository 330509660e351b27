"""Windows that taper a signal, like `torch.signal.windows`."""

from toytorch.facts.package import show as _show
from toytorch.ops.signal.windows import (
    bartlett,
    blackman,
    cosine,
    exponential,
    gaussian,
    general_cosine,
    general_hamming,
    hamming,
    hann,
    kaiser,
    nuttall,
)

_show(globals())
