"""What the checks of chapter 08 share."""

import toytorch as torch


def descent(make, steps=3, *, lib=torch, rates=(), keep=False, idle=False):
    """Where two parameters are after some steps on a bowl, and a third that has no gradient."""
    a = lib.tensor([1.0, -2.0, 3.0], requires_grad=True)
    b = lib.tensor([0.5, 0.25], requires_grad=True)
    c = lib.tensor([1.0], requires_grad=True)
    optimizer = make([a, b, c] if idle else [a, b])
    bowl = lib.tensor([1.0, 4.0, 0.25])
    for n in range(steps):
        optimizer.zero_grad(set_to_none=not keep)
        loss = (a * a * bowl).sum() / 2 + (b[0] - 2 * b[1] + 1) ** 2
        loss.backward()
        if rates:
            optimizer.param_groups[0]["lr"] = rates[n]
        optimizer.step()
    return [[round(v, 6) for v in p.tolist()] for p in ([a, b, c] if idle else [a, b])]


def _two_groups(kind, name, first, second, **options):
    """An optimizer whose two parameters have different values of one option."""

    def make(params):
        return kind([{"params": params[:1], name: first}, {"params": params[1:], name: second}],
                    **options)

    return make


def journey(kind, options, steps):
    """Where two parameters, each in a group of its own, are after steps with given gradients.

    Args:
        kind: the class of the optimizer.
        options: of the two groups; the first is also what the optimizer is made with.
        steps: for each step the gradients of both, and the rate of the first group, or None.
    """
    ps = [torch.tensor([1.0, -2.0], requires_grad=True), torch.tensor([[0.5]], requires_grad=True)]
    memory = [p.data_ptr() for p in ps]
    groups = [{"params": [p]} | group for p, group in zip(ps, options)]
    optimizer = kind(groups, **options[0])
    places = []
    for *grads, rate in steps:
        given = [None if g is None else torch.tensor(g).reshape(p.shape) for g, p in zip(grads, ps)]
        for p, g in zip(ps, given):
            p.grad = g
        if rate is not None:
            optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        places.append([[round(v, 5) for v in p.flatten().tolist()] for p in ps])
    return {
        "parameters": places,
        "last gradients": [None if g is None else g.flatten().tolist() for g in given],
        "written in place": memory == [p.data_ptr() for p in ps],
    }


def some_steps(draw, most=5):
    """Steps for a journey: gradients, some of them zero or missing, and rates."""

    def gradient(size):
        kind = draw.random()
        if kind < 0.2:
            return None
        return [0.0 if kind < 0.4 else draw.number() for _ in range(size)]

    rate = draw.choice([None, None, 0.05])
    return [(gradient(2), gradient(1), rate) for _ in range(draw.randint(1, most))]


def told(options, steps):
    """A journey in words."""
    rows = "; ".join(
        f"{a} and {b}" + (f", lr {rate} in the first group" if rate else "") for a, b, rate in steps
    )
    return f"groups {options[0]} and {options[1]}; the gradients of each step: {rows}"


class Going:
    """A parameter on its way by an optimizer, which can be saved and loaded."""

    def __init__(self, make):
        self.p = torch.tensor([1.0, -2.0], requires_grad=True)
        self.optimizer = make([self.p])

    def step(self):
        """One step down a bowl; where the parameter is after it."""
        self.optimizer.zero_grad()
        (self.p * self.p * torch.tensor([1.0, 3.0])).sum().backward()
        self.optimizer.step()
        return self.p.tolist()

    def state_dict(self):
        return {"p": self.p.detach().clone(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.p.copy_(state["p"])
        self.optimizer.load_state_dict(state["optimizer"])
