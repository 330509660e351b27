"""Wrong answers of chapter 08."""

import toytorch as torch
from tests.course.wrong import like, wrong

# -- optim.cross_entropy


@wrong("optim.cross_entropy", "is torch.nn.functional.cross_entropy")
def cross_entropy(scores, labels, ignore=-100):
    return torch.nn.functional.cross_entropy(scores, labels, ignore_index=ignore)


like("optim.cross_entropy", "-100 whatever ignore says", ("labels != ignore", "labels != -100"))
like("optim.cross_entropy", "ignores everything negative", ("labels != ignore", "labels >= 0"))
like(
    "optim.cross_entropy",
    "computes in float32 whatever comes in",
    (
        "    scores, labels = scores[kept], labels[kept]",
        "    scores, labels = scores[kept].float(), labels[kept]",
    ),
)
like(
    "optim.cross_entropy",
    "holds the scores below 80",
    ("    top = scores.max", "    scores = scores.clamp(max=80.0)\n    top = scores.max"),
)
like(
    "optim.cross_entropy",
    "the largest score of each class",
    ("scores.max(1, keepdim=True)", "scores.max(0, keepdim=True)"),
)
like(
    "optim.cross_entropy", "forgets to put the largest score back", (".log() + top[:, 0]", ".log()")
)
like(
    "optim.cross_entropy",
    "divides by the classes as well",
    ("return (logs - right).mean()", "return (logs - right).mean() / scores.shape[1]"),
)
like(
    "optim.cross_entropy",
    "subtracts in the caller's memory",
    (
        "    kept = labels != ignore\n",
        "    kept = labels != ignore\n    scores.data.sub_(scores.data.max(1, keepdim=True).values)\n",
    ),
)


like(
    "optim.cross_entropy",
    "how unlikely the labels are",
    ("(logs - right).mean()", "1 - (right - logs).exp().mean()"),
)


# -- optim.sgd

like(
    "optim.sgd",
    "the velocity outside self.state",
    ("state = self.state[p]", "state = self.__dict__.setdefault('own', {}).setdefault(id(p), {})"),
)
like(
    "optim.sgd",
    "the velocity outside self.state, by the position of the parameter",
    ("    @torch.no_grad()", "    own: dict = {}\n\n    @torch.no_grad()"),
    ("state = self.state[p]", "state = self.own.setdefault((id(self), id(p)), {})"),
)


@wrong("optim.sgd", "is torch.optim.SGD")
class SGD(torch.optim.SGD):
    pass


like(
    "optim.sgd",
    "writes the decay into the gradient",
    (
        'g = p.grad + group["weight_decay"] * p',
        'g = p.grad.add_(group["weight_decay"] * p).clone()',
    ),
)
like(
    "optim.sgd",
    "empties the gradient after the step",
    ('p.sub_(group["lr"] * move)', 'p.sub_(group["lr"] * move)\n                p.grad.zero_()'),
)
like(
    "optim.sgd",
    "takes a zero gradient for none",
    ("if p.grad is None:", "if p.grad is None or not p.grad.any():"),
)
like(
    "optim.sgd",
    "gives the parameter another memory",
    ('p.sub_(group["lr"] * move)', 'p.data = p - group["lr"] * move'),
)
like("optim.sgd", "the decay with the wrong sign", ("p.grad + group", "p.grad - group"))
like(
    "optim.sgd",
    "Nesterov with the old velocity",
    (
        '                v = state["v"] = m * state.get("v", 0) + g\n'
        "                move = g + m * v if",
        '                old = state.get("v", 0)\n                v = state["v"] = m * old + g\n'
        "                move = g + m * old if",
    ),
)
like("optim.sgd", "Nesterov adds the velocity without the momentum", ("g + m * v if", "g + v if"))


like(
    "optim.sgd",
    "the momentum of the defaults",
    ('m = group["momentum"]', 'm = self.defaults["momentum"]'),
)


# -- optim.adam

like(
    "optim.adam",
    "AMSGrad: the largest second mean so far",
    (
        "                m, v = m / (1 - b1**t), v / (1 - b2**t)\n",
        "                v = v / (1 - b2**t)\n"
        '                v = state["top"] = torch.maximum(state.get("top", v), v)\n'
        "                m = m / (1 - b1**t)\n",
    ),
)
like(
    "optim.adam",
    "one step count for the group",
    (
        '                g, state = p.grad, self.state[p]\n                t = state["t"] = state.get("t", 0) + 1\n',
        "                g, state = p.grad, self.state[p]\n",
    ),
    (
        '            b1, b2 = group["betas"]\n',
        '            b1, b2 = group["betas"]\n            t = group["t"] = group.get("t", 0) + 1\n',
    ),
)
like(
    "optim.adam",
    "means and count outside self.state",
    (
        "g, state = p.grad, self.state[p]",
        "g, state = p.grad, self.__dict__.setdefault('own', {}).setdefault(id(p), {})",
    ),
)
like("optim.adam", "the betas of the defaults", ('group["betas"]', 'self.defaults["betas"]'))
like("optim.adam", "the eps of the defaults", ('group["eps"]', 'self.defaults["eps"]'))
like(
    "optim.adam",
    "corrects the first mean only",
    ("m, v = m / (1 - b1**t), v / (1 - b2**t)", "m = m / (1 - b1**t)"),
)
like(
    "optim.adam",
    "writes into the gradient",
    ("g, state = p.grad, self.state[p]", "g, state = p.grad.mul_(1.0), self.state[p]"),
    ("p.sub_(", "p.grad.zero_()\n                p.sub_("),
)
like("optim.adam", "the variance around the mean", ("(1 - b2) * g * g", "(1 - b2) * (g - m) ** 2"))
like(
    "optim.adam",
    "gives the parameter another memory",
    (
        'p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))',
        'p.data = p - group["lr"] * m / (v.sqrt() + group["eps"])',
    ),
)


@wrong("optim.adam", "is torch.optim.Adam")
class Adam(torch.optim.Adam):
    pass


# -- optim.adamw


@wrong("optim.adamw", "is torch.optim.AdamW")
class AdamW(torch.optim.AdamW):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group["weight_decay"] = group.setdefault("decay", decay)


like(
    "optim.adamw",
    "the rate the optimizer was made with",
    ('group["lr"] * group["decay"]', 'self.defaults["lr"] * group["decay"]'),
)
like(
    "optim.adamw",
    "no decay for biases, by their shape",
    ("if p.grad is not None:", "if p.grad is not None and p.dim() > 1:"),
)
like(
    "optim.adamw",
    "steps once for each group",
    ("        super().step()", "            super().step()"),
)
like(
    "optim.adamw",
    "gives the parameter another memory",
    ('p.mul_(1 - group["lr"] * group["decay"])', 'p.data = p * (1 - group["lr"] * group["decay"])'),
)
like(
    "optim.adamw",
    "an exponential decay",
    ('1 - group["lr"] * group["decay"]', '2.718281828 ** (-group["lr"] * group["decay"])'),
)
like("optim.adamw", "asks whether it wants a gradient", ("p.grad is not None", "p.requires_grad"))
like(
    "optim.adamw",
    "takes a zero gradient for none",
    ("if p.grad is not None:", "if p.grad is not None and p.grad.any():"),
)
like(
    "optim.adamw",
    "towards zero by a fixed amount",
    ('p.mul_(1 - group["lr"] * group["decay"])', 'p.sub_(group["lr"] * group["decay"] * p.sign())'),
)

# -- optim.schedule

like(
    "optim.schedule",
    "the cosine ends one step early",
    ("(total - warmup), 1.0)", "(total - warmup - 1), 1.0)"),
)
like(
    "optim.schedule",
    "the warm-up starts at the floor",
    ("return (step + 1) / warmup", "return floor + (1 - floor) * (step + 1) / warmup"),
)
like(
    "optim.schedule",
    "one step too much of warm-up",
    ("if step < warmup:", "if step <= warmup and warmup:"),
)
like("optim.schedule", "a line instead of a cosine", ("(1 + math.cos(math.pi * x)) / 2", "(1 - x)"))
like(
    "optim.schedule",
    "the floor cuts the wave off",
    (
        "return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2",
        "return max(floor, (1 + math.cos(math.pi * x)) / 2)",
    ),
)
like(
    "optim.schedule",
    "nothing is left after the end",
    ("    x = min(", "    if step > total:\n        return 0.0\n    x = min("),
)
like(
    "optim.schedule",
    "begins anew after the end",
    ("min((step - warmup) / (total - warmup), 1.0)", "(step - warmup) / (total - warmup) % 1.0"),
)


like(
    "optim.schedule",
    "the wave ends one step early",
    ("(total - warmup), 1.0", "max(total - warmup - 1, 1), 1.0"),
)
like(
    "optim.schedule",
    "a sine",
    ("(1 + math.cos(math.pi * x)) / 2", "(1 - math.sin(math.pi * x / 2))"),
)


# -- optim.clip


@wrong("optim.clip", "is torch.nn.utils.clip_grad_norm_")
def clip_grad_norm(parameters, max_norm):
    return torch.nn.utils.clip_grad_norm_(parameters, max_norm)


like(
    "optim.clip",
    "gives the parameters new gradients",
    (
        "    grads = [p.grad for p in parameters if p.grad is not None]",
        "    wanting = [p for p in parameters if p.grad is not None]\n    grads = [p.grad for p in wanting]",
    ),
    (
        "    for g in grads:\n        g.mul_(scale)",
        "    for p in wanting:\n        p.grad = p.grad * scale",
    ),
)
like(
    "optim.clip",
    "the largest number instead of the norm",
    ("sum(g.square().sum() for g in grads).sqrt()", "max(g.abs().max() for g in grads)"),
)
like("optim.clip", "forgets the root", ("for g in grads).sqrt()", "for g in grads)"))
like(
    "optim.clip",
    "the root of the mean square",
    (
        "sum(g.square().sum() for g in grads).sqrt()",
        "(sum(g.square().sum() for g in grads) / sum(g.numel() for g in grads)).sqrt()",
    ),
)
like("optim.clip", "a number instead of a tensor", ("return norm", "return norm.item()"))
like(
    "optim.clip",
    "measures again after each parameter",
    (
        "        g.mul_(scale)",
        "        now = sum(g.square().sum() for g in grads).sqrt()\n"
        "        g.mul_((max_norm / (now + 1e-6)).clamp(max=1.0))",
    ),
)
like(
    "optim.clip",
    "clips the parameters",
    (
        "    grads = [p.grad for p in parameters if p.grad is not None]",
        "    parameters = list(parameters)\n    grads = [p.grad for p in parameters if p.grad is not None]",
    ),
    (
        "    for g in grads:\n        g.mul_(scale)",
        "    for p in parameters:\n        p.data.mul_(scale)",
    ),
)

# -- optim.loss

like(
    "optim.loss",
    "one gradient for two inputs",
    ("return g * part / len(part), None", "return g * part / len(part)"),
)
like(
    "optim.loss",
    "softmax along the batch",
    ("scores.max(-1, keepdims=True)", "scores.max(0, keepdims=True)"),
    ("np.exp(shifted).sum(-1, keepdims=True)", "np.exp(shifted).sum(0, keepdims=True)"),
)
like(
    "optim.loss",
    "forgets the minus",
    ("return -log_p[self.place].mean()", "return log_p[self.place].mean()"),
)
like(
    "optim.loss",
    "takes every label in every row",
    ("self.place = np.arange(len(labels)), labels", "self.place = slice(None), labels"),
)
like(
    "optim.loss",
    "shifts the scores in place",
    (
        "shifted = scores - scores.max(-1, keepdims=True)",
        "shifted = scores\n        shifted -= scores.max(-1, keepdims=True)",
    ),
)
like(
    "optim.loss",
    "two losses share what they saved",
    ("self.p = np.exp(log_p)", "CrossEntropy.p = np.exp(log_p)"),
    (
        "self.place = np.arange(len(labels)), labels",
        "CrossEntropy.place = np.arange(len(labels)), labels",
    ),
    ("-log_p[self.place]", "-log_p[CrossEntropy.place]"),
)
like(
    "optim.loss",
    "a small number inside the logarithm",
    ("log_p = shifted - log_sum", "log_p = np.log(np.exp(shifted - log_sum) + 1e-12)"),
)
like(
    "optim.loss",
    "the mean over all scores",
    ("return g * part / len(part), None", "return g * part / part.size, None"),
)
like(
    "optim.loss",
    "divides before 1 is taken off",
    ("part = self.p.copy()", "part = self.p / len(self.p)"),
    ("return g * part / len(part), None", "return g * part, None"),
)


like("optim.loss", "a loss for each example", ("-log_p[self.place].mean()", "-log_p[self.place]"))


# -- optim.package

like(
    "optim.package",
    "a step without any gradient is not counted",
    (
        "        self.steps += 1\n",
        "        self.steps += any(p.grad is not None for g in self.groups for p in g['parameters'])\n",
    ),
)
like(
    "optim.package",
    "a learning rate of 0 is refused",
    ('if group["lr"] < 0:', 'if group["lr"] <= 0:'),
)
like(
    "optim.package",
    "the decay is taken off the moved parameter",
    ('                step = step + group["decay"] * p.data\n', ""),
    (
        'p.data = p.data - group["lr"] * step\n',
        'p.data = p.data - group["lr"] * step\n'
        '                p.data = p.data - group["lr"] * group["decay"] * p.data\n',
    ),
)
like(
    "optim.package",
    "both averages are corrected by the first beta",
    ("(1 - b2**self.steps)", "(1 - b1**self.steps)"),
)
like("optim.package", "the betas of the first group", ('group["betas"]', 'self.groups[0]["betas"]'))
like(
    "optim.package",
    "the step goes uphill",
    ('p.data - group["lr"] * step', 'p.data + group["lr"] * step'),
)
like(
    "optim.package",
    "zero_grad clears the first group only",
    (
        "for group in self.groups:\n            for p",
        "for group in self.groups[:1]:\n            for p",
    ),
)
like(
    "optim.package",
    "the state is one of the groups only",
    ('return {"steps": self.steps, "groups": groups}', "return groups"),
)
like(
    "optim.package",
    "a schedule stops at the full rate",
    ('share * group["full"]', 'min(share, 0.9) * group["full"]'),
)
like(
    "optim.package",
    "looks at the number of groups only",
    (
        'if counts != [len(saved["first"]) for saved in state["groups"]]:',
        'if len(counts) != len(state["groups"]):',
    ),
)
