"""Programs about tensors."""

from __future__ import annotations

from typing import List, Optional

import toytorch as torch
import toytorch.nn.functional as F
from tests.jit.script.case import G, T, V, X, calls


@calls((X, X), (G, X))
def tensor_arithmetic(x, y):
    return x + y, x - y * 2, x / 4, 2 * x, 3 - x, -x, x**2, 1 / (x * x + 1)


@calls((X,))
def tensor_integers(x):
    y = x.long()
    return y // 2, y % 3, y & 3, y | 1, ~y, y << 1, abs(y)


@calls((X, V))
def tensor_products(x, v):
    return x @ v, x.matmul(v), torch.mm(x, x.t()), x * v


@calls((X,))
def tensor_comparisons(x):
    return x > 0, x == 1.0, 0 < x, x != 3, (x >= 1) & (x <= 4), x.eq(x)


@calls((X,))
def tensor_indexing(x):
    return x[0], x[0, 1], x[:, 1], x[..., 0], x[0, ...], x[None], x[:, None, 1:], x[1:, ::2], x[-1]


@calls((X,))
def tensor_advanced_indexing(x):
    i = torch.tensor([0, 1])
    return x[i], x[i, i], x[:, i], x[x > 0], x[[1, 0]], x[1, i]


@calls((X,))
def tensor_writes(x):
    y = x.clone()
    y[0] = 5.0
    y[1, 2] = y[0, 0] + 1
    y[:, 1] = torch.zeros(2)
    y[y > 5] = -1.0
    y[0, 0] += 2
    return y


@calls((X,), (G,))
def tensor_inplace(x):
    y = x * 1
    y += 1
    y *= 2
    y -= x
    y.add_(3).mul_(0.5)
    return y


@calls((X,))
def inplace_aliases(x):
    y = x.clone()
    z = y
    z += 1
    return y, z


@calls((X,))
def tensor_methods(x):
    return x.sum(), x.sum(0), x.sum(dim=1, keepdim=True), x.mean(), x.max(), x.abs().sqrt()


@calls((X,))
def tensor_shapes(x):
    a, b = x.shape
    return x.size(), x.size(0), x.shape[1], x.dim(), x.numel(), a * b, x.ndim, len(x)


@calls((X,))
def tensor_views(x):
    return x.view(3, 2), x.view(-1), x.reshape(6, 1), x.t(), x.permute(1, 0), x.view([2, -1])


@calls((X,))
def tensor_pairs(x):
    values, indices = torch.max(x, 1)
    top = x.topk(2)
    low = x.min(dim=0)
    return values, indices, top.values, top[1], low.indices


@calls((X,))
def tensor_splits(x):
    a, b = x.unbind(0)
    parts = torch.split(x, 2, 1)
    c, d, e = x.chunk(3, dim=1)
    return a + b, parts[0], len(parts), c + d + e


@calls((X,))
def tensor_factories(x):
    n = x.size(0)
    return (
        torch.zeros(n, 2),
        torch.ones_like(x),
        torch.arange(n),
        torch.full([2], 1.5),
        torch.eye(n),
        torch.tensor([1.0, 2.0]),
        torch.tensor([[n, 1]]),
        x.new_zeros(2),
    )


@calls((X,))
def tensor_dtypes(x):
    y = torch.zeros(2, dtype=torch.float64)
    return y, x.to(torch.float64), x.double().dtype == torch.float64, x.int(), x.type_as(y)


@calls((X,), (G,))
def functional(x):
    return (
        F.relu(x),
        F.softmax(x, dim=1),
        F.gelu(x),
        F.layer_norm(x, [3]),
        F.leaky_relu(x, negative_slope=0.1),
        F.normalize(x),
    )


@calls((X, T([0, 2])))
def losses(x, target):
    return (
        F.cross_entropy(x, target),
        F.mse_loss(x, x + 1),
        F.nll_loss(F.log_softmax(x, 1), target, reduction="sum"),
    )


@calls((T([3.0]),), (T([-3.0]),))
def tensor_as_test(x):
    if x > 0:
        return x * 2
    return x - 1


@calls((T([3.0]),), (T([-3.0]),))
def tensor_while(x):
    n = 0
    while x.sum() < 10 and n < 5:
        x = x + 2
        n += 1
    return x, n


@calls((X,))
def tensor_to_number(x):
    return int(x[0, 0]), float(x[0, 1]), bool(x[0, 0] > 0), x.sum().item()


@calls((X,))
def tensor_iteration(x):
    s = torch.zeros(3)
    for row in x:
        s = s + row
    return s


@calls((X, 3), (G, 3))
def tensor_loop(x, n: int):
    y = x
    for i in range(n):
        y = torch.tanh(y + i) * x
    return y


@calls((X,), (G,))
def iou_like(x):
    low = torch.minimum(x, x * 2)
    high = torch.maximum(x, -x)
    return (high - low).clamp(min=0).prod(1) / (1 + x.abs().sum(1))


@calls((X, V, V), (G, V, V))
def lstm_like(x, w, b):
    i, f = torch.sigmoid(x * w + b), torch.sigmoid(x * b - w)
    c = f * x + i * torch.tanh(x)
    return torch.tanh(c) * i, c


@calls((X, True), (X, False), (G, True))
def tensor_branch(x, flag: bool):
    if flag:
        y = x * 2
    else:
        y = x.sum()
    return y + 1


@calls((X, None), (X, V), (G, V))
def optional_bias(x, bias: Optional[torch.Tensor] = None):
    if bias is not None:
        x = x + bias
    return x * 2


@calls(([X, X],), ([G, X],))
def list_argument(xs: List[torch.Tensor]):
    out = xs[0]
    for x in xs[1:]:
        out = out * x + 1
    return out


@calls((X,))
def where_and_mask(x):
    mask = x > 0
    return torch.where(mask, x, torch.zeros_like(x)), x.masked_fill(mask, 0.0)


@calls((X,))
def cumulative(x):
    return x.cumsum(1), torch.cumprod(x, dim=0), x.cummax(1)[0]


@calls((X,))
def sorting(x):
    values, order = x.sort(dim=1, descending=True)
    return values, order, torch.argsort(x, dim=1), x.argmax(), x.argmax(dim=1)


@calls((X,))
def concatenation(x):
    return torch.cat([x, x], dim=1), torch.stack((x, x), 0), torch.cat((x, x * 2))


@calls((X,))
def keyword_arguments(x):
    return (
        torch.sum(input=x, dim=1),
        x.std(dim=1, unbiased=False),
        torch.add(x, x, alpha=2),
        torch.clamp(x, max=2.0),
    )


@calls((X,))
def einsum_call(x):
    return torch.einsum("ij,kj->ik", [x, x])


@calls((X,))
def transposes(x):
    return x.T, x.transpose(0, 1), x.unsqueeze(0).squeeze(0), x.flatten(), x.expand(2, 2, 3)


@calls((X,))
def linear_algebra(x):
    a = x @ x.t() + torch.eye(2)
    return torch.linalg.det(a), torch.linalg.inv(a), torch.linalg.norm(x), torch.det(a)


@calls((G,))
def no_grad_block(x):
    y = x * 2
    with torch.no_grad():
        z = y * 3
    return y, z, z.requires_grad


@calls((G,))
def detached(x):
    y = x.detach() * 2
    return x * y, y.requires_grad


@calls((X,))
def tensor_equal(x):
    return torch.equal(x, x), torch.allclose(x, x + 1), x.is_floating_point()


@calls((X, 2))
def dynamic_shape(x, n: int):
    return x.repeat(n, 1), x.expand(n, 2, 3).sum(), torch.zeros(x.shape), x.reshape(x.size(1), -1)


@calls((X,))
def gathering(x):
    i = torch.tensor([[0, 1], [2, 0]])
    return x.gather(1, i), x.index_select(1, i[0]), torch.take(x, i)


@calls((X,))
def mixed_scalars(x):
    k = x.numel()
    r = k / 2
    return x * k, x + r, k * x - r, x**k


@calls((X,))
def returns_dict(x):
    return {"a": x, "b": x.sum()}


@calls((X,))
def returns_list(x):
    return [x, x + 1]


@calls((X, 4))
def horner(x, n: int):
    y = torch.zeros_like(x)
    for i in range(n, 0, -1):
        y = y * x + i
    return y


@calls((T([1.0, 4.0, 9.0]),))
def newton(a):
    x = torch.ones_like(a)
    for _ in range(20):
        step = (x - a / x) * 0.5
        if bool(step.abs().max() < 1e-7):
            break
        x = x - step
    return x


def scaled(x, k: float = 2.0):
    return x * k


@calls((X,), (G,))
def calls_tensor_function(x):
    return scaled(x) + scaled(x, 0.5) + scaled(k=3.0, x=x)


@calls((X,))
def string_of_shape(x):
    return f"{x.size(0)}x{x.size(1)}"


@calls((X,))
def device_and_dtype(x):
    y = torch.zeros([2], dtype=x.dtype, device=x.device)
    return y, x.device == y.device


@calls((T([1, 0, 1], dtype="bool"),))
def masks(m):
    return ~m, m & m, m | ~m, m.sum(), m.any(), m.all()


@calls((X,))
def unpacked_shape(x):
    n, *rest = (x.size(0), x.size(1), 1)
    return n, rest


@calls((X, 1), (X, 5))
def early_tensor_return(x, n: int):
    for i in range(n):
        x = x * 2
        if x.sum() > 20:
            return x
        elif i == 3:
            return -x
    return x + 100


@calls((X,))
def attention_like(x):
    q = x.unsqueeze(0)
    scores = torch.softmax(q @ q.transpose(-2, -1) / x.size(-1) ** 0.5, dim=-1)
    return scores @ q
