"""Names letter by letter: counted pairs, one layer, a perceptron with norms by hand, a tree of layers."""

import torch
import torch.nn.functional as F

WORDS = """emma olivia ava isabella sophia charlotte mia amelia harper evelyn abigail emily elizabeth mila
ella avery sofia camila aria scarlett victoria madison luna grace chloe penelope layla riley zoey nora lily
eleanor hannah lillian addison aubrey ellie stella natalie zoe leah hazel violet aurora savannah""".split()
chars = sorted(set("".join(WORDS)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}
V = len(itos)

N = torch.zeros((V, V), dtype=torch.int32)
for w in WORDS:
    chs = ["."] + list(w) + ["."]
    for a, b in zip(chs, chs[1:]):
        N[stoi[a], stoi[b]] += 1
P = (N + 1).float()
P /= P.sum(1, keepdim=True)
g = torch.Generator().manual_seed(2147483647)
for _ in range(4):
    out, ix = [], 0
    while True:
        ix = torch.multinomial(P[ix], num_samples=1, replacement=True, generator=g).item()
        out.append(itos[ix])
        if ix == 0:
            break
    print("".join(out))
xs = torch.tensor([stoi[c] for w in WORDS for c in "." + w])
ys = torch.tensor([stoi[c] for w in WORDS for c in w + "."])
print(f"{-P[xs, ys].log().mean():.4f}", xs.nelement())

W = torch.randn((V, V), generator=g, requires_grad=True)
for k in range(6):
    logits = F.one_hot(xs, num_classes=V).float() @ W
    counts = logits.exp()
    probs = counts / counts.sum(1, keepdims=True)
    loss = -probs[torch.arange(len(xs)), ys].log().mean() + 0.01 * (W**2).mean()
    W.grad = None
    loss.backward()
    W.data += -20 * W.grad
    print(f"{k}: {loss.item():.4f}")

BLOCK = 4


def build(words):
    X, Y = [], []
    for w in words:
        context = [0] * BLOCK
        for ch in w + ".":
            X.append(context)
            Y.append(stoi[ch])
            context = context[1:] + [stoi[ch]]
    return torch.tensor(X), torch.tensor(Y)


Xtr, Ytr = build(WORDS[:40])
Xdev, Ydev = build(WORDS[40:])

g = torch.Generator().manual_seed(2147483647)
C = torch.randn((V, 6), generator=g)
W1 = torch.randn((6 * BLOCK, 32), generator=g) * (5 / 3) / ((6 * BLOCK) ** 0.5)
W2, b2 = torch.randn((32, V), generator=g) * 0.1, torch.randn(V, generator=g) * 0
gain, bias = torch.ones((1, 32)), torch.zeros((1, 32))
running_mean, running_std = torch.zeros((1, 32)), torch.ones((1, 32))
params = [C, W1, W2, b2, gain, bias]
for p in params:
    p.requires_grad = True
for i in range(120):
    ix = torch.randint(0, Xtr.shape[0], (32,), generator=g)
    emb = C[Xtr[ix]]
    pre = emb.view(emb.shape[0], -1) @ W1
    mean, std = pre.mean(0, keepdim=True), pre.std(0, keepdim=True)
    h = torch.tanh(gain * (pre - mean) / std + bias)
    logits = h @ W2 + b2
    with torch.no_grad():
        running_mean = 0.99 * running_mean + 0.01 * mean
        running_std = 0.99 * running_std + 0.01 * std
    loss = F.cross_entropy(logits, Ytr[ix])
    for p in params:
        p.grad = None
    loss.backward()
    for p in params:
        p.data += -(0.1 if i < 80 else 0.01) * p.grad
    if i % 30 == 0:
        print(f"{i:4d}: {loss.item():.4f} saturated {(h.abs() > 0.99).float().mean():.3f}")


def cmp(name, dt, t):
    exact = torch.all(dt == t.grad).item()
    close = torch.allclose(dt, t.grad, atol=1e-6)
    print(f"{name:8s} close {close} shape {tuple(dt.shape)} {exact in (True, False)}")


h.retain_grad() if h.requires_grad and h.grad_fn is not None else None
ix = torch.arange(16)
emb = C[Xtr[ix]]
flat = emb.view(16, -1)
flat.retain_grad()
pre = flat @ W1
h = torch.tanh(pre)
h.retain_grad()
logits = h @ W2 + b2
logits.retain_grad()
loss = F.cross_entropy(logits, Ytr[ix])
for p in params:
    p.grad = None
loss.backward()
dlogits = F.softmax(logits, 1)
dlogits[range(16), Ytr[ix]] -= 1
dlogits /= 16
dh = dlogits @ W2.T
dpre = (1.0 - h**2) * dh
dflat = dpre @ W1.T
dC = torch.zeros_like(C).index_add_(0, Xtr[ix].view(-1), dflat.view(-1, 6))
for name, dt, t in (("logits", dlogits, logits), ("h", dh, h), ("W2", h.T @ dlogits, W2), ("b2", dlogits.sum(0), b2),
                    ("W1", flat.T @ dpre, W1), ("flat", dflat, flat), ("C", dC, C)):  # fmt: skip
    cmp(name, dt, t)


class Linear:
    def __init__(self, fan_in, fan_out, bias=True):
        self.weight = torch.randn((fan_in, fan_out)) / fan_in**0.5
        self.bias = torch.zeros(fan_out) if bias else None

    def __call__(self, x):
        self.out = x @ self.weight
        if self.bias is not None:
            self.out += self.bias
        return self.out

    def parameters(self):
        return [self.weight] + ([] if self.bias is None else [self.bias])


class BatchNorm1d:
    def __init__(self, dim, eps=1e-5, momentum=0.1):
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gamma, self.beta = torch.ones(dim), torch.zeros(dim)
        self.running_mean, self.running_var = torch.zeros(dim), torch.ones(dim)

    def __call__(self, x):
        if self.training:
            dim = 0 if x.ndim == 2 else (0, 1)
            mean, var = x.mean(dim, keepdim=True), x.var(dim, keepdim=True)
            with torch.no_grad():
                self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * var
        else:
            mean, var = self.running_mean, self.running_var
        self.out = self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta
        return self.out

    def parameters(self):
        return [self.gamma, self.beta]


class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out

    def parameters(self):
        return []


class Embedding(Linear):
    def __init__(self, count, dim):
        self.weight, self.bias = torch.randn((count, dim)), None

    def __call__(self, i):
        self.out = self.weight[i]
        return self.out


class Flatten(Tanh):
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        B, T, D = x.shape
        x = x.view(B, T // self.n, D * self.n)
        self.out = x.squeeze(1) if x.shape[1] == 1 else x
        return self.out


layers = [
    Embedding(V, 6),
    Flatten(2), Linear(12, 20, bias=False), BatchNorm1d(20), Tanh(),
    Flatten(2), Linear(40, 20, bias=False), BatchNorm1d(20), Tanh(),
    Linear(20, V),
]  # fmt: skip
with torch.no_grad():
    layers[-1].weight *= 0.1
parameters = [p for layer in layers for p in layer.parameters()]
for p in parameters:
    p.requires_grad = True
print(sum(p.nelement() for p in parameters))


def model(x):
    for layer in layers:
        x = layer(x)
    return x


lossi = []
for i in range(100):
    ix = torch.randint(0, Xtr.shape[0], (32,))
    loss = F.cross_entropy(model(Xtr[ix]), Ytr[ix])
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.1 * p.grad
    lossi.append(loss.log10().item())
print(torch.tensor(lossi).view(-1, 25).mean(1))
for layer in layers:
    layer.training = False
with torch.no_grad():
    print(
        f"dev {F.cross_entropy(model(Xdev), Ydev):.4f}",
        [tuple(layer.out.shape) for layer in layers[1:4]],
    )
    context = [0] * BLOCK
    probs = F.softmax(model(torch.tensor([context])), dim=1)
    print(torch.multinomial(probs, num_samples=5).shape, f"{probs.max():.3f}")
