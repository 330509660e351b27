"""Causal self-attention with several heads."""

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise
from mytorch.linear import Linear
from mytorch.module import Module
from mytorch.tensor import Tensor

attention = Exercise(
    "capstone.attention",
    "Attention",
    chapter=19,
    minutes=45,
    prompt="""
    Each place of a text looks back at the places before it and takes over what it finds useful
    (Vaswani et al. 2017). From x of shape (batch, time, size) three linear layers make queries,
    keys and values:

    $$\\mathrm{attention}(q, k, v) = \\mathrm{softmax}\\left(\\frac{q k^\\top}{\\sqrt d}\\right) v.$$

    1. **Heads.** `split` turns (batch, time, size) into (batch, heads, time, d), d = size / heads:
       `reshape` to (batch, time, heads, d), then exchange two dimensions. A `size` that `heads` does
       not divide is a `ValueError`.
    2. **Scores.** `q @ kᵀ / √d`, of shape (batch, heads, time, time): row i says how much place i
       attends to each place j. Without √d they grow with d, and softmax saturates.
    3. **The mask.** No place may look ahead: where j > i the score is −∞, so its weight is 0.
       `np.triu(np.full((time, time), -np.inf), 1)` is 0 on and below the diagonal.
    4. **Softmax, mixing, joining.** Softmax along the last dimension, with each row's maximum
       subtracted (as a number: it cancels, so no gradient is needed). Then `p @ v`, back to (batch,
       time, size), and the last linear layer, `out`. The length of the text may change from call to
       call.

    For one head, d = 1, q = [1, 2], k = [0, 1], v = [10, 20]: the scores are [[0, 1], [0, 2]], masked
    [[0, −∞], [0, 2]], the weights [[1, 0], [0.12, 0.88]], and the result [10, 18.8].
    """,
    without=(
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.functional.multi_head_attention_forward",
        "torch.nn.MultiheadAttention",
        "torch.nn.functional.softmax",
    ),
    hints=(
        """
        Let every tensor have four dimensions, (batch, heads, ...): `@` then multiplies the matrices of all
        batches and heads at once, and nothing needs a loop. Write the shape beside each line. The mask is
        a plain array of shape (time, time). It broadcasts, and is added *before* softmax, so that the
        weights that are left sum to 1.
        """,
        """
        x of shape (2, 5, 6) with 3 heads, so d = 2:

        | what | shape |
        | --- | --- |
        | query(x), key(x), value(x) | (2, 5, 6) |
        | reshaped | (2, 5, 3, 2) |
        | q, k, v: dimensions 1 and 2 exchanged | (2, 3, 5, 2) |
        | k with its last two dimensions exchanged | (2, 3, 2, 5) |
        | scores, and the weights p | (2, 3, 5, 5) |
        | p @ v | (2, 3, 5, 2) |
        | exchanged back | (2, 5, 3, 2) |
        | reshaped, and after `out` | (2, 5, 6) |

        The numbers of one head, for three places:

        * Scores: [[1, 2, 0], [0, 1, 3], [1, 1, 2]].

        * With the mask: [[1, −∞, −∞], [0, 1, −∞], [1, 1, 2]].

        * Each row's maximum subtracted: [[0, −∞, −∞], [−1, 0, −∞], [−1, −1, 0]].

        * The exponentials: [[1, 0, 0], [0.37, 1, 0], [0.37, 0.37, 1]].

        * Divided by each row's sum: [[1, 0, 0], [0.27, 0.73, 0], [0.21, 0.21, 0.58]].
        """,
        """
        ```python
        class Attention(Module):
            def __init__(self, size, heads, seed=0):
                if size % heads:
                    raise ValueError(f"{heads} heads do not divide {size}")
                self.heads = heads
                self.query = Linear(size, size, seed=(seed, 0))
                self.key = Linear(size, size, seed=(seed, 1))
                self.value = Linear(size, size, seed=(seed, 2))
                self.out = Linear(size, size, seed=(seed, 3))

            def split(self, x):
                batch, time, size = x.data.shape
                x = x.reshape(...)
                return ...

            def forward(self, x):
                batch, time, size = x.data.shape
                q = self.split(self.query(x))
                k = ...
                v = ...
                scores = ...  # (batch, heads, time, time)
                future = ...  # (time, time)
                scores = scores + future
                e = (scores - ...).exp()  # each row's maximum, as a number
                p = ...
                mixed = ...  # back to (batch, time, size)
                return self.out(mixed)
        ```
        """,
    ),
)


@attention.reference(stub={
    "split": "stage 1, your code here: about 3 lines",
    "forward": "stages 2 to 4, your code here: about 11 lines",
})
class Attention(Module):
    """Causal self-attention with several heads: softmax(q kᵀ / √d) v."""

    def __init__(self, size, heads, seed=0):
        if size % heads:
            raise ValueError(f"{heads} heads do not divide {size}")
        self.heads = heads
        self.query = Linear(size, size, seed=(seed, 0))
        self.key = Linear(size, size, seed=(seed, 1))
        self.value = Linear(size, size, seed=(seed, 2))
        self.out = Linear(size, size, seed=(seed, 3))

    def split(self, x):
        """(batch, time, size) to (batch, heads, time, size / heads)."""
        batch, time, size = x.data.shape
        x = x.reshape(batch, time, self.heads, size // self.heads)
        return x.transpose(1, 2)

    def forward(self, x):
        batch, time, size = x.data.shape
        q = self.split(self.query(x))
        k = self.split(self.key(x))
        v = self.split(self.value(x))
        scores = q @ k.transpose(2, 3) / np.sqrt(size // self.heads)
        future = np.triu(np.full((time, time), -np.inf), 1)
        scores = scores + future
        e = (scores - scores.data.max(-1, keepdims=True)).exp()
        p = e / e.sum(-1, keepdims=True)
        mixed = (p @ v).transpose(1, 2).reshape(batch, time, size)
        return self.out(mixed)


attention.changed(
    "looks ahead",
    """
    Nothing was masked, so each place sees the letters that it is to predict. The training loss
    becomes very small. But when the model writes, there are no later letters to look at, and it
    fails.
    """,
    ("scores = scores + future", "pass"),
)

attention.changed(
    "masks the past",
    """
    The triangle is the wrong way round: places see what comes after them, and not what came before.
    """,
    ("np.triu(np.full((time, time), -np.inf), 1)", "np.tril(np.full((time, time), -np.inf), -1)"),
)

attention.changed(
    "does not see itself",
    """
    The mask covers the diagonal as well. So no place can look at itself, and in the first row every
    score is −∞.
    """,
    ("np.triu(np.full((time, time), -np.inf), 1)", "np.triu(np.full((time, time), -1e9), 0)"),
)

attention.changed(
    "scores are not scaled",
    """
    The variance of a sum of d products is d. Dividing by √d keeps the scores' size, whatever d is.
    """,
    (" / np.sqrt(size // self.heads)", ""),
)

attention.changed(
    "scaled by the whole size",
    """
    Each head sums over its own d = size / heads products, so √d is meant.
    """,
    ("np.sqrt(size // self.heads)", "np.sqrt(size)"),
)

attention.changed(
    "softmax along the wrong dimension",
    """
    The weights of one place, over all places that it looks at, sum to 1: along the last dimension.
    """,
    ("p = e / e.sum(-1, keepdims=True)", "p = e / e.sum(-2, keepdims=True)"),
)

attention.changed(
    "heads are cut out of the time",
    """
    `reshape(batch, heads, time, d)` reads the elements in memory's order, so a head gets whole
    places instead of a part of each. First (batch, time, heads, d), then exchange.
    """,
    (
        (
            "        x = x.reshape(batch, time, self.heads, size // self.heads)\n"
            "        return x.transpose(1, 2)"
        ),
        "        return x.reshape(batch, self.heads, time, size // self.heads)",
    ),
)

attention.changed(
    "heads are not put back in order",
    """
    Before joining, time and heads have to be exchanged back. Otherwise the numbers of different
    places end up in one vector.
    """,
    (
        "mixed = (p @ v).transpose(1, 2).reshape(batch, time, size)",
        "mixed = (p @ v).reshape(batch, time, size)",
    ),
)

attention.changed(
    "the last layer is missing",
    """
    `out` mixes what the heads have found. Without it, each head fills its own part of the vector, and
    the parts never meet.
    """,
    ("return self.out(mixed)", "return mixed"),
)

attention.changed(
    "keys and values are exchanged",
    """
    Scores are products of queries and keys; what is mixed are the values.
    """,
    ("scores = q @ k.transpose(2, 3)", "scores = q @ v.transpose(2, 3)"),
    ("mixed = (p @ v)", "mixed = (p @ k)"),
)

attention.changed(
    "overflows for large scores",
    """
    exp(800) is infinite, and infinite / infinite is NaN. Subtract each row's own maximum first: it
    cancels in the quotient.
    """,
    ("e = (scores - scores.data.max(-1, keepdims=True)).exp()", "e = scores.exp()"),
)

attention.changed(
    "a head count that does not divide",
    """
    With 10 elements and 4 heads, `size // heads` loses two elements, or reshaping fails far from the
    cause. Refuse it at once.
    """,
    ("if size % heads:", "if False:"),
)

attention.changed(
    "masks after softmax",
    """
    Weights were set to 0 after they had been made to sum to 1. What is left of a row sums to less, and
    places early in the text get vectors that are too small. Mask the scores, with −∞.
    """,
    (
        (
            "        future = np.triu(np.full((time, time), -np.inf), 1)\n"
            "        scores = scores + future\n"
        ),
        "",
    ),
    ("p = e / e.sum(-1, keepdims=True)", "p = e / e.sum(-1, keepdims=True) * np.tri(time)"),
)

attention.changed(
    "masked scores are 0",
    """
    A score of 0 is not *no attention*: exp(0) is 1. Only a score of −∞ has the weight 0, so the mask is
    added and not multiplied.
    """,
    ("scores = scores + future", "scores = scores * np.isfinite(future)"),
)

attention.changed(
    "remembers the first text's mask",
    """
    The mask was made once and kept. It has the first text's length, and the next text may be shorter or
    longer, as when the model writes letter by letter.
    """,
    (
        "        future = np.triu(np.full((time, time), -np.inf), 1)\n",
        (
            '        if not hasattr(self, "mask"):\n'
            "            self.mask = np.triu(np.full((time, time), -np.inf), 1)\n"
        ),
    ),
    ("scores = scores + future", "scores = scores + self.mask"),
)

attention.changed(
    "the weights without their gradient",
    """
    The weights were computed from `.data`, which have no graph. So the gradient reaches the values,
    but not the queries and keys, and these are never trained.
    """,
    (
        "p = e / e.sum(-1, keepdims=True)",
        "p = Tensor(e.data / e.data.sum(-1, keepdims=True))",
    ),
)

attention.changed(
    "rows and columns of the scores are exchanged",
    """
    Row i belongs to the place that looks, so it is made of query i and all keys: q @ kᵀ. With k @ qᵀ, each
    place is asked what it offers, and the mask and softmax work along the wrong side.
    """,
    ("q @ k.transpose(2, 3)", "k @ q.transpose(2, 3)"),
)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


NAMES = ("query", "key", "value", "out")


def _layer(Attention, size, heads, scale=1.0):
    layer = Attention(size, heads, seed=0)
    for n, name in enumerate(NAMES):
        part = getattr(layer, name)
        part.weight.data = _draw(10 + n, size, size) * scale
        part.bias.data = _draw(20 + n, size)
    return layer


def _real(shape, heads, scale=1.0):
    """The result, and the gradients of x and of all weights, by toytorch."""
    batch, time, size = shape
    x = torch.tensor(_draw(1, *shape), requires_grad=True)
    weights = [
        torch.tensor(_draw(10 + n, size, size) * scale, requires_grad=True) for n in range(4)
    ]
    biases = [torch.tensor(_draw(20 + n, size), requires_grad=True) for n in range(4)]

    def split(n):
        y = x @ weights[n] + biases[n]
        return y.reshape(batch, time, heads, size // heads).transpose(1, 2)

    mixed = torch.nn.functional.scaled_dot_product_attention(
        split(0), split(1), split(2), is_causal=True
    )
    y = mixed.transpose(1, 2).reshape(batch, time, size) @ weights[3] + biases[3]
    y.backward(torch.tensor(_draw(2, *shape)))
    return y.tolist(), [x.grad.tolist(), *(w.grad.tolist() for w in weights)]


@attention.check("1 · heads")
def _(Attention):
    def split():
        x = np.arange(24.0).reshape(1, 3, 8)
        return Attention(8, 2).split(Tensor(x)).data.tolist()

    wanted = np.arange(24.0).reshape(1, 3, 2, 4).swapaxes(1, 2).tolist()
    yield case("(1, 3, 8) in two heads", split).gives(wanted)
    yield case("Attention(10, 4)", lambda: Attention(10, 4)).raises(ValueError)


@attention.check("2 · one head, one place")
def _(Attention):
    for shape in ((1, 1, 4), (1, 2, 4), (2, 5, 4)):

        def values(shape=shape):
            return _layer(Attention, shape[-1], 1)(Tensor(_draw(1, *shape))).data.tolist()

        yield case(f"x of shape {shape}, one head", values).gives(_real(shape, 1)[0])


@attention.check("3 · several heads, and the past only")
def _(Attention):
    for shape, heads in (((2, 5, 6), 3), ((3, 4, 8), 2)):

        def values(shape=shape, heads=heads):
            return _layer(Attention, shape[-1], heads)(Tensor(_draw(1, *shape))).data.tolist()

        yield case(f"x of shape {shape}, {heads} heads", values).gives(_real(shape, heads)[0])

    def causal():
        layer, x = _layer(Attention, 4, 2), _draw(1, 1, 6, 4)
        before = layer(Tensor(x)).data
        x[0, 3:] += 5.0
        after = layer(Tensor(x)).data
        return bool(np.allclose(before[0, :3], after[0, :3])), bool(
            np.allclose(before[0, 3:], after[0, 3:])
        )

    yield case("places 3 to 5 changed: are 0 to 2 the same, and 3 to 5?", causal).gives(
        (True, False)
    )

    def lengths():
        layer = _layer(Attention, 6, 3)
        layer(Tensor(_draw(3, 2, 3, 6)))
        return layer(Tensor(_draw(1, 2, 5, 6))).data.tolist()

    yield case("a text of 3 places, then one of 5: the second result", lengths).gives(
        _real((2, 5, 6), 3)[0]
    )

    def large():
        return _layer(Attention, 4, 2, 60.0)(Tensor(_draw(1, 1, 4, 4))).data.tolist()

    yield case("weights 60 times as large", large).gives(_real((1, 4, 4), 2, 60.0)[0])


@attention.check("4 · gradients", hidden=True)
def _(Attention):
    for shape, heads in (((1, 2, 4), 1), ((2, 5, 6), 3)):

        def gradients(shape=shape, heads=heads):
            layer = _layer(Attention, shape[-1], heads)
            x = Tensor(_draw(1, *shape), requires_grad=True)
            layer(x).backward(_draw(2, *shape))
            parts = [x, *(getattr(layer, name).weight for name in NAMES)]
            return [None if p.grad is None else p.grad.tolist() for p in parts]

        run = case(f"of x {shape} and the four weights, {heads} heads", gradients)
        yield run.gives(_real(shape, heads)[1], tolerance=1e-5)
