"""What a DataLoader and its neighbours refuse, and how they say it."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import warned

CALLS = [
    "L(D(), multiprocessing_context='bad', num_workers=1)", "L(D(), multiprocessing_context='fork')",
    "L(D(), multiprocessing_context=3, num_workers=1)", "L(I(), shuffle=True)", "L(I(), sampler=[1])",
    "L(I(), batch_sampler=[[1]])", "L(D(), num_workers=-1)", "C([D(), I()])", "C([])",
    "setattr(l, 'batch_size', 1)", "setattr(l, 'sampler', 1)", "setattr(l, 'dataset', 1)",
    "setattr(l, 'num_workers', 0)", "setattr(l, 'timeout', 1)", "setattr(l, 'drop_last', True)",
    "p._validate_pruning_amount_init('a')", "p._validate_pruning_amount_init(1.5)",
    "p._validate_pruning_amount(20, 19)", "p._validate_pruning_amount(0.3, 19)",
    "p._compute_nparams_toprune(0.3, 15)", "p._compute_nparams_toprune(4, 15)",
    "r(r(torch.nn.Linear(2, 2), 'weight', Same()), 'weight', Two())",
    "r(r(torch.nn.Linear(2, 2), 'weight', Same()), 'weight', Cut())",
]  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_same_answers(text: str) -> None:
    def ask(T: Any) -> Any:
        data = T.utils.data

        class D(data.Dataset):  # type: ignore[misc]  # the class of either package
            def __len__(self) -> int:
                return 4

            def __getitem__(self, i: int) -> int:
                return i

        class I(data.IterableDataset):  # type: ignore[misc]  # noqa: E742 - as short as D
            def __iter__(self) -> Any:
                return iter(range(4))

        class Same(T.nn.Module):  # type: ignore[misc]  # the class of either package
            def forward(self, x: Any) -> Any:
                return x

        class Two(Same):
            def right_inverse(self, x: Any) -> Any:
                return x, x

        class Cut(Same):
            def right_inverse(self, x: Any) -> Any:
                return x[:-1]

        names = {
            "torch": T, "D": D, "I": I, "L": data.DataLoader, "C": data.ConcatDataset, "Same": Same,
            "Two": Two, "Cut": Cut, "l": data.DataLoader(D()),
            "p": importlib.import_module(f"{T.__name__}.nn.utils.prune"),
            "r": importlib.import_module(f"{T.__name__}.nn.utils.parametrize").register_parametrization,
        }  # fmt: skip
        return eval(text, names)

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    if failed is not None:
        assert str(failed).partition("which needs")[0][:90] == str(refused)[:90]
    assert got == want


@pytest.mark.parametrize("kept", [False, True])
def test_warnings_of_too_many_workers(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a loader is made, and whenever it starts workers."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)

    def run(m: Any) -> Any:
        loader = m.utils.data.DataLoader(range(4), num_workers=2, persistent_workers=kept)
        return [[x.item() for x in loader] for _ in range(2)]

    assert warned(run, tt) == warned(run, torch)
