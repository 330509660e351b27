"""What the examples in docstrings begin with: `import numpy as np` and `import toytorch as torch` are done."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="session")
def examples_begin(doctest_namespace: dict[str, Any]) -> None:
    """Gives doctests both packages by the names that programs give them."""
    import numpy  # after tests/conftest.py has set how many threads it starts

    import toytorch

    doctest_namespace.update(np=numpy, torch=toytorch)
