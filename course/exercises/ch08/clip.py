"""Clipping by the norm."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise

clip = Exercise(
    "optim.clip",
    "Clipping by the norm",
    chapter=8,
    minutes=10,
    optional=True,
    prompt="""
    Sometimes a batch gives a gradient that is a hundred times as long as usual, and one step along
    it can undo an hour of training. Write `clip_grad_norm(parameters, max_norm)`: if the gradient
    is longer than `max_norm`, all of it is scaled down to that length. Its **direction** stays.

    * *The* gradient is that of all parameters together. Its norm is the root of the sum of the
      squares of **all** elements.
    * Multiply every `p.grad`, in place, by `max_norm / (norm + 1e-6)`, but never by more than 1.
    * Parameters without gradient are passed by. `parameters` may be a generator, as
      `model.parameters()` is: you can go through it once.
    * Return the norm **before** clipping, as a tensor of no dimension. It is useful for a plot.
    """,
    without=(
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.utils.get_total_norm",
        "torch.nn.utils.clip_grads_with_norm_",
    ),
    hints=(
        """
        Collect the gradients that are there in a list; after that you need the parameters no more. One
        number, the norm of everything together, decides on one factor, and every gradient is multiplied by
        that factor, in its own memory.
        """,
        """
        The gradients are [3, 0] and [4], `max_norm` is 1.

        | step | value |
        | --- | --- |
        | squares | 9, 0 and 16 |
        | their sum, its root | 25, 5 |
        | 1 / (5 + 0.000001) | 0.2 |
        | the smaller of this and 1 | 0.2 |
        | gradients, multiplied in place | [0.6, 0] and [0.8] |
        | returned | 5, the norm before |

        The new norm is 1, and the two still have the ratio 3 : 4. With `max_norm` 10 the factor would be 2,
        so it is 1, and nothing changes. With gradients of zero it is
        1 / 0.000001, so it is 1 again.
        """,
        """
        ```python
        def clip_grad_norm(parameters, max_norm):
            grads = ...
            norm = ...
            scale = ...
            for g in grads:
                ...
            return norm
        ```
        """,
    ),
)


@clip.reference(stub="your code here: about 6 lines")
def clip_grad_norm(parameters, max_norm):
    """Scale all gradients down to a norm; returns the norm before."""
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum() for g in grads).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


clip.changed(
    "each parameter by itself",
    """
    Every parameter's gradient was cut to `max_norm` on its own. Large ones were shortened and small
    ones were not, so the whole points into another direction than the gradient.
    """,
    ("    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)\n", ""),
    ("scale", "(max_norm / (g.square().sum().sqrt() + 1e-6)).clamp(max=1.0)"),
)

clip.changed(
    "adds the norms up",
    """
    The norms of the parts were added. Lengths add up like the sides of a right triangle: squares
    first, the root last. Parts of 3 and 4 make 5, not 7.
    """,
    (
        "norm = sum(g.square().sum() for g in grads).sqrt()",
        "norm = sum(g.square().sum().sqrt() for g in grads)",
    ),
)

clip.changed(
    "makes short ones longer",
    """
    A gradient that was shorter than `max_norm` was stretched to it. At the end of training, when
    gradients are small, every step would be as long as at the beginning. Multiply by 1 at most.
    """,
    ("    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)\n", ""),
    ("scale", "max_norm / (norm + 1e-6)"),
)

clip.changed(
    "clips each element",
    """
    Every element was held between -max_norm and max_norm. That is clipping by *value*
    (`clip_grad_value_`). It changes the direction of the gradient: large elements are cut, small
    ones stay.
    """,
    ("    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)\n", ""),
    ("mul_(scale)", "clamp_(-max_norm, max_norm)"),
)


@clip.mutant(
    "uses the generator up",
    why="""
    `parameters` was gone through twice. `model.parameters()` is a generator: after the first loop
    it is empty, the second loop does nothing at all, and nothing is clipped. Keep what you need in
    a list.
    """,
)
def clip_grad_norm(parameters, max_norm):
    norm = sum(p.grad.square().sum() for p in parameters if p.grad is not None).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for p in parameters:
        if p.grad is not None:
            p.grad.mul_(scale)
    return norm


clip.changed(
    "stumbles over a parameter without gradient",
    """
    `p.grad` is `None` for whatever took no part in the loss. There is nothing to clip and nothing
    to add up: leave it out.
    """,
    (
        "grads = [p.grad for p in parameters if p.grad is not None]",
        "grads = [p.grad for p in parameters]",
    ),
)

clip.changed(
    "returns the norm afterwards",
    """
    The norm was taken after clipping, so it is never more than `max_norm`, and does not say how
    long the gradient was. People plot the norm *before* clipping: its peaks show which batches
    cause trouble.
    """,
    ("return norm", "return sum(g.square().sum() for g in grads).sqrt()"),
)


def _clipped(f, grads, max_norm, box=list):
    """What clipping returns, and the gradients afterwards."""
    ps = [torch.zeros(1 if g is None else len(g), requires_grad=True) for g in grads]
    for p, g in zip(ps, grads):
        p.grad = None if g is None else torch.tensor(g)
    norm = f(box(ps), max_norm)
    return norm, [None if p.grad is None else [round(v, 5) for v in p.grad.tolist()]
                  for p in ps]


@clip.check("a gradient that is too long")
def _(f):
    yield case("gradients [4, 2] and [4], clipped to 1",
               lambda: _clipped(f, [[4.0, 2.0], [4.0]], 1.0)).gives(
        (torch.tensor(6.0), [[0.66667, 0.33333], [0.66667]]), tolerance=1e-4)


@clip.check("one that is short enough")
def _(f):
    yield case("gradients [0.3] and [0.4], clipped to 1",
               lambda: _clipped(f, [[0.3], [0.4]], 1.0)).gives(
        (torch.tensor(0.5), [[0.3], [0.4]]), tolerance=1e-4)


@clip.check("a parameter without gradient")
def _(f):
    yield case("gradients [3], None and [4], clipped to 10",
               lambda: _clipped(f, [[3.0], None, [4.0]], 10.0)).gives(
        (torch.tensor(5.0), [[3.0], None, [4.0]]), tolerance=1e-4)


@clip.check("a generator", hidden=True)
def _(f):
    yield case("gradients [6] and [8] from a generator, clipped to 5",
               lambda: _clipped(f, [[6.0], [8.0]], 5.0, iter)).gives(
        (torch.tensor(10.0), [[3.0], [4.0]]), tolerance=1e-4)


clip.changed(
    "gives the parameters new gradients",
    """
    `p.grad = p.grad * scale` makes a new tensor. Whoever holds the gradient already (a bucket of
    DDP, a view) still has the unclipped one. `mul_` writes where the gradient is.
    """,
    (
        "    grads = [p.grad for p in parameters if p.grad is not None]",
        "    wanting = [p for p in parameters if p.grad is not None]\n"
        "    grads = [p.grad for p in wanting]",
    ),
    (
        "    for g in grads:\n        g.mul_(scale)",
        "    for p in wanting:\n        p.grad = p.grad * scale",
    ),
)

clip.changed(
    "forgets the root",
    """
    The sum of the squares was taken for the norm. The norm is its root.
    """,
    ("for g in grads).sqrt()", "for g in grads)"),
)

clip.changed(
    "returns a number",
    """
    `.item()` gives a Python number. Asked for was a tensor of no dimension, as PyTorch returns it:
    reading the number makes an accelerator wait, and the caller decides whether to.
    """,
    ("return norm", "return norm.item()"),
)


def _any(draw):
    count = draw.randint(1, 3)
    grads = [[draw.number() for _ in range(draw.randint(1, 3))] for _ in range(count)]
    kind = draw.random()
    if kind < 0.15:
        grads = [[0.0] * len(g) for g in grads]
    if kind > 0.8:
        grads.append(None)
    return grads, draw.choice([0.5, 1.0, 10.0])


@clip.check("any gradients")
def _(f):
    def tell(grads, max_norm):
        return f"gradients {grads}, clipped to {max_norm}"

    yield agrees(
        lambda *args: _clipped(f, *args), lambda *args: _clipped(clip.answer.value, *args), _any,
        tolerance=1e-4, tell=tell)

    def same():
        p = torch.zeros(2, requires_grad=True)
        held = p.grad = torch.tensor([3.0, 4.0])
        f([p], 1.0)
        return [round(v, 4) for v in held.tolist()], p.tolist()

    text = "somebody holds the gradient [3, 4]; it is clipped to 1. What they see; the parameter"
    yield case(text, same).gives(([0.6, 0.8], [0.0, 0.0]), tolerance=1e-3)
