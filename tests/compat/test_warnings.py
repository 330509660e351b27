"""What programs are warned of: class and words of every warning are PyTorch's.

The lines of a list follow each other in one process, since some warnings are given once.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, Side

LINES = """
nn.MSELoss(size_average=False)
nn.MSELoss(reduce=False)
F.mse_loss(x, t, size_average=False)
F.cross_entropy(x, places, size_average=True)
nn.KLDivLoss(size_average=False, reduce=True)
F.softmax(x)
F.log_softmax(x)
F.softmin(x)
nn.LogSoftmax()(x)
nn.Softmin()(x)
torch.cross(x[:, :3], t[:, :3])
torch.cross(x[:, :3], t[:, :3])
(x * 2).grad
x.storage()
torch.autograd.Variable(x, volatile=True)
x.volatile
x.new_tensor(t)
torch.tensor(t)
torch.from_numpy(np.broadcast_to(1.0, (2,)))
torch.from_numpy(np.broadcast_to(1.0, (2,)))
torch.where(torch.ByteTensor([1, 0, 1, 1]), x, t)
torch.where(torch.ByteTensor([1, 0, 1, 1]), x, t)
t[None].T.shape
t[None].T.shape
t[0].T.shape
torch.utils.checkpoint.checkpoint(lambda y: y * 2, x)
torch.utils.checkpoint.checkpoint_sequential([nn.Tanh(), nn.Tanh()], 2, x)
torch.set_default_tensor_type(torch.FloatTensor)
torch.set_default_tensor_type(torch.FloatTensor)
torch.qr(t)
torch.cholesky(torch.eye(3))
torch.lu(torch.eye(3))
torch.triangular_solve(t, torch.eye(3))
torch.qr(t), torch.cholesky(torch.eye(3)), torch.lu(torch.eye(3))
torch.stft(torch.rand(20), 4)
torch.stft(torch.rand(20), 4, return_complex=False)
torch.stft(torch.rand(20), 4, return_complex=True)
torch.add(x, 2, t)
x.detach().add_(1, t)
nn.NLLLoss2d()
F.gumbel_softmax(x, eps=1e-5)
nn.Hardtanh(min_value=0.0)
nn.Hardtanh(max_value=2.0)
torch.tensor([np.ones(2), np.ones(2)])
torch.FloatTensor([[np.ones(2)], [np.ones(2)]])
x.detach()[[np.array([0, 1]), np.array([1, 0])]]
torch.utils.data.DataLoader([1, 2], pin_memory=True)
list(torch.utils.data.DataLoader([1, 2], pin_memory=True))
list(torch.utils.data.DataLoader([1, 2], pin_memory=True, pin_memory_device="cuda"))
F.kl_div(x, t)
F.mse_loss(x, t[:, :1])
F.grid_sample(x[None, None], torch.rand(1, 2, 2, 2))
torch.meshgrid(x[0], x[0])
nn.LSTM(3, 3, dropout=0.5)
torch.range(0, 3)
torch.optim.lr_scheduler.StepLR(torch.optim.SGD([x], 0.1), 1).step()
torch.nn.utils.weight_norm(nn.Linear(2, 2))
nn.init.constant(t.clone(), 0.0)
"""


def warned(side: Side) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each line, with what it warns of."""
    torch: Any = side.root
    torch.manual_seed(0)
    space: dict[str, Any] = {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np,
        "x": torch.rand(3, 4, requires_grad=True), "t": torch.rand(3, 4),
        "places": torch.tensor([1, 2, 3]),
    }  # fmt: skip
    given = []
    for line in LINES.strip().splitlines():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with contextlib.suppress(RuntimeError):  # some are warned before they are refused
                eval(line, space)
        words = [(w.category.__name__, str(w.message).split(" (Triggered")[0]) for w in seen]
        given.append((line, words))
    return given


@pytest.fixture
def nothing_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings of once a process are given anew; PyTorch's are, in the one test that asks."""
    from toytorch.facts import warned as facts

    monkeypatch.setattr(facts, "given", set())


def test_programs_are_warned_as_by_pytorch(nothing_warned_yet: None) -> None:
    ours, theirs = warned(SUBJECT), warned(ORACLE)
    told = dict(theirs)
    for line, words in ours:
        if told[line] or not words:  # PyTorch may have said once what another test heard
            assert words == told[line], line
    assert sum(bool(words) for _, words in theirs) > 25
