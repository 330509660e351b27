"""Under autocast every call gives the type that PyTorch's gives, from float32 and from bfloat16."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, dtype_name

PRODUCTS = """
x @ x; x @ v; v @ v; x.mm(x); torch.mv(x, v); torch.dot(v, v); torch.outer(v, v); b @ b; b.bmm(b)
torch.inner(x, x); torch.vdot(v, v); torch.kron(x, x); torch.linalg.vecdot(x, x)
torch.addmm(x, x, x); torch.addmv(v, x, v); torch.addr(x, v, v); torch.addbmm(x, b, b)
torch.baddbmm(b, b, b); torch.einsum("ij,jk->ik", x, x); torch.einsum("bij,bjk->bik", b, b)
torch.tensordot(x, x, 1); torch.linalg.multi_dot([x, x, x]); torch.matrix_power(x, 2)
F.linear(x, x, v); F.linear(x, x); F.linear(b, x, v); F.bilinear(x, x, b[:1].expand(3, 4, 4))
F.conv1d(b, b[..., :3]); F.conv2d(image, w); F.conv2d(image, w, padding="same")
F.conv3d(volume, w[..., None]); F.conv_transpose1d(b, b); F.conv_transpose2d(image, w)
F.prelu(x, v[:1]); F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(b, b, b, is_causal=True)
nn.MultiheadAttention(4, 2)(b, b, b)[0]; nn.TransformerEncoderLayer(4, 2, 8)(b)
nn.LSTM(4, 3)(b)[0]; nn.GRU(4, 3)(b)[0]; nn.RNN(4, 3)(b)[0]
nn.LSTMCell(4, 3)(x)[0]; nn.GRUCell(4, 3)(x); nn.RNNCell(4, 3)(x)
"""

EITHER = """
q.exp(); q.log(); q.tanh(); torch.relu(q); q.pow(2.5); q.neg(); q.cumsum(0); q.sum(); q.mean()
q.var(); q.norm(); q.prod(); q.prod(0); q.trace(); torch.logsumexp(q, 0); F.softmax(q, -1)
F.log_softmax(q, -1); F.gelu(q); F.layer_norm(q, (4,)); F.layer_norm(q, (4,), v, v)
F.group_norm(q, 2); F.rms_norm(q, (4,)); F.dropout(q); q + x; q * x; q @ q; q @ x
F.batch_norm(q, v * 0, v, training=True); F.batch_norm(q, v * 0, v, v, v, training=True)
F.batch_norm(q, v * 0, v, v, v); torch.quantile(q, 0.5); torch.nanquantile(q, 0.5)
torch.cdist(q, q); F.cosine_similarity(q, q); F.normalize(q); torch.cat([q, x]); torch.cat([q, q])
torch.stack([q, x]); torch.vstack([q, x]); torch.where(x > 0, q, x); F.embedding(classes, q)
torch.index_copy(q, 0, classes[:1], x[:1]); torch.polar(q, q)
F.mse_loss(q, x); F.l1_loss(q, x); F.l1_loss(q, q, reduction="none"); F.smooth_l1_loss(q, q)
F.huber_loss(q, q); F.soft_margin_loss(q, q); F.poisson_nll_loss(q, q); F.kl_div(q, q)
F.hinge_embedding_loss(q, q); F.binary_cross_entropy(q, x); F.gaussian_nll_loss(q, x, x)
F.binary_cross_entropy_with_logits(q, q); F.cross_entropy(q, classes); F.cross_entropy(q, q)
F.cross_entropy(q, classes, label_smoothing=0.1); F.cross_entropy(q, classes, v)
F.nll_loss(q, classes); F.cosine_embedding_loss(q, q, v); F.margin_ranking_loss(q, q, x)
F.triplet_margin_loss(q, q, q); F.triplet_margin_with_distance_loss(q, q, q)
F.multi_margin_loss(q, classes); F.multilabel_soft_margin_loss(q, x)
F.multilabel_margin_loss(q, classes.expand(4, 4).contiguous())
F.avg_pool1d(q, 2); F.avg_pool2d(q[None], 2); F.avg_pool3d(q[None, None], (1, 2, 2))
F.max_pool2d(q[None], 2); F.max_pool3d(q[None, None], (1, 2, 2)); F.lp_pool2d(q[None], 2., 2)
F.adaptive_avg_pool2d(q[None], 2); F.adaptive_avg_pool3d(q[None, None], 2)
F.adaptive_max_pool2d(q[None], 2); F.pad(q, (1, 1), "reflect"); F.pad(q, (1, 1), "replicate")
F.pad(q[None], (1, 1, 1, 1), "reflect"); F.pad(q, (1, 1)); F.pixel_shuffle(q[:, None, None], 2)
F.pad(q[None, None], (1,) * 6, "replicate"); F.unfold(q[None, None], 2)
F.interpolate(q[None, None], scale_factor=2, mode="bilinear")
F.grid_sample(q[None, None], q[None, None, :, :2])
torch.det(s); torch.linalg.inv(s); torch.linalg.cholesky(s); torch.linalg.eigh(s)[0]
torch.linalg.eigvalsh(s); torch.linalg.svd(s)[1]; torch.linalg.svdvals(s); torch.linalg.qr(s)[0]
torch.linalg.solve(s, s); torch.linalg.lstsq(s, s)[0]; torch.linalg.matrix_rank(s)
torch.linalg.norm(s); torch.linalg.vector_norm(s); torch.linalg.matrix_norm(s)
torch.linalg.matrix_exp(s); torch.linalg.cond(s); torch.inverse(s); torch.cholesky_solve(s, s)
torch.linalg.solve_triangular(s, s, upper=True); torch.cholesky_inverse(s); torch.pinverse(s)
torch.fft.fft(q); torch.fft.rfft(q); torch.fft.irfft(q); torch.fft.fft2(q); torch.fft.fftshift(q)
torch.stft(q.reshape(16), 8, window=q[0].repeat(2), return_complex=True)
"""


def calls(text: str) -> list[str]:
    return [c.strip() for line in text.strip().splitlines() for c in line.split(";")]


def outcome(side: Side, call: str, half: bool) -> str:
    """The type of what a call gives, or the class of the error."""
    torch = side.root
    x = torch.ones(4, 4)
    q, s = (t.to(torch.bfloat16) if half else t for t in (x, 2 * torch.eye(4)))
    space: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "nn": torch.nn,
        "x": x,
        "q": q,
        "s": s,
        "v": torch.ones(4),
        "b": torch.ones(4, 4, 4),
        "image": torch.ones(1, 2, 6, 6),
        "volume": torch.ones(1, 2, 4, 4, 4),
        "w": torch.ones(2, 2, 3, 3),
        "classes": torch.tensor([0, 1, 2, 3]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.autocast("cpu"):
                return dtype_name(eval(call, space).dtype)
        except (RuntimeError, NotImplementedError) as error:
            return type(error).__name__


@pytest.mark.parametrize("call", calls(PRODUCTS))
def test_products(call: str) -> None:
    want = outcome(ORACLE, call, False)
    if want == "RuntimeError" and "LSTM" in call:
        pytest.skip("oneDNN has no LSTM in bfloat16 for this processor, and PyTorch no other")
    assert outcome(SUBJECT, call, False) == want


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("call", calls(EITHER))
def test_other_calls(call: str, half: bool) -> None:
    assert outcome(SUBJECT, call, half) == outcome(ORACLE, call, half)
