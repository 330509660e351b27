"""What is timed: a case builds the same work for either module, as a function to repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.benchmarks import memory_ops, small_calls
from tests.benchmarks.case import Case, Work, size, through
from tests.benchmarks.case import values as _values


def add(grad: bool) -> Callable[[Any], Work]:
    def build(m: Any) -> Work:
        a, b = _values(m, 10, grad=grad), _values(m, 10)
        return lambda: a + b

    return build


def scale(m: Any) -> Work:
    x = _values(m, 10)
    return lambda: x * 2.0


def hundred_multiplications(m: Any) -> Work:
    x, w = _values(m, 10, grad=True), _values(m, 10)

    def run() -> None:
        y = x
        for _ in range(100):
            y = y * w
        x.grad = None
        y.sum().backward()

    return run


def relu(m: Any) -> Work:
    x = _values(m, 64, 32)
    return x.relu


def total(m: Any) -> Work:
    x = _values(m, 10)
    return x.sum


def product(n: int) -> Callable[[Any], Work]:
    """The product of two square matrices."""

    def build(m: Any) -> Work:
        a, b = _values(m, n, n), _values(m, n, n)
        return lambda: a @ b

    return build


def gram(m: Any) -> Work:
    x = _values(m, 512, 128)
    return lambda: x @ x.T


def view(m: Any) -> Work:
    x = _values(m, 4, 6)
    return lambda: x.view(6, 4).t()[1]


def large(m: Any) -> Work:
    """A few million numbers through three ops: memory traffic rather than calls."""
    a, b = _values(m, 2000, 1000), _values(m, 2000, 1000)
    return lambda: (a * b + a).relu()


def on_a_million(work: Callable[[Any, Any, Any], object]) -> Callable[[Any], Work]:
    """An op on 1,000 x 1,000 float32."""

    def build(m: Any) -> Work:
        a, b = _values(m, 1000, 1000), _values(m, 1000, 1000)
        return lambda: work(m, a, b)

    return build


def training_step(optimizer: str) -> Callable[[Any], Work]:
    """64 x 784-256-256-10, cross-entropy: forward, backward and the optimizer's step."""

    def build(m: Any) -> Work:
        model = m.nn.Sequential(
            m.nn.Linear(784, 256),
            m.nn.ReLU(),
            m.nn.Linear(256, 256),
            m.nn.ReLU(),
            m.nn.Linear(256, 10),
        )
        with m.no_grad():
            for i, p in enumerate(model.parameters()):
                p.copy_(
                    m.sin(m.arange(p.numel(), dtype=m.float32) * (i + 1.7)).reshape(p.shape) * 0.05
                )
        rule = getattr(m.optim, optimizer)(model.parameters(), lr=1e-3)
        x, target = _values(m, 64, 784), m.arange(64) % 10
        cross_entropy = m.nn.functional.cross_entropy

        def run() -> None:
            rule.zero_grad()
            cross_entropy(model(x), target).backward()
            rule.step()

        return run

    return build


# -- layers, forward and backward -----------------------------------------------------------------


def _image(m: Any, shape: tuple[int, ...], last: bool) -> Any:
    x = _values(m, *shape)
    if last:
        x = x.to(memory_format=m.channels_last)
    return x.requires_grad_()


def convolution(
    images: tuple[int, ...], outputs: int, last: bool, grad: bool = True
) -> Callable[[Any], Work]:
    """3x3 kernels with padding 1, in channels-last or plain order."""

    def make(m: Any) -> Any:
        x = _image(m, images, last) if grad else _image(m, images, last).detach()
        layer = m.nn.Conv2d(images[1], outputs, 3, padding=1)
        if last:
            layer = layer.to(memory_format=m.channels_last)
        _fill(m, layer)
        return x, layer, list(layer.parameters())

    return through(make)


def _fill(m: Any, layer: Any) -> None:
    """The same parameters on both sides."""
    with m.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.copy_(m.sin(m.arange(p.numel(), dtype=m.float32) * (i + 1.7)).reshape(p.shape) * 0.1)


def layer(
    shape: tuple[int, ...], make_layer: Callable[[Any], Any], last: bool = False
) -> Callable[[Any], Work]:
    """A module on (B, C, ...), with the gradients of its parameters."""

    def make(m: Any) -> Any:
        made = make_layer(m)
        _fill(m, made)
        return _image(m, shape, last), made, list(made.parameters())

    return through(make)


def recurrent(m: Any) -> Any:
    """An LSTM over 16 steps of 32 sequences."""
    made = m.nn.LSTM(64, 128)
    _fill(m, made)
    return _values(m, 16, 32, 64, grad=True), lambda x: made(x)[0], list(made.parameters())


def cross_entropy(m: Any) -> Any:
    target = m.arange(1024) % 1000
    return _values(m, 1024, 1000, grad=True), lambda x: m.nn.functional.cross_entropy(x, target), []


def embedding(m: Any) -> Any:
    """4,096 rows of a table of 10,000, some of them several times."""
    table, rows = _values(m, 10_000, 64, grad=True), (m.arange(4096) * 37) % 3001
    return table, lambda w: m.nn.functional.embedding(rows, w), []


def dropout(m: Any) -> Work:
    """Random on both sides, so nothing is returned to compare."""
    x = _values(m, 1000, 1000, grad=True)
    g = _values(m, 1000, 1000)

    def run() -> None:
        x.grad = None
        m.nn.functional.dropout(x, 0.3).backward(g)

    return run


def attention(m: Any) -> Any:
    """4 batches of 8 heads, 256 places of 64 numbers, causal."""
    q, k, v = (_values(m, 4, 8, 256, 64, grad=True) for _ in range(3))
    return (
        q,
        lambda x: m.nn.functional.scaled_dot_product_attention(x, k, v, is_causal=True),
        [k, v],
    )


def transformer_block(m: Any) -> Work:
    """8 sequences of 64 vectors of 128 numbers, 4 heads, as it is written in nanoGPT: forward,
    backward and AdamW's step."""
    nn, F = m.nn, m.nn.functional

    class Block(nn.Module):  # type: ignore[misc]  # the base class is either side's
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.c_attn, self.c_proj = nn.Linear(128, 384), nn.Linear(128, 128)
            self.mlp = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))

        def forward(self, x: Any) -> Any:
            n, t, c = x.size()
            parts = self.c_attn(self.ln_1(x)).split(128, dim=2)
            q, k, v = (p.view(n, t, 4, c // 4).transpose(1, 2) for p in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.c_proj(y.transpose(1, 2).contiguous().view(n, t, c))
            return x + self.mlp(self.ln_2(x))

    block, x = Block(), _values(m, 8, 64, 128)
    _fill(m, block)
    rule = m.optim.AdamW(block.parameters(), lr=1e-4)

    def run() -> None:
        rule.zero_grad()
        block(x).pow(2).mean().backward()
        rule.step()

    return run


def uniformity(m: Any) -> Any:
    """log mean exp(-2 |a - b|^2) over pairs, by a product; Wang and Isola 2020."""

    def loss(x: Any) -> Any:
        norms = (x * x).sum(1)
        apart = (norms[:, None] + norms[None, :] - 2 * (x @ x.t())).clamp(min=0)
        return (apart * -2).exp().mean().log()

    return (_values(m, 1024, 128) * 0.1).requires_grad_(), loss, []


IMAGES = (
    ("32x1x28x28, 32 kernels", (32, 1, 28, 28), 32),
    ("32x32x14x14, 64 kernels", (32, 32, 14, 14), 64),
    ("16x64x32x32, 64 kernels", (16, 64, 32, 32), 64),
)
LAYERS: tuple[tuple[str, Callable[[Any], Any], float | None], ...] = (
    ("max pool", lambda m: m.nn.MaxPool2d(2), 0.9),
    ("max pool 3, stride 2", lambda m: m.nn.MaxPool2d(3, 2, 1), 0.9),
    ("average pool", lambda m: m.nn.AvgPool2d(2), 0.9),
    ("batch norm", lambda m: m.nn.BatchNorm2d(64), 0.9),
    ("group norm", lambda m: m.nn.GroupNorm(8, 64), 0.9),
)
TRAINED = [
    *(
        Case(
            f"conv {name}{', channels last' * last}",
            convolution(images, outputs, last),
            1.0,
            4,
            30,
            flops=3 * 2 * 9 * outputs * size(images),  # forward and two gradients
        )
        for last in (True, False)
        for name, images, outputs in IMAGES
    ),
    *(
        Case(
            f"{name} 16x64x32x32{', channels last' * last}",
            layer((16, 64, 32, 32), make, last),
            target,
            4,
            30,
        )
        for name, make, target in LAYERS
        for last in (False, True)
    ),
    Case(
        "layer norm 1000x1000, trained",
        layer((1000, 1000), lambda m: m.nn.LayerNorm(1000)),
        0.9,
        4,
        30,
    ),
    Case("softmax 1000x1000, trained", layer((1000, 1000), lambda m: m.nn.Softmax(1)), 0.9, 4, 30),
    Case(
        "log softmax 1000x1000, trained",
        layer((1000, 1000), lambda m: m.nn.LogSoftmax(1)),
        0.9,
        4,
        30,
    ),
    Case("cross entropy 1024x1000, trained", through(cross_entropy), 0.9, 4, 30),
    Case("embedding 4096 of 10000x64, trained", through(embedding), 0.9, 4, 30),
    Case("dropout 1000x1000, trained", dropout, 0.3, 4, 30),
    Case("uniformity loss 1024x128", through(uniformity), 0.6, 2, 20),
    Case("LSTM 64-128, 16 steps of 32", through(recurrent), 0.9, 2, 20),
    Case("attention 4x8x256x64, trained", through(attention), 0.9, 2, 20),
    Case("transformer block 8x64x128, AdamW", transformer_block, 0.9, 2, 20),
]


CASES = [
    Case("add of 10 floats", add(False), 0.6, inner=2000),
    Case("add of 10 floats, with gradient", add(True), 0.6, inner=2000),
    Case("x * 2.0", scale, 0.5, inner=2000),
    Case("100 multiplications, forward and backward", hundred_multiplications, 0.5, inner=10),
    Case("relu of 64x32", relu, inner=1000),
    Case("sum of 10 floats", total, inner=1000),
    Case("16x16 matrix product", product(16), inner=1000),
    *(
        Case(
            f"{n}x{n} matrix product",
            product(n),
            1.05,
            inner=max(2, 20_000_000 // n**3),
            flops=2 * n**3,
        )
        for n in (64, 128, 256, 512, 1024)
    ),
    Case("512x128 matrix by its transpose", gram, 1.1, inner=20, flops=512 * 513 * 128),
    Case("view, transpose, select", view, inner=500),
    Case("MLP step 64x784-256-256-10, SGD", training_step("SGD"), 0.8, inner=4),
    Case("MLP step 64x784-256-256-10, Adam", training_step("Adam"), 0.7, inner=4),
    Case("elementwise, 2 million floats", large, inner=2, samples=30),
    *(
        Case(f"{name}, 1 million floats", on_a_million(work), target, 4, 60, traffic)
        for name, work, target, traffic in (
            ("add", lambda m, a, b: a + b, 1.1, 12_000_000),
            ("exp", lambda m, a, b: a.exp(), 1.1, 8_000_000),
            ("tanh", lambda m, a, b: a.tanh(), 1.1, 8_000_000),
            ("sum", lambda m, a, b: a.sum(), 1.1, 4_000_000),
            ("mean over dim 0", lambda m, a, b: a.mean(0), 1.1, 4_000_000),
            ("mean over dim 1", lambda m, a, b: a.mean(1), 1.1, 4_000_000),
            ("softmax over dim 1", lambda m, a, b: a.softmax(1), None, 8_000_000),
            ("gelu", lambda m, a, b: m.nn.functional.gelu(a), None, 8_000_000),
            ("layer norm", lambda m, a, b: m.nn.functional.layer_norm(a, (1000,)), None, 8_000_000),
        )
    ),
    *TRAINED,
    *memory_ops.CASES,
    *small_calls.CASES,
]
