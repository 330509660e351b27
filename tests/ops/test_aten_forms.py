"""`torch.ops.aten.…` by position, as PyTorch's schemas have it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.oracle import SELFTEST, attempt, torch, tt

# Overloads whose positional arguments ours do not take, and why. A star stands for all of an op's.
SHORTER = {
    "addmm.dtype": "a product in another type than its operands', on GPUs alone",
    "baddbmm.dtype": "a product in another type than its operands', on GPUs alone",
    "bmm.dtype": "a product in another type than its operands', on GPUs alone",
    "mm.dtype": "a product in another type than its operands', on GPUs alone",
    "is_contiguous.memory_format": "the format is taken by keyword",
    "rsub.Scalar": "alpha is taken by keyword",
    "add.Scalar": "alpha is taken as the older form add(x, alpha, other): the same product",
    "add_.Scalar": "alpha is taken as the older form add(x, alpha, other): the same product",
    "sub.Scalar": "alpha is taken as the older form sub(x, alpha, other): the same product",
    "sub_.Scalar": "alpha is taken as the older form sub(x, alpha, other): the same product",
    "subtract.Scalar": "alpha is taken by keyword",
    "subtract_.Scalar": "alpha is taken by keyword",
    "histogramdd.*": "what follows the bins is taken by keyword",
    "_to_dense.*": "the method asks for masked_grad by keyword",
    "_sparse_softmax.*": "of layouts that only kernels below torch.sparse.softmax meet",
    "_sparse_log_softmax.*": "of layouts that only kernels below torch.sparse.softmax meet",
    "_sparse_softmax_backward_data.*": "of layouts that only kernels below torch.sparse meet",
    "_sparse_log_softmax_backward_data.*": "of layouts that only kernels below torch.sparse meet",
}


def schemas() -> Iterator[tuple[str, Any, int]]:
    """Overloads of tensors that toytorch has a function for: name, function, positional arguments."""
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        first = schema.arguments[0] if schema.arguments else None
        said = str(schema)
        if space != "aten" or first is None or str(first.type) != "Tensor" or "Dimname" in said:
            continue
        if any(a.is_out for a in schema.arguments):
            continue
        packet, refused = attempt(lambda name=name: getattr(tt.ops.aten, name))
        function = None if refused else packet._function
        if inspect.isroutine(function):
            count = sum(not a.kwarg_only for a in schema.arguments)
            yield f"{name}.{schema.overload_name or 'default'}", function, count


@pytest.mark.skipif(SELFTEST, reason="about toytorch's functions")
def test_no_form_is_shorter_than_the_schema() -> None:
    shorter = set()
    for name, function, count in schemas():
        given = inspect.signature(function).parameters.values()
        ours = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in given)
        if ours < count and all(p.kind is not p.VAR_POSITIONAL for p in given):
            every = f"{name.split('.')[0]}.*"
            shorter.add(every if every in SHORTER else name)
    assert shorter == set(SHORTER)


def image(m: Any, *sizes: int) -> Any:
    """Numbers that are all different."""
    count = 1
    for size in sizes:
        count *= size
    return (m.arange(count, dtype=m.float64) * 7.3 % 5 - 2).reshape(sizes)


def places(m: Any) -> Any:
    return m.tensor([1, 0, 2])


def logs(m: Any) -> Any:
    return image(m, 3, 3).log_softmax(1)


def ctc(m: Any) -> Any:
    chances = image(m, 4, 2, 3).log_softmax(2)
    texts, steps, lengths = m.tensor([[1, 2], [2, 1]]), [4, 3], [2, 1]
    # What PyTorch's forward found: ours finds it anew.
    loss, alpha = torch.ops.aten._ctc_loss(
        torch.from_numpy(chances.numpy()), torch.tensor([[1, 2], [2, 1]]), steps, lengths
    )
    loss, alpha = m.from_numpy(loss.numpy()), m.from_numpy(alpha.numpy())
    g = image(m, 2)
    return m.ops.aten._ctc_loss_backward(g, chances, texts, steps, lengths, loss, alpha, 0, False)


def slopes(m: Any) -> Any:
    m.manual_seed(3)
    noise = m.zeros(3, 3, dtype=m.float64)
    return m.ops.aten.rrelu_with_noise(image(m, 3, 3), noise, 0.1, 0.4, True), noise


CONVOLUTION = {  # sizes of the gradient, the input and the weight; bias, …, output_mask
    "plain": ((2, 4, 3, 3), (2, 3, 5, 5), (4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "groups": ((2, 4, 3, 3), (2, 4, 7, 7), (4, 2, 3, 3), [4], [2, 2], [0, 0], [1, 1], False, [0, 0], 2),
    "dilated": ((1, 2, 3), (1, 3, 5), (2, 3, 2), [2], [1], [0], [2], False, [0], 1),
    "transposed": ((1, 2, 6), (1, 3, 3), (3, 2, 2), [2], [2], [0], [1], True, [0], 1),
    "padded": ((1, 2, 4), (1, 3, 3), (2, 3, 2), None, [1], [1], [1], False, [0], 1),
}  # fmt: skip
MASKS = [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]

FORMS: dict[str, Any] = {
    "nll_loss": lambda a, m: a.nll_loss(logs(m), places(m), None, 2, 1),
    "nll_loss, the mean": lambda a, m: a.nll_loss(logs(m), places(m)),
    "nll_loss_backward": lambda a, m: a.nll_loss_backward(
        image(m, 3), logs(m), places(m), None, 0, -100, m.zeros((), dtype=m.float64)
    ),
    "nll_loss_backward, the mean": lambda a, m: a.nll_loss_backward(
        image(m, 1)[0], logs(m), places(m), image(m, 3).abs() + 1, 1, 2,
        (image(m, 3).abs() + 1)[:2].sum(),
    ),
    "nll_loss_backward, one": lambda a, m: a.nll_loss_backward(
        image(m, 1)[0], logs(m)[0], places(m)[0], None, 1, -100, m.ones((), dtype=m.float64)
    ),
    "smooth_l1_loss": lambda a, m: a.smooth_l1_loss(image(m, 4), image(m, 8)[4:], 2, 0.5),
    "huber_loss": lambda a, m: a.huber_loss(image(m, 4), image(m, 8)[4:], 0, 0.5),
    "_ctc_loss_backward": lambda a, m: ctc(m),
    "_softmax": lambda a, m: a._softmax(image(m, 2, 3), 1, False),
    "_log_softmax": lambda a, m: a._log_softmax(image(m, 2, 3), 0, False),
    "_softmax, half to float": lambda a, m: a._softmax(image(m, 2, 3), 1, True),
    "_log_softmax_backward_data": lambda a, m: a._log_softmax_backward_data(
        image(m, 3, 3), logs(m), 1, m.float64
    ),
    "avg_pool2d_backward": lambda a, m: a.avg_pool2d_backward(
        image(m, 1, 2, 2, 2), image(m, 1, 2, 4, 4), [2, 2], [2, 2], [0, 0], False, True, None
    ),
    "_adaptive_avg_pool2d_backward": lambda a, m: a._adaptive_avg_pool2d_backward(
        image(m, 1, 2, 2, 2), image(m, 1, 2, 5, 4)
    ),
    "reflection_pad1d_backward": lambda a, m: a.reflection_pad1d_backward(
        image(m, 1, 2, 6), image(m, 1, 2, 4), [1, 1]
    ),
    "replication_pad2d_backward": lambda a, m: a.replication_pad2d_backward(
        image(m, 1, 2, 5, 4), image(m, 1, 2, 3, 3), [1, 0, 1, 1]
    ),
    "max_unpool3d": lambda a, m: a.max_unpool3d(
        image(m, 1, 1, 1, 1, 2), m.tensor([[[[[1, 6]]]]]), [2, 2, 2], [2, 2, 2], [0, 0, 0]
    ),
    "rrelu_with_noise": lambda a, m: slopes(m),
    "_unique2": lambda a, m: a._unique2(m.tensor([3, 1, 3, 2])),
    "_unique2, all": lambda a, m: a._unique2(m.tensor([3, 1, 3, 2]), True, True, True),
    "_unique2, counts": lambda a, m: a._unique2(m.tensor([3, 1, 3, 2]), True, False, True),
    "unique_dim": lambda a, m: a.unique_dim(m.tensor([[3, 1], [3, 1], [0, 2]]), 0),
    "upsample_nearest1d": lambda a, m: a.upsample_nearest1d(image(m, 1, 2, 3), [7], 2.5),
    "upsample_nearest2d, vec": lambda a, m: a.upsample_nearest2d(
        image(m, 1, 2, 3, 2), None, [2.0, 1.5]
    ),
    "upsample_nearest2d, neither": lambda a, m: a.upsample_nearest2d(
        image(m, 1, 2, 3, 2), None, None
    ),
    "upsample_bilinear2d": lambda a, m: a.upsample_bilinear2d(
        image(m, 1, 2, 3, 2), [5, 4], True, None, None
    ),
    "upsample_bilinear2d by name": lambda a, m: a.upsample_bilinear2d(
        input=image(m, 1, 2, 3, 2), output_size=None, align_corners=False, scale_factors=[2.0, 1.5]
    ),
    "_upsample_bilinear2d_aa by name": lambda a, m: a._upsample_bilinear2d_aa(
        image(m, 1, 2, 6, 4), [3, 2], align_corners=False, scales_h=0.5, scales_w=0.5
    ),
    "upsample_bilinear2d, scales": lambda a, m: a.upsample_bilinear2d(
        image(m, 1, 2, 3, 2), [5, 4], False, 1.7, 2.2
    ),
    "upsample_trilinear3d": lambda a, m: a.upsample_trilinear3d(
        image(m, 1, 1, 3, 2, 2), [4, 4, 3], False, 1.4, 2.0, 1.5
    ),
    "upsample_nearest2d_backward": lambda a, m: a.upsample_nearest2d_backward(
        image(m, 1, 2, 6, 4), [6, 4], [1, 2, 3, 2], 2.0, 2.0
    ),
    "_upsample_nearest_exact1d": lambda a, m: a._upsample_nearest_exact1d(image(m, 1, 2, 3), [7]),
    "upsample_bicubic2d_backward": lambda a, m: a.upsample_bicubic2d_backward(
        image(m, 1, 2, 6, 4), [6, 4], [1, 2, 3, 2], True, None, None
    ),
    **{
        f"convolution_backward, {name}, {''.join('-+'[asked] for asked in mask)}": (
            lambda a, m, sizes=sizes, mask=mask: a.convolution_backward(
                *(image(m, *shape) for shape in sizes[:3]), *sizes[3:], mask
            )
        )
        for name, sizes in CONVOLUTION.items()
        for mask in MASKS
    },
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    ours, theirs = (attempt(lambda m=m: FORMS[form](m.ops.aten, m)) for m in (tt, torch))
    if theirs[1] is not None:
        assert type(ours[1]) is type(theirs[1])
        assert str(ours[1]) == str(theirs[1])
        return
    assert ours[1] is None, ours[1]
    for one, other in zip(told_all(ours[0]), told_all(theirs[0]), strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            assert str(one.dtype) == str(other.dtype)
            assert tuple(one.shape) == tuple(other.shape)
            assert abs(one.numpy() - other.numpy()).sum() < 1e-12 * max(1, other.numel())


def told_all(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple) else [made]


def test_a_form_has_a_gradient() -> None:
    shares = []
    for m in (tt, torch):
        x = image(m, 1, 2, 3, 2).requires_grad_()
        m.ops.aten.upsample_bilinear2d(x, [5, 4], False, None, None).pow(2).sum().backward()
        shares.append(x.grad.numpy())
    assert abs(shares[0] - shares[1]).max() < 1e-12
