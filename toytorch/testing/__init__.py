"""For tests of programs: `assert_close`, and tensors made for them."""

from toytorch.testing.compare import assert_allclose, assert_close
from toytorch.testing.file_check import FileCheck
from toytorch.testing.make import make_tensor

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
