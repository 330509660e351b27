"""Cross-entropy as a Function of the learner's own package."""

from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from mytorch.function import Function
from mytorch.tensor import Tensor

own_entropy = Exercise(
    "optim.loss",
    "A loss for your package",
    chapter=8,
    minutes=15,
    prompt="""
    A `Function` (`mytorch/function.py`) with `forward(scores, labels)` and `backward(g)`: scores
    (n, c), labels n integers, and the mean over n of −log p[label], where p is the softmax of a row:

    $$p_j = e^{s_j} / \\textstyle\\sum_k e^{s_k}, \\qquad
    L = \\frac1n \\sum_i -\\log p_{i, y_i}, \\qquad
    \\frac{\\partial L}{\\partial s_{ij}} = \\frac1n (p_{ij} - [j = y_i]).$$

    * Subtract each row's maximum before `np.exp`: nothing changes in p, and nothing overflows.
    * Compute log p as a difference of logarithms, not as the logarithm of p: p can round to 0.
    * `backward` returns two gradients, one for each input. Labels have none: `None`.
    * The scores stay as they are, and several losses may be in use at the same time: what
      `backward` needs belongs to `self`.

    For scores [2, 0] and label 1: p is [0.881, 0.119], the loss −log 0.119 = 2.127, and the gradient
    [0.881, −0.881].
    """,
    without=(
        "torch.nn.functional.cross_entropy",
        "torch.nn.functional.nll_loss",
        "torch.nn.functional.log_softmax",
        "torch.nn.functional.softmax",
        "torch.log_softmax",
        "torch.logsumexp",
        "torch.nn.CrossEntropyLoss",
    ),
    hints=(
        """
        Both directions come from one thing: log p, a matrix like the scores. Compute it for all rows at
        once. The loss picks one number of each row, with two arrays of indices: the row numbers and the
        labels. The gradient is p with 1 taken off at just these places.
        """,
        """
        Scores [[2, 0], [1, 3]], labels [1, 1], and g = 1.

        | what | row 0 | row 1 |
        | --- | --- | --- |
        | minus the row's maximum | [0, −2] | [−2, 0] |
        | the logarithm of the sum of exp | log 1.135 = 0.127 | 0.127 |
        | log p | [−0.127, −2.127] | [−2.127, −0.127] |
        | p | [0.881, 0.119] | [0.119, 0.881] |
        | log p at the label | −2.127 | −0.127 |
        | p − y | [0.881, −0.881] | [0.119, −0.119] |

        The loss is (2.127 + 0.127) / 2 = 1.127. The gradient is p − y divided by 2, the number of rows:
        [[0.44, −0.44], [0.06, −0.06]].
        """,
        """
        ```python
        class CrossEntropy(Function):
            def forward(self, scores, labels):
                labels = np.asarray(labels)
                shifted = ...  # each row's maximum taken off, in a new array
                log_sum = ...  # one number a row, shape (n, 1)
                log_p = ...
                self.p = np.exp(log_p)
                self.place = np.arange(len(labels)), labels
                return ...  # the mean of what lies at these places

            def backward(self, g):
                part = self.p.copy()
                ...
                return ..., None
        ```
        """,
    ),
)


@own_entropy.reference(stub={
    "forward": "your code here: about 7 lines",
    "backward": "your code here: about 3 lines",
})
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

own_entropy.changed(
    "one gradient for two inputs",
    """
    `backward` returns a gradient for each input of `forward`, in their order. The labels are an
    input as well; they are no numbers to change, so theirs is `None`.
    """,
    ("return g * part / len(part), None", "return g * part / len(part)"),
)

own_entropy.changed(
    "softmax along the batch",
    """
    The scores of one row compete with each other: maximum and sum go along the last dimension. Here
    they went down the columns, over examples that have nothing to do with each other.
    """,
    ("scores.max(-1, keepdims=True)", "scores.max(0, keepdims=True)"),
    ("np.exp(shifted).sum(-1, keepdims=True)", "np.exp(shifted).sum(0, keepdims=True)"),
)

own_entropy.changed(
    "shifts the scores in place",
    """
    `scores` is the array of the tensor itself. `-=` writes into it, and whoever made the scores finds
    other numbers there afterwards. `shifted = scores - ...` makes a new array.
    """,
    (
        "shifted = scores - scores.max(-1, keepdims=True)",
        "shifted = scores\n        shifted -= scores.max(-1, keepdims=True)",
    ),
)

own_entropy.changed(
    "two losses share what they saved",
    """
    p and the labels were kept by the class, so the second call overwrote those of the first. Each call
    of `apply` makes an object of its own: keep them in `self`.
    """,
    ("self.p = np.exp(log_p)", "CrossEntropy.p = np.exp(log_p)"),
    (
        "self.place = np.arange(len(labels)), labels",
        "CrossEntropy.place = np.arange(len(labels)), labels",
    ),
)

own_entropy.changed(
    "a small number inside the logarithm",
    """
    log(p + 1e-12) is finite, and wrong: for a score 800 below the largest the loss is 800, and here it
    is 27.6, whatever the scores. `shifted - log_sum` needs no such number.
    """,
    ("log_p = shifted - log_sum", "log_p = np.log(np.exp(shifted - log_sum) + 1e-12)"),
)

own_entropy.changed(
    "divides before 1 is taken off",
    """
    1/n belongs to the whole difference, (p − y) / n. Here p was divided and then a whole 1 taken off.
    """,
    ("part = self.p.copy()", "part = self.p / len(self.p)"),
    ("return g * part / len(part), None", "return g * part, None"),
)


def _leaf(value):
    return Tensor(np.asarray(value, dtype=float), requires_grad=True)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


def _wanted(scores, labels, weight=1.0):
    s = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
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

    def both(real):
        one, two = _draw(2, 2, 3), _draw(3, 4, 2)
        if real:
            return _wanted(one, [2, 0])[1], _wanted(two, [0, 1, 1, 0])[1]
        first, second = _leaf(one), _leaf(two)
        loss = CrossEntropy.apply(first, np.array([2, 0]))
        (loss + CrossEntropy.apply(second, np.array([0, 1, 1, 0]))).backward()
        return first.grad.tolist(), second.grad.tolist()

    yield case("the gradients of two losses, added", lambda: both(False)).gives(both(True))

    def kept():
        s = _leaf([[2.0, 0.0], [1.0, 3.0]])
        CrossEntropy.apply(s, np.array([1, 0])).backward()
        return s.data.tolist()

    yield case("the scores [[2, 0], [1, 3]] after forward and backward", kept).gives(
        [[2.0, 0.0], [1.0, 3.0]]
    )


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


def _batch(draw):
    n, c = draw.randint(1, 4), draw.randint(1, 4)
    scores = [[draw.number(-9, 9) for _ in range(c)] for _ in range(n)]
    return scores, [draw.randrange(c) for _ in range(n)]


@own_entropy.check("any batch", hidden=True)
def _(CrossEntropy):
    yield agrees(
        partial(_got, CrossEntropy),
        _wanted,
        _batch,
        tell=lambda scores, labels: f"scores {scores}, labels {labels}",
    )
