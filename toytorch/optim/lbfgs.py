"""L-BFGS: Newton's method with curvature guessed from the last steps, and a line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from toytorch.autograd.modes import enable_grad, no_grad
from toytorch.core.tensor import Tensor
from toytorch.ops.creation.create import zeros_like
from toytorch.ops.shaping.rearrange import cat
from toytorch.optim.optimizer import Optimizer, Params, State, check_positive, named


class LBFGS(Optimizer):
    """Steps along -H·∇, where H, an inverse Hessian, is made of the last `history_size` steps:

        s = xₖ₊₁ - xₖ;  y = ∇ₖ₊₁ - ∇ₖ;  H ← (1 - s·yᵀ/yᵀs)·H·(1 - y·sᵀ/yᵀs) + s·sᵀ/yᵀs

    A call of `step(closure)` makes up to `max_iter` of them, and evaluates the closure (which
    computes the loss and calls backward) up to about `max_eval` times. Without `line_search_fn`
    each has length lr; "strong_wolfe" looks for one after which loss and slope have shrunk enough.
    Nocedal and Wright, Numerical Optimization, 2006, algorithms 7.4 and 3.5; `torch.optim.LBFGS`.

    >>> x = torch.tensor([3., 1.], requires_grad=True)
    >>> optimizer = LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x[0] - 1) ** 2 + 10 * (x[1] + 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure); x.detach().round(decimals=3)
    tensor([ 1., -2.])
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_positive(learning_rate=lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        hyper = "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"
        super().__init__(params, named(locals(), hyper))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimises the loss that `closure` computes; returns the loss before the first step."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with no_grad():
            return self._minimise(enable_grad()(closure))

    def _minimise(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        params = group["params"]
        state = self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        new = not state["n_iter"]
        first = closure()
        loss, grad, evals = number(first), flat_grad(params), 1
        state["func_evals"] += 1
        small, still = group["tolerance_grad"], group["tolerance_change"]
        done = largest(grad) <= small  # which NaN is not
        for left in reversed(range(0 if done else group["max_iter"])):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            length = group["lr"]
            if state["n_iter"] == 1:
                length = float((1.0 / grad.abs().sum()).clamp(max=1.0)) * group["lr"]
            state["d"], state["t"] = direction, length
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            slope = float(grad.dot(direction))
            if slope > -still:
                break
            before, used = loss, 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                line = Line(closure, params, direction)
                origin = Point(0.0, loss, grad, slope)
                found = strong_wolfe(line, origin, float(length), group["max_eval"] - evals)
                length, loss, grad, used = found.at, found.loss, found.grad, line.evals
                state["t"] = length
                move(params, length, direction)
            else:
                move(params, float(length), direction)
                if left:
                    loss, grad, used = number(closure()), flat_grad(params), 1
            evals += used
            state["func_evals"] += used
            if (
                evals >= group["max_eval"]
                or largest(grad) <= small
                or (largest(direction) * float(length) <= still)
                or abs(loss - before) < still
            ):
                break
        if new:  # what PyTorch writes last
            state.update({name: state.pop(name) for name in KEPT if name in state})
        return first

    @staticmethod
    def _direction(state: State, grad: Tensor, history: int) -> Tensor:
        """-H·∇, by the recursion over the last steps s and changes of gradient y."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
            state["H_diag"] = 1
            return -grad
        changes, moves, scales = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s)
        if float(ys) > 1e-10:  # else the loss curves the wrong way here
            if len(changes) == history:
                for past in (changes, moves, scales):
                    past.pop(0)
            changes.append(y)
            moves.append(s)
            scales.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        q, shares = -grad, state.setdefault("al", [None] * history)
        for i in reversed(range(len(changes))):
            shares[i] = moves[i].dot(q) * scales[i]
            q = q - changes[i] * shares[i]
        r: Tensor = q * state["H_diag"]
        for i, (y, s, scale) in enumerate(zip(changes, moves, scales)):
            r = r + s * (shares[i] - y.dot(r) * scale)
        return r


# What lasts from step to step.
KEPT = "d t old_dirs old_stps ro H_diag prev_flat_grad prev_loss".split()  # noqa: SIM905 - names of a state

# -- parameters as one vector ---------------------------------------------------------------------


def number(loss: Tensor | float) -> float:
    """A loss as a Python number; of one with a graph, float() would warn."""
    return loss.item() if isinstance(loss, Tensor) else float(loss)


def flat_grad(params: list[Tensor]) -> Tensor:
    """The gradients of all parameters in one vector; zeros where there is none."""
    parts = [zeros_like(p) if p.grad is None else p.grad for p in params]
    return cat.function([g.reshape(-1) for g in parts])


def move(params: list[Tensor], length: float, direction: Tensor) -> None:
    """x ← x + length·direction."""
    start = 0
    for p in params:
        part = direction[start : start + p.numel()].reshape(p.shape)
        p.add_(part, alpha=length)
        start += p.numel()


def largest(x: Tensor) -> float:
    """max |x|."""
    return float(x.abs().max())


# -- the line search ------------------------------------------------------------------------------


class Point(NamedTuple):
    """A step length, and the loss, its gradient and its slope along the line there."""

    at: float
    loss: float
    grad: Tensor
    slope: float


class Line:
    """The loss along a direction from where the parameters are."""

    def __init__(self, closure: Callable[[], Any], params: list[Tensor], direction: Tensor) -> None:
        self.closure, self.params, self.direction, self.evals = closure, params, direction, 0
        self.start = [p.clone() for p in params]
        self.reach = largest(direction)

    def __call__(self, at: float) -> Point:
        move(self.params, at, self.direction)
        loss, grad = number(self.closure()), flat_grad(self.params)
        for p, before in zip(self.params, self.start):
            p.copy_(before)
        self.evals += 1
        return Point(at, loss, grad, float(grad.dot(self.direction)))


def strong_wolfe(
    line: Line,
    origin: Point,
    at: float,
    limit: int = 25,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance: float = 1e-9,
) -> Point:
    """A point where the loss has fallen by c1 of what the slope promised, and |slope| to c2 of it.

    First the step grows until a minimum must lie between the last two points; then these close in.
    """

    def too_high(p: Point) -> bool:
        return p.loss > origin.loss + c1 * p.at * origin.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * origin.slope

    last, here = origin, line(at)
    tries = 0
    while tries < limit:
        if too_high(here) or (tries > 1 and here.loss >= last.loss):
            break
        if flat(here):
            return here
        if here.slope >= 0:
            break
        limits = here.at + 0.01 * (here.at - last.at), here.at * 10
        last, here = here, line(cubic_minimum(last, here, limits))
        tries += 1
    else:
        last = origin
    return close_in(line, last, here, too_high, flat, tolerance, limit - tries)


def close_in(
    line: Line,
    a: Point,
    b: Point,
    too_high: Callable[[Point], bool],
    flat: Callable[[Point], bool],
    tolerance: float,
    tries: int,
) -> Point:
    """The better end of [a, b] after up to `tries` points between them."""
    ends = [a, b]
    low = 0 if a.loss <= b.loss else 1
    slow = False
    for _ in range(tries):
        left, right = sorted(e.at for e in ends)
        if (right - left) * line.reach < tolerance:
            break
        at = cubic_minimum(ends[0], ends[1])
        margin = 0.1 * (right - left)
        near = min(right - at, at - left) < margin
        if near and (slow or at >= right or at <= left):  # twice close to an end: step inside
            at = right - margin if abs(at - right) < abs(at - left) else left + margin
            near = False
        slow = near
        here = line(at)
        if too_high(here) or here.loss >= ends[low].loss:
            ends[1 - low] = here
            low = 0 if ends[0].loss <= ends[1].loss else 1
            continue
        if flat(here):
            return here
        if here.slope * (ends[1 - low].at - ends[low].at) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = here
    return ends[low]


def cubic_minimum(a: Point, b: Point, limits: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points, with their slopes, is least; within limits.

    Nocedal and Wright, equation 3.59.
    """
    if a.at > b.at:
        a, b = b, a
    low, high = limits or (a.at, b.at)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    best = b.at - (b.at - a.at) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(best, low), high)
