"""A tensor prints exactly as PyTorch prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle import DTYPES, ORACLE, SUBJECT, attempt, told, torch, tt

SHAPES = [
    (), (1,), (3,), (12,), (40,), (0,), (2, 3), (3, 1), (1, 1, 4), (0, 3), (2, 0), (2, 2, 3),
    (5, 12), (1001,),
    (3000,), (40, 40), (2, 700), (8, 8, 20), (1, 2, 1, 3), (2000, 1), (30, 3, 20),
]  # fmt: skip


def values(kind: int, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """One of the patterns that choose between PyTorch's ways to print floats."""
    x = rng.normal(size=n)
    if kind == 1:  # whole numbers
        return np.round(x * 30)
    if kind == 2:  # a range that needs scientific notation
        return x * 10.0 ** rng.integers(-9, 9, n)
    if kind == 3:
        return x * 1e-6
    if kind == 4:
        return x * 1e7
    if kind == 5:  # nan and infinities among ordinary numbers
        return np.where(rng.random(n) < 0.3, rng.choice([np.nan, np.inf, -np.inf], n), x)
    if kind == 6:  # nothing finite
        return rng.choice([np.nan, np.inf, -np.inf], n)
    if kind == 7:  # zeros of both signs
        return np.where(rng.random(n) < 0.5, -0.0, np.where(rng.random(n) < 0.5, x, 0.0))
    if kind == 8:  # large whole numbers
        return np.round(x * 1e9)
    if kind == 9:  # whole numbers with a nan
        return np.where(rng.random(n) < 0.3, np.nan, np.round(x * 5))
    if kind == 10:
        return np.abs(x) * 1e-3
    return x * 10


def cases(count: int = 500) -> Iterator[tuple[int, Any, bool]]:
    """(number, tensor of PyTorch, whether it requires a gradient), dtypes and shapes in turn."""
    rng = np.random.default_rng(0)
    for i in range(count):
        name, shape = DTYPES[i % len(DTYPES)], SHAPES[int(rng.integers(len(SHAPES)))]
        n = int(np.prod(shape))
        x = values(int(rng.integers(11)), n, rng).reshape(shape)
        dtype = getattr(torch, name)
        if dtype.is_complex:
            with np.errstate(invalid="ignore"):
                x = x + 1j * values(int(rng.integers(11)), n, rng).reshape(shape)
        elif name == "bool":
            x = x > 0
        elif not dtype.is_floating_point:
            span = 100 if name in ("uint8", "int8") else 10 ** int(rng.integers(1, 5))
            x = rng.integers(0 if name == "uint8" else -span, span, shape)
        t = torch.from_numpy(np.asarray(x)).to(dtype)
        yield i, t, bool((dtype.is_floating_point or dtype.is_complex) and rng.random() < 0.2)


def test_500_random_tensors() -> None:
    wrong = []
    for i, t, grad in cases():
        mine, theirs = SUBJECT.carry(t), ORACLE.carry(t)
        if grad:
            mine.requires_grad_(True)
            theirs.requires_grad_(True)
        for form in (repr, str):
            want, (got, failure) = form(theirs), attempt(form, mine)
            if want != got:
                wrong.append(
                    f"tensor {i}, {t.dtype} {tuple(t.shape)}:\n{got or failure!r}\nPyTorch:\n{want}"
                )
                break
    assert not wrong, f"{len(wrong)} of 500 differ\n" + "\n".join(wrong[:4])


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_views(layout: str) -> None:
    from tests.ops.samples.base import t

    for dtype in (torch.float64, torch.int64, torch.complex64):
        x = t((3, 5), dtype, layout=layout)
        assert repr(SUBJECT.carry(x)) == repr(ORACLE.carry(x))


OPTIONS: list[dict[str, Any]] = [
    {"precision": 2}, {"precision": 8}, {"precision": 0}, {"threshold": 5},
    {"edgeitems": 1, "threshold": 5},
    {"linewidth": 40}, {"linewidth": 200}, {"sci_mode": True}, {"sci_mode": False},
    {"profile": "short"},
    {"profile": "full"}, {"profile": "default"},
    {"precision": 1, "sci_mode": True, "linewidth": 30},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_set_printoptions(options: dict[str, Any]) -> None:
    try:
        torch.set_printoptions(**options)
        tt.set_printoptions(**options)
        for i, t, _ in cases(120):
            if t.numel() < 1500:
                assert repr(SUBJECT.carry(t)) == repr(ORACLE.carry(t)), f"tensor {i} with {options}"
    finally:
        torch.set_printoptions(profile="default")
        tt.set_printoptions(profile="default")


GRAD_FN = {
    "add": lambda m, x: x + 1, "radd": lambda m, x: 1 + x, "sub": lambda m, x: x - 1,
    "rsub": lambda m, x: 1 - x, "mul": lambda m, x: x * x, "div": lambda m, x: x / 2,
    "rdiv": lambda m, x: 2 / x, "pow": lambda m, x: x**2, "rpow": lambda m, x: 2**x,
    "pow tensor": lambda m, x: x**x, "neg": lambda m, x: -x, "exp": lambda m, x: x.exp(),
    "log": lambda m, x: x.log(), "sqrt": lambda m, x: x.sqrt(), "sin": lambda m, x: x.sin(),
    "tanh": lambda m, x: x.tanh(), "sigmoid": lambda m, x: x.sigmoid(), "relu": lambda m,
    x: x.relu(),
    "abs": lambda m, x: x.abs(), "sum": lambda m, x: x.sum(), "sum dim": lambda m, x: x.sum(0),
    "mean": lambda m, x: x.mean(), "mean dim": lambda m, x: x.mean(0), "max": lambda m, x: x.max(),
    "max dim": lambda m, x: x.max(0).values, "amax": lambda m, x: x.amax(), "prod": lambda m,
    x: x.prod(),
    "var": lambda m, x: x.var(), "std": lambda m, x: x.std(), "norm": lambda m, x: x.norm(),
    "view": lambda m, x: x.view(-1), "reshape": lambda m, x: x.t().reshape(-1),
    "t": lambda m, x: x.t(), "T": lambda m, x: x.T, "transpose": lambda m, x: x.transpose(0, 1),
    "permute": lambda m, x: x.permute(1, 0), "squeeze": lambda m, x: x.squeeze(),
    "unsqueeze": lambda m, x: x.unsqueeze(0), "expand": lambda m, x: x.expand(2, 2, 2),
    "select": lambda m, x: x[0], "slice": lambda m, x: x[1:], "index": lambda m, x: x[[0, 1]],
    "index none": lambda m, x: x[None], "mask": lambda m, x: x[x > 0], "matmul": lambda m, x: x @ x,
    "mv": lambda m, x: x @ x[0], "dot": lambda m, x: x[0] @ x[1], "bmm": lambda m,
    x: x[None] @ x[None],
    "cat": lambda m, x: m.cat([x, x]), "stack": lambda m, x: m.stack([x, x]), "clone": lambda m,
    x: x.clone(),
    "contiguous": lambda m, x: x.t().contiguous(), "softmax": lambda m, x: x.softmax(0),
    "log_softmax": lambda m, x: x.log_softmax(0), "where": lambda m, x: m.where(x > 0, x, 0.0),
    "clamp": lambda m, x: x.clamp(0, 1), "clamp_min": lambda m, x: x.clamp(min=0),
    "maximum": lambda m, x: m.maximum(x, x), "gather": lambda m, x: x.gather(0, m.tensor([[0, 1]])),
    "to": lambda m, x: x.to(m.float64), "double": lambda m, x: x.double(), "cumsum": lambda m,
    x: x.cumsum(0),
    "masked_fill": lambda m, x: x.masked_fill(x > 0, 0.0), "flip": lambda m, x: x.flip(0),
    "unbind": lambda m, x: x.unbind(0)[0], "split": lambda m, x: x.split(1)[0],
    "chunk": lambda m, x: x.chunk(2)[1], "outer": lambda m, x: m.outer(x[0], x[1]),
    "linear": lambda m, x: m.nn.functional.linear(x, x), "linear bias": lambda m,
    x: m.nn.functional.linear(x, x, x[0]),
    "mse": lambda m, x: m.nn.functional.mse_loss(x, m.zeros(2, 2)),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.tensor([0, 1])),
    "gelu": lambda m, x: m.nn.functional.gelu(x), "tril": lambda m, x: x.tril(),
    "logsumexp": lambda m, x: x.logsumexp(0),
    "inplace add": lambda m, x: (x * 1).add_(1), "inplace mul": lambda m, x: (x * 1).mul_(2),
    "inplace on a view": lambda m, x: _written(x), "the base written": lambda m,
    x: _written(x, base=True),
    "setitem": lambda m, x: _assigned(x), "diagonal": lambda m, x: x.diagonal(),
    "repeat": lambda m, x: x.repeat(2, 2),
    "as_strided": lambda m, x: x.as_strided((2,), (1,)), "narrow": lambda m, x: x.narrow(0, 0, 1),
    "sort": lambda m, x: x.sort().values, "topk": lambda m, x: x.topk(1).values, "roll": lambda m,
    x: x.roll(1),
    "lerp": lambda m, x: m.lerp(x, x, 0.5), "addmm": lambda m, x: m.addmm(x, x, x),
    "erf": lambda m, x: x.erf(),
    "flatten": lambda m, x: x.flatten(), "movedim": lambda m, x: x.movedim(0, 1),
    "square": lambda m, x: x.square(),
    "detached": lambda m, x: x.detach(), "no grad": lambda m, x: x > 0, "masked_select": lambda m,
    x: x.masked_select(x > 0),
    "median": lambda m, x: x.median(), "atan2": lambda m, x: m.atan2(x, x), "floor": lambda m,
    x: x.floor(),
    "index_put": lambda m, x: x.index_put((m.tensor([0]),), m.tensor(1.0)), "fill_": lambda m,
    x: (x * 1).fill_(0),
    "zero_": lambda m, x: (x * 1).zero_(), "copy_": lambda m, x: m.zeros(2, 2).copy_(x),
}  # fmt: skip


def _written(x: Any, base: bool = False) -> Any:
    y = x * 1
    v = y[0]
    v.mul_(2)
    return y if base else v


def _assigned(x: Any) -> Any:
    y = x * 1
    y[0, 1] = 5.0
    return y


@pytest.mark.parametrize("label", GRAD_FN)
def test_grad_fn_is_named_as_in_pytorch(label: str) -> None:
    f, rows = GRAD_FN[label], [[0.5, 1.5], [2.5, 3.25]]
    want = f(torch, torch.tensor(rows, requires_grad=True))
    got = f(tt, tt.tensor(rows, requires_grad=True))
    assert repr(got) == repr(want)
    if want.grad_fn is not None:
        assert got.grad_fn.name().split("::")[-1] == want.grad_fn.name().split("::")[-1]


EXAMPLES = {
    "default dtype": lambda m: m.tensor([1.5, 2]),
    "not the default dtype": lambda m: m.tensor([1.5, 2], dtype=m.float64),
    "leaf": lambda m: m.tensor([1.5], requires_grad=True),
    "parameter": lambda m: m.nn.Parameter(m.tensor([1.5, -2.0])),
    "empty": lambda m: m.tensor([]),
    "empty with a shape": lambda m: m.zeros(0, 3),
    "empty integers": lambda m: m.zeros(2, 0, dtype=m.int64),
    "empty with grad": lambda m: m.zeros(0, requires_grad=True),
    "size": lambda m: m.zeros(2, 3).shape,
    "size of a 0-d tensor": lambda m: m.tensor(1.0).size(),
    "max": lambda m: m.tensor([[1.0, 3.0], [4.0, 2.0]]).max(1),
    "sort": lambda m: m.tensor([3, 1, 2]).sort(),
    "topk": lambda m: m.tensor([3.0, 1.0, 2.0]).topk(2),
    "list of tensors": lambda m: [m.tensor([1.0]), m.tensor(2)],
    "bool": lambda m: m.tensor([[True, False]]),
    "long rows": lambda m: m.arange(60),
    "0-d": lambda m: m.tensor(3.14159265),
    "0-d format": lambda m: f"{m.tensor(3.14159265):.2f} {m.tensor(7):d} {m.tensor(True)}",
    "scientific 0-d": lambda m: m.tensor(1.5e-9),
    "device": lambda m: m.device("cpu"),
    "device with index": lambda m: m.device("cuda", 1),
    "device text": lambda m: str(m.device("cuda:0")),
    "strided": lambda m: m.strided,
    "finfo": lambda m: (m.finfo(m.float32).eps, m.finfo(m.float16).max, m.iinfo(m.int8).min),
}


@pytest.mark.parametrize("label", EXAMPLES)
def test_examples(label: str) -> None:
    f = EXAMPLES[label]
    assert repr(f(tt)).replace("toytorch", "torch") == repr(f(torch))


def test_printing_leaves_the_tensor_alone() -> None:
    x = tt.ones(3, requires_grad=True)
    y = x * 2
    repr(y)
    assert y._version == 0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["finfo", "iinfo"])
@pytest.mark.parametrize(
    "text",
    [
        "m.ones(1)",
        "m.ones(1).char()",
        "1",
        "'float32'",
        "None",
        "float",
        "int",
        "bool",
        "complex",
        "[]",
    ],
)
def test_limits_are_asked_of_types(name: str, text: str) -> None:
    """Libraries try `finfo(x)`, and take x's type where that raises TypeError."""
    theirs, ours = (
        attempt(lambda m=m: repr(getattr(m, name)(eval(text, {"m": m})))) for m in (torch, tt)
    )
    assert (ours[0], told(ours[1])) == (theirs[0], told(theirs[1]))
