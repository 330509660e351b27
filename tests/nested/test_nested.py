"""Nested tensors of both layouts beside PyTorch's: values, ragged sizes, gradients and refusals."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import UNDER_TEST, alike, torch, tt

SIDES = (tt, torch)
LENGTHS = (3, 1, 2)


def inputs(m: Any, layout: str = "jagged") -> dict[str, Any]:
    """The same tensors on either side."""
    rng = np.random.default_rng(0)

    def rows(*shape: int) -> Any:
        return m.tensor(rng.standard_normal(shape))

    def nested(parts: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the strided layout, as a prototype
            return m.nested.nested_tensor(parts, layout=getattr(m, layout), **options)

    x = nested([rows(n, 4) for n in LENGTHS], requires_grad=True)
    flat = m.nested.nested_tensor_from_jagged
    offsets = m.tensor([0, 3, 4, 6])
    return {
        "m": m,
        "F": m.nn.functional,
        "nested": nested,
        "x": x,
        "y": nested([rows(n, 4) for n in LENGTHS]),
        "q": nested([rows(n, 2, 4) for n in LENGTHS], requires_grad=True),
        "ids": nested([m.tensor(range(n)) for n in LENGTHS]),
        "holes": flat(rows(9, 4), m.tensor([0, 4, 6, 9]), m.tensor([3, 1, 2])),
        "same": lambda v: m.nested.nested_tensor_from_jagged(v, x.offsets()),
        "w": rows(4, 5),
        "square": rows(4, 4),
        "v": rows(4),
        "bias": rows(5),
        "stack": rows(3, 4, 5),
        "column": rows(3, 1, 4),
        "full": rows(3, 3, 4),
        "offsets": offsets,
        "dense": rows(6, 4),
        "flat": flat,
    }


def seen(value: Any) -> Any:
    """What can be compared of a result."""
    if isinstance(value, (tt.Tensor, torch.Tensor)):
        if value.is_nested:
            parts = [p.detach().tolist() for p in value.unbind()]
            jagged = str(value.layout) == "torch.jagged"
            where = (value._ragged_idx, value.dim()) if jagged else value.dim()
            return "nested", str(value.dtype), where, parts, value.requires_grad
        return "dense", str(value.dtype), value.detach().tolist(), value.requires_grad
    if isinstance(value, (tuple, list)) and not isinstance(value, (tt.Size, torch.Size)):
        return [seen(v) for v in value]
    return str(value)


def outcome(m: Any, text: str, layout: str = "jagged") -> Any:
    """What an expression gives and the gradients of x and q, or the class of what it raises."""
    space = inputs(m, layout)
    m.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's attention makes strided ones
            found = eval(text, space)
    except Exception as e:
        return "raises", type(e).__name__, str(e)
    results = [seen(found)]
    parts = found if isinstance(found, (tuple, list)) else [found]
    wanted = [
        p for p in parts if getattr(p, "requires_grad", False) and getattr(p, "grad_fn", None)
    ]
    if wanted:
        try:
            for p in wanted:
                p.backward(m.ones_like(p) * 0.5, retain_graph=True)
        except (RuntimeError, ValueError, AttributeError) as e:
            return [*results, f"no gradient: {e}"]  # PyTorch has none of many ops
        results += [seen(space[n].grad) for n in ("x", "q")]
    return results


JAGGED = """
x * 2 + 1 | x.exp() | -x | abs(x) | x.sigmoid().tanh() | x.clamp(-0.5, 0.5) | x ** 2 | 2 / (x + 9)
x > 0 | x == x * 1 | x.eq(1) | x != 0 | ~(x > 0) | x.isnan() | x.square() | x.reciprocal() | x.sqrt()
x * same(dense) | x + v | v + x | v - x | x * column | column * x | x + full | x + m.tensor(2.0)
x + v[None, None] | m.where(x > 0, x, 0.0) | m.where(x > 0, x, same(dense)) | x.masked_fill(x > 0, 0.0)
m.lerp(x, same(dense), 0.5) | m.maximum(x, same(dense)) | m.atan2(x, same(dense)) | x % 2
F.relu(x) | F.gelu(x) | F.silu(x) | F.leaky_relu(x, 0.1) | F.elu(x) | F.softplus(x) | F.hardtanh(x)
F.mish(x) | F.selu(x) | F.dropout(x * 1, 0.0) | F.dropout(x * 1, 0.5, training=False)
x.sum() | x.sum(1) | x.sum(-1) | x.sum((0, 1)) | x.sum((0, 1, 2)) | x.sum((0, 1), keepdim=True)
x.sum(1, keepdim=True) | x.sum(-1, keepdim=True) | x.mean() | x.mean(1) | x.mean(-1) | x.mean((0, 1))
x.mean(1, keepdim=True) | x.prod(-1) | x.prod(1) | x.amax(1) | x.amin(-1) | x.max(1) | x.min(-1)
x.max() | x.min() | x.argmax(1) | x.argmin(-1) | (x > 0).any() | (x > 0).all(-1) | (x > 0).any(1)
x.softmax(-1) | x.detach().softmax(1) | x.log_softmax(-1) | F.softmax(x, dim=-1) | m.softmax(y, 1)
F.layer_norm(x, (4,)) | F.layer_norm(x, (4,), v, v) | F.layer_norm(x, (x.shape[1], 4))
F.rms_norm(x, (4,)) | F.rms_norm(x, (4,), v) | F.linear(x, w.t()) | F.linear(x, w.t(), bias)
m.nn.Linear(4, 2, dtype=m.float64)(x) | x @ w | m.matmul(x, w) | x @ stack | m.bmm(x, stack)
x.transpose(1, 2) @ x | w.t() @ x.transpose(1, 2) | stack.mT @ x.transpose(1, 2) | q @ q.transpose(-1, -2)
x.unbind() | x[1] | x[-1] | x[..., 0] | x[..., 1:3] | list(x) | x.select(-1, 1) | x.select(0, 2)
x.narrow(-1, 1, 2) | x.split(2, -1) | x.detach().split([1, 3], -1) | x.chunk(2, -1) | x.chunk(2)
x.transpose(1, 2) | x.mT | x.permute(0, 2, 1) | q.permute(0, 2, 1, 3) | q.transpose(2, 3)
x.view(3, -1, 2, 2) | x.reshape(3, -1, 1, 4) | q.flatten(-2) | x.unflatten(-1, (2, 2)) | x.unsqueeze(-1)
x.unsqueeze(1) | x.unsqueeze(-1).squeeze(-1) | q[..., :1, :].expand(3, -1, 2, 4) | x.diff()
m.cat([x, x], -1) | m.stack([x, x], 2) | x.to_padded_tensor(0.0) | x.transpose(1, 2).to_padded_tensor(-1.0)
m.nested.to_padded_tensor(x, 7.0, (3, 5, 4)) | m.nested.to_padded_tensor(x, 7.0, (3, 2, 4))
flat(dense, offsets).to_padded_tensor(0.0) | x.clone() | x.detach() | x.contiguous() | x.float()
x.to(m.float32)
x.half() | x.long() | x.double() is x | x.cpu() | x.data | m.zeros_like(x) | m.full_like(x, 3) | m.rand_like(x)
m.randn_like(x, dtype=m.float32) | m.empty_like(x).dim() | x.new_zeros(()) | y.zero_() | y.fill_(2) | y.add_(1)
y.mul_(y) | y.copy_(y * 2) | y.relu_() | x.values() | x.offsets() | x.lengths() | holes.unbind()
holes.lengths()
holes * 2 | holes.contiguous() | holes.sum(-1) | holes.mean(-1) | holes.is_contiguous() | holes.numel()
F.embedding(ids, stack[0]) | m.nn.Embedding(5, 2)(ids).dim() | F.one_hot(ids) | ids + 1 | ids.float().mean(1)
m.nested.masked_select(dense, dense > 0) | ids.masked_select(ids > 0)
m.nested.masked_select(dense, dense[:1] > 9)
m.nested.narrow(full, 1, 1, 2, layout=m.jagged)
m.nested.narrow(full, 1, m.tensor([0, 1, 0]), m.tensor([1, 2, 3]), layout=m.jagged)
m.nested.as_nested_tensor(full, layout=m.jagged)
m.nested.as_nested_tensor([dense, dense[:2]], layout=m.jagged)
m.nested.as_nested_tensor([dense, dense[:, :2]], layout=m.jagged)
m.nested.as_nested_tensor(x, layout=m.jagged) is x
flat(dense, lengths=m.tensor([4, 2])) | flat(dense.t(), offsets, jagged_dim=2) | nested([[1, 2], [3]])
F.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3) | F.scaled_dot_product_attention(q, q, q)
F.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3, scale=0.3) | m.autograd.grad((x * x).sum(), x)
m.autograd.grad(x * x, x, m.ones_like(x)) | m.nn.Parameter(x) | m.frexp(x) | x.is_same_size(y) | x.requires_grad
x.is_leaf, (x * 2).is_leaf, (x * 2).grad_fn is None | x.dim(), x.ndim, x.numel(), len(x), x.layout, x.is_nested
x.size(0), x.size(-1), x.stride(-1), x.element_size(), x.is_floating_point(), x.storage_offset(), x.dtype
"""
REFUSED = """
x[:, 0] | x[1:] | x.sum(0) | x.sum((1, 2)) | x.max(0) | x.softmax(0) | x.log_softmax(1) | x.transpose(0, 1)
x.permute(0, 1) | x.permute(1, 0, 2) | x.flatten(1) | x.flatten(0) | x.view(3, -1) | x.unbind(1)
m.cat([x, x], 0) | m.cat([x, x], 1) | m.stack([x, x]) | m.stack([x, y], -1) | m.stack([x, dense], -1)
x.split(1, 0) | x.split(1, 1) | x.chunk(2, 1) | x.narrow(0, 0, 1) | x.squeeze(1) | x.squeeze(0) | x.unsqueeze(0)
x + same(dense).unsqueeze(-1).transpose(1, 2) | x @ v | x @ x.transpose(1, 2) | m.bmm(x, w) | x.select(1, 0)
x + nested([dense, dense[:2]]) | x + y | x == y | x // 0.5 | F.logsigmoid(x) | x + v[:3] | x + full[:2]
x + full[None, None] | x.cumsum(-1) | x.sort() | x.topk(1)
x.tril() | x.gather(1, x.long()) | m.flip(x, [-1]) | m.allclose(x, x) | x.tolist() | x.numpy() | x.item()
bool(x)
x.new_zeros(2) | F.layer_norm(ids, (3,)) | F.layer_norm(x, (3, x.shape[1], 4)) | F.rms_norm(x, (x.shape[1], 4))
holes.sum(1) | holes.softmax(1) | holes.to_padded_tensor(0.0) | holes.permute(0, 2, 1) | holes[..., 0]
F.linear(holes, w.t()) | F.dropout(holes, 0.5) | x.masked_select(x > 0) | y.copy_(nested([dense, dense[:2]]))
nested([]) | nested([m.ones(2), m.ones(2, 2)]) | nested([m.ones(2), m.ones(2).half()]) | nested([m.tensor(1.0)])
nested([m.ones(2, 3), m.ones(3, 2)]) | m.nested.as_nested_tensor(3) | m.nested.as_nested_tensor(v)
m.nested.as_nested_tensor(x) | flat(dense) | flat(dense, offsets, jagged_dim=0)
m.nested.nested_tensor([v], layout=m.sparse_coo)
m.nested.narrow(full, 2, 1, 2, layout=m.jagged) | m.nested.narrow(full, 1, 1.0, 2, layout=m.jagged)
m.nested.narrow(full, 1, m.tensor([1, 1]), 2, layout=m.jagged) | x.expand(2, -1, 4) | x.shape[1] > 5
F.scaled_dot_product_attention(q, q, full) | F.scaled_dot_product_attention(q, q.transpose(1, 2), q)
F.scaled_dot_product_attention(q, q, q, m.ones(2)) | F.scaled_dot_product_attention(q, q.float(), q)
F.mse_loss(x, x) | F.glu(x) | F.pad(x, (0, 1)) | y + x.shape[1]
"""
STRIDED = """
x * 2 + 1 | -x | abs(x) | x + x | x * x | x - x | x / 2 | x + m.tensor(2.0) | F.relu(x) | F.gelu(x) | F.silu(x)
x.tanh() | x.cos() | x.sqrt() | x > 0 | x == 1 | x.isnan() | x.masked_fill(x > 0, 0.0) | x.sum(-1, keepdim=True)
x.softmax(-1) | x.softmax(1) | F.softmax(x, -1) | x.detach().transpose(1, 2) | x.detach().mT
F.linear(x, w.t()) | F.linear(x, w.t(), bias)
x @ x.transpose(1, 2) | m.bmm(x, stack) | F.layer_norm(x, (4,), v, v) | F.dropout(x * 1, 0.0) | x.clone()
x.detach()
x.contiguous() | x.transpose(1, 2).is_contiguous() | x.float() | x.half() | x.long() | x.cpu() | m.zeros_like(x)
m.ones_like(x) | y.fill_(2) | y.zero_() | y.add_(1) | y.relu_() | y.copy_(y * 2) | x.detach().unbind() | x[1]
x[-1] | x[0, 1]
x.select(0, 1) | x.reshape(3, -1, 2, 2) | x.view(3, -1, 1, 4) | x.unsqueeze(-1) | x.unsqueeze(1)
x.unsqueeze(-1).squeeze(-1)
x.narrow(0, 0, 2) | x.detach().chunk(2, -1) | x.detach().split([1, 3], -1) | x.to_padded_tensor(0.0)
x.to_padded_tensor(1.0, (3, 4, 5))
x.size(0), x.size(2), x.dim(), x.numel(), x.is_leaf, x.is_nested, x.layout, x.dtype | y.values()
x._nested_tensor_size()
m.autograd.grad(x * x, x, m.ones_like(x)) | F.scaled_dot_product_attention(*[y.reshape(3, -1, 2, 2)] * 3)
m.nested.as_nested_tensor(x, layout=m.strided) is x | m.nested.as_nested_tensor(full)
nested([[1.0, 2.0], [3.0]]) | nested([1.0, 2.0])
repr(y.long()) | repr(x.detach().long()) | repr(nested([[1.0]], requires_grad=True) * 2)
"""
STRIDED_REFUSED = """
x + column | x + v | x @ w | x.size(1) | x.size() | x.shape | x.stride() | len(x) | list(x) | x.sum(-1)
x.sum(1, keepdim=True)
x.softmax(0) | x.transpose(0, 1) | x.unbind(1) | x.chunk(2, 0) | x.split(1, -1) | x.unsqueeze(0)
x.narrow(1, 0, 1)
x[5] | x.cumsum(-1) | x.mean() | x.permute(0, 2, 1) | m.stack([x, x]) | m.cat([x, x]) | x.tolist() | x.numpy()
x.item() | bool(x) | F.layer_norm(x, (4,)) | x.to_padded_tensor(0.0, (3, 2, 4)) | nested([v, w])
m.nested.nested_tensor(3)
x + nested([v]) | m.nested.to_padded_tensor(dense, 0.0) | m.nested.narrow(full, 1, 0, 2) | x.log_softmax(-1)
F.linear(nested([w, w.t()]), w)
m.nested.as_nested_tensor(x, layout=m.jagged) | m.nested.narrow(full, 0, m.tensor(1), 2)
"""


def cases(text: str) -> list[str]:
    return [c.strip() for line in text.strip().splitlines() for c in line.split(" | ")]


def check(ours: Any, theirs: Any) -> None:
    assert theirs[0] != "raises", theirs
    if isinstance(theirs[-1], str) and theirs[-1].startswith("no gradient"):
        assert "no gradient" not in str(ours)
        ours, theirs = ours[:1], theirs[:1]
    assert alike(ours, theirs), f"{ours}\n{theirs}"


@pytest.mark.parametrize("text", cases(JAGGED))
def test_jagged(text: str) -> None:
    check(*(outcome(m, text) for m in SIDES))


@pytest.mark.parametrize("text", cases(STRIDED))
def test_strided(text: str) -> None:
    check(*(outcome(m, text, "strided") for m in SIDES))


@pytest.mark.parametrize("text", cases(REFUSED))
def test_jagged_refuses(text: str) -> None:
    ours, theirs = (outcome(m, text) for m in SIDES)
    assert ours[0] == theirs[0] == "raises", (ours, theirs)
    if theirs[1] in ("RuntimeError", "ValueError", "TypeError", "NotImplementedError"):
        assert ours[1] == theirs[1], (ours, theirs)


@pytest.mark.parametrize("text", cases(STRIDED_REFUSED))
def test_strided_refuses(text: str) -> None:
    ours, theirs = (outcome(m, text, "strided") for m in SIDES)
    assert ours[:2] == theirs[:2], (ours, theirs)


# what a change of x by 1e-6 changes smoothly
ROUGH = ("detach", "sqrt", "float", "half", "Parameter", "q[", "long")
SMOOTH = [t for t in cases(JAGGED) if "x" in t and not any(r in t for r in ROUGH)]


@pytest.mark.parametrize("text", SMOOTH)
def test_gradients_beside_differences(text: str) -> None:
    """PyTorch has no gradient of many ops, and that of softmax along parts is another."""
    space = inputs(tt)
    base, step = space["x"].values().detach(), tt.tensor(np.random.default_rng(1).random((6, 4)))

    def total(values: Any) -> Any:
        space["x"] = space["flat"](values, space["offsets"], min_seqlen=1, max_seqlen=3)
        space["same"] = lambda v: tt.nested.nested_tensor_from_jagged(v, space["offsets"])
        tt.manual_seed(0)
        found = eval(text, space)
        parts = list(found) if isinstance(found, (tuple, list)) else [found]
        flat = [p.values() if getattr(p, "is_nested", False) else p for p in parts]
        return sum((p * p).sum() for p in flat if getattr(p, "requires_grad", False))

    leaf = base.clone().requires_grad_()
    try:
        made = total(leaf)
    except RuntimeError:
        return  # what needs the very offsets of another
    if not isinstance(made, tt.Tensor) or not made.requires_grad:
        return
    made.backward()
    low, high = (total((base + e * step).requires_grad_()) for e in (-1e-6, 1e-6))
    wanted = float(high.detach() - low.detach()) / 2e-6
    assert abs(float((leaf.grad * step).sum()) - wanted) <= 1e-5 * (1 + abs(wanted))


def test_training_on_jagged_batches() -> None:
    """A small network with embedding, attention and norms: losses and gradients as PyTorch's."""

    def run(m: Any) -> list[float]:
        m.manual_seed(0)
        net = m.nn.ModuleDict(
            {
                "e": m.nn.Embedding(9, 8),
                "qkv": m.nn.Linear(8, 24),
                "n": m.nn.LayerNorm(8),
                "o": m.nn.Linear(8, 3),
            }
        )
        opt = m.optim.SGD(net.parameters(), lr=0.1)
        ids = m.nested.nested_tensor([m.arange(n) + n for n in LENGTHS], layout=m.jagged)
        losses = []
        for _ in range(3):
            x = net["e"](ids)
            q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in net["qkv"](x).chunk(3, -1))
            a = m.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
            out = net["o"](net["n"](x + a).values())
            loss = m.nn.functional.cross_entropy(out, m.arange(6) % 3)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses

    try:
        wanted = run(torch)
    except RuntimeError:  # this PyTorch cannot differentiate chunks
        wanted = None
    got = run(tt)
    assert got[2] < got[0]
    assert wanted is None or np.allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_copies_and_files(layout: str) -> None:
    def parts(x: Any) -> list[Any]:
        return [p.tolist() for p in x.unbind()]

    ours, theirs = (inputs(m, layout)["y"] for m in SIDES)
    wanted = parts(theirs)
    assert parts(copy.deepcopy(ours)) == parts(copy.copy(ours)) == wanted
    assert parts(pickle.loads(pickle.dumps(ours))) == wanted
    for made, save, loads in ((ours, tt.save, (tt, torch)), (theirs, torch.save, (tt, torch))):
        for m in loads:
            file = io.BytesIO()
            save({"x": made}, file)
            file.seek(0)
            assert parts(m.load(file, weights_only=True)["x"]) == wanted


@pytest.mark.skipif(UNDER_TEST == "torch", reason="PyTorch's own class")
def test_files_cannot_point_outside_their_values() -> None:
    x = tt.nested.nested_tensor_from_jagged(tt.ones(4), tt.tensor([0, 2, 9]))
    file = io.BytesIO()
    tt.save(x, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="lie in its values"):
        tt.load(file)


def test_sizes() -> None:
    for m in SIDES:
        x = inputs(m)["x"]
        j = x.shape[1]
        assert j == x.size(1) == (2 * x).shape[1] and j != inputs(m)["x"].shape[1]
        assert str(2 * j) == f"2*{j}" and j >= 2 and j > 1 and not isinstance(j, int)
        assert (
            isinstance(j, m.SymInt)
            and x.shape == (3, j, 4)
            and repr(x.shape) == f"torch.Size([3, {j}, 4])"
        )
        assert repr(x) == (
            f"NestedTensor(size=(3, {j}, 4), offsets=tensor([0, 3, 4, 6]), requires_grad=True, contiguous=True)"
        )


def test_encoder_layer_takes_strided_nested_tensors() -> None:
    def run(m: Any) -> Any:
        m.manual_seed(0)
        layer = m.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dtype=m.float64).eval()
        with m.no_grad():
            return seen(layer(inputs(m, "strided")["y"]))[3]

    assert alike(run(tt), run(torch))
