"""Every module of `nn` at a moderate size, forward and backward, against PyTorch.

    python -m tests.benchmarks.modules [-k TEXT]

One thread, interleaved, ratios of medians; what is slower than 1.5 times is listed at the end.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

BATCH = 32
IMAGE, SIGNAL, VOLUME = (BATCH, 16, 24, 24), (BATCH, 16, 128), (8, 8, 10, 10, 10)
MATRIX, SEQUENCE = (BATCH * 4, 256), (BATCH, 24, 64)
# module (and what of it): constructor's arguments, shapes of inputs ("class" and "token" are integers)
ELEMENTWISE = (
    "ReLU",
    "ReLU6",
    "ELU",
    "CELU",
    "SELU",
    "GELU",
    "SiLU",
    "Mish",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
    "Tanhshrink",
    "Hardtanh",
    "Hardsigmoid",
    "Hardswish",
    "Hardshrink",
    "Softshrink",
    "LeakyReLU",
    "LogSigmoid",
    "PReLU",
    "RReLU",
    "Dropout",
    "AlphaDropout",
    "Identity",
    "GLU",
)
CASES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    **dict.fromkeys(ELEMENTWISE, ((), (MATRIX,))),
    "Threshold": ((0.1, 0.5), (MATRIX,)),
    "Softmax": ((1,), (MATRIX,)),
    "LogSoftmax": ((1,), (MATRIX,)),
    "Softmin": ((1,), (MATRIX,)),
    "Softmax2d": ((), (IMAGE,)),
    "Linear": ((256, 128), (MATRIX,)),
    "Bilinear": ((32, 32, 16), ((128, 32), (128, 32))),
    "Flatten": ((), (IMAGE,)),
    "Unflatten": ((1, (16, 16)), (MATRIX,)),
    "Embedding": ((1000, 64), (("token", 1000, (BATCH, 24)),)),
    "EmbeddingBag": ((1000, 64), (("token", 1000, (BATCH, 24)),)),
    "Conv1d": ((16, 32, 3), (SIGNAL,)),
    "Conv2d": ((16, 32, 3), (IMAGE,)),
    "Conv3d": ((8, 8, 3), (VOLUME,)),
    "Conv1d, depthwise": ((16, 16, 7, 1, 3, 1, 16), (SIGNAL,)),
    "Conv2d, depthwise": ((16, 16, 3, 1, 1, 1, 16), (IMAGE,)),
    "Conv2d, depthwise, stride 2": ((16, 16, 3, 2, 1, 1, 16), (IMAGE,)),
    "Conv2d, groups of 4": ((32, 32, 3, 1, 1, 1, 8), ((8, 32, 14, 14),)),
    "Conv2d, 1 input": ((1, 6, 5), ((BATCH, 1, 28, 28),)),
    "Conv2d, few": ((3, 8, 3), ((1, 3, 8, 8),)),
    "ConvTranspose1d": ((16, 16, 3), (SIGNAL,)),
    "ConvTranspose2d": ((16, 16, 3), (IMAGE,)),
    "ConvTranspose3d": ((8, 8, 3), (VOLUME,)),
    "MaxPool1d": ((2,), (SIGNAL,)),
    "MaxPool2d": ((2,), (IMAGE,)),
    "MaxPool3d": ((2,), (VOLUME,)),
    "AvgPool1d": ((2,), (SIGNAL,)),
    "AvgPool2d": ((2,), (IMAGE,)),
    "AvgPool3d": ((2,), (VOLUME,)),
    "AdaptiveAvgPool1d": ((4,), (SIGNAL,)),
    "AdaptiveAvgPool2d": ((4,), (IMAGE,)),
    "AdaptiveAvgPool3d": ((2,), (VOLUME,)),
    "AdaptiveMaxPool1d": ((4,), (SIGNAL,)),
    "AdaptiveMaxPool2d": ((4,), (IMAGE,)),
    "AdaptiveMaxPool3d": ((2,), (VOLUME,)),
    "LPPool1d": ((2, 2), (SIGNAL,)),
    "LPPool2d": ((2, 2), (IMAGE,)),
    "LPPool3d": ((2, 2), (VOLUME,)),
    "FractionalMaxPool2d": ((2, 12), (IMAGE,)),
    "FractionalMaxPool3d": ((2, 5), (VOLUME,)),
    "BatchNorm1d": ((256,), (MATRIX,)),
    "BatchNorm2d": ((16,), (IMAGE,)),
    "BatchNorm3d": ((8,), (VOLUME,)),
    "InstanceNorm1d": ((16,), (SIGNAL,)),
    "InstanceNorm2d": ((16,), (IMAGE,)),
    "InstanceNorm3d": ((8,), (VOLUME,)),
    "LayerNorm": ((256,), (MATRIX,)),
    "BatchNorm1d, few": ((16,), ((8, 16),)),
    "LayerNorm, few": ((16,), ((8, 16),)),
    "GroupNorm, few": ((4, 16), ((2, 16, 4, 4),)),
    "GroupNorm": ((4, 16), (IMAGE,)),
    "RMSNorm": ((256,), (MATRIX,)),
    "LocalResponseNorm": ((5,), (IMAGE,)),
    "Dropout1d": ((), (SIGNAL,)),
    "Dropout2d": ((), (IMAGE,)),
    "Dropout3d": ((), (VOLUME,)),
    "FeatureAlphaDropout": ((), (IMAGE,)),
    "ZeroPad2d": ((1,), (IMAGE,)),
    "ReflectionPad2d": ((1,), (IMAGE,)),
    "ReplicationPad2d": ((1,), (IMAGE,)),
    "CircularPad2d": ((1,), (IMAGE,)),
    "ConstantPad2d": ((1, 0.5), (IMAGE,)),
    "ReflectionPad1d": ((1,), (SIGNAL,)),
    "ReplicationPad1d": ((1,), (SIGNAL,)),
    "ReplicationPad3d": ((1,), (VOLUME,)),
    "Upsample": ((None, 2), (IMAGE,)),
    "PixelShuffle": ((2,), (IMAGE,)),
    "PixelUnshuffle": ((2,), (IMAGE,)),
    "ChannelShuffle": ((4,), (IMAGE,)),
    "Unfold": ((3,), (IMAGE,)),
    "Fold": (((24, 24), 2, 1, 0, 2), ((BATCH, 64, 144),)),
    "RNN": ((64, 64), (SEQUENCE,)),
    "LSTM": ((64, 64), (SEQUENCE,)),
    "GRU": ((64, 64), (SEQUENCE,)),
    "LSTM, few": ((8, 8), ((10, 1, 8),)),
    "GRU, few": ((8, 8), ((10, 1, 8),)),
    "RNNCell": ((256, 64), (MATRIX,)),
    "LSTMCell": ((256, 64), (MATRIX,)),
    "GRUCell": ((256, 64), (MATRIX,)),
    "MultiheadAttention": ((64, 4), (SEQUENCE, SEQUENCE, SEQUENCE)),
    "TransformerEncoderLayer": ((64, 4, 128), (SEQUENCE,)),
    "TransformerDecoderLayer": ((64, 4, 128), (SEQUENCE, SEQUENCE)),
    "CosineSimilarity": ((), (MATRIX, MATRIX)),
    "PairwiseDistance": ((), (MATRIX, MATRIX)),
    "MSELoss": ((), (MATRIX, MATRIX)),
    "L1Loss": ((), (MATRIX, MATRIX)),
    "SmoothL1Loss": ((), (MATRIX, MATRIX)),
    "HuberLoss": ((), (MATRIX, MATRIX)),
    "BCEWithLogitsLoss": ((), (MATRIX, ("unit", MATRIX))),
    "KLDivLoss": ((), (MATRIX, ("unit", MATRIX))),
    "SoftMarginLoss": ((), (MATRIX, MATRIX)),
    "PoissonNLLLoss": ((), (MATRIX, ("unit", MATRIX))),
    "GaussianNLLLoss": ((), (MATRIX, MATRIX, ("unit", MATRIX))),
    "CrossEntropyLoss": ((), (MATRIX, ("token", 256, (128,)))),
    "NLLLoss": ((), (MATRIX, ("token", 256, (128,)))),
    "MultiMarginLoss": ((), (MATRIX, ("token", 256, (128,)))),
    "MultiLabelSoftMarginLoss": ((), (MATRIX, ("unit", MATRIX))),
    "CosineEmbeddingLoss": ((), (MATRIX, MATRIX, ("sign", (128,)))),
    "HingeEmbeddingLoss": ((), (MATRIX, ("sign", MATRIX))),
    "MarginRankingLoss": ((), ((128,), (128,), ("sign", (128,)))),
    "TripletMarginLoss": ((), (MATRIX, MATRIX, MATRIX)),
}


def given(shape: Any, rng: Any) -> Any:
    """An input as a NumPy array."""
    if shape[0] == "token":
        return rng.integers(0, shape[1], shape[2])
    if shape[0] == "unit":
        return rng.random(shape[1], np.float32) * 0.9 + 0.05
    if shape[0] == "sign":
        return np.sign(rng.standard_normal(shape[1])).astype(np.float32)
    return rng.standard_normal(shape).astype(np.float32)


def work(m: Any, name: str) -> Any:
    """Forward and backward of a module on one side."""
    args, shapes = CASES[name]
    m.manual_seed(0)
    module, rng = getattr(m.nn, name.partition(",")[0])(*args), np.random.default_rng(0)
    inputs = [m.tensor(given(s, rng)) for s in shapes]
    if inputs[0].is_floating_point():
        inputs[0].requires_grad_()

    def run() -> None:
        out = module(*inputs)
        out = out[0] if isinstance(out, tuple) else out
        if out.requires_grad:
            out.sum().backward()

    return run


def ratio(ours: Any, theirs: Any, name: str, samples: int = 15) -> tuple[float, float]:
    """Median of paired ratios, and our median time."""
    works = [work(ours, name), work(theirs, name)]

    def timed(run: Any) -> float:
        start = time.perf_counter()
        for _ in range(3):
            run()
        return (time.perf_counter() - start) / 3

    for w in works:
        timed(w)
    pairs = []
    for i in range(samples):
        order = (0, 1) if i % 2 else (1, 0)
        taken = {side: timed(works[side]) for side in order}
        pairs.append((taken[0], taken[1]))
    return (statistics.median(a / b for a, b in pairs), statistics.median(a for a, _ in pairs))


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks.modules", description=__doc__)
    p.add_argument("-k", default="", metavar="TEXT", help="only modules whose name holds this")
    options = p.parse_args()
    import torch as theirs

    import toytorch as ours

    theirs.set_num_threads(1)
    found = {}
    for name in CASES:
        if options.k in name:
            found[name], seconds = ratio(ours, theirs, name)
            print(f"{name:28}{found[name]:6.2f}  {seconds * 1e6:8.0f} µs", flush=True)
    slow = sorted((r, n) for n, r in found.items() if r > 1.5)[::-1]
    print(
        f"{len(found)} modules, median {statistics.median(found.values()):.2f}; slower than 1.5: "
        + ", ".join(f"{n} {r:.1f}" for r, n in slow)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
