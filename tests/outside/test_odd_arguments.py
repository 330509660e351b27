"""One argument of a call has a type that its parameter does not take: whether it is refused for that.

Calls are those of PyTorch's database of operators, each by all its public names. The argument changes,
one at a time, and is drawn for each call; of three entries one is looked at. What is refused by either with
another class of error than TypeError was refused for something else.
"""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, torch, tt
from tests.outside import signatures
from tests.outside.alike import What, same_or_refused, whats
from tests.outside.forms import Form, parameters, paths, tried

ODD: tuple[Any, ...] = (None, True, 1.5, (True,), [1.5], {}, np.bool_(True), range(2), torch.bool)
PARTS = 4
# Functions of which some odd argument is taken by one side only.
LEFT = {
    "a harness carries no memory formats": "to",
    "PyTorch's Python code takes what its parser would refuse": (
        "fractional_max_pool2d linear_cross_entropy max_unpool3d"
    ),
    "an argument without a meaning in the overload that the others choose": (
        "max min median nanmedian sum prod mean var std var_mean std_mean pinv squeeze "
        "squeeze_ squeeze_copy contiguous scatter scatter_ sort trapz trapezoid cumulative_trapezoid eye"
    ),
    "asked by what it does with them": (
        "unfold where index_put index_put_ unravel_index broadcast_shapes cond l1_loss mse_loss "
        "gaussian_nll_loss adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d"
    ),
}


def odd_forms(info: Any) -> Iterator[Form]:
    """An entry's first call by each name, with one odd argument at each place."""
    dtype = torch.float32 if torch.float32 in info.dtypes else torch.int64
    torch.manual_seed(0)
    for sample in itertools.islice(info.sample_inputs("cpu", dtype), 1):
        given = (sample.input, *sample.args)
        for path in paths(info):
            if tried(ORACLE, Form(path, given, sample.kwargs)) is not None:
                continue
            names = max(parameters(path) or [()], key=len)[len(given) :]
            for place in (*range(1, len(given)), *dict.fromkeys((*sample.kwargs, *names))):
                odd = ODD[zlib.crc32(f"{path} {place}".encode()) % len(ODD)]
                if isinstance(place, int):
                    yield Form(path, (*given[:place], odd, *given[place + 1 :]), sample.kwargs)
                else:
                    yield Form(path, given, {**sample.kwargs, place: odd})


@pytest.mark.parametrize("part", range(PARTS))
def test_types_that_are_refused(part: int) -> None:
    wrong, count, left = [], 0, " ".join(LEFT.values()).split()
    for info in signatures.database()[part :: 3 * PARTS]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                some = list(odd_forms(info))
        except Exception:
            continue  # samples that need what this build of PyTorch lacks
        for form in some:
            theirs, ours = (tried(side, form) for side in (ORACLE, SUBJECT))
            count += 1
            known = form.path.rpartition(".")[2] in left
            if {type(theirs), type(ours)} == {TypeError, type(None)} and not known:
                wrong.append((str(form), form.args[1:], form.kwargs, theirs, ours))
    assert not wrong
    assert count > 50 or not signatures.database()


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.movedim(m.ones(2, 3), True, 0),
        lambda m: m.nn.functional.pad(m.ones(3), (True, True)),
        lambda m: m.nn.functional.conv2d(None, None),
        lambda m: m.nn.functional.cross_entropy(None, None),
        lambda m: m.nn.functional.dropout(None),
        lambda m: m.ones(2).long() + 2**70,
        lambda m: m.tensor([2**70, 1.5]).tolist(),
        lambda m: m.tensor([[2**70, 1.5], [True, 2]], dtype=m.float64).tolist(),
        lambda m: m.tensor([2**70, 1j, 1.5]).tolist(),
        lambda m: m.as_tensor([2**70, np.float32(1.5)], dtype=m.bfloat16).tolist(),
        lambda m: m.tensor([2**1030, 1.5]),
        lambda m: m.tensor([2**70, 1.5], dtype=m.int64),
        lambda m: m.ones(2, 2).transpose(0, 2**70),
        lambda m: m.chunk(m.ones(2), 2, 2**70),
        lambda m: m.ones(2).scatter_reduce_(0, m.tensor([0]), m.ones(2), "sum", include_self=2.0),
        lambda m: m.ones(2).round_(decimals=1.5),
        lambda m: m.ones(2).sum((True,)),
        lambda m: m.max(m.ones(2), None),
        lambda m: m.min(m.ones(2), other=None),
        lambda m: m.max(m.ones(2), keepdim=True),
        lambda m: m.ones(2).nanmedian(None),
        lambda m: m.ones(2).median(keepdim=True),
        lambda m: m.float_power(input=2.0, exponent=m.ones(2)),
        lambda m: m.linalg.matrix_rank(m.ones(2, 3).half(), atol=1.0, rtol=1.0, hermitian=True),
        lambda m: m.linalg.matrix_rank(m.ones(2, 2).half(), atol=1.0, rtol=1.0, hermitian=True),
        lambda m: m.float_power(self=2.0, exponent=m.ones(2)).tolist(),
        lambda m: m.ones(2).amax(None, True).tolist(),
        lambda m: m.ones(2).std(torch.bool),
        lambda m: m.nn.functional.max_pool1d(m.ones(1, 4), m.tensor(2), m.tensor(True)).tolist(),
        lambda m: m.addmm(m.ones(1, 1), m.ones(1, 0), m.ones(0, 1), alpha=np.inf).tolist(),
        lambda m: (
            m.nn.functional.conv_transpose1d(
                m.ones(1, 1, 3), m.full((1, 1, 2), np.nan), stride=3, output_padding=2
            )
            .isnan()
            .tolist()
        ),
        lambda m: m.pow(m.ones(2), other=2),
        lambda m: m.ones(2).pow_(other=2),
        lambda m: m.pow(m.ones(2), x2=m.ones(2)),
        lambda m: m.pow(m.ones(2), exponent=2).tolist(),
        lambda m: m.ones(2).masked_fill(m.ones(2) > 0, 2**70),
        lambda m: m.ones(2).scatter(0, m.tensor([0]), -(2**70)),
        lambda m: m.full_like(m.ones(2), 2**70),
        lambda m: m.where(m.ones(2) > 2, m.ones(2), 2**64),
        lambda m: m.index_put(m.tensor(1.0), [m.tensor(True)], m.tensor(1.0), True),
        lambda m: m.tensor(1.0).index_put_([m.tensor(False)], m.tensor(1.0)),
        lambda m: m.embedding_bag(m.tensor(1.0), m.tensor([0]), m.tensor([0])),
        lambda m: m.squeeze(m.ones(1), None),
        lambda m: m.narrow(m.ones(2), 0, m.tensor(1.0), 1),
        lambda m: m.ones(2).narrow(0, start=m.tensor([1]), length=1),
        lambda m: m.narrow(m.ones(2), 0, 1, m.tensor(1.0)),
        lambda m: m.squeeze(m.ones(1), dim=None),
        lambda m: m.linalg.pinv(m.eye(1).requires_grad_(), out=m.ones(1, 1).double()).tolist(),
        lambda m: m.linalg.pinv(m.eye(1).requires_grad_(), 0.5, out=m.ones(1, 1).double()).tolist(),
        lambda m: [
            m.fft.ifft(m.ones(2).requires_grad_(), out=m.ones(2, dtype=m.complex64)).grad_fn.name()
        ],
    ),
)
def test_calls_that_went_otherwise(what: What) -> None:
    same_or_refused(what)


WAYS = (
    "", "None", "None, True", "0", "0, True", "dim=None", "dim=0, keepdim=True", "axis=0",
    "keepdim=True", "keepdims=True", "dim=None, keepdim=True", "axis=None, keepdims=True", "(0, 1)",
    "0, dtype=m.float64", "keepdim=True, dtype=m.float64", "m.tensor(0)", "True",
)  # fmt: skip


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "squeeze", "nansum", "all", "amax"])
def test_dimensions_that_were_not_given(name: str) -> None:
    """Some functions have an overload without a dimension, which does not take what comes after one."""
    for text in WAYS:
        for call in (f"x.{name}({text})", f"m.{name}(x, {text})")[: 1 + (name != "squeeze")]:
            same_or_refused(
                lambda m, call=call: eval(call, {"m": m, "x": m.ones(1, 2)}).shape.numel()
            )


@pytest.mark.parametrize("first", ["tensor", "input", "scalar", "scalar1", "scalar2", "x1"])
@pytest.mark.parametrize("second", ["tensor", "other", "scalar", "scalar2", "x2", "tensor2"])
def test_names_of_operands_of_result_type(first: str, second: str) -> None:
    for one, two in itertools.product(("3", "2.5", "m.ones(2)", "m.tensor(1)"), repeat=2):
        for given in (f"{one}, {second}={two}", f"{first}={one}, **{{{second!r}: {two}}}"):
            text = f"str(m.result_type({given})).rpartition('.')[2]"
            same_or_refused(lambda m, text=text: eval(text, {"m": m}))


GIVEN = [
    "x",
    "None",
    "True",
    "m.float64",
    "'cpu'",
    "0",
    "1.5",
    "float",
    "m.preserve_format",
    "m.channels_last",
]
NAMED = ["", "copy=True", "dtype=m.float64", "device='cpu'", "memory_format=None", "tensor=x"]


@pytest.mark.parametrize("count", range(4))
def test_forms_of_to(count: int) -> None:
    """`to` takes a device and a type, a type, or a tensor, each before the same two truths."""
    for given in itertools.product(GIVEN, repeat=count):
        for named in NAMED[: 6 if count < 3 else 1]:
            text = f"x.to({', '.join([*given, named])})".replace(", )", ")").replace("(, ", "(")

            def told(m: Any, text: str = text) -> Any:
                x = m.arange(3.0)
                try:
                    made = eval(text, {"m": m, "x": x})
                except Exception as error:
                    return type(error).__name__
                return str(made.dtype)[-7:], made is x

            assert told(tt) == told(torch), text
