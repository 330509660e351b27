"""Signal processing, like `torch.signal`."""

from toytorch.signal import windows

__all__ = ["windows"]
