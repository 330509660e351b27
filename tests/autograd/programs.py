"""Random programs: a few tensors, and steps that read, view and overwrite them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.oracle import FLOATS, Side, attempt, dtype_name, torch

# Each op takes (module, a, b, c): three tensors of the pool. Inputs are kept tame (tanh, abs + 1),
# so that a dozen steps stay finite.
PURE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "a + b": lambda m, a, b, c: a + b,
    "a - b": lambda m, a, b, c: a - b,
    "a * b": lambda m, a, b, c: a * b,
    "a / (b * b + 1)": lambda m, a, b, c: a / (b * b + 1),
    "a + 1": lambda m, a, b, c: a + 1,
    "2 - a": lambda m, a, b, c: 2 - a,
    "a * 0.5": lambda m, a, b, c: a * 0.5,
    "1 / (a * a + 1)": lambda m, a, b, c: 1 / (a * a + 1),
    "a ** 2": lambda m, a, b, c: a**2,
    "(|a| + 1) ** tanh(b)": lambda m, a, b, c: (a.abs() + 1) ** b.tanh(),
    "maximum(a, b)": lambda m, a, b, c: m.maximum(a, b),
    "minimum(a, b)": lambda m, a, b, c: m.minimum(a, b),
    "where(a > 0, b, c)": lambda m, a, b, c: m.where(a > 0, b, c),
    "lerp": lambda m, a, b, c: m.lerp(a, b, 0.3),
    "addcmul": lambda m, a, b, c: m.addcmul(a, b, c, value=0.5),
    "-a": lambda m, a, b, c: -a,
    "exp(tanh(a))": lambda m, a, b, c: a.tanh().exp(),
    "sin(a)": lambda m, a, b, c: a.sin(),
    "sigmoid(a)": lambda m, a, b, c: a.sigmoid(),
    "relu(a)": lambda m, a, b, c: a.relu(),
    "|a|": lambda m, a, b, c: a.abs(),
    "log(|a| + 1)": lambda m, a, b, c: (a.abs() + 1).log(),
    "sqrt(a² + 1)": lambda m, a, b, c: (a.square() + 1).sqrt(),
    # Views that come several at a time refuse writes, late; test_inplace.py looks at that.
    "a.split(1)[0] * 1": lambda m, a, b, c: a.split(1)[0] * 1,
    "a.unbind(-1)[0] * 1": lambda m, a, b, c: a.unbind(-1)[0] * 1,
    "a.clamp(-0.5, 0.5)": lambda m, a, b, c: a.clamp(-0.5, 0.5),
    "gelu(a)": lambda m, a, b, c: m.nn.functional.gelu(a),
    "clone": lambda m, a, b, c: a.clone(),
    "detach": lambda m, a, b, c: a.detach(),
    "float": lambda m, a, b, c: a.float(),
    "double": lambda m, a, b, c: a.double(),
    "a > b": lambda m, a, b, c: a > b,
    "sum": lambda m, a, b, c: a.sum(),
    "sum(-1)": lambda m, a, b, c: a.sum(-1),
    "sum(0, keepdim)": lambda m, a, b, c: a.sum(0, keepdim=True),
    "mean": lambda m, a, b, c: a.mean(),
    "mean((0, -1))": lambda m, a, b, c: a.mean((0, -1)),
    "amax(-1)": lambda m, a, b, c: a.amax(-1),
    "max(0).values": lambda m, a, b, c: a.max(0).values,
    "prod of tanh": lambda m, a, b, c: a.tanh().prod(),
    "var": lambda m, a, b, c: a.var(correction=0),
    "logsumexp(-1)": lambda m, a, b, c: a.logsumexp(-1),
    "softmax(-1)": lambda m, a, b, c: a.softmax(-1),
    "log_softmax(0)": lambda m, a, b, c: a.log_softmax(0),
    "cumsum(-1)": lambda m, a, b, c: a.cumsum(-1),
    "norm": lambda m, a, b, c: (a.abs() + 0.1).norm(),
    "a @ b": lambda m, a, b, c: a.tanh() @ b.tanh(),
    "a @ a.T": lambda m, a, b, c: a.tanh() @ a.tanh().transpose(-1, -2),
    "outer": lambda m, a, b, c: m.outer(a.reshape(-1)[:3], b.reshape(-1)[:2]),
    "linear": lambda m, a, b, c: m.nn.functional.linear(a.tanh(), b.tanh()),
    "cat": lambda m, a, b, c: m.cat([a, b], -1),
    "stack": lambda m, a, b, c: m.stack([a, a * 2], 0),
    "a[[0, 0]]": lambda m, a, b, c: a[[0, 0]],
    "a[a > 0]": lambda m, a, b, c: a[a > 0],
    "index_select": lambda m, a, b, c: a.index_select(-1, m.tensor([0, 0])),
    "gather": lambda m, a, b, c: a.gather(-1, (a * 0).long()),
    "flip": lambda m, a, b, c: a.flip(0),
    "repeat": lambda m, a, b, c: a.repeat(2, *[1] * max(a.dim() - 1, 0)),
    "tril": lambda m, a, b, c: a.tril(),
    "masked_fill": lambda m, a, b, c: a.masked_fill(a < 0, 0.25),
    "mse_loss": lambda m, a, b, c: m.nn.functional.mse_loss(a, a.detach() * 0.5),
}
VIEWS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "a.transpose(0, -1)": lambda m, a, b, c: a.transpose(0, -1),
    "a.unsqueeze(0)": lambda m, a, b, c: a.unsqueeze(0),
    "a.squeeze()": lambda m, a, b, c: a.squeeze(),
    "a.view(-1)": lambda m, a, b, c: a.view(-1),
    "a.reshape(-1)": lambda m, a, b, c: a.reshape(-1),
    "a.view(3, -1)": lambda m, a, b, c: a.view(3, -1),
    "a[0]": lambda m, a, b, c: a[0],
    "a[-1:]": lambda m, a, b, c: a[-1:],
    "a[..., ::2]": lambda m, a, b, c: a[..., ::2],
    "a[None]": lambda m, a, b, c: a[None],
    "a.expand(2, …)": lambda m, a, b, c: a.expand(2, *a.shape),
    "a.narrow(0, 0, 1)": lambda m, a, b, c: a.narrow(0, 0, 1),
    "a.select(-1, 1)": lambda m, a, b, c: a.select(-1, 1),
    "a.diagonal()": lambda m, a, b, c: a.diagonal(),
    "a.permute(reversed)": lambda m, a, b, c: a.permute(tuple(range(a.dim() - 1, -1, -1))),
    "a.flatten()": lambda m, a, b, c: a.flatten(),
    "a.movedim(0, -1)": lambda m, a, b, c: a.movedim(0, -1),
    "a.unfold(-1, 2, 2)": lambda m, a, b, c: a.unfold(-1, 2, 2),
    "a.view_as(a)": lambda m, a, b, c: a.view_as(a),
}
INPLACE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "a.add_(b)": lambda m, a, b, c: a.add_(_apart(a, b)),
    "a.sub_(1)": lambda m, a, b, c: a.sub_(1),
    "a.mul_(b)": lambda m, a, b, c: a.mul_(_apart(a, b)),
    "a.mul_(0.5)": lambda m, a, b, c: a.mul_(0.5),
    "a.div_(2)": lambda m, a, b, c: a.div_(2),
    "a += b": lambda m, a, b, c: a.__iadd__(_apart(a, b)),
    "a *= a": lambda m, a, b, c: a.mul_(a),
    "a.tanh_()": lambda m, a, b, c: a.tanh_(),
    "a.relu_()": lambda m, a, b, c: a.relu_(),
    "a.neg_()": lambda m, a, b, c: a.neg_(),
    "a.sin_()": lambda m, a, b, c: a.sin_(),
    "a.sigmoid_()": lambda m, a, b, c: a.sigmoid_(),
    "a.clamp_(-0.5, 0.5)": lambda m, a, b, c: a.clamp_(-0.5, 0.5),
    "a.zero_()": lambda m, a, b, c: a.zero_(),
    "a.fill_(0.5)": lambda m, a, b, c: a.fill_(0.5),
    "a.copy_(b)": lambda m, a, b, c: a.copy_(_apart(a, b)),
    "a[0] = b": lambda m, a, b, c: _set(a, 0, _apart(a, b)),
    "a[..., :1] = 2": lambda m, a, b, c: _set(a, (Ellipsis, slice(None, 1)), 2.0),
    "a[[0]] = 1": lambda m, a, b, c: _set(a, [0], 1.0),
    "a[a > 0] = 0": lambda m, a, b, c: _set(a, a > 0, 0.0),
    "a.masked_fill_": lambda m, a, b, c: a.masked_fill_(a < 0, 0.5),
    "a.detach().mul_(2)": lambda m, a, b, c: a.detach().mul_(2),
    "a.t_()": lambda m, a, b, c: a.t_(),
    "a.unsqueeze_(0)": lambda m, a, b, c: a.unsqueeze_(0),
    "a[0].mul_(2)": lambda m, a, b, c: a[0].mul_(2),
    "a.view(-1)[:1].add_(1)": lambda m, a, b, c: a.view(-1)[:1].add_(1),
}
STEPS = {**PURE, **VIEWS, **INPLACE}
NAMES = list(PURE) + list(VIEWS) * 2 + list(INPLACE)
GIVE_VIEWS = {*VIEWS, "a.t_()", "a.unsqueeze_(0)", "a[0].mul_(2)", "a.view(-1)[:1].add_(1)"}
SHAPES = [(2, 3), (3,), (2, 1), (), (1, 3), (3, 3), (2, 3, 2), (0, 3), (1,)]


def _apart(a: Any, b: Any) -> Any:
    """b, copied where it lies in a's memory: a write over its own source is not defined."""
    same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and b is not a
    return b.clone() if same else b


def _set(a: Any, key: Any, value: Any) -> Any:
    a[key] = value
    return a


@dataclass
class Program:
    """Leaves, and steps (name, operands by number, under no_grad or not)."""

    leaves: list[Any]
    steps: list[tuple[str, tuple[int, int, int], bool]]

    def __repr__(self) -> str:
        lines = [
            f"v{i} = {tuple(x.shape)} {dtype_name(x.dtype)}" for i, x in enumerate(self.leaves)
        ]
        return "\n".join(
            lines + [f"{n}  of {v}{' under no_grad' * off}" for n, v, off in self.steps]
        )


@st.composite
def programs(draw: Any) -> Program:
    """Two to four leaves, three to twelve steps."""
    kinds = st.sampled_from(["float64"] * 6 + ["float32", "int64", "bool"])
    leaves = []
    for i in range(draw(st.integers(2, 4))):
        shape, kind = draw(st.sampled_from(SHAPES)), draw(kinds)
        n = int(np.prod(shape))
        values = np.sin(1.7 * np.arange(n) + draw(st.integers(0, 50))).reshape(shape) * 1.5
        leaves.append(
            torch.from_numpy(np.asarray(values)).to(getattr(torch, kind if i else "float64"))
        )
    pick = st.integers(0, 30)
    step = st.tuples(
        st.sampled_from(NAMES), st.tuples(pick, pick, pick), st.sampled_from([False] * 12 + [True])
    )
    return Program(leaves, draw(st.lists(step, min_size=3, max_size=12)))


LACKING = "no kernel"


def execute(
    program: Program, side: Side, like: list[str] | None = None
) -> tuple[list[Any], list[Any], list[str]]:
    """(leaves, every value, what became of each step: '' or the class of the error).

    Steps for which PyTorch happens to lack a kernel (a norm of booleans) are left out: `like`
    is its list of fates.
    """
    m = side.root
    leaves = [side.carry(x, grad=dtype_name(x.dtype) in FLOATS) for x in program.leaves]
    pool = [x if i % 2 or not x.requires_grad else x * 1 for i, x in enumerate(leaves)]
    fate: list[str] = []
    for i, (name, picks, off) in enumerate(program.steps):
        if like is not None and like[i] == LACKING:
            fate.append(LACKING)
            continue
        a, b, c = (pool[-1 - k % len(pool)] for k in picks)
        if name in INPLACE and a.is_leaf and a.requires_grad and picks[0] % 5:
            a = next((x for x in reversed(pool) if not x.is_leaf), a)  # refusals are the exception
        # A view made under no_grad and then written is refused late, wherever one looks at it next.
        with m.no_grad() if off and name not in GIVE_VIEWS else m.enable_grad():
            value, failure = attempt(STEPS[name], m, a, b, c)
        lacking = like is None and "not implemented for" in str(failure)
        fate.append(LACKING if lacking else type(failure).__name__ if failure else "")
        if failure is None:
            pool.append(value)
    return leaves, pool, fate


def gradients(side: Side, leaves: list[Any], pool: list[Any], twice: bool) -> list[Any]:
    """Gradients of all results with respect to the leaves, and of those gradients where asked."""
    results = [v for v in pool if v.requires_grad and not v.is_leaf]
    inputs = [x for x in leaves if x.requires_grad]
    if not results:
        return []
    cotangents = [side.cotangent(r, 0.1 * i) for i, r in enumerate(results)]
    grad = side.root.autograd.grad
    first = grad(results, inputs, cotangents, allow_unused=True, create_graph=twice)
    out = [None if g is None else g.detach() for g in first]
    again = [(g, side.cotangent(g, 0.7)) for g in first if g is not None and g.requires_grad]
    if twice and again:
        out += grad([g for g, _ in again], inputs, [c for _, c in again], allow_unused=True)
    return out + [None] * (2 * len(inputs) - len(out))  # None agrees with zeros
