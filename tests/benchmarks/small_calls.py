"""Calls on a few numbers: what a call costs, whatever it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.benchmarks.case import Case, Work, values


class Given:
    """What the calls work on."""

    def __init__(self, m: Any) -> None:
        self.m, self.F = m, m.nn.functional
        self.x, self.y = values(m, 8, 8), values(m, 8, 8) + 1
        self.v = values(m, 8)
        self.one = values(m, 1)
        self.index = m.arange(8) % 5
        self.square = (m.arange(64) % 8).reshape(8, 8)
        self.mask = self.x > 0
        self.written = values(m, 8, 8)
        self.array = self.x.numpy()
        self.linear = m.nn.Linear(8, 8)
        self.relu = m.nn.ReLU()
        self.identity = m.nn.Identity()
        self.norm = m.nn.LayerNorm(8)
        self.stack = values(m, 2, 8, 24)
        self.part = self.stack.split(8, 2)[0]
        self.heads = values(m, 2, 2, 8, 4)
        self.images, self.filters = values(m, 2, 4, 8, 8), values(m, 4, 4, 3, 3)
        self.mean, self.var = m.zeros(4), m.ones(4)
        self.grid = values(m, 2, 2, 2, 2).clamp(-1, 1)
        self.weight = values(m, 8, 8, grad=True)
        self.rule = m.optim.SGD([self.weight], lr=0.1)
        with m.no_grad():
            self.linear.weight.copy_(self.x)
            self.linear.bias.copy_(self.v)


def set_row(t: Given) -> None:
    t.written[0] = 1.0


def set_element(t: Given) -> None:
    t.written[1, 2] = 1.0


def set_masked(t: Given) -> None:
    t.written[t.mask] = 1.0


def no_grad(t: Given) -> None:
    with t.m.no_grad():
        pass


def rows(t: Given) -> Any:
    return list(t.x)


def set_column(t: Given) -> None:
    h = t.weight * 1
    h[:, 2] = t.v


def set_places(t: Given) -> None:
    h = t.weight * 1
    h[t.index] = t.y


def views_and_back(t: Given) -> None:
    h = t.weight.view(2, 4, 8).transpose(0, 1)[1].unsqueeze(0).squeeze(0)
    t.m.autograd.grad(h.sum(), t.weight)


CALLS: tuple[tuple[str, Callable[[Given], object]], ...] = (
    ("one_hot", lambda t: t.F.one_hot(t.index, 8)),
    ("x[0] = 1.", set_row),
    ("x[1, 2] = 1.", set_element),
    ("x[mask] = 1.", set_masked),
    ("from_numpy", lambda t: t.m.from_numpy(t.array)),
    ("topk", lambda t: t.x.topk(3)),
    ("sort", lambda t: t.x.sort()),
    ("softmax", lambda t: t.x.softmax(1)),
    ("F.softmax", lambda t: t.F.softmax(t.x, dim=1)),
    ("log_softmax", lambda t: t.x.log_softmax(1)),
    ("gather", lambda t: t.x.gather(1, t.square)),
    ("einsum", lambda t: t.m.einsum("ij,jk->ik", t.x, t.y)),
    ("cat", lambda t: t.m.cat([t.x, t.y])),
    ("stack", lambda t: t.m.stack([t.x, t.y])),
    ("max(dim)", lambda t: t.x.max(1)),
    ("max()", lambda t: t.x.max()),
    ("argmax", lambda t: t.x.argmax(1)),
    ("clamp", lambda t: t.x.clamp(0.0, 1.0)),
    ("clamp(min=)", lambda t: t.x.clamp(min=0)),
    ("cross_entropy", lambda t: t.F.cross_entropy(t.x, t.index)),
    ("mse_loss", lambda t: t.F.mse_loss(t.x, t.y)),
    ("where", lambda t: t.m.where(t.mask, t.x, t.y)),
    ("masked_fill", lambda t: t.x.masked_fill(t.mask, 0.0)),
    ("expand", lambda t: t.v.expand(8, 8)),
    ("reshape", lambda t: t.x.reshape(64)),
    ("iterate over 8 rows", rows),
    ("x[idx]", lambda t: t.x[t.index]),
    ("x[mask]", lambda t: t.x[t.mask]),
    ("dropout", lambda t: t.F.dropout(t.x, 0.5, True)),
    (".T", lambda t: t.x.T),
    ("transpose", lambda t: t.x.transpose(0, 1)),
    ("permute", lambda t: t.x.permute(1, 0)),
    ("unsqueeze", lambda t: t.x.unsqueeze(0)),
    ("squeeze", lambda t: t.x.squeeze()),
    ("flatten", lambda t: t.x.flatten()),
    ("add_", lambda t: t.written.add_(t.y)),
    ("mul_ by a number", lambda t: t.written.mul_(0.5)),
    ("zero_", lambda t: t.written.zero_()),
    ("copy_", lambda t: t.written.copy_(t.y)),
    ("arange", lambda t: t.m.arange(8)),
    ("x[i, j]", lambda t: t.x[1, 2]),
    ("x[1:4]", lambda t: t.x[1:4]),
    ("x[:, 1]", lambda t: t.x[:, 1]),
    ("x[None]", lambda t: t.x[None]),
    ("std", lambda t: t.x.std()),
    ("tensor([...])", lambda t: t.m.tensor([1.0, 2.0, 3.0])),
    ("tensor(1.)", lambda t: t.m.tensor(1.0)),
    ("x[i]", lambda t: t.x[1]),
    ("zeros", lambda t: t.m.zeros(8, 8)),
    ("ones", lambda t: t.m.ones(8, 8)),
    ("zeros_like", lambda t: t.m.zeros_like(t.x)),
    ("view", lambda t: t.x.view(64)),
    ("mean", lambda t: t.x.mean()),
    ("mean(dim)", lambda t: t.x.mean(1)),
    ("sum", lambda t: t.x.sum()),
    ("sum(dim)", lambda t: t.x.sum(1)),
    ("relu", lambda t: t.x.relu()),
    ("F.relu", lambda t: t.F.relu(t.x)),
    ("exp", lambda t: t.x.exp()),
    ("x + y", lambda t: t.x + t.y),
    ("x == y", lambda t: t.x == t.y),
    ("x @ y", lambda t: t.x @ t.y),
    ("item()", lambda t: t.one.item()),
    ("tolist()", lambda t: t.v.tolist()),
    ("numpy()", lambda t: t.x.numpy().shape),
    ("clone", lambda t: t.x.clone()),
    ("detach", lambda t: t.x.detach()),
    ("to(dtype)", lambda t: t.index.to(t.m.float64)),
    ("float()", lambda t: t.index.float()),
    ("long()", lambda t: t.x.long()),
    ("shape", lambda t: t.x.shape),
    ("no_grad", no_grad),
    ("zero_grad", lambda t: t.rule.zero_grad()),
    ("Identity()(x)", lambda t: t.identity(t.x)),
    ("ReLU()(x)", lambda t: t.relu(t.x)),
    ("Linear()(x)", lambda t: t.linear(t.x)),
    ("Linear()(stack)", lambda t: t.linear(t.part)),
    ("LayerNorm()(x)", lambda t: t.norm(t.part)),
    ("split", lambda t: t.stack.split(8, 2)),
    ("view of a part", lambda t: t.part.view(2, 8, 2, 4)),
    ("attention", lambda t: t.F.scaled_dot_product_attention(t.heads, t.heads, t.heads)),
    ("embedding", lambda t: t.F.embedding(t.index, t.x)),
    ("x[:, [-1]]", lambda t: t.x[:, [-1]]),
    ("allclose", lambda t: t.m.allclose(t.x, t.y)),
    ("any()", lambda t: t.mask.any()),
    ("nonzero", lambda t: t.mask.nonzero()),
    ("norm", lambda t: t.x.norm()),
    ("cumsum", lambda t: t.x.cumsum(1)),
    ("conv2d", lambda t: t.F.conv2d(t.images, t.filters, padding=1)),
    ("max_pool2d", lambda t: t.F.max_pool2d(t.images, 2)),
    ("avg_pool2d", lambda t: t.F.avg_pool2d(t.images, 2)),
    ("grid_sample", lambda t: t.F.grid_sample(t.images, t.grid, align_corners=False)),
    ("batch_norm", lambda t: t.F.batch_norm(t.images, t.mean, t.var)),
    ("group_norm", lambda t: t.F.group_norm(t.images, 2)),
    ("index + 1", lambda t: t.index + 1),
    ("mask & mask", lambda t: t.mask & t.mask),
    ("where(mask, x, 0.)", lambda t: t.m.where(t.mask, t.x, 0.0)),
    ("lerp, with gradient", lambda t: t.weight.lerp(t.x, 0.1)),
    ("tril", lambda t: t.x.tril()),
    ("equal", lambda t: t.x.equal(t.y)),
    ("diff", lambda t: t.x.diff()),
    ("randn", lambda t: t.m.randn(4, 4)),
    ("randint", lambda t: t.m.randint(0, 9, (4,))),
    ("h[:, 2] = v, with gradient", set_column),
    ("h[idx] = x, with gradient", set_places),
    ("h[1:3].add_(y), with gradient", lambda t: (t.weight * 1)[1:3].add_(t.y[1:3])),
    ("h.mul_(y), with gradient", lambda t: (t.weight * 1).mul_(t.y)),
    ("h.masked_fill_, with gradient", lambda t: (t.weight * 1).masked_fill_(t.mask, 0.0)),
    ("h.scatter_, with gradient", lambda t: (t.weight * 1).scatter_(1, t.square, t.y)),
    ("h.index_add_, with gradient", lambda t: (t.weight * 1).index_add_(0, t.index, t.y)),
    ("h.fill_, with gradient", lambda t: (t.weight * 1).fill_(2.0)),
    ("x[1:4], with gradient", lambda t: t.weight[1:4]),
    ("x[:, 1], with gradient", lambda t: t.weight[:, 1]),
    ("x[..., None], with gradient", lambda t: t.weight[..., None]),
    ("view, with gradient", lambda t: t.weight.view(64)),
    ("transpose, with gradient", lambda t: t.weight.transpose(0, 1)),
    ("chunk, with gradient", lambda t: t.weight.chunk(2)),
    ("unbind, with gradient", lambda t: t.weight.unbind()),
    ("cat, with gradient", lambda t: t.m.cat([t.weight, t.y])),
    ("stack, with gradient", lambda t: t.m.stack([t.weight, t.y])),
    ("views and back", views_and_back),
    ("x[idx, idx]", lambda t: t.x[t.index, t.index]),
    ("x[:, idx]", lambda t: t.x[:, t.index]),
    ("masked_select", lambda t: t.x.masked_select(t.mask)),
    ("scatter", lambda t: t.x.scatter(1, t.square, t.y)),
    ("scatter_add", lambda t: t.x.scatter_add(1, t.square, t.y)),
    ("cosine_similarity", lambda t: t.F.cosine_similarity(t.x, t.y)),
    ("nan_to_num", lambda t: t.x.nan_to_num()),
    ("rfft", lambda t: t.m.fft.rfft(t.v)),
    ("irfft", lambda t: t.m.fft.irfft(t.m.fft.rfft(t.v))),
    ("median", lambda t: t.x.median()),
    ("mode", lambda t: t.x.mode()),
    ("isin", lambda t: t.m.isin(t.index, t.index)),
    ("bucketize", lambda t: t.m.bucketize(t.v, t.x[0])),
    ("aminmax", lambda t: t.x.aminmax()),
    ("glu", lambda t: t.F.glu(t.x)),
    ("movedim", lambda t: t.x.movedim(0, 1)),
    ("unflatten", lambda t: t.x.unflatten(0, (2, 4))),
    ("unfold", lambda t: t.x.unfold(0, 2, 1)),
    ("full", lambda t: t.m.full((3, 3), 1.0)),
    ("full_like", lambda t: t.m.full_like(t.x, 2.0)),
    ("new_zeros", lambda t: t.x.new_zeros(3)),
    # By name, as most programs call them.
    ("sum(dim=, keepdim=)", lambda t: t.x.sum(dim=1, keepdim=True)),
    ("mean(dim=)", lambda t: t.x.mean(dim=1)),
    ("var(dim=, unbiased=)", lambda t: t.x.var(dim=1, unbiased=False)),
    ("max(dim=)", lambda t: t.x.max(dim=1)),
    ("topk(dim=)", lambda t: t.x.topk(3, dim=-1)),
    ("sort(dim=)", lambda t: t.x.sort(dim=1)),
    ("softmax(dim=)", lambda t: t.x.softmax(dim=-1)),
    ("cat(dim=)", lambda t: t.m.cat([t.x, t.y], dim=1)),
    ("stack(dim=)", lambda t: t.m.stack([t.x, t.y], dim=0)),
    ("chunk(dim=)", lambda t: t.x.chunk(2, dim=1)),
    ("flatten(start_dim=)", lambda t: t.x.flatten(start_dim=1)),
    ("unsqueeze(dim=)", lambda t: t.x.unsqueeze(dim=1)),
    ("cross_entropy(reduction=)", lambda t: t.F.cross_entropy(t.x, t.index, reduction="mean")),
    ("dropout(p=, training=)", lambda t: t.F.dropout(t.x, p=0.5, training=False)),
    ("one_hot(num_classes=)", lambda t: t.F.one_hot(t.index, num_classes=8)),
    ("zeros(dtype=)", lambda t: t.m.zeros(3, 3, dtype=t.m.float32)),
    ("zeros(device=)", lambda t: t.m.zeros(3, 3, device=t.x.device)),
    ("full(dtype=)", lambda t: t.m.full((3, 3), 1.0, dtype=t.m.float32)),
    ("arange(device=)", lambda t: t.m.arange(3, device=t.x.device)),
    ("zeros_like(dtype=)", lambda t: t.m.zeros_like(t.x, dtype=t.m.float32)),
    ("tensor(dtype=)", lambda t: t.m.tensor([1.0, 2.0], dtype=t.m.float32)),
    ("to(device)", lambda t: t.x.to(t.x.device)),
    ("contiguous", lambda t: t.x.contiguous()),
    ("data", lambda t: t.x.data),
)
RANDOM = {"dropout", "randn", "randint"}


def call(work: Callable[[Given], object]) -> Callable[[Any], Work]:
    """A call on what is given."""

    def build(m: Any) -> Work:
        given = Given(m)
        return lambda: work(given)

    return build


CASES = [
    Case(f"small: {name}", call(work), 1.1, 200, 40, random=name in RANDOM) for name, work in CALLS
]
