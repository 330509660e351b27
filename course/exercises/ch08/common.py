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
