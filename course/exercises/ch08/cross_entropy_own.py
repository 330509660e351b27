"""Cross-entropy as a Function of the learner's own package."""

from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise
from mytorch.function import Function
from mytorch.tensor import Tensor

own_entropy = Exercise(
    "optim.loss",
    "A loss for your package",
    chapter=8,
    minutes=18,
    prompt="""
    A `Function` (`mytorch/function.py`) with `forward(scores, labels)` and `backward(g)`: scores
    (n, c), labels n integers, and the mean over n of −log p[label], where p is the softmax of a row:

    $$p_j = e^{s_j} / \\textstyle\\sum_k e^{s_k}, \\qquad
    L = \\frac1n \\sum_i -\\log p_{i, y_i}, \\qquad
    \\frac{\\partial L}{\\partial s_{ij}} = \\frac1n (p_{ij} - [j = y_i]).$$

    * Subtract each row's maximum before `np.exp`: nothing changes in p, and nothing overflows.
    * Compute log p as a difference of logarithms, not as the logarithm of p: p can round to 0.
    * `backward` returns two gradients, one for each input. Labels have none.

    For scores [2, 0] and label 1: p is [0.881, 0.119], the loss −log 0.119 = 2.127, and the gradient
    [0.881, −0.881].
    """,
)


@own_entropy.stub
class CrossEntropy(Function):
    """The mean of -log p[label], p the softmax of each row of scores."""

    def forward(self, scores, labels):
        # your code here: about 7 lines
        raise NotImplementedError

    def backward(self, g):
        # your code here: about 3 lines
        raise NotImplementedError


@own_entropy.reference
class CrossEntropy(Function):
    """The mean of -log p[label], p the softmax of each row of scores."""

    def forward(self, scores, labels):
        labels = np.asarray(labels)
        shifted = scores - scores.max(-1, keepdims=True)
        log_sum = np.log(np.exp(shifted).sum(-1, keepdims=True))
        log_p = shifted - log_sum
        self.p = np.exp(log_p)
        self.place = np.arange(len(labels)), labels
        return -log_p[self.place].mean()

    def backward(self, g):
        part = self.p.copy()
        part[self.place] -= 1
        return g * part / len(part), None


own_entropy.changed(
    "overflows for large scores",
    """
    `np.exp(1000)` is infinite, and infinite / infinite is NaN. Subtract the row's maximum first; it
    cancels in p.
    """,
    ("shifted = scores - scores.max(-1, keepdims=True)", "shifted = scores"),
)

own_entropy.changed(
    "the maximum of the whole batch",
    """
    One maximum for all rows leaves rows far below it with exp of very negative numbers: all zeros,
    and the logarithm of 0. Each row needs its own, `max(-1, keepdims=True)`.
    """,
    ("scores.max(-1, keepdims=True)", "scores.max()"),
)

own_entropy.changed(
    "the logarithm of a rounded p",
    """
    For a score 800 below the largest, p rounds to 0 and its logarithm is −∞. log p is `shifted -
    log_sum`, which loses nothing.
    """,
    ("log_p = shifted - log_sum", "log_p = np.log(np.exp(shifted - log_sum))"),
)

own_entropy.changed(
    "the sum instead of the mean",
    """
    The loss is the mean over the batch, so that its size does not depend on the batch's.
    """,
    ("return -log_p[self.place].mean()", "return -log_p[self.place].sum()"),
    ("return g * part / len(part), None", "return g * part, None"),
)

own_entropy.changed(
    "the gradient is not divided by n",
    """
    The loss is a mean over n rows, so each row's gradient is 1/n of p − y.
    """,
    ("return g * part / len(part), None", "return g * part, None"),
)

own_entropy.changed(
    "forgets the gradient that came",
    """
    `backward` is given g, the gradient of the loss itself. It is 1 only if nothing comes after the
    loss.
    """,
    ("return g * part / len(part), None", "return part / len(part), None"),
)

own_entropy.changed(
    "the gradient of the labels' scores only",
    """
    Every score has a gradient: p_j for the wrong classes, which pushes them down.
    """,
    (
        ("        part = self.p.copy()\n        part[self.place] -= 1\n"),
        (
            "        part = np.zeros_like(self.p)\n"
            "        part[self.place] = self.p[self.place] - 1\n"
        ),
    ),
)

own_entropy.changed(
    "changes p while going back",
    """
    `self.p` was changed in place, so a second backward through the same result starts from a wrong
    p. Copy it.
    """,
    ("part = self.p.copy()", "part = self.p"),
)


def _leaf(value):
    return Tensor(np.asarray(value, dtype=float), requires_grad=True)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


def _wanted(scores, labels, weight=1.0):
    s = torch.tensor(scores, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(s, torch.tensor(labels))
    (loss * weight).backward()
    return loss.item(), s.grad.tolist()


def _got(CrossEntropy, scores, labels, weight=1.0):
    s = _leaf(scores)
    loss = CrossEntropy.apply(s, np.array(labels))
    (loss * weight).backward()
    return float(loss.data), s.grad.tolist()


@own_entropy.check("one row")
def _(CrossEntropy):
    yield case(
        "scores [[2, 0]], label 1: the loss and the gradient",
        lambda: _got(CrossEntropy, [[2.0, 0.0]], [1]),
    ).gives(_wanted([[2.0, 0.0]], [1]))


@own_entropy.check("batches")
def _(CrossEntropy):
    scores, labels = _draw(1, 5, 4), [0, 3, 3, 1, 2]
    yield case("five rows of four scores", lambda: _got(CrossEntropy, scores, labels)).gives(
        _wanted(scores, labels)
    )
    yield case("three times that loss", lambda: _got(CrossEntropy, scores, labels, 3.0)).gives(
        _wanted(scores, labels, 3.0)
    )

    def twice():
        s = _leaf(scores)
        loss = CrossEntropy.apply(s, np.array(labels))
        loss.backward()
        once = s.grad.tolist()
        s.grad = None
        loss.backward()
        return bool(np.abs(np.array(once) - s.grad).max() < 1e-12)

    yield case("a second backward through the same loss", twice).gives(True)


@own_entropy.check("large scores", hidden=True)
def _(CrossEntropy):
    for scores, labels in (
        ([[1000.0, 0.0], [0.0, 1.0]], [0, 1]),
        ([[-1000.0, -1001.0]], [1]),
        ([[800.0, 0.0]], [1]),
        ([[5000.0, 0.0, 4999.0], [-5000.0, 3.0, 2.0]], [2, 1]),
    ):
        run = case(f"scores {scores}, labels {labels}", partial(_got, CrossEntropy, scores, labels))
        yield run.gives(_wanted(scores, labels))
