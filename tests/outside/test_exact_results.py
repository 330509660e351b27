"""Results that are exact in PyTorch, for which rounding is no excuse, and layouts that follow from how it
composes a function."""

from __future__ import annotations

import pytest

from tests.oracle import torch, tt
from tests.outside.running import Program
from tests.outside.search import first_difference

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_determinants_of_whole_numbers(n: int, dtype: str) -> None:
    for batch in ((), (3,), (0,)):
        a, b = (
            m.linalg.det(((m.arange(48).reshape(3, 4, 4) * 7) % 5)[:, :n, :n].expand(3, n, n)
                         [slice(0) if batch == (0,) else slice(3) if batch else 0].to(getattr(m, dtype)))
            for m in (torch, tt)
        )  # fmt: skip
        assert a.shape == tuple(b.shape) and a.tolist() == pytest.approx(b.tolist(), rel=1e-6)
    assert tt.linalg.det(tt.eye(n, dtype=getattr(tt, dtype)) * 3).item() == 3**n


VALUES = (
    "torch.nn.functional.multilabel_margin_loss(x.detach(), i, reduction='none')",
    "torch.nn.functional.multi_margin_loss(x.detach(), i[:, 0], reduction='none')",
    "torch.nn.functional.multi_margin_loss(x.detach(), i[:, 1], p=2, margin=0.5)",
    "torch.vander(x[0], increasing=True)", "torch.vander(x[0])", "torch.vander(x[0], 2)", "torch.vander(i[0])",
    "torch.vander(x[0], 1)", "torch.linalg.qr(q)", "torch.geqrf(q)", "torch.nanmean(x, 0, out=x[:1].detach()[0])",
    "torch.pairwise_distance(i, i, 0.1, 0)", "torch.pairwise_distance(i, i * 2, 2, 0)", "x.unsqueeze(0).squeeze(1)",
    "torch.autograd.grad(x.squeeze(-1).abs().sum(), [x])", "torch.fft.fftn(p, dim=[])",
    "torch.fft.fftn(p[..., ::2], dim=[])",
    "torch.nn.functional.huber_loss(e, p, reduction='none')", "torch.nn.functional.huber_loss(p, e, reduction='none')",
    "torch.nn.functional.huber_loss(p, p[:1], reduction='none')[1, :1]",
    "torch.nn.functional.soft_margin_loss(e, p, reduction='none')",
    "torch.nn.functional.binary_cross_entropy(e, p, reduction='none')",
    "torch.nn.functional.binary_cross_entropy(p, e, reduction='none')",
)  # fmt: skip
HEAD = (
    "x = torch.tensor([[1.36, 1.0, nan], [0.0, 5.0, -1.0]], requires_grad=True)",
    "i = torch.tensor([[0, 1, 0], [2, -1, 0]]).abs()",
    "q = torch.tensor([[-0.0, 1.0], [2.0, 3.0]])",
    "p = (torch.arange(24.0).reshape(2, 4, 3) / 24).permute(0, 2, 1)",
    "e = torch.full((2, 1, 1), 0.5).expand(2, 3, 4)",
)


@pytest.mark.parametrize("made", VALUES)
def test_values_and_layouts(made: str) -> None:
    assert first_difference(Program(0, (*HEAD, f"y = {made}"))) is None
