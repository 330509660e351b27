"""Discrete Fourier transforms, like `torch.fft`.

The functions are the op records and compositions of `toytorch.ops` whose names start so.
"""

from toytorch.ops.define import package

globals().update(package("fft"))
