"""Integers that were written to with what wants a gradient: PyTorch gives them a history, and refuses
whatever would give their results one."""

from __future__ import annotations

import pytest

from tests.outside.running import Program
from tests.outside.search import first_difference

pytestmark = pytest.mark.filterwarnings("ignore")

HEAD = (
    "v = torch.tensor([2.0, -1.0], requires_grad=True)",
    "x = torch.tensor([[1, 2], [3, 4]])",
)
FILLED = (
    "x[1:] = v[0]", "x[...] = v[0]", "x[None] = v[0]", "x[True] = v[0]", "x[1] = v[0]", "x[:, 1] = v[0]",
    "x[0, 1] = v[0]", "x[1:] = v[:1]", "x[0] = v", "x[x > 2] = v[0]", "x[1:].fill_(v[0])",
    "x.fill_(v[0])", "x.copy_(v)", "x.masked_fill_(x > 2, v[0])", "x.ne_(v)", "x.index_fill_(0, x[0, :1], v[0])",
)  # fmt: skip
USES = (
    "x + 1", "x * 2", "x * x", "-x", "abs(x)", "x.sum()", "x.sum(0)", "x.max()", "x.max(0)", "x.sort(0)",
    "x[0]", "x[:, 1:]", "x.view(-1)", "x.t()", "x.unbind()", "x.split(1)", "x.clone()", "x.cumsum(0)",
    "x.float()", "x.long()", "x.int()", "x == 1", "x < x", "x.argmax()", "x + 1.5", "x * v", "torch.cat([x, x])",
    "x.matmul(x)", "x.gather(0, x * 0)", "torch.where(x > 0, x, x)", "x.relu()", "x.clamp(0, 2)", "x // 2",
    "x % 2", "x.bitwise_and(1)", "x.prod()", "x.roll(1)", "x.heaviside(x)", "x.detach()", "torch.zeros_like(x)",
    "torch.prod(v, dtype=torch.int32)", "torch.cumsum(v, 0, dtype=torch.int64)", "v.int()", "v > 0",
)  # fmt: skip
WRITES = (
    "x.mul_(2)", "x.mul_(x)", "x.mul_(torch.tensor([1, 2]))", "x.add_(2)", "x.abs_()", "x.neg_()", "x.pow_(2)",
    "x.clamp_(1)", "x.square_()", "x.relu_()", "x.sign_()", "x.zero_()", "x.fill_(1)", "x[0, 0] = 5",
    "x.remainder_(2)", "x.fmod_(2)", "x.eq_(2)", "x.logical_not_()", "x.masked_fill_(x > 2, 1)",
    "x.cumsum_(0)", "x.floor_divide_(2)", "x.requires_grad_(False)", "x.detach_()",
)  # fmt: skip


@pytest.mark.parametrize("line", FILLED)
def test_what_gives_integers_a_history(line: str) -> None:
    assert first_difference(Program(0, (*HEAD, line, "y = x.requires_grad, x.is_leaf"))) is None


@pytest.mark.parametrize("line", USES)
def test_what_may_be_made_of_them(line: str) -> None:
    assert first_difference(Program(0, (*HEAD, "x.ne_(v)", f"y = {line}"))) is None


@pytest.mark.parametrize("line", WRITES)
def test_what_may_be_written_to_them(line: str) -> None:
    assert first_difference(Program(0, (*HEAD, "x.ne_(v)", line, "x.ne_(v)"))) is None
