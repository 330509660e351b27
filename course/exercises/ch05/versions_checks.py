"""The checks of `versions`."""

from contextlib import suppress
from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.exercises.ch05.versions import versions
from course.properties import drawn, every
from mytorch.tensor import Tensor


def _list(array):
    return None if array is None else np.asarray(array).round(9).tolist()


def _safe(Versioned, run):
    """``run``, with recording on before it, and put back after it."""

    def guarded(*args):
        Versioned.recording = True
        try:
            return run(*args)
        finally:
            Versioned.recording = True

    return guarded


@versions.check("1 · one memory, one count")
def _(Versioned):
    def detached():
        x = Versioned([1.0, 2.0], requires_grad=True)
        d = x.detach()
        d.data[0] = 9.0
        return x.data.tolist(), d.writes is x.writes, d.requires_grad

    yield case("d = x.detach(), written to: x, one count, d requires grad", detached).gives(
        ([9.0, 2.0], True, False)
    )

    def cut():
        x = Versioned(np.arange(6.0).reshape(3, 2), requires_grad=True)
        y = x.part(1, 3)
        y.data[0] = 9.0
        return x.data.tolist(), y.writes is x.writes, (x.viewed, y.viewed), y.requires_grad

    text = "y = x.part(1, 3), written to: x, one count, both viewed, y requires grad"
    yield case(text, cut).gives(([[0.0, 1.0], [9.0, 9.0], [4.0, 5.0]], True, (True, True), True))

    def apart():
        x = Versioned([1.0, 2.0])
        y = x._over(Tensor([3.0, 4.0]))
        return y.writes is x.writes, (x.viewed, y.viewed), y.data.tolist()

    yield case("x._over(a node with memory of its own)", apart).gives(
        (False, (False, False), [3.0, 4.0])
    )

    def back():
        x = Versioned([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        x.part(1, 4).part(0, 2).node.backward(np.array([10.0, 20.0]))
        return x.grad.tolist()

    yield case("x.part(1, 4).part(0, 2), back with [10, 20]: x.grad", back).gives(
        [0.0, 10.0, 20.0, 0.0]
    )


@versions.check("2 · operations")
def _(Versioned):
    def values():
        a, b = Versioned([[1.0, 2.0]]), Versioned([[3.0], [4.0]])
        made = [a + b, a * b, a @ b, a**2, a - 1, 3 * a, -a, a.exp().log(), a.tanh(), a.sum()]
        return [_list(x.data) for x in made]

    x, y = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
    yield case("a + b, a * b, a @ b, a**2, a - 1, 3 * a, …", values).gives(
        [_list(z) for z in (x + y, x * y, x @ y, x**2, x - 1, 3 * x, -x, x, np.tanh(x), x.sum())]
    )

    def grads():
        w, c = Versioned([[1.0, 2.0]], requires_grad=True), Versioned([[3.0], [4.0]])
        ((w @ c) * w + w.exp() - w.tanh() * 2).sum().backward()
        return _list(w.grad), c.grad

    real = torch.tensor(x, requires_grad=True)
    ((real @ torch.tensor(y)) * real + real.exp() - real.tanh() * 2).sum().backward()
    yield case("((w @ c) * w + w.exp() - w.tanh() * 2).sum().backward()", grads).gives(
        (_list(real.grad.numpy()), None)
    )

    def shares():
        a = Versioned(np.arange(6.0).reshape(2, 3))
        flipped = a.transpose(0, 1)
        made = [a.reshape(6), flipped, flipped.reshape(6), a + 1]
        return [z.writes is a.writes for z in made]

    text = "which share the count of a: a.reshape(6), its transpose, that reshaped (a copy), a + 1"
    yield case(text, shares).gives([True, True, False, False])


@versions.check("3 · saved tensors")
def _(Versioned):
    def after(operation, target):
        """The gradient of x, where one of the tensors is counted as written to."""

        def run():
            x, c = Versioned([1.0, 2.0], requires_grad=True), Versioned([3.0, 4.0])
            w = Versioned([5.0, 6.0], requires_grad=True)
            y = operation(x, c, w)
            {"x": x, "c": c, "w": w, "y": y}[target].writes[0] += 1
            try:
                y.sum().backward()
            except RuntimeError:
                return "refused"
            return _list(x.grad)

        return run

    for text, operation, wanted in (
        ("x.exp()", lambda x, c, w: x.exp(), {"x": [2.718281828, 7.389056099], "y": "refused"}),
        ("x.tanh()", lambda x, c, w: x.tanh(), {"y": "refused", "x": [0.419974342, 0.070650825]}),
        ("x.log()", lambda x, c, w: x.log(), {"x": "refused", "y": [1.0, 0.5]}),
        ("x ** 2", lambda x, c, w: x**2, {"x": "refused", "y": [2.0, 4.0]}),
        ("x * c", lambda x, c, w: x * c, {"c": "refused", "x": [3.0, 4.0], "y": [3.0, 4.0]}),
        ("c * x", lambda x, c, w: c * x, {"c": "refused", "x": [3.0, 4.0]}),
        ("x * w", lambda x, c, w: x * w, {"x": "refused", "w": "refused", "y": [5.0, 6.0]}),
        ("x * 3", lambda x, c, w: x * 3, {"x": [3.0, 3.0], "y": [3.0, 3.0]}),
        ("x + c", lambda x, c, w: x + c, {"x": [1.0, 1.0], "c": [1.0, 1.0]}),
    ):
        for target, result in wanted.items():
            told = f"y = {text}, then a write to {target} is counted: x.grad after backward"
            yield case(told, after(operation, target)).gives(result)

    def message():
        x = Versioned([1.0], requires_grad=True)
        x.writes[0] = 3
        y = x.log()
        x.writes[0] = 5
        y.backward()

    for said in ("log", "version 5", "version 3"):
        yield case("log of x at version 3; backward at version 5", message).raises(
            RuntimeError, said
        )


@versions.check("4 · writing")
def _(Versioned):
    def plain():
        x = Versioned([1.0, 2.0, 3.0])
        y = x.part(1, 3)
        same = y.mul_(10)
        x.add_(1)
        x -= 0.5
        return x.data.tolist(), y.data.tolist(), same is y, (x._version, y._version)

    yield case("y = x.part(1, 3); y.mul_(10); x.add_(1); x -= 0.5", plain).gives(
        ([1.5, 20.5, 30.5], [20.5, 30.5], True, (3, 3))
    )

    def chain(step):
        def run():
            x = Versioned([1.0, 2.0], requires_grad=True)
            w = Versioned([5.0, 7.0], requires_grad=True)
            return step(x, w)

        return run

    def product(x, w):
        y = x * 3
        y.mul_(w)
        y.sum().backward()
        return y.data.tolist(), x.grad.tolist(), w.grad.tolist()

    yield case("y = x * 3; y.mul_(w): y, x.grad, w.grad", chain(product)).gives(
        ([15.0, 42.0], [15.0, 21.0], [3.0, 6.0])
    )

    def used(x, w):
        y = x * 3
        z = y + 0
        y.mul_(w)
        z.sum().backward()
        return x.grad.tolist(), w.grad

    yield case("y = x * 3; z = y + 0; y.mul_(w); z.sum().backward(): x.grad, w.grad",
               chain(used)).gives(([3.0, 3.0], None))  # fmt: skip

    def late(x, w):
        y = x.exp()
        y.mul_(10)
        y.sum().backward()

    yield case("y = x.exp(); y.mul_(10); y.sum().backward()", chain(late)).raises(
        RuntimeError, "version"
    )

    def through(x, w):
        y = x.exp()
        y.detach().add_(1)
        y.sum().backward()

    yield case("y = x.exp(); y.detach().add_(1); y.sum().backward()", chain(through)).raises(
        RuntimeError, "version"
    )

    def itself(x, w):
        y = x * 3
        y.add_(y)
        y.sum().backward()
        return y.data.tolist(), x.grad.tolist()

    yield case("y = x * 3; y.add_(y): y, x.grad", chain(itself)).gives(([6.0, 12.0], [6.0, 6.0]))

    def given(x, w):
        data = Versioned([1.0, 1.0])
        data.mul_(w)
        (data * x).sum().backward()
        return data.requires_grad, w.grad.tolist()

    yield case("data, which requires no gradient: data.mul_(w), then w.grad", chain(given)).gives(
        (True, [1.0, 2.0])
    )

    def refused(step):
        def run(x, w):
            y = x * 3
            with suppress(RuntimeError):
                step(x, w, y)
                return "no error"
            return x.data.tolist(), y.data.tolist(), (x._version, y._version)

        return chain(run)

    kept = ([1.0, 2.0], [3.0, 6.0], (0, 0))
    for text, step in (
        ("x.mul_(2), a leaf", lambda x, w, y: x.mul_(2)),
        ("y.part(0, 1).mul_(2), a view", lambda x, w, y: y.part(0, 1).mul_(2)),
        ("y.part(0, 1), then y.mul_(2)", lambda x, w, y: (y.part(0, 1), y.mul_(2))),
        ("y.add_([[1, 1], [1, 1]]), another shape", lambda x, w, y: y.add_(np.ones((2, 2)))),
    ):
        yield case(f"{text}: x, y and their versions after the error", refused(step)).gives(kept)
    for text, step, said in (
        ("x.mul_(2)", lambda x, w: x.mul_(2), "leaf"),
        ("(x * 3).part(0, 1).mul_(2)", lambda x, w: (x * 3).part(0, 1).mul_(2), "view"),
        ("(x * 3).add_(ones of (2, 2))", lambda x, w: (x * 3).add_(np.ones((2, 2))), "shape"),
    ):
        yield case(text, chain(step)).raises(RuntimeError, said)


@versions.check("5 · no_grad")
def _(Versioned):
    def step():
        w = Versioned([1.0, 2.0], requires_grad=True)
        (w * w).sum().backward()
        with Versioned.no_grad():
            w -= 0.5 * w.grad
            y = w * 2
        return w.data.tolist(), w.requires_grad, w.node.pull is None, w._version, y.requires_grad

    yield case("a training step on w", _safe(Versioned, step)).gives(
        ([0.0, 0.0], True, True, 1, False)
    )

    def old():
        w = Versioned([1.0, 2.0], requires_grad=True)
        y = (w * w).sum()
        with Versioned.no_grad():
            w.add_(1)
        y.backward()

    yield case("y = (w * w).sum(), then a step on w, then y.backward()", _safe(Versioned, old)).raises(
        RuntimeError, "version"
    )

    def nested():
        with Versioned.no_grad():
            with Versioned.no_grad():
                pass
            inner = Versioned.recording
        return inner, Versioned.recording

    yield case("is recording on after the inner block, and after the outer one?",
               _safe(Versioned, nested)).gives((False, True))  # fmt: skip

    def failed():
        with suppress(KeyError), Versioned.no_grad():
            raise KeyError("an error in the block")
        return Versioned.recording

    yield case("is recording on after an error in the block?", _safe(Versioned, failed)).gives(True)

    def swallowed():
        with Versioned.no_grad():
            raise KeyError("an error in the block")

    yield case("an error in the block", _safe(Versioned, swallowed)).raises(KeyError, "in the block")

    def views():
        w = Versioned([1.0, 2.0], requires_grad=True)
        with Versioned.no_grad():
            w.part(0, 1).mul_(5)
        return w.data.tolist(), w._version

    yield case("w.part(0, 1).mul_(5) in the block: w, its version", _safe(Versioned, views)).gives(
        ([5.0, 2.0], 1)
    )


_PLAIN = {
    "{} + {}": lambda a, b: a + b,
    "{} * {}": lambda a, b: a * b,
    "{} @ {}": lambda a, b: a @ b,
    "{} - {}": lambda a, b: a - b,
}
_UNARY = {
    "{}.exp()": lambda a: a.exp(),
    "{}.tanh()": lambda a: a.tanh(),
    "{} ** 2": lambda a: a**2,
    "{} * 3": lambda a: a * 3,
    "{}.transpose(0, 1)": lambda a: a.transpose(0, 1),
    "{}.detach()": lambda a: a.detach(),
}
_INPLACE = ("add_", "mul_", "sub_")


def _program(draw):
    """Steps of a random program on 2 × 2 tensors: x and w are leaves, c requires no gradient."""
    names, viewed, steps = ["x", "w", "c"], set(), []
    for number in range(draw.randint(2, 6)):
        fresh = [n for n in names if n not in viewed and n not in "xwc"]
        if fresh and draw.random() < 0.45:
            target = draw.choice(fresh)
            other = draw.choice(names)
            steps.append(("write", draw.choice(_INPLACE), target, other))
        elif draw.random() < 0.15:
            steps.append(("quiet", draw.choice(_INPLACE), draw.choice(names), "0.5"))
        else:
            name = f"t{number}"
            table = _UNARY if draw.random() < 0.5 else _PLAIN
            text = draw.choice(sorted(table))
            taken = [draw.choice(names) for _ in range(text.count("{}"))]
            if "transpose" in text:
                viewed |= {name, *taken}  # a later write to either of them is left out
            names.append(name)
            steps.append(("make", text, name, *taken))
    return tuple(steps)


def _said(steps):
    lines = []
    for kind, what, first, *rest in steps:
        if kind == "make":
            lines.append(f"{first} = {what.format(*rest)}")
        else:
            line = f"{first}.{what}({rest[0]})"
            lines.append(line if kind == "write" else f"with no_grad(): {line}")
    return "; ".join(lines)


def _ran(leaf, no_grad, steps):
    """What the leaves get from the sum of everything at the end; or that it is refused."""
    draw = np.random.default_rng(0)
    known = {n: leaf(draw.normal(size=(2, 2)).round(1), n != "c") for n in ("x", "w", "c")}
    x, w = known["x"], known["w"]
    for kind, what, first, *rest in steps:
        if kind == "make":
            rule = _UNARY.get(what) or _PLAIN[what]
            known[first] = rule(*[known[name] for name in rest])
        elif kind == "write":
            getattr(known[first], what)(known[rest[0]])
        else:
            with no_grad():
                getattr(known[first], what)(0.5)
    total = x.sum() + w.sum()
    for value in known.values():
        total = total + value.sum()
    try:
        total.backward()
    except RuntimeError:
        return "refused in backward"
    return [_list(np.array(z.grad if isinstance(z.grad, np.ndarray) else z.grad.tolist()))
            for z in (x, w)]  # fmt: skip


@versions.check("6 · any program")
def _(Versioned):
    def mine(array, wants):
        return Versioned(array, requires_grad=wants)

    def real(array, wants):
        return torch.tensor(array, requires_grad=wants)

    def cases():
        for make in drawn(_program, 150):
            steps = make()
            run = _safe(Versioned, partial(_ran, mine, Versioned.no_grad))
            one = case(_said(steps), partial(run, steps))
            yield one.as_by(partial(_ran, real, torch.no_grad, steps), 1e-5)

    yield every("150 random programs, as toytorch runs them", cases)


@versions.check("7 · nothing is kept twice", hidden=True)
def _(Versioned):
    def memory():
        x = Versioned(np.ones(3), requires_grad=True)
        before = x.data
        y = x * 2
        first = y.data
        y.add_(1)
        return x.data is before, np.shares_memory(y.data, first)

    yield case("is the memory of y the same after y.add_(1)?", memory).gives((True, True))

    def deep():
        x = Versioned(np.ones(1), requires_grad=True)
        y = x * 1
        for _ in range(2_000):
            y.add_(x)
        y.backward()
        return y._version, float(x.grad[0])

    yield case("y = x * 1, then y.add_(x) 2,000 times: the version, x.grad", deep).gives(
        (2_000, 2_001.0)
    )
