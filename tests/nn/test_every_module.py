"""Every module beside PyTorch's: repr, state, results, gradients, state after a call."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, differences, dtype_name, names, torch, tt

L, C, H, V = (2, 3, 8), (2, 4, 6, 6), (2, 4), (2, 2, 4, 4, 4)  # shapes of inputs
LONG, TARGETS = "LONG", "TARGETS"

# name: (arguments, options, shapes of the inputs); a name may stand several times, by a suffix.
MODULES: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = {
    "Linear": ((4, 3), {}, (H,)), "Linear/plain": ((4, 3), {"bias": False}, (H,)),
    "Bilinear": ((4, 3, 2), {}, (H, (2, 3))), "Identity": ((), {}, (H,)),
    "LazyLinear": ((3,), {}, (H,)), "Flatten": ((), {}, (C,)),
    "Unflatten": ((1, (2, 2)), {}, (H,)),
    "Conv1d": ((3, 4, 3), {"padding": "same"}, (L,)),
    "Conv2d": ((4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (C,)),
    "Conv2d/circular": ((4, 2, 3), {"padding": 1, "padding_mode": "circular"}, (C,)),
    "Conv3d": ((2, 3, 2), {"dilation": 2, "bias": False}, (V,)),
    "ConvTranspose1d": ((3, 2, 3), {"stride": 2, "output_padding": 1}, (L,)),
    "ConvTranspose2d": ((4, 2, 3), {"padding": 1}, (C,)),
    "ConvTranspose3d": ((2, 2, 2), {"stride": 2}, (V,)),
    "LazyConv1d": ((4, 3), {}, (L,)), "LazyConv2d": ((4, 3), {}, (C,)),
    "LazyConv3d": ((4, 3), {}, (V,)), "LazyConvTranspose1d": ((4, 3), {}, (L,)),
    "LazyConvTranspose2d": ((4, 3), {"bias": False}, (C,)),
    "LazyConvTranspose3d": ((4, 3), {}, (V,)),
    "MaxPool1d": ((2,), {}, (L,)), "MaxPool2d": ((2, 1), {"padding": 1}, (C,)),
    "MaxPool3d": ((2,), {"ceil_mode": True}, (V,)), "AvgPool1d": ((2,), {}, (L,)),
    "AvgPool2d": ((3, 2), {"count_include_pad": False, "padding": 1}, (C,)),
    "AvgPool3d": ((2,), {"divisor_override": 3}, (V,)), "LPPool1d": ((2, 2), {}, (L,)),
    "LPPool2d": ((2, 3, 2), {}, (C,)), "LPPool3d": ((2, 2), {}, (V,)),
    "LPPool2d/inf": ((math.inf, 3, 2), {}, (C,)),
    "AdaptiveAvgPool1d": ((3,), {}, (L,)), "AdaptiveAvgPool2d": (((2, None),), {}, (C,)),
    "AdaptiveAvgPool3d": ((2,), {}, (V,)), "AdaptiveMaxPool1d": ((3,), {}, (L,)),
    "AdaptiveMaxPool2d": ((4,), {}, (C,)), "AdaptiveMaxPool3d": ((2,), {}, (V,)),
    "BatchNorm1d": ((3,), {}, (L,)), "BatchNorm2d": ((4,), {"momentum": None}, (C,)),
    "BatchNorm3d": ((2,), {"affine": False}, (V,)),
    "BatchNorm2d/untracked": ((4,), {"track_running_stats": False}, (C,)),
    "LazyBatchNorm1d": ((), {}, (L,)), "LazyBatchNorm2d": ((), {}, (C,)),
    "LazyBatchNorm3d": ((), {}, (V,)),
    "InstanceNorm1d": ((3,), {"affine": True}, (L,)),
    "InstanceNorm2d": ((4,), {"track_running_stats": True}, (C,)),
    "InstanceNorm3d": ((2,), {}, (V,)),
    "LazyInstanceNorm1d": ((), {}, (L,)), "LazyInstanceNorm2d": ((), {}, (C,)),
    "LazyInstanceNorm3d": ((), {}, (V,)),
    "LayerNorm": (((6, 6),), {}, (C,)), "LayerNorm/no bias": ((4,), {"bias": False}, (H,)),
    "RMSNorm": ((4,), {}, (H,)), "GroupNorm": ((2, 4), {}, (C,)),
    "LocalResponseNorm": ((2,), {}, (C,)),
    "PixelShuffle": ((2,), {}, (C,)), "PixelUnshuffle": ((2,), {}, (C,)),
    "ChannelShuffle": ((2,), {}, (C,)), "Unfold": ((2,), {}, (C,)),
    "Fold": (((3, 3), 2), {}, ((2, 8, 4),)), "Upsample": ((), {"scale_factor": 2}, (C,)),
    "Upsample/bilinear": (((3, 5),), {"mode": "bilinear"}, (C,)),
    "UpsamplingNearest2d": ((), {"scale_factor": 2}, (C,)),
    "UpsamplingBilinear2d": ((4,), {}, (C,)),
    "PairwiseDistance": ((), {"keepdim": True}, (H, H)), "CosineSimilarity": ((), {}, (H, H)),
    "Embedding": ((5, 3), {"padding_idx": 1}, (LONG,)),
    "EmbeddingBag": ((5, 3), {"mode": "sum"}, (LONG,)),
    "RNN": ((3, 4), {"bidirectional": True}, ((5, 2, 3),)),
    "RNN/relu": ((3, 4, 2, "relu"), {"batch_first": True}, ((2, 5, 3),)),
    "LSTM": ((3, 4), {"num_layers": 2, "bidirectional": True}, ((5, 2, 3),)),
    "LSTM/projected": ((3, 4), {"proj_size": 2, "bias": False}, ((5, 3),)),
    "GRU": ((3, 4), {"num_layers": 2}, ((5, 2, 3), (2, 2, 4))),
    "GRU/no bias": ((3, 4), {"bias": False, "bidirectional": True}, ((5, 2, 3),)),
    "RNNCell": ((4, 3), {}, (H,)), "RNNCell/relu": ((4, 3), {"nonlinearity": "relu"}, (H, (2, 3))),
    "LSTMCell": ((4, 3), {}, (H,)), "GRUCell": ((4, 3), {}, (H, (2, 3))),
    "MultiheadAttention": ((4, 2), {"batch_first": True}, ((2, 5, 4),) * 3),
    "MultiheadAttention/widths": ((4, 2), {"kdim": 3, "vdim": 5, "add_bias_kv": True},
                                  ((5, 2, 4), (6, 2, 3), (6, 2, 5))),
    "TransformerEncoderLayer": ((4, 1, 8, 0.0), {}, ((5, 2, 4),)),
    "TransformerEncoderLayer/first": ((4, 1, 8, 0.0), {"norm_first": True}, ((5, 2, 4),)),
    "TransformerDecoderLayer": ((4, 2, 8, 0.0, "gelu"), {}, ((5, 2, 4), (3, 2, 4))),
    "Transformer": ((4, 2, 1, 1, 8, 0.0), {}, ((5, 2, 4), (3, 2, 4))),
    **{name: ((), {}, (H,)) for name in names(
        "ReLU ReLU6 Hardtanh LeakyReLU PReLU ELU CELU SELU SiLU Mish Hardswish Hardsigmoid GELU "
        "Tanh Sigmoid LogSigmoid Softplus Softsign Tanhshrink Hardshrink Softshrink GLU")},
    **{name: ((1,), {}, (H,)) for name in ("Softmax", "Softmin", "LogSoftmax")},
    "Softmax2d": ((), {}, (C,)), "Threshold": ((0.1, 2.0), {"inplace": False}, (H,)),
    "LeakyReLU/inplace": ((0.1, True), {}, ()),
    **{f"{kind}Pad{n}d": ((1, 3.5)[:1 + (kind == "Constant")], {}, (shape,))
       for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
       for n, shape in ((1, L), (2, C), (3, V))},
    **{name: ((p,), {}, ()) for name, p in (
        ("Dropout", 0.2), ("Dropout1d", 0.3), ("Dropout2d", 0.1), ("Dropout3d", 0.1),
        ("AlphaDropout", 0.5), ("FeatureAlphaDropout", 0.5), ("RReLU", 0.1))},
    **{name: ((), {"reduction": "sum"}, (H, H)) for name in names(
        "MSELoss L1Loss SmoothL1Loss HuberLoss PoissonNLLLoss KLDivLoss BCEWithLogitsLoss "
        "MultiLabelSoftMarginLoss")},
    "SoftMarginLoss": ((), {}, ((2,), "SIGNS")),
    "GaussianNLLLoss": ((), {}, (H, H, 0.5)), "HingeEmbeddingLoss": ((), {}, (H, H)),
    "CrossEntropyLoss": ((), {"label_smoothing": 0.1}, (H, TARGETS)),
    "NLLLoss": ((), {}, (H, TARGETS)), "MultiMarginLoss": ((), {"p": 2}, (H, TARGETS)),
    "MultiLabelMarginLoss": ((), {}, (H, LONG)), "MarginRankingLoss": ((0.1,), {}, (H, H, H)),
    "CosineEmbeddingLoss": ((), {}, (H, H, "SIGNS")), "TripletMarginLoss": ((), {}, (H, H, H)),
    "TripletMarginWithDistanceLoss": ((), {}, (H, H, H)),
    "LinearCrossEntropyLoss": ((4, 3), {}, (H, TARGETS)),
    "AdaptiveLogSoftmaxWithLoss": ((4, 5, [2, 3]), {"div_value": 2.0}, (H, TARGETS)),
}  # fmt: skip
GIVEN = {LONG: [[1, 3, 0, 2], [0, 1, 1, 4]], TARGETS: [1, 2], "SIGNS": [1, -1]}


def inputs(m: Any, shapes: Any) -> list[Any]:
    """Fixed values: a wave for a shape, the list for a name, a number as it is."""
    made: list[Any] = []
    for i, shape in enumerate(shapes):
        if isinstance(shape, str):
            values = GIVEN[shape]
            if shape == LONG and "Margin" in inputs.name:  # type: ignore[attr-defined]
                values = [[1, 3, -1, 0], [0, -1, 0, 0]]
            made.append(m.tensor(values))
        elif isinstance(shape, float):
            made.append(shape)
        else:
            n = math.prod(shape)
            wave = m.sin(m.arange(n, dtype=m.float64) * 1.7 + i).reshape(shape) + 0.1 * i
            made.append(wave.requires_grad_())
    return made


@pytest.mark.parametrize("label", MODULES)
def test_beside_pytorch(label: str) -> None:
    name = label.partition("/")[0]
    args, options, shapes = MODULES[label]
    inputs.name = name  # type: ignore[attr-defined]
    mine, theirs = (getattr(m.nn, name)(*args, **options).double() for m in (tt, torch))
    assert repr(mine) == repr(theirs)
    if not shapes:
        return
    if name.startswith("Lazy"):
        assert (
            "Uninitialized" in repr(list(mine._parameters.values()) + list(mine._buffers.values()))
            or not mine._parameters
        )
        mine(*inputs(tt, shapes)), theirs(*inputs(torch, shapes))
        assert type(mine).__name__ == name.removeprefix("Lazy")
        assert repr(mine) == repr(theirs)
    layout = [[(k, tuple(v.shape), dtype_name(v.dtype)) for k, v in x.state_dict().items()]
              for x in (mine, theirs)]  # fmt: skip
    assert layout[0] == layout[1]
    state = theirs.state_dict()
    if name in ("Conv2d", "LSTM", "BatchNorm1d"):
        mine.to(tt.float32)  # loading copies values into the type that is there
        mine.double()
    assert repr(mine.load_state_dict(SUBJECT.carry(dict(state)))) == (
        "<All keys matched successfully>"
    )
    for mode in (True, False):
        mine.train(mode), theirs.train(mode)
        results, grads = [], []
        for m, module, side in ((torch, theirs, ORACLE), (tt, mine, SUBJECT)):
            given = inputs(m, shapes)
            module.zero_grad()
            out = module(*given)
            flat = [t for t in side.tensors(out) if t.requires_grad]
            sum((t * t.detach().cos()).sum() for t in flat).backward()
            results.append(out)
            grads.append([g.grad for g in given if isinstance(g, side.Tensor)]
                         + [p.grad for p in module.parameters()])  # fmt: skip
        bad = differences(*results, slack=100) + differences(*grads, slack=100)
        bad += differences(theirs.state_dict(), mine.state_dict(), slack=100)
        assert not bad, f"training={mode}: {'; '.join(bad)}"


def test_the_table_holds_every_module() -> None:
    """All of PyTorch's modules, but for containers, bases and what has tests of its own."""
    elsewhere = set(
        names(
            "Module Container Sequential ModuleList ModuleDict ParameterList ParameterDict RNNBase "
            "RNNCellBase DataParallel SyncBatchNorm MaxUnpool1d MaxUnpool2d MaxUnpool3d BCELoss "
            "CTCLoss FractionalMaxPool2d FractionalMaxPool3d NLLLoss2d CrossMapLRN2d "
            "TransformerEncoder TransformerDecoder"
        )
    )
    theirs = {
        n for n, c in vars(torch.nn).items()
        if isinstance(c, type) and issubclass(c, torch.nn.Module)
    }  # fmt: skip
    assert theirs - elsewhere == {label.partition("/")[0] for label in MODULES}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_cross_map_lrn(size: int) -> None:
    """The result alone: PyTorch's gradient is not that of its result."""
    want, got = (m.nn.CrossMapLRN2d(size, 0.5)(inputs(m, (C,))[0]).detach() for m in (torch, tt))
    assert not differences(want, got)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling(n: int) -> None:
    """MaxUnpool puts maxima back where MaxPool found them."""
    made = []
    for m in (torch, tt):
        x = inputs(m, ({1: L, 2: C, 3: V}[n],))[0]
        pool = getattr(m.nn, f"MaxPool{n}d")(2, return_indices=True)
        unpool = getattr(m.nn, f"MaxUnpool{n}d")(2)
        values, places = pool(x)
        y = unpool(values, places, output_size=x.shape)
        y.sum().backward()
        made.append((y, places, x.grad, repr(pool), repr(unpool)))
    assert not differences(*made)


@pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"])
def test_dropout_drops_and_scales(name: str) -> None:
    tt.manual_seed(0)
    layer = getattr(tt.nn, name)(0.25)
    shape = {"Dropout": (200, 200), "Dropout1d": (100, 50, 4)}.get(
        name, (100, 50, 2, 2) if name == "Dropout2d" else (100, 50, 2, 2, 2)
    )
    y = layer(tt.ones(shape))
    assert set(y.unique().tolist()) == {0.0, tt.tensor(1 / 0.75).item()}
    assert abs((y == 0).double().mean().item() - 0.25) < 0.03
    if name != "Dropout":
        channels = y.flatten(2)
        assert bool((channels == channels[..., :1]).all())
    assert layer.eval()(y) is y or bool((layer(y) == y).all())
