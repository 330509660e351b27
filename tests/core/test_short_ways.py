"""Calls on plain tensors that take a short way do what PyTorch does, down to strides, versions,
sharing and words of refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import both, differences, torch, tt

CALLS = """
x[1]; x[-1]; x[4]; x[-5]; x[1:3]; x[:]; x[::2]; x[5:2]; x[-2:]; x[1, 2]; x[:, 1]; x[1:3, ::2]; x[:, :]; x[4, 0]
x[0, 0, 0]; x[None]; x[x > 0]; x[x[0] > 0]; x[i]; x[i - 4]; x[i + 9]; x[i, i]; x.t()[1]; x.t()[:, 1:]; x.t()[None]
x[True]; x[1.5]; x[::-1]; x[...]; x[..., 1]; v[2]; v[i]; v[3:1]; x.T; v.T; x.T.T; x.flatten(); x.t().flatten()
x.view(16); x.view(-1, 8); x.view(3, 5); x.view(-1, -1); x.view(-2); x.t().view(16); x.view((2, 8)); x.reshape(2, -1)
x.reshape([8, 2]); x.reshape(3); x.t().reshape(16); x.reshape(()); x.expand(2, 4, 4); v.expand(3, 4); v.expand(3, -1)
v.expand(5); v.expand(-1, 4); x.t().expand(2, 4, 4); v[:1].expand(3); x.unsqueeze(0); x.unsqueeze(-1); x.unsqueeze(3)
x.t().unsqueeze(0); x[None].squeeze(); x.squeeze(0); x.permute(1, 0); x.permute(0, 0); x.permute(-1, 0); x.permute(0)
list(x); list(v); list(i); m.cat([x, x]); m.cat((x, x), -1); m.cat([x, v]); m.cat([x, x], 2)
m.cat([x, i[:, None]], 1)
m.cat(x); m.cat([]); m.stack([x, x]); m.stack([x, x], -1); m.stack([x, v]); m.stack([v[0], v[1]]); m.stack([x, x], 3)
x.clamp(0, 1); x.clamp(0); x.clamp(max=v); x.clamp(); x.clamp(1, 0); i.clamp(1, 2); x.clamp("a")
x.sort(); x.sort(0, True); x.topk(2); x.topk(9); x.topk(2, 0, False); x.max(1); x.max(0); x.max(); x.min(); x.max(2)
x.argmax(); x.argmax(1); x.argmin(0, True); (x > 0).any(); (x > 9).all(); (x > 0).any(1); (x > 0).nonzero()
x.nonzero()
x.gather(1, s); x.gather(0, s); x.gather(1, s + 3); x.gather(1, s - 1); x.gather(1, s[:2]); x.gather(0, s[:2])
x.gather(1, i); x.masked_fill(x > 0, 2.0)
x.masked_fill(x > 0, float("-inf")); x.masked_fill(x > 0, 1e300); x.masked_fill(x[0] > 0, 1)
x.masked_fill(x, 1.0); i.masked_fill(i > 1, 2.5); x.masked_fill(x > 0, v); m.where(x > 0, x, -x); m.where(x > 0, v, x)
m.where(x > 0, i, x); m.where(x > 0, 1.0, x); m.where(x, x, x); m.where(x > 0, x, x[:3]); x.softmax(1); x.softmax(0)
x.softmax(2); x.log_softmax(-1); i.softmax(0); x.sum(); x.mean(); x.std(); x.norm(); x.cumsum(0); x.cumsum(1); i.sum()
m.nn.functional.one_hot(i, 5); m.nn.functional.one_hot(i); m.nn.functional.one_hot(i, 2)
m.nn.functional.one_hot(i - 1)
m.nn.functional.one_hot(s, 6); m.nn.functional.cross_entropy(x, i); m.nn.functional.cross_entropy(x, i + 9)
m.nn.functional.cross_entropy(x, i - 101); m.zeros(2, 3); m.ones([2]); m.zeros(()); m.zeros(-1)
m.ones(2, dtype=m.int64); m.zeros(2.0); m.empty(0, 3); m.zeros_like(x.t()); m.ones_like(i); m.arange(5)
m.arange(2, 5); m.arange(5, 2); m.arange(5.0)
m.arange(0); m.tensor(1.5); m.tensor([1, 2]); m.tensor([1.0, 2.0]); m.tensor([]); m.tensor([1, 2.0]); m.tensor([True])
m.tensor([1e300]); m.einsum("ij,ij->", x, x)
m.einsum("ij,kj->ik", x, v[None]); m.einsum("ii,ij->j", x, x); m.einsum("ij,jk->i", x, x); m.einsum("ij,jk", x, x[:3])
s.mode(); s.mode(0); s.mode(1, True); s.mode(0, True); i.mode(); i.mode(0, True); x.mode(); x.round().mode(0)
(x / (x > 0)).mode(1).values; (x[:0]).mode(0); s.t().mode(1); x.t().mode(); x[0, 0].mode(); x.mode(2)
x[:, i]; x[:, i - 4]; x[:, i + 9]; x[:, s]; x[:, s.t()]; x.t()[:, i]; x[None][:, i]; x[:, :, i]; x[i, :]; x[i[:0]]
x.aminmax(); x.aminmax(dim=1); x.aminmax(keepdim=True); x[:0].aminmax(); x.t().aminmax(dim=0); x.aminmax(dim=2)
m.isin(i, s); m.isin(i, i[:2], invert=True); m.isin(x, i); m.isin(x > 0, i); m.isin(i, 3); m.isin(x[:0], x)
m.bucketize(x, v.sort()[0]); m.bucketize(x, x); m.bucketize(v, x[0], out_int32=True); m.bucketize(2.0, v)
x.movedim(0, 1); x.movedim(-1, 0); x.movedim(2, 0); x.movedim(0, -3); x[0, 0].movedim(0, -1); x.movedim((0, 1), (1, 0))
x.unbind(1); x.t().unbind(); x[None].unbind(2); x.unbind(2); x[:0].unbind(1); x.chunk(3, 1); x.chunk(0); x.chunk(9, -1)
x.split(3); x.split(0); x[:0].split(2); x.unflatten(1, (2, -1)); x.unflatten(0, (3, 2)); x.unflatten(2, (2, 2))
x.permute((1, 0)); x.permute([1, 0]); x.permute((1.0, 0)); x.view((2.0, 8)); x.scatter(1, s, x); x.scatter(1, s - 1, x)
x.scatter_add(0, s, x); x.scatter_add(1, s - 1, x); x.gather(0, s + 3); x.lerp(v, 0.2); x.lerp(v, 0.7); x.lerp(v, v[0])
x.lerp(-x, float("nan")); x[0, 0].lerp(v, 0.2); x.lerp(v, -x); v.lerp(x, m.tensor(0.2)); i.lerp(i, 0.5); x.median()
(x / (x > 0)).median(); m.fft.rfft(x, 6); m.fft.rfft(x, dim=0); m.fft.rfft(i); m.fft.irfft(x, 3); m.fft.rfft(x, dim=2)
m.einsum("bij,bjk->bik", x[None], x[None]); x @ x; x @ v; x @ x[:3]; m.pdist(x); m.cdist(x, x[:2]); x.double().half()
"""
WRITES = """
x[0] = 1.0; x[-1] = 2; x[9] = 1.0; x[1:3] = 0.5; x[1, 2] = 7; x[:, 1] = -1; x[x > 0] = 0.0; x[x[0] > 0] = 3.0
x[0] = v
x[:, 0] = v; x[0] = x[1]; x[1:] = x[:-1].clone(); x[0] = i; x[0] = [1]; x[0] = 1e300; x[0] = True; x[0] = "a"
x[1.5] = 1
i[0] = 1.5; i[1] = 9; x[...] = 4.0; x[0, 0, 0] = 1; x[i] = 0.0; x[0] = x; x.t()[0] = 1.0; x[None] = 2.0
x[::-1] = 1.0; x[5:2] = 1.0; v.expand(3, 4)[0] = 1.0; x.add_(x); x.add_(1.5); x.add_(v); x.add_(x.t())
x.add_(x, alpha=2)
x.mul_(2); x.mul_(i); i.mul_(2.5); i.add_(1); x.div_(0.5); x.sub_(v[0]); x.pow_(2); x.neg_(); i.exp_(); x.add_("a")
v.expand(3, 4).add_(1); v[None].add_(x); x[1:].add_(x[:-1]); x.zero_(); i.zero_(); x.t().zero_(); x.fill_(2)
i.fill_(2.5)
x.fill_(v[0]); x.fill_(v); v.expand(3, 4).zero_(); x.copy_(v); x.copy_(i); v.copy_(x); x.copy_(x + 1)
x.clamp_(0, 1); x.scatter_(1, s, 1.0); x.scatter_add_(0, s, x.clone()); x.index_add_(0, i, x.clone())
x.masked_fill_(x > 0, 1)
"""


def parts(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";")]


def given(m: Any) -> dict[str, Any]:
    x = m.tensor(np.cos(np.arange(16.0)).reshape(4, 4).astype("float32").tolist())
    s = m.tensor([[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 0, 0], [2, 3, 2, 3]])
    return {"m": m, "x": x, "v": x[1].clone(), "i": m.tensor([3, 0, 1, 1]), "s": s}


def outcome(m: Any, text: str, write: bool, grad: bool) -> Any:
    """What a call gives, or how it is refused; after a write, what it wrote and counted."""
    names = given(m)
    if write:
        names["held"] = names["x"].view(-1)  # a view sees what is written
    with m.set_grad_enabled(grad):
        try:
            if not write:
                return eval(text, names)
            exec(text, names)
        except Exception as error:
            return type(error), None if write else str(error)
    kept = [names[n] for n in ("x", "v", "i", "held")]
    return [k.tolist() for k in kept], [k._version for k in kept[:3]]


@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("text", parts(CALLS))
def test_call(text: str, grad: bool) -> None:
    want, got = (outcome(m, text, False, grad) for m in (torch, tt))
    if isinstance(want, tuple) and isinstance(want[0], type):
        assert isinstance(got, tuple), got
        assert got[0] is want[0]
        return
    bad = differences(want, got, slack=4)
    assert not bad, bad
    if isinstance(want, torch.Tensor):
        assert got.stride() == want.stride()
        assert not want.numel() or got.storage_offset() == want.storage_offset()


@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("text", parts(WRITES))
def test_write(text: str, grad: bool) -> None:
    assert outcome(tt, text, True, grad) == outcome(torch, text, True, grad)


# With a history: h is computed from x, which wants a gradient; k is a view of h; z is of zeros.
RECORDED = """
h[:, 2] = w; h[1] = w; h[1:3] = 0.5; h[0, 1] = 2; h[i] = y; h[i, i] = w; h[:, i] = y; h[h > 0] = 0.0
h[9] = w; h[i + 9] = y; z[:, 2] = w; z[1] = w; z[0] = w.detach(); z[i] = y; z.add_(y); z.mul_(y)
z[1:3].add_(y[1:3]); z.t()[0] = w; z.index_add_(0, i, y); h.add_(y); h.add_(1); h.add_(y, alpha=0.5)
h.add_(w); h.add_(y[:3]); h.add_(i); h.sub_(2.5); h.mul_(y); h.mul_(h); h.mul_(2); h.div_(y)
h.div_(y, rounding_mode="floor"); h.pow_(2); h.exp_(); h.sigmoid_(); h.tanh_(); h.sqrt_(); h.abs_()
h.neg_(); h.relu_(); h.clamp_(0, 1); h.clamp_(min=0); h.clamp_(max=w); h.lerp_(y, 0.25)
h.lerp_(y, y); h.addcmul_(y, y, value=2); h.addcdiv_(y, y + 5); h.zero_(); h.fill_(2); h.fill_(w[0])
h.copy_(y); h.copy_(w); h.copy_(i); h.copy_(y[:3]); h.masked_fill_(h > 0, 1)
h.masked_fill_(h > 0, w[0]); h.scatter_(1, s, y); h.scatter_(1, s, 2.0); h.scatter_add_(1, s, y)
h.scatter_(0, s.t(), y); h.index_add_(0, i, y); h.index_add_(1, i, y, alpha=2)
h.index_fill_(0, i, 1.5); h.index_copy_(0, i[:2], y[:2]); h.index_put_((i,), y)
h.index_put_((i, i), w, True); h.gather(1, s).mul_(2); k.mul_(2); k.copy_(w); k[1:].add_(w[1:])
h[1:3].add_(y[1:3]); h[1:3].mul_(h[2:]); h.t()[0].exp_(); h.unbind()[0].mul_(2)
h.chunk(2)[1].zero_(); h[1:3].copy_(h[:2]); h.expand(2, 4, 4).add_(1); h.add_(k); k.add_(h[1])
x.add_(1); x[0] = 1.0; x.detach().add_(1); h.eq_(y); h.floor_(); h.cumsum_(0); h.tril_()
h.nan_to_num_(); h.sgn_(); h.addmm_(y, y); h.hardtanh(0, 1).add_(y)
"""
PIECES = """
h[1:3]; h[:, 1]; h[1:3, 2:]; h[..., 0]; h[:, None]; h[None, 1]; h[0, 0]; h[-1, ::2]; h[1, ..., None]
h[..., 9]; h[i]; h[i, i]; h[:, i]; h[i, 1:]; h.view(-1); h.view(2, 8); h.t(); h.T; h.transpose(0, 1)
h.permute(1, 0); h.unsqueeze(1); h[None].squeeze(); h.expand(2, 4, 4); h.select(1, 2)
h.narrow(0, 1, 2); h.diagonal(); h.unfold(0, 2, 1); h.movedim(0, 1); h.movedim(-1, 0)
h.unflatten(0, (2, 2)); h.swapaxes(0, 1); h.flatten(); h.clone(); h.reshape(-1); h.t().reshape(16)
h.t().contiguous(); h.sum().transpose(0, -1); h.sum().unsqueeze(0); h.sum().view(1, 1)
m.cat([h, y]); m.cat([h, y.detach()], 1); m.cat([h, h]); m.stack([h, y]); m.stack([h, y], -1)
m.hstack([h, y]); m.cat([h, w[:, None]], 1); m.cat(h.unbind()); m.stack(h.chunk(2))
m.cat(h.split(3)[::-1]); m.cat(list(h)); h.unbind(1)[2]; h.split([1, 3])[1]; h.split(2, 1)[0]
m.bmm(h[None], y[None]); h[None] @ y[None]; h.scatter(1, s, y); h.scatter_add(1, s, y)
h.scatter_add(0, s.t(), y); h.gather(1, s); h.median(); h.nan_to_num(); h.std(0); h.var()
m.nn.functional.cosine_similarity(h, y); m.nn.functional.glu(h); h.aminmax()[1]; h.mode()[0]
h.nanmedian(); m.fft.rfft(h).abs(); m.fft.irfft(m.fft.rfft(w)); h.masked_select(h > 0)
h.take_along_dim(s, 1); h.lerp(y, 0.2); h.lerp(y, 0.7); h.lerp(y, w[0]); h.mode(0, True)[0]; h[:, s]; h.t()[:, i]
h.unbind(1)[0].t(); h.chunk(3, 1)[1]; h.movedim(0, 0); m.fft.rfft(h, 6).abs(); h.aminmax(dim=1)[0]
"""


def history(m: Any, text: str, write: bool) -> Any:
    """What a call with a graph gives or writes, the nodes it leaves, and the gradients; its refusal."""
    names = given(m)
    x, names["y"] = names["x"].requires_grad_(), (names["x"].detach() * 0.5 + 1).requires_grad_()
    w = names["w"] = (names["v"] + 2).requires_grad_()
    names["h"], names["z"] = x * 1, m.zeros(4, 4)
    names["k"] = names["h"][1]
    try:
        if write:
            exec(text, names)
            made = names["h"] * names["k"] + names["z"]
        else:
            made = eval(text, names)
        kept = [made, *(names[n] for n in "hkz")]
        nodes = [type(t.grad_fn).__name__ for t in kept]
        # Arguments that have no gradient have an edge here, to nothing.
        edges = [f for t in kept if t.grad_fn for f, _ in t.grad_fn.next_functions if f is not None]
        nodes += [type(f).__name__ for f in edges]
        (made * m.cos(m.arange(float(made.numel())).reshape(made.shape))).sum().backward()
    except Exception as error:
        return type(error), str(error)
    leaves = [t.grad for t in (x, names["y"], w)]
    facts = [t._version for t in kept[1:]], [None if g is None else g.stride() for g in leaves]
    return nodes, facts, [made.detach(), *(t.detach() for t in kept[1:]), *leaves]


@pytest.mark.parametrize("text", [*parts(RECORDED), *parts(PIECES)])
def test_history(text: str) -> None:
    want, got = (history(m, text, text in RECORDED) for m in (torch, tt))
    if isinstance(want[0], type):
        assert got[0] is want[0], (want, got)
        return
    assert got[:2] == want[:2]
    bad = differences(want[2], got[2], slack=16)
    assert not bad, bad


@pytest.mark.parametrize("m", [torch, tt], ids=["torch", "toytorch"])
def test_graphs_and_writes(m: Any) -> None:
    """A write to what a graph needs is noticed, to a leaf is refused, through a view is recorded."""
    x = m.ones(3, requires_grad=True)
    for write in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.copy_(x.detach())):
        with pytest.raises(RuntimeError, match="leaf Variable"):
            write()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x[0] = 1.0
    y = x * 1
    z = y * y
    y[0] = 2.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = x * 1
    view = y[1:]
    y[1] = 5.0
    (view * m.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [0, 0, 2]
    shared = np.zeros((2, 3), "float32")
    t = m.from_numpy(shared)
    t[0] = 1.0
    assert shared.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert t.storage_offset() == 0
    assert m.from_numpy(shared[1]).untyped_storage().nbytes() == 12
    for part in m.ones(3, 2):
        part.add_(1)


@pytest.mark.parametrize("name", ["relu_", "sigmoid_", "tanh_", "exp_", "erf_", "expm1_"])
def test_large_arrays_are_written_in_place(name: str) -> None:
    """Whole, transposed and with gaps; with a gradient; and beside operands in the same memory."""

    def f(m: Any) -> Any:
        made = []
        for view in (lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[3:]):
            x = m.sin(m.arange(9000.0)).reshape(90, 100)
            y = getattr(view(x), name)()
            leaf = m.sin(m.arange(9000.0)).reshape(90, 100).requires_grad_()
            z = view(leaf * 2)
            getattr(z, name)()
            z.sum().backward()
            made += [x, y, leaf.grad]
        x = m.sin(m.arange(9000.0))
        return [*made, x.clone().addcmul_(x, x, value=2.0), x.clone().lerp_(x, 0.25)]

    both(f)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_few_numbers_of_half_types(kind: str) -> None:
    """Called twice, since the second call has a function of the first one's sizes."""

    def f(m: Any) -> list[Any]:
        x = m.sin(m.arange(12.0)).view(3, 4).to(getattr(m, kind))
        made = []
        for _ in range(2):
            made += [x + x, x * x[0], x * 0.0, x * -0.0, x - 2, 1 - x, x / 3, x.t() + x.t(), x > 0]
            made += [
                x[:, :1] * x[:1],
                x.exp(),
                x.relu(),
                x[1:1] * 2,
                x.sum() + 1,
                x == x,
                x * 70000.0,
            ]
        return [*made, *(1 / v for v in made[2:4])]

    tt.ones(9000).exp()  # from here on small calls are compiled, too
    both(f)


WHOLE: list[Any] = [  # written in place without the general path, or refused as there
    lambda m: m.arange(9).as_strided((3, 3), (3, 1)).add_(2),
    lambda m: m.tensor(0).add_(1),
    lambda m: m.arange(5)[:4].add_(m.arange(4)),
    lambda m: m.arange(5).mul_(3).sub_(1),
    lambda m: m.ones(3, dtype=m.bool).add_(True),
    lambda m: m.ones(3, dtype=m.bool).sub_(True),
    lambda m: m.ones(3, dtype=m.bool).bitwise_and_(1),
    lambda m: m.ones(3, dtype=m.bool).mul_(m.zeros(3, dtype=m.bool)),
    lambda m: m.ones(3, dtype=m.uint8).add_(300),
    lambda m: m.ones(3, dtype=m.uint8).sub_(2),
    lambda m: m.ones(3, dtype=m.int8).mul_(m.full((3,), 100, dtype=m.int8)),
    lambda m: m.ones(3, dtype=m.int8).bitwise_or_(m.tensor([2, 2, 2])),
    lambda m: (lambda x: x[1:].add_(x[:-1]))(m.arange(5)),
    lambda m: (lambda x: x.bitwise_xor_(x))(m.arange(5)),
    lambda m: m.arange(3).expand(2, 3).add_(1),
    lambda m: m.arange(3).add_(1.5),
    lambda m: m.arange(3).add_(m.ones(3, requires_grad=True)),
]


@pytest.mark.parametrize("what", WHOLE)
def test_whole_numbers_in_place(what: Any) -> None:
    found = []
    for m in (torch, tt):
        try:
            made = what(m)
            found.append((made.tolist(), str(made.dtype).split(".")[1], made._version))
        except RuntimeError as e:
            found.append(str(e))
    assert found[0] == found[1]
