"""An encoder that is evaluated without the padding of a batch, and what keeps it from that."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import torch, tt

PADDINGS = {
    "at the end": [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]],
    "nowhere": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    "before": [[1, 0, 0, 0, 1], [0, 0, 0, 0, 1]],
}


def evaluated(t: Any, padding: str, grad: bool, **how: Any) -> Any:
    t.manual_seed(0)
    options = {"batch_first": True, **how.get("layer", {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nested tensors, which PyTorch calls a prototype
        layer = t.nn.TransformerEncoderLayer(8, 2, 16, 0.0, **options)
        encoder = t.nn.TransformerEncoder(layer, 2, t.nn.LayerNorm(8), **how.get("stack", {}))
        encoder.train(how.get("training", False))
        t.nn.init.ones_(encoder.norm.bias)
        x = t.randn(2, 5, 8)
        mask = t.tensor(PADDINGS[padding]).bool()
        if how.get("numbers"):
            mask = t.zeros(2, 5).masked_fill(mask, -t.inf)
        with t.set_grad_enabled(grad):
            return encoder(x, src_key_padding_mask=mask)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"numbers": True},
        {"training": True},
        {"stack": {"mask_check": False}},
        {"stack": {"enable_nested_tensor": False}},
        {"layer": {"norm_first": True}},
        {"layer": {"activation": "gelu"}},
        {"layer": {"bias": False}},
    ],
    ids=str,
)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
def test_padded_positions_come_out_as_in_pytorch(
    padding: str, grad: bool, how: dict[str, Any]
) -> None:
    if how.get("stack") == {"mask_check": False} and padding == "before":
        pytest.skip("the program promises that padding is at the end; then the result is undefined")
    got, want = evaluated(tt, padding, grad, **how), evaluated(torch, padding, grad, **how)
    tt.testing.assert_close(tt.tensor(got.tolist()), tt.tensor(want.tolist()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"batch_first": True, "norm_first": True},
        {"batch_first": True, "bias": False},
        {"batch_first": True, "activation": "tanh"},
        {"batch_first": True, "nhead": 1},
    ],
    ids=str,
)
def test_an_encoder_says_what_keeps_padding_in(options: dict[str, Any]) -> None:
    def said(t: Any) -> Any:
        given = {"nhead": 2, **options}
        if "activation" in given:
            given["activation"] = getattr(t, given["activation"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layer = t.nn.TransformerEncoderLayer(8, **given)
            encoder = t.nn.TransformerEncoder(layer, 1)
        words = [str(w.message) for w in caught]
        return words, encoder.use_nested_tensor, layer.activation_relu_or_gelu

    assert said(tt) == said(torch)
