"""Backward through a write to a view."""

import toytorch as torch
from course.cases import case
from course.exercises.ch05.common import _wanted
from course.properties import agrees, second_derivative
from course.records import Exercise
from toytorch.core.inplace import CopySlices

slices = Exercise(
    "inplace.slices",
    "Backward through a write to a view",
    chapter=5,
    minutes=20,
    optional=True,
    inject=CopySlices.using,
    prompt="""
    After `view = base[1:3]; view.mul_(w)`, the elements of `base` have two histories: those under
    the view went through the product, the others did not. The node `CopySlices` sends a gradient
    through both. Write what it does, `copy_slices(grad, part, inner)`:

    * `grad` is the gradient of `base` **after** the write;
    * `part(t)` is the view, of any tensor `t` like `base`: here `t[1:3]`. It shares the memory of
      `t`, so you can write through it;
    * `inner(g)` is the node of the write itself, here of the product. Given the gradient of the
      view after the write, it gives a list of gradients: first that of the view **before** the
      write, then those of the other inputs, here of `w`.

    By hand, for `base = [7, 5, 6, 8]`, `view = base[1:3]` and `view.mul_(w)` with `w = [2, 3]`. Let
    `[1, 1, 1, 1]` be the gradient of the base after the write, `[7, 10, 18, 8]`.

    | | base[0] | base[1] | base[2] | base[3] |
    | --- | --- | --- | --- | --- |
    | the old value was | kept | times 2 | times 3 | kept |
    | so its gradient is | 1 | 1 · 2 = 2 | 1 · 3 = 3 | 1 |

    The gradient of w is 1 times the old values under the view, `[5, 6]`.

    Return a tuple: the gradient of `base` **before** the write, then the others. Do not write into
    `grad`: it may be in use elsewhere.
    """,
    hints=(
        """
        Divide the elements of the base into two groups. Those outside the view were not touched by
        the write, so their gradient goes on unchanged. Those under the view went through the write,
        so their gradient is what `inner` gives. Put the two together in a clone.
        """,
        """
        `base = [1, 5, 6, 4]`, `view = base[1:3]`, `view.mul_(w)` with w = `[2, 3]`. After the write the base
        is `[1, 10, 18, 4]`. The gradient that comes back for it is `grad = [1, 10, 100, 1000]`.

        | step | |
        | --- | --- |
        | `part(grad)` | `[10, 100]` |
        | `inner` of that: gradient of the old view, g · w | `[20, 300]` |
        | … and of w, g · old view | `[50, 600]` |
        | a clone of `grad` | `[1, 10, 100, 1000]` |
        | its part is overwritten with `[20, 300]` | `[1, 20, 300, 1000]` |

        The answer is `([1, 20, 300, 1000], [50, 600])`.
        """,
        """
        ```python
        def copy_slices(grad, part, inner):
            before, *others = inner(...)
            base = ...  # not grad itself: it may be in use elsewhere
            part(base).copy_(...)
            return base, *others
        ```
        """,
    ),
)


@slices.reference(stub="your code here: about 4 lines")
def copy_slices(grad, part, inner):
    """The gradients of the old base, and of the write's other inputs."""
    before, *others = inner(part(grad))
    base = grad.clone()  # outside the view nothing has happened
    part(base).copy_(before)
    return base, *others


@slices.mutant(
    "ignores the write",
    why="""
    The old base got the gradient of the new one. Under the view that is wrong: there the old values
    influence the loss *through the write*, so their gradient is what `inner` returns. After
    `fill_`, for example, it is 0, because the old values no longer exist.
    """,
)
def copy_slices(grad, part, inner):
    _, *others = inner(part(grad))
    return grad, *others


slices.changed(
    "forgets the elements outside the view",
    """
    Only the part under the view was sent on, with zeros around it. The elements outside the view
    are the same in the old base and in the new one, so their gradient is passed on unchanged.
    """,
    ("grad.clone()  # outside the view nothing has happened", "torch.zeros_like(grad)"),
)


@slices.mutant(
    "sends the whole gradient through the write",
    why="""
    The write changed only the view, so its node takes the gradient of the view: pass it
    `part(grad)`, not the gradient of the whole base.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(grad)
    base = grad.clone()
    part(base).copy_(part(before))
    return base, *others


@slices.mutant(
    "writes into the gradient it was given",
    why="""
    `grad` may wait at other places too: a sum sends one and the same tensor to both of its inputs.
    Write into a clone.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad).clone())
    part(grad).copy_(before)
    return grad, *others


slices.changed(
    "adds where it should replace",
    """
    The gradient through the write was *added* to what stood there. What stood there is the gradient
    of the new values. The old ones influence the loss through the write only. Replace it with
    `copy_`.
    """,
    ("(base).copy_(before)", "(base).add_(before)"),
)


@slices.mutant(
    "calls the node of the write twice",
    why="""
    `inner` ran once for the view and once more for the others. A node runs once in a backward
    pass: it may be expensive, and it frees what it saved. Unpack its list: `before, *others
    = …`.
    """,
)
def copy_slices(grad, part, inner):
    base = grad.clone()
    part(base).copy_(inner(part(grad))[0])
    return base, *inner(part(grad))[1:]


slices.changed(
    "cut from the graph outside the view",
    """
    `detach()` before `clone()` cuts the elements outside the view from their history. The first
    derivative is right, but the second one lacks their part.
    """,
    ("clone()  # outside the view nothing has happened", "detach().clone()"),
)


@slices.mutant(
    "a mask of zeros and ones",
    why="""
    Multiplying by 0 gives 0 only where the element is finite: an infinity times 0 is NaN.
    Overwrite the part with `copy_`.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad))
    mask = torch.ones_like(grad)
    part(mask).zero_()
    base = grad * mask
    part(base).add_(before)
    return base, *others


def _middle(tensor):
    return tensor[1:3]


@slices.check("view.mul_(w)")
def _(f):
    def product():
        old, w = torch.tensor([5.0, 6.0]), torch.tensor([2.0, 3.0])
        grad = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        given = f(grad, _middle, lambda g: [g * w, g * old])
        return tuple(given) if isinstance(given, (list, tuple)) else given

    text = "part = t[1:3], inner = view.mul_(w) for view [5, 6] and w [2, 3]"
    yield case(text, product).gives(
        (torch.tensor([1.0, 20.0, 300.0, 1000.0]), torch.tensor([50.0, 600.0]))
    )


@slices.check("view.copy_(w): the old values are gone")
def _(f):
    def copied():
        grad = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        return tuple(f(grad, _middle, lambda g: [g * 0, g]))

    yield case("part = t[1:3], inner = view.copy_(w)", copied).gives(
        (torch.tensor([1.0, 0.0, 0.0, 1000.0]), torch.tensor([10.0, 100.0]))
    )


@slices.check("the gradient that was given stays as it was", hidden=True)
def _(f):
    def after():
        grad = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        f(grad, _middle, lambda g: [g * 2])
        return grad

    yield case("grad, after the call", after).gives(torch.tensor([1.0, 10.0, 100.0, 1000.0]))


@slices.check("as a part of toytorch")
def _(f):
    def column():
        x = _wanted([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        w = _wanted([10.0, 20.0])
        base = x * 1
        base[:, 1].mul_(w)
        with slices.inject(f):
            (base * torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
        return x.grad, w.grad

    # what PyTorch gives
    yield case("base = x * 1; base[:, 1].mul_(w), a column of a matrix", column).gives(
        (torch.tensor([[1.0, 20.0, 3.0], [4.0, 100.0, 6.0]]), torch.tensor([4.0, 25.0]))
    )

    def second():
        x = _wanted([1.0, 2.0, 3.0, 4.0])
        base = x * x
        base[1:3].exp_()
        with slices.inject(f):
            (slope,) = torch.autograd.grad(base.sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x)
        return bend

    yield case("the second derivative of x * x with exp_() in the middle", second).gives(
        torch.tensor([2.0, 982.7667, 307917.2, 2.0]), tolerance=1e-4
    )


_PARTS = {
    "t[1:3]": (lambda t: t[1:3], (4,)),
    "t[::2]": (lambda t: t[::2], (4,)),
    "t[0]": (lambda t: t[0], (2, 3)),
    "t[:, 1]": (lambda t: t[:, 1], (2, 3)),
    "t.t()[1:]": (lambda t: t.t()[1:], (2, 3)),
    "t": (lambda t: t, (3,)),
}


@slices.check("any view and any write")
def _(f):
    def write(draw):
        name = draw.choice(list(_PARTS))
        grad = draw.tensor(_PARTS[name][1])
        return name, grad, draw.number(), draw.randint(0, 2)

    def apply(function):
        def run(name, grad, factor, others):
            inner = lambda g: [g * factor, *(g * n + 1 for n in range(others))]  # noqa: E731
            made = function(grad, _PARTS[name][0], inner)
            return tuple(made) if isinstance(made, tuple) else made

        return run

    def tell(name, grad, factor, others):
        return f"part = {name}, grad = {grad.tolist()}, inner(g) = [g * {factor}] and {others} more"

    yield agrees(apply(f), apply(slices.answer.value), write, tell=tell)

    def once():
        calls = []
        f(torch.ones(4), _middle, lambda g: calls.append(1) or [g * 2, g * 3])
        return len(calls)

    told = case("how often inner is called", once).gives(1)
    yield told.means("A node runs once in a backward pass: keep what it gave.")

    def infinite():
        grad = torch.tensor([1.0, float("inf"), 2.0, 3.0])
        return f(grad, _middle, lambda g: [torch.zeros(2)])[0]

    yield case("an infinity under the view, where inner gives zeros", infinite).gives(
        torch.tensor([1.0, 0.0, 0.0, 3.0])
    )

    def cubed(function):
        def run(x):
            w = torch.tensor([2.0, -1.0])
            grad = x * x  # as the gradient of a cube has it
            return list(function(grad, _middle, lambda g: [g * w, g * g]))

        return run

    yield second_derivative(
        cubed(f), cubed(slices.answer.value), lambda draw: (draw.tensor((4,), requires_grad=True),)
    )
