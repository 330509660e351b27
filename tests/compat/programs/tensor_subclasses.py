"""Tensors with a unit, a log of calls, and objects that only look like tensors."""

import functools

import torch
from torch.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    resolve_name,
)


class Diagonal:
    """A matrix of one number on its diagonal: no tensor, but functions of tensors know it."""

    handled = {}

    def __init__(self, size, value):
        self.size_, self.value = size, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.handled or not all(issubclass(t, (torch.Tensor, cls)) for t in types):
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


def implements(function):
    def decorate(own):
        functools.update_wrapper(own, function)
        Diagonal.handled[function] = own
        return own

    return decorate


@implements(torch.mean)
def diagonal_mean(input):
    return float(input.value) / input.size_


@implements(torch.matmul)
def diagonal_matmul(a, b):
    return a.value * b if isinstance(a, Diagonal) else a * b.value


d = Diagonal(5, 2)
print(torch.mean(d), torch.matmul(d, torch.ones(2)), torch.matmul(torch.ones(2), d))
try:
    torch.add(d, 1)
except TypeError as error:
    print(str(error).replace("__main__.", ""))


class Logged(torch.Tensor):
    """Says what is done to it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("  ", func.__name__, [t.__name__ for t in types])
        return super().__torch_function__(func, types, args, kwargs)


x = torch.tensor([1.0, -2.0, 3.0]).as_subclass(Logged)
for expression in (
    "x + 1", "1 + x", "x * x", "2 * x", "x - 1", "x / 2", "-x", "x ** 2", "x > 0", "x == x",
    "x @ x", "x[1:]", "x.sum()", "torch.sum(x)", "x.mean(dim=0)", "x.max(0)", "torch.cat([x, x])",
    "torch.stack((x, torch.ones(3)))", "torch.nn.functional.relu(x)", "x.clone()", "x.view(3, 1)",
    "x.detach()", "x.to(torch.float64)", "torch.where(x > 0, x, 0 * x)", "x.unbind()", "x.view(3, 1).T",
    "torch.nn.functional.softmax(x, dim=0)", "torch.zeros_like(x)", "x.abs()", "abs(x)", "x.tolist()",
    "x.split(2)", "x.topk(2)", "torch.linalg.norm(x)", "x.reshape(-1)", "x.add_(1)", "x.numpy()",
):  # fmt: skip
    print(expression)
    found = eval(expression)
    print("  ->", type(found).__name__)


class Metres(torch.Tensor):
    """A subclass that keeps a unit through operations."""

    unit = "m"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs)
        if isinstance(made, Metres):
            made.unit = "m"
        return made


class Plain(torch.Tensor):
    pass


class Finer(Plain):
    pass


length = Metres([1.0, 2.0])
print(length, (length * 2).unit, length.shape, length.sum().item(), type(length + torch.ones(2)))
print(type(Plain([1.0]) + Finer([1.0])).__name__, type(torch.ones(1) + Plain([1.0])).__name__)
print(repr(Finer([[1.0, 2.0]])), isinstance(Finer([1.0]), torch.Tensor))

weight = torch.ones(2, requires_grad=True)
loss = (weight.as_subclass(Plain) * 3).sum()
loss.backward()
print(type(loss).__name__, type(weight.grad).__name__, weight.grad)
made = torch.Tensor._make_subclass(Plain, torch.ones(2), True)
print(type(made).__name__, made.requires_grad, made.is_leaf)


class Weight(torch.nn.Parameter):
    """Parameters are plain to functions, whatever their class."""


layer = torch.nn.Linear(2, 1, bias=False)
layer.weight = Weight(torch.ones(1, 2))
print(type(layer.weight).__name__, type(layer.weight * 1).__name__, layer(torch.ones(3, 2)).shape)


class Names(TorchFunctionMode):
    """Says the name of every call."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("  ", resolve_name(func))
        return func(*args, **(kwargs or {}))


class Doubled(TorchFunctionMode):
    """Another mode, inside of the first."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        return torch.mul(made, 2) if func is torch.sin else made


with Names():
    torch.sin(torch.ones(1))
    with Doubled():
        print(torch.sin(torch.ones(1)).item())
    torch.nn.functional.gelu(torch.ones(1))


def mine(a, b=2):
    """A function of our own that asks."""
    if has_torch_function((a,)):
        return handle_torch_function(mine, (a,), a, b=b)
    return "plain"


class Answer:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return f"{func.__name__} {kwargs}"


print(mine(torch.ones(1)), mine(Answer(), b=3), is_tensor_like(Answer()), is_tensor_like(3))
