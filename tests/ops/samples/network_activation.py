"""Samples of activations, dropout without chance, and attention."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples.base import (
    S,
    Sample,
    V,
    c128,
    const,
    entry,
    f16,
    f32,
    f64,
    i64,
    t,
    u8,
    unary,
)

unary("hardshrink", -5, 5)
unary("softshrink", -5, 5)
entry(
    "nn.functional.logsigmoid", lambda: iter([S(t((3, 4))), V(t((3, 4), f32, -200, 200))]),
    covers=("log_sigmoid",),
)  # fmt: skip
entry("nn.functional.hardtanh", lambda: iter([S(t((3, 4)), -0.5, 0.7), V(t((3, 4), i64), -1, 1)]))
entry("nn.functional.celu", lambda: iter([S(t((3, 4)), 0.5), V(t((3, 4), f16), 2.0)]))


def _prelu() -> Iterator[Sample]:
    for shape in ((3, 4), (2, 3, 2), (2, 3, 2, 2), (0, 3)):
        yield S(t(shape), t((1,)))
        if len(shape) > 1:
            yield S(t(shape), t((shape[1],)))
    yield S(t((3, 4), layout="transposed"), t((4,)))
    yield V(t((2, 3), f16), t((3,), f16))


entry("nn.functional.prelu", _prelu, covers=("_prelu_kernel",))


def _rrelu() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((3, 4), f64, 0.5, 2), 0.1, 0.9, True)  # slopes are drawn, and none is used
    yield S(t((3, 4)), 0.1, 0.9)
    yield V(t((3, 4), f32))


entry("rrelu", _rrelu, covers=("rrelu_with_noise", "rrelu.slopes", "rrelu_with_noise.mean"))


def _glu() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((4, 3, 2)), 0)
    yield S(t((2, 6), layout="transposed"), dim=1)
    yield V(t((3, 4), f16))


entry("nn.functional.glu", _glu)


def _softmin() -> Iterator[Sample]:
    yield S(t((3, 4)), 0)
    yield S(t((2, 3, 4)), dim=-1)
    yield V(t((3, 4), i64), dim=1, dtype=f32)


entry("nn.functional.softmin", _softmin)


def _attention() -> Iterator[Sample]:
    for batch in ((), (2,), (2, 3)):
        yield S(t((*batch, 4, 5)), t((*batch, 3, 5)), t((*batch, 3, 2)))
    q, k, v = t((2, 4, 5)), t((2, 4, 5)), t((2, 4, 5))
    yield S(q, k, v, is_causal=True)
    yield S(q, k, v, t((4, 4)), scale=0.3)
    mask = const([[True, False, True, False], [True] * 4, [False, True, True, True], [True] * 4])
    yield S(q, k, v, mask > 0)
    yield S(t((1, 4, 2, 3)), t((1, 2, 5, 3)), t((1, 2, 5, 3)), enable_gqa=True)
    yield V(q.float(), k.float(), v.float())
    q, k, v = t((2, 2, 4, 3)), t((2, 2, 5, 3)), t((2, 2, 5, 3))
    yield S(q, k, v)
    yield S(q, k, v, is_causal=True, scale=0.7)
    yield S(q, k, v, t((4, 5)).detach())


entry(
    "scaled_dot_product_attention",
    _attention,
    slack=10,
    covers=(
        "_safe_softmax",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
)


def _heads() -> Iterator[Sample]:
    e, h = 4, 2
    for q, k in ((t((3, 2, e)), t((5, 2, e))), (t((3, e)), t((5, e)))):
        rest = (e, h, t((3 * e, e)), t((3 * e,)), None, None, False, 0.0, t((e, e)), t((e,)))
        yield S(q, k, k, *rest)
        yield S(q, k, k, *rest, need_weights=False)
        yield S(q, k, k, *rest, average_attn_weights=False, attn_mask=t((3, 5)))
        yield S(q, q, q, *rest, attn_mask=t((3, 3)) > 1.5, need_weights=False, is_causal=True)
    q, k = t((3, 2, e)), t((5, 2, e))
    padding = const([[0, 0, 1, 0, 1], [0, 0, 0, 0, 1]]) > 0
    yield S(q, k, k, e, h, t((3 * e, e)), t((3 * e,)), t((1, 1, e)), t((1, 1, e)), True, 0.0,
            t((e, e)), t((e,)), key_padding_mask=padding)  # fmt: skip
    yield S(q, t((5, 2, 3)), t((5, 2, 6)), e, h, None, t((3 * e,)), None, None, False, 0.0,
            t((e, e)), t((e,)), use_separate_proj_weight=True, q_proj_weight=t((e, e)),
            k_proj_weight=t((e, 3)), v_proj_weight=t((e, 6)))  # fmt: skip


entry("multi_head_attention_forward", _heads, slack=10)


def _bilinear() -> Iterator[Sample]:
    yield S(t((2, 3)), t((2, 4)), t((5, 3, 4)))
    yield S(t((2, 2, 3)), t((2, 2, 4)), t((5, 3, 4)), t((5,)))
    yield S(t((3,)), t((4,)), t((5, 3, 4)), t((5,)))


entry("bilinear", _bilinear, slack=3)


def _embedding() -> Iterator[Sample]:
    i = const([[1, 0, 2], [2, 2, 1]], i64)
    for kwargs in ({}, {"padding_idx": 2}, {"padding_idx": -1}, {"scale_grad_by_freq": True}):
        yield Sample((i, t((4, 3))), kwargs)
    yield S(const(3, i64), t((4, 3)))
    yield S(const([], i64), t((4, 3)))
    yield V(i.int(), t((4, 3), f16))


entry(
    "nn.functional.embedding", _embedding,
    covers=("embedding_dense_backward",),
)  # fmt: skip


def _embedding_bag() -> Iterator[Sample]:
    i = const([1, 0, 2, 2, 2, 3], i64)
    for mode in ("sum", "mean", "max"):
        yield S(i, t((4, 3)), const([0, 2, 2, 5], i64), mode=mode)
        yield S(i.reshape(2, 3), t((4, 3)), mode=mode)
        yield S(i, t((4, 3)), const([0, 3, 6], i64), mode=mode, include_last_offset=True)
        yield S(i, t((4, 3)), const([0, 3], i64), mode=mode, padding_idx=2)
    yield S(i, t((4, 3)), const([0, 4], i64), mode="sum", per_sample_weights=t((6,)))
    yield S(
        i, t((4, 3)), const([0, 4], i64), mode="sum", per_sample_weights=t((6,)), padding_idx=-2
    )


entry(
    "embedding_bag", _embedding_bag, forms=False, covers=("_embedding_bag",),
    call=lambda side: side.root.nn.functional.embedding_bag,
)  # fmt: skip


def _one_hot() -> Iterator[Sample]:
    yield V(const([[0, 2], [1, 1]], i64))
    yield V(const([0, 2], i64), 5)


entry("nn.functional.one_hot", _one_hot)


def _native_dropout_backward() -> Iterator[Sample]:
    yield S(t((3, 4)), t((3, 4)) > 0, 2.0)
    yield V(t((3, 4), u8, 0, 5), t((3, 4)) > 0, 2.0)


entry(
    "native_dropout_backward", _native_dropout_backward,
    call=lambda side: lambda *args: side.root.ops.aten.native_dropout_backward.default(*args),
)  # fmt: skip


def _softmax_backward() -> Iterator[Sample]:
    yield S(t((3, 4)), t((3, 4)), 1, f64)
    yield S(t((3, 4)), t((3, 4)), 0, f64)
    yield V(t((3, 4), f32), t((3, 4), f32), 0, f32)


entry("_softmax_backward_data", _softmax_backward)


def _segment_reduce() -> Iterator[Sample]:
    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield Sample((t((5, 2)), reduce), {"lengths": const([2, 0, 3], i64), "initial": 1.0},
                     second=False)  # fmt: skip
        yield Sample((t((5,)), reduce), {"offsets": const([0, 2, 5], i64)}, second=False)
    yield Sample((t((2, 3)), "sum"), {"lengths": const([[1, 2], [3, 0]], i64), "axis": 1},
                 second=False)  # fmt: skip


entry("segment_reduce", _segment_reduce)
entry("nn.functional.silu", lambda: iter([S(t((3, 4))), S(t((3,), c128))]))
