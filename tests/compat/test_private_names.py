"""Names of PyTorch's compiled part that libraries use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

CALLS = [
    "isinstance(torch.ones(1), torch._C.TensorBase)", "isinstance(1, torch._C.TensorBase)",
    "isinstance(torch.ones(1).untyped_storage(), torch._C.StorageBase)", "torch._C.TensorBase()",
    "torch._C.StorageBase()", "torch.StorageBase is torch._C.StorageBase",
    "torch._C._get_privateuse1_backend_name()", "torch._C._get_tracing_state()",
    "torch._C._current_graph_task_id()", "torch._C._autograd._saved_tensors_hooks_is_enabled()",
    "torch._C.is_grad_enabled()",
    "torch._C.ListType(None)",

    "torch._C._nn._parse_to('cpu', torch.float64)",
    "torch._C._nn._parse_to(torch.float64, True)[:3]", "torch._C._nn._parse_to(dtype=torch.int8)[:3]",
    "torch._jit_internal._copy_to_script_wrapper(lambda: 3)()",
    "torch._jit_internal.is_optional(__import__('typing').Optional[int])",
    "torch._C._get_graph_executor_optimize()", "torch._vmap_internals._vmap(torch.sin)(torch.zeros(2)).tolist()",
]  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_same_answers(text: str) -> None:
    def ask(T: Any) -> Any:
        return eval(text, {"torch": T})

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    assert str(got) == str(want)
