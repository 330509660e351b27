"""Names that public programs import, beside those that they call."""

from __future__ import annotations

import importlib
from typing import Any

from tests.oracle import torch, tt


def test_reductions_of_process_groups_have_names() -> None:
    def said(t: Any) -> Any:
        kinds = importlib.import_module(f"{t.__name__}.distributed").ReduceOp
        named = [n for n in dir(torch.distributed.ReduceOp) if n.isupper()]
        return [str(getattr(kinds, n)) for n in named]

    assert said(tt) == said(torch)


def test_gradients_are_laid_end_to_end_and_taken_apart() -> None:
    def said(t: Any) -> Any:
        tools = importlib.import_module(f"{t.__name__}._utils")
        parts = [t.arange(6.0).view(2, 3).t(), t.ones(()), t.zeros(0, 2), t.full((3,), 7.0)]
        flat = tools._flatten_dense_tensors(parts)
        made = tools._unflatten_dense_tensors(flat, parts)
        made[3].add_(1)  # they are views
        return flat.tolist(), [(type(made).__name__, p.tolist(), p.stride()) for p in made]

    assert said(tt) == said(torch)
