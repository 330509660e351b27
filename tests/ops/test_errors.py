"""Wrong calls: the class of the error is PyTorch's, and it names the same sizes and dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ops.records import IDS, PAIRS, TESTED, has_inplace, report
from tests.ops.samples.base import Sample, supported
from tests.oracle import ORACLE, Side, attempt, error_difference, subject, torch, tt

# (call, words that PyTorch's text holds and ours must hold too)
CALLS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "add shapes": (lambda m: m.ones(2, 3) + m.ones(4), ("3", "4", "dimension 1")),
    "mul shapes": (lambda m: m.ones(2, 3) * m.ones(3, 3),
        ("size of tensor a (2)", "tensor b (3)", "dimension 0")),
    "where shapes": (lambda m: m.where(m.ones(3) > 0, m.ones(2), m.ones(3)), ("2", "3")),
    "add a string": (lambda m: m.ones(2) + "a", ()),
    "add None": (lambda m: m.add(m.ones(2), None), ()),
    "add nothing": (lambda m: m.add(), ()),
    "add surplus": (lambda m: m.add(m.ones(2), m.ones(2), 3, 4), ()),
    "add unknown keyword": (lambda m: m.add(m.ones(2), m.ones(2), beta=3), ()),
    "add float alpha to ints": (lambda m: m.add(m.tensor([1]), m.tensor([1]), alpha=1.5),
        ("alpha",)),
    "subtract booleans": (lambda m: m.tensor([True]) - m.tensor([True]), ("bool",)),
    "negate a boolean": (lambda m: -m.tensor([True]), ("bool",)),
    "integer power negative": (lambda m: m.tensor([2]) ** -1, ("negative integer powers",)),
    "integer division by zero": (lambda m: m.tensor([2]) // m.tensor([0]), ("ZeroDivisionError",)),
    "bitwise float": (lambda m: m.ones(2) & m.ones(2), ("Float",)),
    "bitwise_not float": (lambda m: ~m.ones(2), ()),
    "rounding mode": (lambda m: m.div(m.ones(2), 2, rounding_mode="up"), ("trunc", "floor", "up")),
    "complex comparison": (lambda m: m.tensor([1j]) < m.tensor([1j]), ("ComplexFloat",)),
    "complex maximum": (lambda m: m.maximum(m.tensor([1j]), m.tensor([1j])), ()),
    "clamp without limits": (lambda m: m.clamp(m.ones(2)), ("min", "max")),
    "lerp dtypes": (lambda m: m.lerp(m.ones(2), m.ones(2, dtype=m.float64), 0.5), ("dtype",)),
    "sum dim": (lambda m: m.ones(2, 3).sum(2), ("[-2, 1]", "2")),
    "sum dim negative": (lambda m: m.ones(2, 3).sum(-3), ("[-2, 1]", "-3")),
    "sum dim of a 0-d tensor": (lambda m: m.tensor(1.0).sum(1), ("[-1, 0]", "1")),
    "sum dim twice": (lambda m: m.ones(2, 3).sum((0, 0)), ("0", "multiple times")),
    "softmax dim": (lambda m: m.ones(2, 3).softmax(2), ("[-2, 1]", "2")),
    "cumsum dim": (lambda m: m.ones(2).cumsum(1), ("[-1, 0]", "1")),
    "mean of integers": (lambda m: m.tensor([1, 2]).mean(), ("Long",)),
    "max of nothing": (lambda m: m.ones(0).max(), ()),
    "max over an empty dim": (lambda m: m.ones(0, 3).max(0), ("0",)),
    "argmax of nothing": (lambda m: m.ones(0).argmax(), ("argmax",)),
    "amax of nothing": (lambda m: m.ones(0).amax(), ()),
    "var of integers": (lambda m: m.tensor([1, 2]).var(), ()),
    "norm of integers": (lambda m: m.tensor([1, 2]).norm(), ()),
    "item of two": (lambda m: m.ones(2).item(), ("2 elements", "Scalar")),
    "bool of two": (lambda m: bool(m.ones(2)),
        ("Boolean value", "more than one value", "ambiguous")),
    "bool of none": (lambda m: bool(m.ones(0)), ()),
    "float of two": (lambda m: float(m.ones(2)), ()),
    "int of none": (lambda m: int(m.ones(0)), ()),
    "index of a float": (lambda m: [1, 2][m.tensor(1.0)], ()),
    "len of a 0-d tensor": (lambda m: len(m.tensor(1.0)), ("len() of a 0-d tensor",)),
    "iterate a 0-d tensor": (lambda m: list(m.tensor(1.0)), ("iteration over a 0-d tensor",)),
    "view size": (lambda m: m.ones(2, 3).view(4), ("[4]", "6")),
    "view strides": (lambda m: m.ones(2, 3).t().view(6),
        ("view size is not compatible", ".reshape(")),
    "view two unknown": (lambda m: m.ones(2, 3).view(-1, -1), ("one dimension can be inferred",)),
    "view negative": (lambda m: m.ones(2, 3).view(-2, -3), ("-2",)),
    "reshape size": (lambda m: m.ones(2, 3).reshape(5), ("[5]", "6")),
    "reshape indivisible": (lambda m: m.ones(2, 3).reshape(4, -1), ("[4, -1]", "6")),
    "reshape ambiguous": (lambda m: m.ones(0, 3).reshape(0, -1), ("-1", "[0, -1]")),
    "permute few": (lambda m: m.ones(2, 3).permute(0), ("1", "2")),
    "permute twice": (lambda m: m.ones(2, 3).permute(0, 0), ("duplicate",)),
    "permute range": (lambda m: m.ones(2, 3).permute(0, 2), ("[-2, 1]", "2")),
    "transpose range": (lambda m: m.ones(2, 3).transpose(0, 2), ("[-2, 1]", "2")),
    "t of 3-d": (lambda m: m.ones(2, 3, 4).t(), ("3D",)),
    "squeeze range": (lambda m: m.ones(2, 1).squeeze(3), ("[-2, 1]", "3")),
    "unsqueeze range": (lambda m: m.ones(2, 3).unsqueeze(4), ("[-3, 2]", "4")),
    "expand size": (lambda m: m.ones(2, 3).expand(4, 3),
        ("(4)", "(2)", "dimension 0", "[4, 3]", "[2, 3]")),
    "expand few": (lambda m: m.ones(2, 3).expand(3), ("1", "2")),
    "expand leading -1": (lambda m: m.ones(3).expand(-1, 3), ("-1", "leading")),
    "flatten order": (lambda m: m.ones(2, 3).flatten(1, 0), ("start_dim", "end_dim")),
    "unflatten size": (lambda m: m.ones(6).unflatten(0, (4, 2)), ("[4, 2]", "6")),
    "narrow length": (lambda m: m.ones(3).narrow(0, 1, 3), ("1", "3")),
    "narrow start": (lambda m: m.ones(3).narrow(0, 4, 1), ("[-3, 3]", "4")),
    "select index": (lambda m: m.ones(2, 3).select(1, 3), ("3", "1")),
    "unfold size": (lambda m: m.ones(3).unfold(0, 4, 1), ("4", "3")),
    "split sizes": (lambda m: m.ones(5).split([2, 2]), ("5", "[2, 2]")),
    "split negative": (lambda m: m.ones(5).split(-1), ("-1",)),
    "chunk none": (lambda m: m.ones(5).chunk(0), ("chunk", "0")),
    "diagonal same dims": (lambda m: m.ones(2, 2).diagonal(0, 1, 1), ("1",)),
    "as_strided outside": (lambda m: m.ones(3).as_strided((4,), (1,)), ("[4]", "[1]", "12")),
    "as_strided lengths": (lambda m: m.ones(3).as_strided((2,), (1, 1)), ()),
    "movedim lengths": (lambda m: m.ones(2, 3).movedim((0, 1), (0,)), ()),
    "imag of reals": (lambda m: m.ones(2).imag, ()),
    "cat shapes": (lambda m: m.cat([m.ones(2, 3), m.ones(2, 4)]), ("3", "4", "dimension 0")),
    "cat dims": (lambda m: m.cat([m.ones(2, 3), m.ones(2)]), ("2", "1")),
    "cat nothing": (lambda m: m.cat([]), ("non-empty",)),
    "cat a tensor": (lambda m: m.cat(m.ones(2)), ()),
    "cat 0-d": (lambda m: m.cat([m.tensor(1.0), m.tensor(2.0)]), ("zero-dimensional",)),
    "cat range": (lambda m: m.cat([m.ones(2)], 1), ("[-1, 0]", "1")),
    "stack shapes": (lambda m: m.stack([m.ones(2), m.ones(3)]), ("[2]", "[3]", "entry 1")),
    "stack nothing": (lambda m: m.stack([]), ("non-empty",)),
    "repeat few": (lambda m: m.ones(2, 3).repeat(2), ()),
    "flip twice": (lambda m: m.ones(2, 3).flip((0, 0)), ("0",)),
    "roll lengths": (lambda m: m.ones(2, 3).roll((1, 2), 0), ()),
    "tril of a vector": (lambda m: m.ones(3).tril(), ()),
    "diag of 3-d": (lambda m: m.ones(2, 2, 2).diag(), ()),
    "matmul sizes": (lambda m: m.ones(2, 3) @ m.ones(4, 5), ("2x3", "4x5")),
    "matmul 0-d": (lambda m: m.matmul(m.tensor(1.0), m.ones(2)), ("1D",)),
    "matmul dtypes": (lambda m: m.ones(2, 3) @ m.ones(3, 2, dtype=m.float64), ("float", "double")),
    "matmul batch": (lambda m: m.ones(2, 3, 4) @ m.ones(5, 4, 3), ("2", "5")),
    "mm of vectors": (lambda m: m.mm(m.ones(3), m.ones(3, 2)), ("matrix",)),
    "mv sizes": (lambda m: m.mv(m.ones(2, 3), m.ones(4)), ("2", "3", "4")),
    "dot sizes": (lambda m: m.dot(m.ones(2), m.ones(3)), ("2", "3")),
    "dot dims": (lambda m: m.dot(m.ones(2, 2), m.ones(2)), ("1D",)),
    "bmm batch": (lambda m: m.bmm(m.ones(2, 3, 4), m.ones(3, 4, 5)), ("2",)),
    "bmm dims": (lambda m: m.bmm(m.ones(3, 4), m.ones(3, 4, 5)), ("3D",)),
    "addmm sizes": (lambda m: m.addmm(m.ones(3), m.ones(2, 3), m.ones(4, 5)), ("2x3", "4x5")),
    "linear sizes": (lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 5)), ("2x3", "5x4")),
    "einsum sizes": (lambda m: m.einsum("ij,jk", m.ones(2, 3), m.ones(4, 5)), ("3", "4")),
    "einsum operands": (lambda m: m.einsum("ij,jk", m.ones(2, 3)), ()),
    "einsum dims": (lambda m: m.einsum("ijk", m.ones(2, 3)), ("2", "3")),
    "outer dims": (lambda m: m.outer(m.ones(2, 2), m.ones(2)), ("1-D", "2-D")),
    "gather dims": (lambda m: m.ones(2, 3).gather(0, m.tensor([0])), ()),
    "gather dtype": (lambda m: m.ones(2).gather(0, m.tensor([0.0])), ("int64",)),
    "gather outside": (lambda m: m.ones(2).gather(0, m.tensor([2])), ("2", "0")),
    "scatter outside": (lambda m: m.ones(2).scatter(0, m.tensor([3]), 1.0), ("3", "0", "2")),
    "scatter dtypes": (lambda m: m.ones(2).scatter(0, m.tensor([0]), m.ones(1, dtype=m.float64)),
        ("dtype",)),
    "index_select outside": (lambda m: m.ones(2).index_select(0, m.tensor([2])), ()),
    "index_select dtype": (lambda m: m.ones(2).index_select(0, m.tensor([0.5])), ()),
    "index_select dims": (lambda m: m.ones(2).index_select(0, m.tensor([[0]])), ()),
    "index_add dtype": (lambda m: m.ones(2).index_add(0, m.tensor([0]), m.tensor([1])), ()),
    "masked_fill dtype": (lambda m: m.ones(2).masked_fill(m.tensor([1, 0]), 0), ()),
    "masked_select dtype": (lambda m: m.ones(2).masked_select(m.tensor([1, 0])), ()),
    "take outside": (lambda m: m.ones(2).take(m.tensor([5])), ("5", "2")),
    "topk large": (lambda m: m.ones(3).topk(4), ("k",)),
    "sort range": (lambda m: m.ones(3).sort(1), ("[-1, 0]", "1")),
    "arange step": (lambda m: m.arange(0, 5, -1), ()),
    "arange zero": (lambda m: m.arange(0, 5, 0), ()),
    "linspace steps": (lambda m: m.linspace(0, 1, -1), ("steps",)),
    "zeros negative": (lambda m: m.zeros(2, -1), ("non-negative",)),
    "ragged list": (lambda m: m.tensor([[1, 2], [3]]), ("2", "1", "dim 1")),
    "tensor of a string": (lambda m: m.tensor("abc"), ("str",)),
    "tensor of None": (lambda m: m.tensor([None]), ("NoneType",)),
    "integer requires grad": (lambda m: m.tensor([1], requires_grad=True), ("floating point",)),
    "unknown dtype": (lambda m: m.zeros(2, dtype="float"), ()),
    "unknown device": (lambda m: m.device("gpu"), ()),
    "numpy with grad": (lambda m: m.ones(2, requires_grad=True).numpy(), ("detach()",)),
    "from_numpy list": (lambda m: m.from_numpy([1]), ()),
    "multinomial negative": (lambda m: m.multinomial(m.tensor([-1.0, 2.0]), 1), ()),
    "multinomial many": (lambda m: m.multinomial(m.ones(2), 3), ()),
    "bernoulli outside": (lambda m: m.bernoulli(m.tensor([2.0])), ()),
    "normal std": (lambda m: m.normal(0.0, -1.0, (2,)), ()),
    "randint empty": (lambda m: m.randint(3, 3, (2,)), ("3",)),
    "cross_entropy batch": (
        lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0])), ("(2)", "(1)")
    ),
    "cross_entropy class": (
        lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0, 3])), ("3",)
    ),
    "one_hot float": (lambda m: m.nn.functional.one_hot(m.tensor([0.0])), ()),
    "in place broadcast": (lambda m: m.ones(3).add_(m.ones(2, 3)), ("[3]", "[2, 3]")),
    "in place cast": (lambda m: m.tensor([1]).add_(1.5), ("Float", "Long")),
    "in place cast div": (lambda m: m.tensor([1]).div_(2), ("Float", "Long")),
    "in place on a leaf": (lambda m: m.ones(2, requires_grad=True).add_(1), ("leaf", "in-place")),
    "in place on a view of a leaf": (
        lambda m: m.ones(2, requires_grad=True)[0].add_(1), ("leaf", "in-place")
    ),
    "in place on expanded": (lambda m: m.ones(1).expand(3).add_(1), ("single memory location",)),
    "out dtype": (lambda m: m.add(m.ones(2), 1, out=m.ones(2, dtype=m.int64)), ("Float", "Long")),
    "out with grad": (
        lambda m: m.add(m.ones(2, requires_grad=True), 1, out=m.ones(2)), ("out=",)
    ),
    "type of a shape": (lambda m: m.ones("2"), ()),
    "no such attribute": (lambda m: m.ones(2).nothing, ("nothing",)),
    "copy_ shapes": (lambda m: m.ones(3).copy_(m.ones(2)), ("3", "2")),
}  # fmt: skip


@pytest.mark.parametrize("label", CALLS)
def test_wrong_call(label: str) -> None:
    call, words = CALLS[label]
    want, got = attempt(call, torch)[1], attempt(call, tt)[1]
    assert want is not None, "PyTorch accepts this call: the table is wrong"
    bad = error_difference(want, got, text=bool(words))
    assert not bad, bad
    for word in words:
        assert word in str(want), f"PyTorch does not say {word!r} but: {want}"
        assert word in str(got), f"does not say {word!r} but: {got}"


def spoiled(sample: Sample) -> list[tuple[str, Sample]]:
    """Ways to make a good call wrong; PyTorch decides which of them it refuses."""
    args, kwargs, out = sample.args, sample.kwargs, []
    first = args[0] if args else None
    out.append(("an unknown keyword", Sample(args, {**kwargs, "no_such_keyword": 1})))
    out.append(("no arguments", Sample(())))
    if isinstance(first, torch.Tensor):
        for i, a in enumerate(args[1:], 1):
            if isinstance(a, torch.Tensor):
                wrong = torch.ones((7, 11), dtype=a.dtype)
                out.append(
                    (
                        f"argument {i} of shape [7, 11]",
                        Sample((*args[:i], wrong, *args[i + 1 :]), kwargs),
                    )
                )
            elif type(a) is int:
                out.append((f"argument {i} is 97", Sample((*args[:i], 97, *args[i + 1 :]), kwargs)))
        if "dim" in kwargs:
            out.append(("dim=97", Sample(args, {**kwargs, "dim": 97})))
            out.append(("dim='x'", Sample(args, {**kwargs, "dim": "x"})))
    return out


def not_tensors(sample: Sample) -> list[tuple[str, Sample]]:
    """Calls with something else where the first tensor belongs."""
    wrong = {"a string": "no", "None": None, "a dict": {}, "a list": [1.0]}
    return [
        (f"{what} for a tensor", Sample((w, *sample.args[1:]), sample.kwargs))
        for what, w in wrong.items()
    ]


def is_function(name: str) -> bool:
    """Whether PyTorch has the op as a function that looks at its arguments itself."""
    entry = TESTED[name]
    plain = entry.call is None and name != "split"  # which calls the string's own split
    return plain and entry.function(ORACLE) is not getattr(torch.Tensor, name, None)


FUNCTIONS = [(p, i) for p, i in zip(PAIRS, IDS, strict=True) if is_function(p[0])]


@pytest.mark.parametrize(
    ("name", "device"), [p for p, _ in FUNCTIONS], ids=[i for _, i in FUNCTIONS]
)
def test_not_a_tensor(name: str, device: str) -> None:
    """What is no tensor is refused as such, by a TypeError, not for an attribute that it lacks."""
    refuse(
        name, device, not_tensors, samples=lambda s: s.args and isinstance(s.args[0], torch.Tensor)
    )


@pytest.mark.parametrize(("name", "device"), PAIRS, ids=IDS)
def test_spoiled_calls(name: str, device: str) -> None:
    """Each op's good calls, made wrong: what PyTorch refuses is refused with its class of error.

    Sizes and dimensions must be named too where broadcasting fails or a dimension is out of range.
    """
    if not name.startswith(
        "__"
    ):  # dunders answer NotImplemented, which operators turn into TypeError
        refuse(name, device, spoiled)


def refuse(name: str, device: str, spoil: Any, samples: Any = lambda s: True) -> None:
    """Compare the errors of calls made wrong in each way that PyTorch refuses, once a way."""
    entry, side, failures, tried = TESTED[name], subject(device), [], 0
    seen: set[str] = set()
    for sample in filter(samples, supported(entry)[::5]):
        for label, wrong in spoil(sample):
            if label in seen or not _big(sample):
                continue
            want = attempt(_call, ORACLE, entry.function(ORACLE), wrong)[1]
            if label == "no arguments" and not isinstance(want, TypeError):
                continue
            if want is None or "Overload resolution" in str(want) or "INTERNAL ASSERT" in str(want):
                continue
            seen.add(label)
            tried += 1
            got = attempt(_call, side, entry.function(side), wrong)[1]
            named = "Dimension out of range" in str(want) or "must match the size of tensor" in str(
                want
            )
            if "of shape" in label and isinstance(want, IndexError) and type(got) is RuntimeError:
                got = want  # a part of PyTorch's op stumbled on a dimension; the shape is wrong
            bad = error_difference(want, got, text=named)
            failures += [f"{label}: {bad}"] if bad else []
    report(failures, tried)


def _big(sample: Sample) -> bool:
    return all(x.numel() for x in ORACLE.tensors([sample.args, sample.kwargs]))


def _call(side: Side, f: Any, sample: Sample) -> Any:
    args, kwargs = side.carry((sample.args, sample.kwargs))
    return f(*args, **kwargs)


INPLACE = [name for name in TESTED if has_inplace(name)]


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_refusals(name: str) -> None:
    """A leaf that requires grad, a smaller target, a shared one: refused by each in-place op."""
    failures, tried = [], 0
    for sample in supported(TESTED[name])[:40:4]:
        if not isinstance(sample.args[0], torch.Tensor):
            continue
        for label, spoil in SPOILERS.items():
            want = attempt(_spoiled_inplace, ORACLE, name, sample, spoil)[1]
            got = attempt(_spoiled_inplace, subject("cpu"), name, sample, spoil)[1]
            if want is None:
                continue
            tried += 1
            # Where two things are wrong at once, either may be named.
            named = label == "a smaller target" and "broadcast shape" in str(want)
            bad = error_difference(want, got, text=named)
            failures += [f"{label} {sample}: {bad}"] if bad else []
    report(failures, tried)


def _leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_(True)


def _row(x: Any) -> Any:
    return x.detach()[:1].clone() if x.ndim and len(x) > 1 else x


def _frozen(x: Any) -> Any:
    return x.detach()[:1].clone().expand(x.shape) if x.ndim and len(x) > 1 else x


SPOILERS: dict[str, Callable[[Any], Any]] = {
    "a leaf that requires grad": _leaf, "a smaller target": _row, "an expanded target": _frozen,
}  # fmt: skip


def _spoiled_inplace(side: Side, name: str, sample: Sample, spoil: Callable[[Any], Any]) -> Any:
    (x, *rest), kwargs = side.carry((sample.args, sample.kwargs))
    return getattr(spoil(x), name + "_")(*rest, **kwargs)
