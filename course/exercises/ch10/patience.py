"""When to stop."""

from course.cases import case
from course.properties import agrees
from course.records import Exercise

patience = Exercise(
    "training.patience",
    "When to stop",
    chapter=10,
    minutes=8,
    prompt="""
    At first the validation loss falls, and later it does not fall any more. Write
    `Patience(patience, min_delta=0.0)` with one method, `stop(loss)`, which is told the loss of
    each epoch and says whether to stop:

    * An epoch is an improvement if its loss is **below the best so far by more than `min_delta`**.
    * After `patience` epochs *in a row* without an improvement the answer is `True`, otherwise
      `False`.
    * Keep the best loss as `self.best`. A loss that is no improvement does not become the best.
    * A loss of `nan` is no improvement. (Every comparison with `nan` is false. Which way around do
      you have to ask?)
    """,
    hints=(
        """
        Two things are remembered: the best loss so far, and how many epochs in a row brought no
        improvement. One question decides everything: *is this loss better than the best by more than
        `min_delta`?* If yes, remember it and start counting anew; if no, count one more.
        """,
        """
        `Patience(2, min_delta=0.1)`:

        | loss | below best − 0.1? | best after it | bad epochs in a row | answer |
        | --- | --- | --- | --- | --- |
        | 1.00 | below ∞: yes | 1.00 | 0 | False |
        | 0.95 | below 0.90: no | 1.00 | 1 | False |
        | 0.80 | below 0.90: yes | 0.80 | 0 | False |
        | nan | no | 0.80 | 1 | False |
        | 0.75 | below 0.70: no | 0.80 | 2 | True |
        | 0.74 | below 0.70: no | 0.80 | 3 | True |

        In the second row the best stays 1.00: 0.95 is no improvement, so it does not become the best.
        """,
        """
        ```python
        class Patience:
            def __init__(self, patience, min_delta=0.0):
                self.patience, self.min_delta = patience, min_delta
                self.best, self.waited = ...

            def stop(self, loss):
                if ...:
                    ...
                else:
                    self.waited += 1
                return ...
        ```
        """,
    ),
)


@patience.reference(stub={
    "__init__": "your code here: two lines, and another method",
    "stop": "",
})
class Patience:
    """Says when a loss has not improved for too long."""

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss < self.best - self.min_delta:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


patience.changed(
    "never forgives",
    """
    The bad epochs were counted, and a good one did not set the count back. Losses jump about; with
    enough epochs every training would be stopped. Only epochs *in a row* count: begin anew at each
    improvement.
    """,
    ("self.best, self.waited = loss, 0", "self.best = loss"),
)

patience.changed(
    "compares with the last epoch",
    """
    A loss was called better when it was below that of the epoch *before*. After a bad jump it can
    improve for a long time and still be worse than the best. Compare with the best so far.
    """,
    ("self.best, self.waited = loss, 0", "self.waited = 0"),
    (
        "        return self.waited >= self.patience",
        "        self.best = loss\n"
        "        return self.waited >= self.patience",
    ),
)

patience.changed(
    "one epoch too late",
    """
    It stopped after `patience + 1` bad epochs. With a patience of 2, the second bad epoch in a row
    is the last: `waited >= patience`.
    """,
    ("return self.waited >= self.patience", "return self.waited > self.patience"),
)

patience.changed(
    "any improvement will do",
    """
    `min_delta` was not asked. A loss that creeps down by a millionth each epoch then trains for
    ever. An improvement has to be *more* than `min_delta`.
    """,
    ("if loss < self.best - self.min_delta:", "if loss < self.best:"),
)

patience.changed(
    "equal is good enough",
    """
    A loss that stays exactly the same was taken for an improvement. A network whose gradients are
    all 0 has the same loss for ever, and its training should be stopped. Ask `<`, not `<=`.
    """,
    ("if loss < self.best - self.min_delta:", "if loss <= self.best - self.min_delta:"),
)

patience.changed(
    "nan looks like an improvement",
    """
    The question was "is it worse?", and everything else was an improvement. `nan` is not worse,
    since every comparison with it is false, so a training whose loss is `nan` went on. Ask "is
    it better?" instead.
    """,
    (
        "if loss < self.best - self.min_delta:",
        "if loss >= self.best - self.min_delta:\n            self.waited += 1\n        else:",
    ),
    ("        else:\n            self.waited += 1\n", ""),
)


def _stops(f, losses, *args, **kwargs):
    words = ", ".join([*map(repr, args), *(f"{k}={v}" for k, v in kwargs.items())])

    def answers():
        judge = f(*args, **kwargs)
        return [bool(judge.stop(loss)) for loss in losses]

    return case(f"Patience({words}).stop(…) for the losses {losses}", answers)


@patience.check("a loss that falls")
def _(f):
    yield _stops(f, [3.0, 2.0, 1.0], 2).gives([False, False, False])
    yield _stops(f, [3.0, 2.0, 2.5, 2.2], 2).gives([False, False, False, True])


@patience.check("in a row")
def _(f):
    yield _stops(f, [3.0, 4.0, 2.0, 3.0, 1.0], 2).gives([False] * 5)


@patience.check("the best so far")
def _(f):
    yield _stops(f, [3.0, 9.0, 8.0, 7.0], 3).gives([False, False, False, True])

    def best():
        judge = f(5)
        for loss in (3.0, 1.0, 2.0):
            judge.stop(loss)
        return judge.best

    yield case("patience.best, after the losses 3, 1 and 2", best).gives(1.0)


@patience.check("min_delta, and no change at all")
def _(f):
    yield _stops(f, [1.0, 0.99, 0.98], 2, min_delta=0.05).gives([False, False, True])
    yield _stops(f, [1.0, 1.0, 1.0], 2).gives([False, False, True])


@patience.check("not a number", hidden=True)
def _(f):
    nan = float("nan")
    yield _stops(f, [1.0, nan, nan], 2).gives([False, False, True])


patience.changed(
    "the best creeps down",
    """
    A loss that was lower by less than `min_delta` became the best all the same. So the best creeps
    down in small steps, and what is asked of the next epoch grows with it. Only an improvement is
    remembered.
    """,
    ("            self.waited += 1\n", "            self.waited += 1\n            self.best = min(self.best, loss)\n"),
)

patience.changed(
    "says it once",
    """
    `waited == patience` is true in one epoch and false again in the next. Who asks only now and
    then may miss it. Ask `>=`.
    """,
    ("self.waited >= self.patience", "self.waited == self.patience"),
)

patience.changed(
    "begins anew once it has said stop",
    """
    The count was set back when the answer was `True`. As long as no improvement comes, the epochs
    without one are still in a row, and the answer stays `True`.
    """,
    (
        "        return self.waited >= self.patience",
        "        if self.waited >= self.patience:\n"
        "            self.waited = 0\n            return True\n        return False",
    ),
)

patience.changed(
    "min_delta as a share of the best",
    """
    `best * (1 - min_delta)` asks for a share: 10 % less. `min_delta` is a difference: 0.1 less. For
    a best of 1 both are the same; for a negative loss the share points the wrong way.
    """,
    ("self.best - self.min_delta", "self.best * (1 - self.min_delta)"),
)

patience.changed(
    "the best starts at a large number",
    """
    The best so far began at 1000. A loss that begins higher never counts as an improvement, and the
    training is stopped at once. `float("inf")` is above every loss.
    """,
    ('float("inf")', "1000.0"),
)

patience.changed(
    "a best of 0 counts as none",
    """
    `not self.best` is true for `None` and also for 0.0. Once the loss has reached 0, everything
    after it counts as an improvement. Ask `is None`, or begin with infinity.
    """,
    (
        "if loss < self.best - self.min_delta:",
        "if not self.best or loss < self.best - self.min_delta:",
    ),
)


def _any(draw):
    """Losses in quarters, so that no rounding decides."""
    high = draw.choice([6, 6, 8000])
    losses = [draw.randint(-6, high) / 4 for _ in range(draw.randint(1, 9))]
    if draw.random() < 0.3:
        losses[draw.randrange(len(losses))] = float("nan")
    return losses, draw.randint(1, 3), draw.choice([0.0, 0.25, 0.5])


@patience.check("any losses")
def _(f):
    def run(kind):
        def told(losses, patience, min_delta):
            judge, answers = kind(patience, min_delta), []
            for loss in losses:
                answers.append((bool(judge.stop(loss)), float(judge.best)))
            return answers

        return told

    def tell(losses, patience, min_delta):
        return f"Patience({patience}, {min_delta}) for {losses}: each answer, and best after it"

    yield agrees(run(f), run(patience.answer.value), _any, count=200, tell=tell)
