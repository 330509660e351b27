"""Steps of the programs that people learn with, against PyTorch.

    python -m tests.benchmarks.programs [-k TEXT]

Small nets and small batches, where much of the time goes into calls: a step of training, or of a
policy, or of generating text. One thread, samples of the two in turn, ratios of medians.
`test_programs.py` holds that both sides compute the same losses.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks import nets

Step = Callable[[], Any]
PROGRAMS: dict[str, Callable[[Any], Step]] = {}


def program(function: Callable[[Any], Step]) -> Callable[[Any], Step]:
    """Registers a program: of a module (torch, or toytorch) it makes a step, which gives its loss."""
    PROGRAMS[function.__name__.replace("_", " ")] = function
    return function


def trained(net: Any, optimizer: Any, loss: Callable[[Any], Any]) -> Step:
    """A step of training."""

    def step() -> Any:
        optimizer.zero_grad()
        found = loss(net)
        found.backward()
        optimizer.step()
        return found

    return step


def adam(m: Any, net: Any, loss: Callable[[Any], Any]) -> Step:
    return trained(net, m.optim.Adam(net.parameters(), 1e-3), loss)


# -- images -----------------------------------------------------------------------------------------


def classified(m: Any, net: Any, *shape: int) -> Step:
    """A step of a net that tells images of a shape apart."""
    x, t = m.randn(*shape), m.randint(10, shape[:1])
    return adam(m, net, lambda n: m.nn.functional.cross_entropy(n(x), t))


@program
def lenet(m: Any) -> Step:
    return classified(m, nets.lenet(m), 64, 1, 28, 28)


@program
def small_resnet(m: Any) -> Step:
    net, x, t = nets.resnet(m), m.randn(16, 3, 32, 32), m.randint(10, (16,))
    optimizer = m.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    return trained(net, optimizer, lambda n: m.nn.functional.cross_entropy(n(x), t))


@program
def inverted_residuals(m: Any) -> Step:
    return classified(m, nets.mobile(m), 16, 3, 32, 32)


@program
def vision_transformer(m: Any) -> Step:
    net, x, t = nets.vit(m), m.randn(8, 3, 32, 32), m.randint(10, (8,))
    return adam(m, net, lambda n: m.nn.functional.cross_entropy(n(x), t, label_smoothing=0.1))


@program
def u_net(m: Any) -> Step:
    net, x = nets.unet(m), m.randn(8, 1, 28, 28)
    return adam(m, net, lambda n: m.nn.functional.mse_loss(n(x), x))


@program
def volumes(m: Any) -> Step:
    return classified(m, nets.volumes(m), 2, 1, 16, 16, 16)


@program
def variational_autoencoder(m: Any) -> Step:
    net, x = nets.autoencoder(m), m.rand(128, 784)

    def loss(n: Any) -> Any:
        made, mu, log_var = n(x)
        apart = m.nn.functional.binary_cross_entropy(made, x, reduction="sum")
        return apart - 0.5 * m.sum(1 + log_var - mu.pow(2) - log_var.exp())

    return adam(m, net, loss)


@program
def adversarial_nets(m: Any) -> Step:
    generator, critic, bce = *nets.adversaries(m), m.nn.BCELoss()
    of_critic, of_generator = (
        m.optim.Adam(n.parameters(), 2e-4, betas=(0.5, 0.999)) for n in (critic, generator)
    )
    x, real, fake = m.rand(32, 1, 16, 16), m.ones(32), m.zeros(32)

    def step() -> Any:
        made = generator(m.randn(32, 32, 1, 1))
        of_critic.zero_grad()
        loss = bce(critic(x).view(-1), real) + bce(critic(made.detach()).view(-1), fake)
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        fooled = bce(critic(made).view(-1), real)
        fooled.backward()
        of_generator.step()
        return loss + fooled

    return step


@program
def classify_one_image(m: Any) -> Step:
    net, x = nets.classifier(m).eval(), m.randn(1, 3, 32, 32)

    @m.no_grad()
    def step() -> Any:
        return net(x).softmax(1).max(1)[0]

    return step


# -- sequences --------------------------------------------------------------------------------------


def characters(kind: str) -> Callable[[Any], Step]:
    def of(m: Any) -> Step:
        net = nets.characters(m, kind)
        x, t = m.randint(65, (16, 32)), m.randint(65, (16, 32)).reshape(-1)
        return adam(m, net, lambda n: m.nn.functional.cross_entropy(n(x).reshape(-1, 65), t))

    return of


PROGRAMS |= {f"characters, {kind}": characters(kind) for kind in ("RNN", "LSTM", "GRU")}


@program
def small_gpt(m: Any) -> Step:
    net, x, t = nets.gpt(m), m.randint(65, (8, 64)), m.randint(65, (8, 64)).view(-1)
    optimizer = m.optim.AdamW(net.parameters(), 3e-4)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = m.nn.functional.cross_entropy(net(x).view(-1, 65), t)
        loss.backward()
        m.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


@program
def heads_one_by_one(m: Any) -> Step:
    net, x, t = nets.heads(m), m.randint(65, (32, 8)), m.randint(65, (32, 8)).view(-1)
    return adam(m, net, lambda n: m.nn.functional.cross_entropy(n(x).view(-1, 65), t))


@program
def generate_five_tokens(m: Any) -> Step:
    net, x = nets.gpt(m).eval(), m.randint(65, (1, 16))

    @m.no_grad()
    def step() -> Any:
        tokens = x
        for _ in range(5):
            logits = net(tokens)[:, -1, :]
            largest, _ = m.topk(logits, 10)
            logits[logits < largest[:, [-1]]] = -float("inf")
            chances = m.nn.functional.softmax(logits, dim=-1)
            tokens = m.cat((tokens, m.multinomial(chances, 1)), 1)
        return tokens.float().sum()

    return step


@program
def encoder_layers(m: Any) -> Step:
    layer = m.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    net, x = m.nn.TransformerEncoder(layer, 2), m.randn(8, 16, 32)
    return adam(m, net, lambda n: (n(x) ** 2).mean())


@program
def attention_and_GRU(m: Any) -> Step:
    net, x, y = nets.Translator(m), m.randint(50, (10, 16)), m.randint(50, (10, 16))
    return adam(m, net.whole, lambda _: net.loss(x, y))


@program
def names(m: Any) -> Step:
    """A net by hand over three letters, with a batch norm of its parts."""
    table, first, shift = m.randn(27, 10), m.randn(30, 200) * 0.1, m.randn(200) * 0.01
    last, bias, gain, beside = m.randn(200, 27) * 0.01, m.zeros(27), m.ones(1, 200), m.zeros(1, 200)
    parameters = [table, first, shift, last, bias, gain, beside]
    for p in parameters:
        p.requires_grad = True
    x, y = m.randint(27, (32, 3)), m.randint(27, (32,))

    def step() -> Any:
        h = table[x].view(32, -1) @ first + shift
        h = gain * (h - h.mean(0, keepdim=True)) / h.std(0, keepdim=True) + beside
        loss = m.nn.functional.cross_entropy(m.tanh(h) @ last + bias, y)
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        return loss

    return step


@program
def speech(m: Any) -> Step:
    net, out = m.nn.LSTM(20, 32, bidirectional=True), m.nn.Linear(64, 12)
    x, t = m.randn(30, 4, 20), m.randint(1, 12, (4, 8))
    steps, letters = m.full((4,), 30), m.full((4,), 8)
    whole = m.nn.ModuleList([net, out])

    def loss(_: Any) -> Any:
        return m.nn.functional.ctc_loss(out(net(x)[0]).log_softmax(2), t, steps, letters)

    return adam(m, whole, loss)


@program
def temporal_convolutions(m: Any) -> Step:
    net, x, t = nets.temporal(m), m.randn(16, 1, 196), m.randint(10, (16,))
    return adam(m, net, lambda n: m.nn.functional.nll_loss(n(x).log_softmax(1), t))


# -- decisions --------------------------------------------------------------------------------------


@program
def q_learning(m: Any) -> Step:
    net, slow = (nets.mlp(m, (4, 64, 64, 2), m.nn.ReLU) for _ in range(2))
    slow.load_state_dict(net.state_dict())
    optimizer = m.optim.Adam(net.parameters())
    state, action, reward = m.randn(64, 4), m.randint(2, (64, 1)), m.rand(64)

    def step() -> Any:
        with m.no_grad():
            wanted = reward + 0.99 * slow(state).max(1)[0]
        loss = m.nn.functional.smooth_l1_loss(net(state).gather(1, action).squeeze(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        m.nn.utils.clip_grad_value_(net.parameters(), 100)
        optimizer.step()
        with m.no_grad():
            for p, q in zip(net.parameters(), slow.parameters()):
                q.mul_(0.995).add_(p, alpha=0.005)
        return loss

    return step


@program
def policy_optimization(m: Any) -> Step:
    policy, value = (nets.mlp(m, (4, 64, n), m.nn.Tanh) for n in (2, 1))
    both = m.nn.ModuleList([policy, value])
    state, action = m.randn(64, 4), m.randint(2, (64,))
    advantage, gain, before = m.randn(64), m.randn(64), m.full((64,), -0.69)

    def loss(_: Any) -> Any:
        choice = m.distributions.Categorical(logits=policy(state))
        ratio = (choice.log_prob(action) - before).exp()
        better = m.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        error = (value(state).squeeze() - gain).pow(2).mean()
        return -better + 0.5 * error - 0.01 * choice.entropy().mean()

    return adam(m, both, loss)


@program
def choose_an_action(m: Any) -> Step:
    policy, state = nets.mlp(m, (4, 64, 2), m.nn.Tanh), m.randn(4)

    @m.no_grad()
    def step() -> Any:
        choice = m.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        return choice.log_prob(action) + action.item()

    return step


# -- tables, graphs, equations ----------------------------------------------------------------------


@program
def linear_regression_by_hand(m: Any) -> Step:
    w, b = m.zeros(3, requires_grad=True), m.zeros(1, requires_grad=True)
    x, y = m.randn(100, 3), m.randn(100)

    def step() -> Any:
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with m.no_grad():
            for p in (w, b):
                p.sub_(0.1 * p.grad)
                p.grad.zero_()
        return loss

    return step


@program
def graph_convolutions(m: Any) -> Step:
    edges, x, t = m.rand(200, 200).round(), m.randn(200, 50), m.randint(7, (200,))
    degree = edges.sum(1).rsqrt()
    spread = degree[:, None] * edges * degree
    first, last = m.nn.Linear(50, 16), m.nn.Linear(16, 7)
    f = m.nn.functional

    def loss(_: Any) -> Any:
        h = f.dropout(f.relu(spread @ first(x)), 0.5)
        return f.nll_loss(f.log_softmax(spread @ last(h), 1), t)

    return adam(m, m.nn.ModuleList([first, last]), loss)


@program
def recommendations(m: Any) -> Step:
    users, films = m.nn.Embedding(1000, 16), m.nn.Embedding(1000, 16)
    net = nets.mlp(m, (32, 32, 1), m.nn.ReLU)
    i, j, y = m.randint(1000, (256,)), m.randint(1000, (256,)), m.rand(256).round()

    def loss(_: Any) -> Any:
        score = net(m.cat([users(i), films(j)], 1)).squeeze(1)
        return m.nn.functional.binary_cross_entropy_with_logits(score, y)

    return adam(m, m.nn.ModuleList([users, films, net]), loss)


@program
def contrastive_pairs(m: Any) -> Step:
    net, x, y = nets.mlp(m, (128, 64, 32), m.nn.ReLU), m.randn(64, 128), m.randn(64, 128)
    f = m.nn.functional

    def loss(n: Any) -> Any:
        alike = f.normalize(n(x), dim=1) @ f.normalize(n(y), dim=1).t() / 0.1
        own = m.arange(64)
        return (f.cross_entropy(alike, own) + f.cross_entropy(alike.t(), own)) / 2

    return adam(m, net, loss)


@program
def triplets(m: Any) -> Step:
    net, apart = nets.mlp(m, (128, 64, 32), m.nn.ReLU), m.nn.TripletMarginLoss()
    x, y, z = (m.randn(32, 128) for _ in range(3))
    return adam(m, net, lambda n: apart(n(x), n(y), n(z)))


@program
def mixture_density(m: Any) -> Step:
    body = nets.mlp(m, (1, 32), m.nn.Tanh, last=True)
    weight, mean, size = (m.nn.Linear(32, 5) for _ in range(3))
    x, y = m.randn(128, 1), m.randn(128, 1)

    def loss(_: Any) -> Any:
        h = body(x)
        normal = m.distributions.Normal(mean(h), m.exp(size(h)))
        chances = normal.log_prob(y) + m.nn.functional.log_softmax(weight(h), -1)
        return -m.logsumexp(chances, -1).mean()

    return adam(m, m.nn.ModuleList([body, weight, mean, size]), loss)


@program
def gaussian_process(m: Any) -> Step:
    x = m.linspace(0, 1, 50)
    y = m.sin(6 * x)
    length, noise = (m.tensor(v, requires_grad=True) for v in (0.0, -2.0))
    optimizer = m.optim.Adam([length, noise], 0.001)

    def loss(_: Any) -> Any:
        apart = (x[:, None] - x[None]) / length.exp()
        factor = m.linalg.cholesky(m.exp(-0.5 * apart**2) + m.eye(50) * noise.exp())
        solved = m.cholesky_solve(y[:, None], factor)
        return 0.5 * (y[:, None] * solved).sum() + factor.diagonal().log().sum()

    return trained(None, optimizer, loss)


@program
def radiance_field(m: Any) -> Step:
    net = nets.mlp(m, (39, 64, 64, 4), m.nn.ReLU)
    points, scales = m.rand(1024, 3), 2.0 ** m.arange(6)

    def loss(n: Any) -> Any:
        angles = (points[:, None] * scales[:, None]).flatten(1)
        out = n(m.cat([points, angles.sin(), angles.cos()], -1)).view(32, 32, 4)
        opaque = 1 - m.exp(-m.nn.functional.relu(out[..., 3]))
        through = m.cumprod(m.cat([m.ones(32, 1), 1 - opaque + 1e-10], 1), 1)[:, :-1]
        seen = ((opaque * through)[..., None] * m.sigmoid(out[..., :3])).sum(1)
        return (seen - 0.5).pow(2).mean()

    return adam(m, net, loss)


@program
def learn_to_learn(m: Any) -> Step:
    sizes = ((1, 40), (40,), (40, 1))
    parameters = [(m.randn(*s) * 0.3).requires_grad_() for s in sizes]
    x = m.randn(10, 1)
    y, f = m.sin(x), m.nn.functional

    def error(p: list[Any]) -> Any:
        return f.mse_loss(m.relu(x @ p[0] + p[1]) @ p[2], y)

    def step() -> Any:
        slopes = m.autograd.grad(error(parameters), parameters, create_graph=True)
        after = error([p - 0.01 * g for p, g in zip(parameters, slopes)])
        after.backward()
        for p in parameters:
            p.grad = None
        return after

    return step


@program
def differential_equation(m: Any) -> Step:
    net, x = nets.mlp(m, (1, 32, 32, 1), m.nn.Tanh), m.linspace(0, 1, 64)[:, None].requires_grad_()

    def loss(n: Any) -> Any:
        u = n(x)
        (slope,) = m.autograd.grad(u.sum(), x, create_graph=True)
        (curve,) = m.autograd.grad(slope.sum(), x, create_graph=True)
        return (curve + u).pow(2).mean()

    return adam(m, net, loss)


@program
def steps_of_an_ODE(m: Any) -> Step:
    net, start = nets.mlp(m, (2, 50, 2), m.nn.Tanh), m.randn(20, 2)

    def loss(n: Any) -> Any:
        y = start
        for _ in range(10):
            y = y + 0.1 * n(y + 0.05 * n(y))
        return y.abs().mean()

    return adam(m, net, loss)


@program
def optimal_transport(m: Any) -> Step:
    cost = m.rand(50, 50)

    def step() -> Any:
        u, v = m.zeros(50), m.zeros(50)
        for _ in range(10):
            u = -m.logsumexp(v[None] - cost, 1)
            v = -m.logsumexp(u[:, None] - cost, 0)
        return u.sum() + v.sum()

    return step


@program
def k_means(m: Any) -> Step:
    x = m.randn(500, 8)
    start = x[:10].clone()

    def step() -> Any:
        nearest = m.cdist(x, start).argmin(1)
        return m.stack([x[nearest == k].mean(0) for k in range(10)]).sum()

    return step


# -- the command ------------------------------------------------------------------------------------


def ratio(steps: tuple[Step, Step], samples: int = 15) -> tuple[float, float]:
    """The ratio of the medians of two steps, and the first median in seconds."""
    for step in steps:
        for _ in range(4):
            step()
    start = time.perf_counter()
    steps[1]()
    calls = max(1, int(0.004 / (time.perf_counter() - start)))
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(samples):
        for times, step in zip(taken, steps):
            start = time.perf_counter()
            for _ in range(calls):
                step()
            times.append((time.perf_counter() - start) / calls)
    ours, theirs = map(statistics.median, taken)
    return ours / theirs, ours


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks.programs", description=__doc__)
    p.add_argument("-k", default="", metavar="TEXT", help="only programs whose name holds this")
    options = p.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # which the libraries read when they are loaded
    import torch as theirs

    import toytorch as ours

    found = []
    for name, make in PROGRAMS.items():
        if options.k not in name:
            continue
        steps = []
        for m in (ours, theirs):
            m.set_num_threads(1)
            m.manual_seed(0)
            steps.append(make(m))
        times, seconds = ratio((steps[0], steps[1]))
        found.append(times)
        print(f"{name:28}{times:6.2f}  {seconds * 1e6:8.0f} µs", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, found)))
    print(
        f"{len(found)} programs, geometric mean {mean:.2f}, one thread, PyTorch {theirs.__version__}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
