"""What the checks of chapter 04 share."""

import inspect

import toytorch as torch
from toytorch.autograd import Engine


def _derivative(op, name):
    """What plugs a derivative into an op's record, if its argument names mean something."""

    def inject(f):
        known = ("g", "result", *op.schema.index)
        strange = [n for n in inspect.signature(f).parameters if n not in known]
        if strange:
            raise ValueError(f"{op.name} can save {', '.join(known)}, but has no {strange[0]}")
        return op.using(**{name: f})

    return inject


def _leaves(*values):
    return [torch.tensor(value, requires_grad=True) for value in values]


def _grads(loss, leaves, **parts):
    loss.backward(engine=Engine(**parts))
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]
