"""Small things in which PyTorch's own tests showed a difference: the same expression, the same answer."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt


class Wild:
    """Adds to anything."""

    def __add__(self, other: object) -> int:
        return 42

    __radd__ = __add__


EXPRESSIONS = [
    "S + [1]", "S + (1,)", "(1,) + S", "S + Wild()", "Wild() + S", "S + 1",
    "torch.use_deterministic_algorithms(1)", "torch.use_deterministic_algorithms(False, warn_only=1)",
    "torch.tensor([]).is_set_to(torch.tensor([]))", "e.is_set_to(e)",
    "i.index_fill_(0, i, 0)", "m[1:].masked_fill_(m[:-1], False)", "m.masked_fill_(m, False)",
    "torch.ones(()).index_add(0, torch.tensor([0]), torch.ones(1, 1, 1))",
    "torch.ones(()).index_add(0, torch.tensor([0]), torch.ones(1))",
    "torch.ones(()).index_add(0, torch.tensor([0]), torch.ones(()))",
    "f.set_(f.untyped_storage(), 99, f.size())", "f.set_(f.untyped_storage(), 5, (2, 3)).shape",
    "torch.Generator().manual_seed(2**64)", "torch.Generator().manual_seed(-2**63 - 1)",
    "torch.Generator().manual_seed(-2**63).initial_seed()", "f.new(size=(3, 4)).shape",
    "torch.ones(2, 3, 4).permute(2, 0, 1).dim_order()", "torch.ones(2, 3).expand(4, 2, 3).dim_order()",
    "torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order()",
    "torch.ones(1, 3, 1, 4).dim_order()", "torch.ones(2, 2, 1, 2).dim_order(ambiguity_check=True)",
    "torch.ones(2, 2, 1, 2).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])",
    "torch.ones(2, 1, 1, 1).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])",
    "f.dim_order(ambiguity_check='x')", "torch.ones(2, 2).expand(4, 2, 2).dim_order(ambiguity_check=True)",
    "torch.multinomial(torch.ones(0, 3), 2, True).shape", "torch.multinomial(torch.ones(0, 3), 2).shape",
    "torch.nn.functional.nll_loss(torch.tensor(1.), torch.tensor(1.), reduction='none')",
    "torch.ones(2).map2_(torch.ones(2), torch.ones(2, requires_grad=True), lambda x, y, z: x)",
    "torch._assert_async(torch.tensor(0))", "torch._assert_async(torch.tensor(1))",
    "torch._assert_async(torch.tensor([]))", "torch._assert_async(torch.tensor(0), 'said')",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore")
def test_same_answers(text: str) -> None:
    def ask(T: Any) -> Any:
        names = {
            "torch": T, "Wild": Wild, "S": T.Size([1, 2]), "e": T.tensor([]), "f": T.ones(1),
            "i": T.tensor([2, 1, 0]), "m": T.tensor([True, False, True, True, False]),
        }  # fmt: skip
        found = eval(text, names)
        return found.tolist() if isinstance(found, T.Tensor) else found

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed) is type(refused), (failed, refused)
    if failed is not None:
        assert str(failed)[:60] == str(refused)[:60]
    assert got == want


def test_storages_are_copied_once() -> None:
    a = tt.ones(3)
    tensor, typed, plain = copy.deepcopy([a, a.storage(), a.untyped_storage()])
    tensor.add_(1)
    assert typed[0] == 2 and a[0] == 1 and plain.data_ptr() == tensor.data_ptr()


def test_warn_only_is_kept() -> None:
    try:
        tt.use_deterministic_algorithms(False, warn_only=True)
        assert tt.is_deterministic_algorithms_warn_only_enabled()
    finally:
        tt.use_deterministic_algorithms(False)
