"""Cross entropy that does not overflow."""

import math

import toytorch as torch
from course.cases import call, case
from course.properties import agrees, gradient, second_derivative, untouched
from course.records import Exercise

entropy = Exercise(
    "optim.cross_entropy",
    "Cross entropy that does not overflow",
    chapter=8,
    minutes=15,
    prompt="""
    Scores $s$ of shape `(n, C)` become probabilities by the softmax, and the loss of an example is
    minus the logarithm of the probability of the right class $y$. Together:

    $$-\\log \\frac{e^{s_y}}{\\sum_j e^{s_j}} \\;=\\; \\log \\sum_j e^{s_j} \\;-\\; s_y.$$

    Write `cross_entropy(scores, labels, ignore=-100)`, the **mean** of it over the examples.

    * In float32, $e^{89}$ is infinite, and scores do get that large. Let $m$ be the largest score
      **of the example**: $\\log \\sum_j e^{s_j} = m + \\log \\sum_j e^{s_j - m}$. Now the largest
      exponent is 0, and the sum is at least 1.
    * Examples whose label is `ignore` do not count: neither in the sum nor in the number that you
      divide by. (Texts of different length are filled up with such labels.)
    * It has to be made of tensor operations: somebody will call `backward()` on it.
    """,
    without=(
        "torch.nn.functional.cross_entropy",
        "torch.nn.functional.nll_loss",
        "torch.nn.functional.log_softmax",
        "torch.log_softmax",
        "torch.logsumexp",
        "torch.nn.CrossEntropyLoss",
        "torch.Tensor.logsumexp",
        "torch.Tensor.log_softmax",
    ),
    hints=(
        """
        Work on all examples at once. Remove the ignored rows first. Then the rest of the function
        does not have to treat them.

        For each row you need two numbers: the logarithm of the sum of the exponentials, with the
        row's own maximum taken out and added again, and the score of the right class. Their
        difference is the loss of the row.
        """,
        """
        Two examples, three classes: scores [[1000, 998, 990], [0, 1, 2]], labels [1, 2].

        | step | row 0 | row 1 |
        | --- | --- | --- |
        | largest score m | 1000 | 2 |
        | scores − m | 0, −2, −10 | −2, −1, 0 |
        | their exponentials | 1, 0.1353, 0.00005 | 0.1353, 0.3679, 1 |
        | sum, logarithm of it | 1.1354, 0.1270 | 1.5032, 0.4076 |
        | m + logarithm | 1000.1270 | 2.4076 |
        | score of the right class | 998 | 2 |
        | loss of the row | 2.1270 | 0.4076 |

        The mean is 1.2673. If the label of row 0 were `ignore`, the result would be 0.4076, the mean over
        one example.
        """,
        """
        ```python
        def cross_entropy(scores, labels, ignore=-100):
            kept = labels != ignore
            scores, labels = ...
            top = scores.max(1, keepdim=True).values
            logs = ...
            right = ...  # one entry for each row
            return ...
        ```
        """,
    ),
)


@entropy.reference(stub="your code here: about 6 lines")
def cross_entropy(scores, labels, ignore=-100):
    """The mean of log(sum(exp(row))) - row[label] over all rows."""
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    right = scores[torch.arange(len(labels)), labels]
    return (logs - right).mean()


@entropy.mutant(
    "exponentiates the scores as they are",
    why="""
    `exp` of a score of 89 or more is infinite in float32, and one infinite loss makes every weight
    `nan`. Subtract each example's largest score first: it falls out of the formula and keeps all
    exponents at 0 or below.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    right = scores[torch.arange(len(labels)), labels]
    return (scores.exp().sum(1).log() - right).mean()


@entropy.mutant(
    "takes the logarithm of a softmax",
    why="""
    The softmax is right. But a class whose score is 200 below the largest has a probability of
    exactly 0 in float32, and the logarithm of 0 is minus infinity. Cancel the logarithm and the
    exponential in the formula first: that is its second form.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    chances = torch.softmax(scores, 1)
    return -chances[torch.arange(len(labels)), labels].log().mean()


entropy.changed(
    "one maximum for the whole batch",
    """
    The largest score of the *batch* was subtracted. An example whose own scores are all far below
    it then has a sum of exponentials of exactly 0, and its logarithm is minus infinity. Each
    example needs its own: `max(1, keepdim=True)`.
    """,
    ("(1, keepdim=True).values", "()"),
    ("[:, 0]", ""),
)

entropy.changed(
    "divides by the wrong count",
    """
    The ignored examples added nothing to the sum, but they were counted when it was divided. A
    batch in which half of the labels are ignored would have half the loss and half the gradient.
    """,
    (
        "    kept = labels != ignore",
        "    number = len(labels)\n"
        "    kept = labels != ignore",
    ),
    ("return (logs - right).mean()", "return (logs - right).sum() / number"),
)

entropy.changed(
    "takes the sum",
    """
    Losses were added up and not averaged. Then the gradient grows with the batch, and a learning
    rate that was right for 32 examples is too large for 64.
    """,
    ("return (logs - right).mean()", "return (logs - right).sum()"),
)

entropy.changed(
    "picks a table instead of a column",
    """
    `scores[:, labels]` takes the columns of *all* labels for every row: a table of n × n. Its mean
    is one number as well, so no error is raised. One entry for each row is `scores[torch.arange(n),
    labels]`, or `gather`.
    """,
    (
        "    right = scores[torch.arange(len(labels)), labels]\n    return (logs - right).mean()",
        "    return (logs[:, None] - scores[:, labels]).mean()",
    ),
)

entropy.changed(
    "the sign",
    """
    This is the mean *log-probability*, which is to become large. A loss is to become small, so it
    has a minus in front. With this one, gradient descent would make the network as wrong as it can
    be.
    """,
    ("return (logs - right).mean()", "return (right - logs).mean()"),
)

entropy.changed(
    "cuts the gradient off",
    """
    The value is right, but it has no graph: somewhere in between, the tensors became Python numbers
    (`.item()`, `.tolist()`) or were detached. Without a graph no parameter gets a gradient.
    """,
    (
        "scores, labels = scores[kept], labels[kept]",
        "scores, labels = scores[kept].detach(), labels[kept]",
    ),
)


# what PyTorch gives
ENTROPY = [
    ([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, -1.0, 1.0]], [1, 2, 0], 0.5497166514396667),
    ([[100.0, 0.0, 99.0]], [0], 0.31326165795326233),
    ([[0.0, 200.0, 0.0]], [0], 200.0),
    ([[1000.0, 1000.0], [-1000.0, -1000.0]], [0, 1], 0.6931471824645996),
    ([[1.0, 2.0], [0.0, 0.0], [5.0, 0.0], [0.0, 3.0]], [0, -100, -100, 1], 0.6809247732162476),
]


def _entropy(f, number):
    scores, labels, wanted = ENTROPY[number]
    return call(f, torch.tensor(scores), torch.tensor(labels)).gives(
        torch.tensor(wanted), tolerance=1e-4)


@entropy.check("three examples, three classes")
def _(f):
    yield _entropy(f, 0)


@entropy.check("large scores")
def _(f):
    yield _entropy(f, 1)
    yield _entropy(f, 2)
    yield _entropy(f, 3)


@entropy.check("ignored examples", hidden=True)
def _(f):
    yield _entropy(f, 4)


@entropy.check("the gradient: probabilities minus the right answer")
def _(f):
    def slope():
        scores = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]], requires_grad=True)
        loss = f(scores, torch.tensor([0, 0]))
        if not loss.requires_grad:
            return "the loss has no graph"
        loss.backward()
        return scores.grad

    yield case("of scores [[0, 0], [log 3, 0]], both of class 0", slope).gives(
        torch.tensor([[-0.25, 0.25], [-0.125, 0.125]]), tolerance=1e-5)


entropy.changed(
    "does not use the ignore it is given",
    """
    `ignore` stands in the first line so that the caller can choose it: some fill up with 0, some
    with -1. Here a fixed number was used.
    """,
    ("labels != ignore", "labels != -100"),
)

entropy.changed(
    "ignores every negative label",
    """
    All negative labels were left out. Which label means "does not count" is what `ignore` says, and
    it may well be 0, the number of the filling in a vocabulary.
    """,
    ("labels != ignore", "labels >= 0"),
)

entropy.changed(
    "computes in float32",
    """
    The scores were turned into float32. Who computes in float64 (a gradient check has to) gets a
    result of half the digits, and of another dtype. Compute in the dtype that comes in.
    """,
    ("scores, labels = scores[kept], labels[kept]", "scores, labels = scores[kept].float(), labels[kept]"),
)

entropy.changed(
    "writes into the scores",
    """
    The largest score was subtracted in the memory of the caller's tensor. The network's output is
    another one after the loss was computed, and who looks at it later sees that. Compute a new
    tensor.
    """,
    (
        "    kept = labels != ignore\n",
        "    kept = labels != ignore\n    scores.data.sub_(scores.data.max(1, keepdim=True).values)\n",
    ),
)

entropy.changed(
    "forgets to add the largest score again",
    """
    The largest score was taken out of the exponentials and not added afterwards, so every loss is
    too small by it, and can be negative: $\\log \\sum_j e^{s_j} = m + \\log \\sum_j e^{s_j - m}$.
    """,
    (".log() + top[:, 0]", ".log()"),
)


def _any(draw):
    n, classes = draw.randint(1, 4), draw.randint(2, 4)
    ignore = draw.choice([-100, -1, 0])
    labels = [draw.choice([ignore, *range(classes)]) for _ in range(n)]
    labels[0] = classes - 1  # somebody has to count
    scores = draw.tensor((n, classes), draw.dtype("float32", "float64"), requires_grad=True)
    return scores, torch.tensor(labels), ignore


@entropy.check("filled up with -1")
def _(f):
    scores, _, wanted = ENTROPY[4]
    yield call(f, torch.tensor(scores), torch.tensor([0, -1, -1, 1]), -1).gives(
        torch.tensor(wanted), tolerance=1e-4)


@entropy.check("any scores, any ignore")
def _(f):
    def plain(g):
        return lambda *args: g(*args).detach()

    def tell(scores, labels, ignore):
        rows = [[round(v, 1) for v in row] for row in scores.tolist()]
        return f"scores {rows} ({scores.dtype}), labels {labels.tolist()}, ignore={ignore}"

    yield agrees(plain(f), plain(entropy.answer.value), _any, tell=tell)
    yield gradient(f, entropy.answer.value, _any)
    yield second_derivative(f, entropy.answer.value, _any)
    yield untouched(f, _any)
