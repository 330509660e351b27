"""Wrong answers of chapter 19."""

import numpy as np

from mytorch.module import Module
from mytorch.tensor import Tensor
from tests.course.wrong import like, wrong

# -- capstone.embedding


@wrong("capstone.embedding", "looks rows up outside of the graph")
class Embedding(Module):
    def __init__(self, count, size, seed=None):
        rows = np.random.default_rng(seed).normal(size=(count, size))
        self.weight = Tensor(rows, requires_grad=True)

    def forward(self, tokens):
        return Tensor(self.weight.data[tokens])


@wrong("capstone.embedding", "unknown letters become zeros")
class Embedding(Module):
    def __init__(self, count, size, seed=None):
        rows = np.random.default_rng(seed).normal(size=(count, size))
        self.weight = Tensor(rows, requires_grad=True)

    def forward(self, tokens):
        count = len(self.weight.data)
        return Tensor(np.asarray(tokens)[..., None] == np.arange(count)) @ self.weight


like(
    "capstone.embedding",
    "one gradient for two inputs",
    ("return part, None", "return part"),
)
like(
    "capstone.embedding",
    "two look-ups share their letters",
    (
        "self.shape, self.tokens = table.shape, np.asarray(tokens)",
        "Embedding.Rows.shape, Embedding.Rows.tokens = table.shape, np.asarray(tokens)",
    ),
)
like(
    "capstone.embedding",
    "the second way back adds to the first",
    (
        "            return table[self.tokens]",
        "            self.part = np.zeros(self.shape)\n            return table[self.tokens]",
    ),
    ("            part = np.zeros(self.shape)\n", "            part = self.part\n"),
)
like(
    "capstone.embedding",
    "flattens the letters",
    ("np.asarray(tokens)", "np.asarray(tokens).ravel()"),
)
like(
    "capstone.embedding",
    "starts with small numbers",
    (".normal(size=(count, size))", ".normal(scale=0.02, size=(count, size))"),
)
like(
    "capstone.embedding",
    "the seed is not used",
    ("np.random.default_rng(seed)", "np.random.default_rng()"),
)

# -- capstone.norm

like(
    "capstone.norm",
    "a difference of large squares",
    (
        "variance = (centred * centred).mean(-1, keepdims=True)",
        "mean = x.mean(-1, keepdims=True)\n"
        "        variance = (x * x).mean(-1, keepdims=True) - mean * mean",
    ),
)
like(
    "capstone.norm",
    "epsilon is always 1e-5",
    ("self.eps = eps", "self.eps = 1e-5"),
)
like(
    "capstone.norm",
    "takes the mean off the input itself",
    (
        "centred = x - x.mean(-1, keepdims=True)",
        "x.data -= x.data.mean(-1, keepdims=True)\n        centred = x - x.mean(-1, keepdims=True)",
    ),
)
like("capstone.norm", "forgets the root", ("** -0.5", "** -1"))
like(
    "capstone.norm",
    "squares that are not centred",
    ("(centred * centred)", "(x * x)"),
)
like(
    "capstone.norm",
    "the mean stays in the result",
    ("return centred * scale", "return x * scale"),
)
like(
    "capstone.norm",
    "all vectors together",
    ("x - x.mean(-1, keepdims=True)", "x - x.mean()"),
    ("(centred * centred).mean(-1, keepdims=True)", "(centred * centred).mean()"),
)
like(
    "capstone.norm",
    "shifts before it scales",
    (
        "return centred * scale * self.weight + self.bias",
        "return (centred * scale + self.bias) * self.weight",
    ),
)
like(
    "capstone.norm",
    "divides by the mean deviation",
    (
        "variance = (centred * centred).mean(-1, keepdims=True)",
        "variance = ((centred * centred) ** 0.5).mean(-1, keepdims=True) ** 2",
    ),
)


like("capstone.norm", "multiplies by the deviation", ("** -0.5", "** 0.5"))


# -- capstone.attention

like(
    "capstone.attention",
    "masks after softmax",
    (
        "        future = np.triu(np.full((time, time), -np.inf), 1)\n        scores = scores + future\n",
        "",
    ),
    ("p = e / e.sum(-1, keepdims=True)", "p = e / e.sum(-1, keepdims=True) * np.tri(time)"),
)
like(
    "capstone.attention",
    "masked scores are 0",
    ("scores = scores + future", "scores = scores * np.isfinite(future)"),
)
like(
    "capstone.attention",
    "one maximum for all rows",
    ("scores.data.max(-1, keepdims=True)", "scores.data.max()"),
)
like(
    "capstone.attention",
    "the maximum of what is masked, too",
    (
        "        scores = scores + future\n        e = (scores - scores.data.max(-1, keepdims=True)).exp()",
        "        scores = scores - scores.data.max(-1, keepdims=True)\n        e = (scores + future).exp()",
    ),
)
like(
    "capstone.attention",
    "the weights without their gradient",
    ("p = e / e.sum(-1, keepdims=True)", "p = Tensor(e.data / e.data.sum(-1, keepdims=True))"),
)
like(
    "capstone.attention",
    "remembers the first text's mask",
    (
        "        future = np.triu(np.full((time, time), -np.inf), 1)\n        scores = scores + future\n",
        '        if not hasattr(self, "future"):\n'
        "            self.future = np.triu(np.full((time, time), -np.inf), 1)\n"
        "        scores = scores + self.future\n",
    ),
)
like(
    "capstone.attention",
    "rows and columns of the scores are exchanged",
    ("q @ k.transpose(2, 3)", "k @ q.transpose(2, 3)"),
)
like(
    "capstone.attention",
    "heads take every n-th number",
    (
        "        x = x.reshape(batch, time, self.heads, size // self.heads)\n"
        "        return x.transpose(1, 2)",
        "        x = x.reshape(batch, time, size // self.heads, self.heads)\n"
        "        return x.transpose(2, 3).transpose(1, 2)",
    ),
)
like(
    "capstone.attention",
    "keys are queries",
    ("k = self.split(self.key(x))", "k = self.split(self.query(x))"),
)


# -- capstone.gpt

like(
    "capstone.gpt",
    "the second half looks at what the first one was given",
    ("x = x + self.attend[n](self.before[n](x))", "y = x + self.attend[n](self.before[n](x))"),
    ("return x + self.narrow[n](wide)", "return y + self.narrow[n](wide)"),
)
like(
    "capstone.gpt",
    "the network is as wide as the rest",
    ("Linear(size, 4 * size, seed", "Linear(size, size, seed"),
    ("Linear(4 * size, size, seed", "Linear(size, size, seed"),
)
like(
    "capstone.gpt",
    "texts that are too long are cut",
    (
        '            raise ValueError(f"{length} letters, at most {self.time}")\n',
        "            tokens, length = tokens[:, -self.time :], self.time\n",
    ),
)
like(
    "capstone.gpt",
    "blocks from last to first",
    ("for n in range(len(self.before)):", "for n in reversed(range(len(self.before))):"),
)
like(
    "capstone.gpt",
    "the loss of the last letter only",
    ("rows = scores.reshape(-1, letters)", "rows = Tensor(scores.data[:, -1])"),
    ("tokens[:, 1:].ravel()", "tokens[:, -1]"),
)
like(
    "capstone.gpt",
    "the decay the wrong way round",
    ('{"parameters": rest, "decay": decay}', '{"parameters": rest, "decay": 0.0}'),
    ('{"parameters": flat, "decay": 0.0}', '{"parameters": flat, "decay": decay}'),
)
like(
    "capstone.gpt",
    "the new letters alone",
    ("        return tokens", "        return tokens[-count:]"),
)
like(
    "capstone.gpt",
    "letters as NumPy's integers",
    ("int(scores.argmax())", "scores.argmax()"),
)
like(
    "capstone.gpt",
    "one letter too many",
    ("for _ in range(count):", "for _ in range(count + 1):"),
)
like(
    "capstone.gpt",
    "top after softmax, and not to 1 again",
    (
        "            if top is not None:\n                least = np.sort(scores)[-top]\n"
        "                scores = np.where(scores < least, -np.inf, scores)\n",
        "",
    ),
    (
        "            p = p / p.sum()\n",
        "            p = p / p.sum()\n"
        "            if top is not None:\n                p = np.where(p < np.sort(p)[-top], 0.0, p)\n",
    ),
)
