"""What reading a program raises, under the names of `torch.jit.frontend`."""

from toytorch.jit.script.errors import FrontendError, NotSupportedError, UnsupportedNodeError

__all__ = ["FrontendError", "NotSupportedError", "UnsupportedNodeError"]
