"""What suites of the course share: a browser for each file that looks at pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.course import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A page of 1280 by 720 in Chromium."""
    devtools = pytest.importorskip("tests.course.walk.devtools", reason="no JupyterLab here")
    chromium.find()
    with devtools.Browser(1280, 720) as opened:
        yield opened
