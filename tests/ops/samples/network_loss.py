"""Samples of normalisation, losses and distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import S, Sample, V, const, entry, f16, f32, i64, t

REDUCTIONS = ("mean", "sum", "none")


def _batch_norm() -> Iterator[Sample]:
    for shape in ((3, 4), (3, 4, 2), (2, 4, 3, 10)):
        for training in (True, False):
            stats = (t((4,)), t((4,), low=0.5))
            yield Sample((t(shape), *stats, t((4,)), t((4,)), training), {"eps": 0.1})
            yield Sample((t(shape), *stats), {"training": training, "momentum": 0.3})
    yield S(t((3, 4, 2)), None, None, training=True)
    yield V(t((3, 4, 2), f16), None, None, training=True)


entry(
    "batch_norm", _batch_norm, slack=10, forms=False,
    call=lambda side: lambda x, mean, var, *rest, **more: side.root.nn.functional.batch_norm(
        x, *(None if v is None else v.detach().clone() for v in (mean, var)), *rest, **more),
    covers=("_norm_backward",),
)  # fmt: skip
entry(
    "native_batch_norm",
    lambda: iter([
        V(t((3, 4, 2)), t((4,)), t((4,)), None, None, True, 0.1, 1e-5),
        V(t((3, 4, 2)), None, None, t((4,)), t((4,), low=0.5), False, 0.1, 1e-5),
    ]),
)  # fmt: skip


def _instance_norm() -> Iterator[Sample]:
    yield S(t((2, 3, 4)))
    yield S(t((2, 3, 4, 2)), weight=t((3,)), bias=t((3,)))
    yield S(t((2, 3, 4)), t((3,)), t((3,), low=0.5), use_input_stats=False)


entry(
    "instance_norm", _instance_norm, slack=10,
    call=lambda side: side.root.nn.functional.instance_norm,
)  # fmt: skip


def _layer_norm() -> Iterator[Sample]:
    yield S(t((3, 4)), [4])
    yield S(t((2, 3, 9)), [9], t((9,)), t((9,)))
    yield S(t((2, 3, 4)), [3, 4], t((3, 4)), None, 0.1)
    yield S(t((3, 4), layout="transposed"), [4], t((4,)))
    yield S(t((0, 4)), [4])
    yield V(t((3, 4), f16), [4])


entry("nn.functional.layer_norm", _layer_norm, slack=10)
entry(
    "native_layer_norm",
    lambda: iter([V(t((2, 3, 4)), [4], t((4,)), t((4,)), 1e-5),
                  V(t((3, 4), f32), [4], None, None, 0.1)]),
    slack=10,
)  # fmt: skip


def _group_norm() -> Iterator[Sample]:
    yield S(t((2, 4, 3)), 2)
    yield S(t((2, 6, 3, 4)), 3, t((6,)), t((6,)), 0.1)
    yield S(t((2, 4)), 2, t((4,)))


entry("group_norm", _group_norm, slack=10)
entry(
    "native_group_norm",
    lambda: iter([S(t((2, 4, 3)), t((4,)), t((4,)), 2, 4, 3, 2, 1e-5),
                  S(t((2, 4, 3)), None, None, 2, 4, 3, 2, 0.1)]),
    slack=10,
)  # fmt: skip


def _rms_norm() -> Iterator[Sample]:
    yield S(t((2, 3, 4)), [4])
    yield S(t((2, 3, 4)), [3, 4], t((3, 4)), 0.1)
    yield V(t((3, 4), f16), [4])


entry("rms_norm", _rms_norm, slack=10, covers=("_fused_rms_norm",))


def _local_response_norm() -> Iterator[Sample]:
    for shape in ((2, 5, 3), (2, 5, 3, 2), (1, 5, 2, 2, 2)):
        yield S(t(shape), 3)
        yield S(t(shape), 2, alpha=0.5, beta=0.5, k=2.0)


entry("local_response_norm", _local_response_norm, slack=3)


def _normalize() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((2, 3, 4)), p=1, dim=2)
    yield S(t((2, 3, 4)), p=3.0, dim=-1)


entry("nn.functional.normalize", _normalize, slack=3)

# -- losses ---------------------------------------------------------------------------------------


def pair(low: float = -2, high: float = 2, **more: tuple[Any, ...]) -> Any:
    """Samples (input, target) with each reduction and each value of the other arguments."""

    def values(layout: str = "contiguous") -> Any:
        return t((3, 4), low=low, high=high, layout=layout)

    def draw() -> Iterator[Sample]:
        for reduction in REDUCTIONS:
            yield S(values(), values(), reduction=reduction)
        yield S(values("transposed"), values("strided"))
        yield V(t((3, 4), f16, low, high), t((3, 4), f16, low, high))
        for name, choices in more.items():
            for v in choices:
                yield Sample((values(), values()), {name: v})

    return draw


entry("nn.functional.l1_loss", pair())
entry("nn.functional.smooth_l1_loss", pair(beta=(0.5, 0)))
entry("nn.functional.huber_loss", pair(delta=(0.5, 3.0)))
entry("nn.functional.kl_div", pair(0.1, 1, log_target=(True,), reduction=("batchmean",)),
      call=lambda side: side.root.nn.functional.kl_div)  # fmt: skip
entry("nn.functional.poisson_nll_loss", pair(0.1, 3, log_input=(False,), full=(True,)))


def _bce(low: float, high: float, *, logits: bool) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        x, y = t((3, 4), low=low, high=high), t((3, 4), low=0, high=1)
        yield S(x, y, reduction=reduction)
        yield S(x, y, t((4,), low=0, high=1).requires_grad_(False).detach(), reduction=reduction)
    if logits:
        yield V(t((3, 4)), t((3, 4), low=0, high=1), pos_weight=t((4,), low=0, high=3))
    yield V(t((3, 4), f32, low, high), t((3, 4), f32, 0, 1))


entry("nn.functional.binary_cross_entropy", lambda: _plain(_bce(0.1, 0.9, logits=False)))
entry(
    "nn.functional.binary_cross_entropy_with_logits", lambda: _plain(_bce(-2, 2, logits=True)),
    call=lambda side: side.root.nn.functional.binary_cross_entropy_with_logits,
)  # fmt: skip


def _plain(samples: Iterator[Sample]) -> Iterator[Sample]:
    """The samples; PyTorch has no gradient of weights, so those with weights are of values."""
    for s in samples:
        yield s if len(s.args) == 2 else Sample(s.args, s.kwargs, grad=False)


def _gaussian() -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield S(t((3, 4)), t((3, 4)), t((3, 4), low=0.1), reduction=reduction)
    yield S(t((3, 4)), t((3, 4)), t((3, 1), low=0.1), full=True)
    yield V(t((3, 4)), t((3, 4)), 0.5)


entry("gaussian_nll_loss", _gaussian)


def _signs(*shape: int) -> Any:
    return (t(shape) > 0) * 2 - 1


def _with_signs(inputs: int) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        signs = _signs(3) if inputs == 2 else _signs(3, 4)
        shape = (3,) if inputs == 2 else (3, 4)
        yield S(*(t(shape) for _ in range(inputs)), signs, reduction=reduction)


def _functional(name: str) -> Any:
    return lambda side: getattr(side.root.nn.functional, name)


def _soft_margin() -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield S(t((3, 4)), _signs(3, 4), reduction=reduction)


entry("soft_margin_loss", _soft_margin)
for _name, _inputs in (("hinge_embedding_loss", 1), ("margin_ranking_loss", 2)):
    entry(_name, lambda n=_inputs: _with_signs(n), call=_functional(_name))


def _cosine_embedding() -> Iterator[Sample]:
    for margin in (0, 0.5):
        yield S(t((3, 4)), t((3, 4)), _signs(3), margin=margin)
        yield S(t((4,)), t((4,)), const(1, i64), margin=margin)


entry("cosine_embedding_loss", _cosine_embedding, slack=3,
      call=_functional("cosine_embedding_loss"))  # fmt: skip


def _triplets() -> Iterator[Sample]:
    for how in ({}, {"p": 1}, {"swap": True}, {"margin": 0.3, "reduction": "none"}):
        yield Sample((t((3, 4)), t((3, 4)), t((3, 4))), how)


entry("triplet_margin_loss", _triplets, slack=3, call=_functional("triplet_margin_loss"))


def _classes(**more: tuple[Any, ...]) -> Iterator[Sample]:
    y = const([1, 0, 3], i64)
    for reduction in REDUCTIONS:
        yield S(t((3, 4)), y, reduction=reduction)
    for name, values in more.items():
        for v in values:
            yield Sample((t((3, 4)), y), {name: v})
    yield S(t((4,)), const(2, i64))


entry("multi_margin_loss", lambda: _classes(p=(2,), margin=(0.5,)))


def _labels() -> Iterator[Sample]:
    y = const([[1, 0, -1, 2], [3, 3, -1, -1], [-1, 0, 1, 2]], i64)
    for reduction in REDUCTIONS:
        yield S(t((3, 4)), y, reduction=reduction)
    yield S(t((4,)), y[0])


entry("multilabel_margin_loss", _labels)
entry("multilabel_soft_margin_loss", pair(0, 1))


def _ctc() -> Iterator[Sample]:
    logs = t((6, 2, 4)).log_softmax(2)
    y, one = const([[1, 2, 2], [3, 1, 0]], i64), const([1, 2, 2, 3, 1], i64)
    for reduction in REDUCTIONS:
        yield Sample((logs, y, const([6, 5], i64), const([3, 2], i64)), {"reduction": reduction},
                     second=False)  # fmt: skip
    yield Sample((logs, one, [6, 4], [3, 2]), {"blank": 0}, second=False)
    yield Sample((logs, y, const([2, 6], i64), const([3, 0], i64)),
                 {"zero_infinity": True, "reduction": "sum"}, second=False)  # fmt: skip


entry("ctc_loss", _ctc, slack=3, call=_functional("ctc_loss"),
      covers=("_ctc_loss", "_ctc_loss_backward"))  # fmt: skip


def _linear_cross_entropy() -> Iterator[Sample]:
    y = const([1, 0, 3], i64)
    yield S(t((3, 2)), t((4, 2)), y)
    yield S(t((3, 2)), t((4, 2)), y, linear_bias=t((4,)), reduction="sum", ignore_index=0)
    yield S(t((3, 2)), t((4, 5, 2)), (t((3, 5), low=0, high=4)).long(), label_smoothing=0.1)


entry("linear_cross_entropy", _linear_cross_entropy, slack=3)

# -- distances ------------------------------------------------------------------------------------

entry("nn.functional.cosine_similarity", lambda: iter([
    S(t((3, 4)), t((3, 4))), S(t((2, 3, 4)), t((3, 1)), dim=-1), S(t((4,)), t((4,)), dim=0)]),
    slack=3)  # fmt: skip
entry("pairwise_distance", lambda: iter([
    S(t((3, 4)), t((3, 4))), S(t((3, 4)), t((4,)), p=1),
    S(t((3, 4)), t((3, 4)), 3.0, keepdim=True)]), slack=3)  # fmt: skip
entry("pdist", lambda: iter([
    S(t((4, 3))), Sample((t((4, 3)), 1.0), second=False), S(t((4, 3)), 3.0),
    Sample((const([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),), second=False), Sample((t((4, 3)), 0.0), second=False),
    Sample((t((40, 30)),), second=False), S(t((1, 3))), V(t((0, 3), f32))]),
    slack=3, covers=("_square_of_pairs", "_share_or_zero"))  # fmt: skip
