"""FileCheck says yes and no where PyTorch's does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

TEXT = (
    "graph(%x):\n  %1 = aten::mul(%x)\n  %2 = aten::add(%1)\n  %3 = aten::add(%2)\n  return (%3)\n"
)
CHECKS = [
    "check('mul').check('add')", "check('add').check('mul')", "check('mul').check_next('add')",
    "check('mul').check_next('return')", "check('mul').check_same('%x')", "check_not('sub')",
    "check_not('add')", "check('mul').check_not('add').check('return')", "check_same('aten')",
    "check('mul').check_not('sub').check('return')", "check_count('add', 2)", "check_count('add', 3)",
    "check_count('add', 1, True)", "check_count('add', 2, exactly=True)", "check_dag('add').check_dag('mul')",
    "check_dag('add').check_dag('sub')", "check_regex('m.l').check('add')", "check_regex('q+')",
    "check_dag('add').check_dag('add').check('return')", "check('return').check_not('add')",
    "check_source_highlighted('mul')",
]  # fmt: skip


@pytest.mark.parametrize("text", CHECKS)
def test_same_verdicts(text: str) -> None:
    def ask(T: Any) -> Any:
        return eval(
            f"FileCheck().{text}.run(TEXT)", {"FileCheck": T.testing.FileCheck, "TEXT": TEXT}
        )

    refused, failed = attempt(ask, torch)[1], attempt(ask, tt)[1]
    assert type(failed) is type(refused), (failed, refused)
    if refused is not None:
        assert str(failed).splitlines()[0] == str(refused).splitlines()[0]
