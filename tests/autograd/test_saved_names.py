"""What nodes keep has PyTorch's names (`grad_fn._saved_exponent`), and its values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

NODES = {
    "x ** 2": "exponent self",
    "x ** y": "exponent result self",
    "2 ** x": "exponent result",
    "x * y": "other self",
    "x.sum(1, keepdim=True)": "dim keepdim self_sym_sizes",
    "x.sum()": "self_sym_sizes",
    "x.mean(0)": "dim keepdim self_sym_sizes",
    "x.amax(1)": "dim keepdim result self",
    "x.logsumexp(1)": "dim keepdim result self",
    "x.max(1)[0]": "dim keepdim indices self_sym_sizes",
    "x.sort(1)[0]": "dim indices self_sym_sizes",
    "x.topk(2, 1)[0]": "dim indices self_sym_sizes",
    "x.cummax(1)[0]": "dim indices self",
    "x.mode(1)[0]": "dim indices keepdim self_sym_sizes",
    "x.view(6)": "self_sym_sizes",
    "x[0]": "dim index self_sym_sizes",
    "x[m.tensor([0, 1, 0])]": "indices self_sym_sizes",
    "x.repeat(2, 2)": "repeats self_sym_sizes",
    "x.roll(1, 0)": "dims shifts",
    "m.nn.functional.mse_loss(x, y)": "reduction self target",
    "m.nn.functional.smooth_l1_loss(x, y, reduction='sum')": "beta reduction self target",
    "m.nn.functional.max_pool2d(x[None], 2)": "ceil_mode result1 self",
    "m.nn.functional.layer_norm(x, (3,))": "input result1 result2 weight",
    "m.linalg.svd(x, full_matrices=False)[1]": "S U Vh full_matrices",
    "m.linalg.qr(x)[0]": "Q R mode",
    "m.linalg.inv(x[:, :2])": "inverse",
}


def plain(value: Any) -> Any:
    """A value as both packages can compare it: a tensor by its sizes."""
    if isinstance(value, (list, tuple)):
        return type(value), [plain(v) for v in value]
    return tuple(value.shape) if hasattr(value, "shape") else value


def kept(m: Any, text: str, names: str) -> list[Any]:
    """What the node of an expression has under some names."""
    x = m.tensor([[0.1, 0.7, 0.3], [0.4, 0.9, 0.6]], requires_grad=True)
    y = m.tensor([[0.2, 0.5, 0.3], [0.8, 0.1, 0.6]], requires_grad=True)
    node = eval(text, {"m": m, "x": x, "y": y}).grad_fn
    return [plain(getattr(node, f"_saved_{name}")) for name in names.split()]


@pytest.mark.parametrize("text", NODES)
def test_what_is_kept_has_its_name(text: str) -> None:
    assert kept(tt, text, NODES[text]) == kept(torch, text, NODES[text])
