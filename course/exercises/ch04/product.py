"""The derivative of a matrix product."""

import toytorch as torch
from course.cases import call, case
from course.exercises.ch04.common import _derivative
from course.records import Exercise

product = Exercise(
    "autograd.product",
    "The derivative of a matrix product",
    chapter=4,
    minutes=10,
    inject=_derivative(torch.ops.mm, "d_mat2"),
    prompt="""
    In a linear layer $Y = XW$, the learning happens in $W$. Each number in it touches a whole
    column of $Y$:

    $$Y_{ij} = \\sum_k X_{ik} W_{kj} \\qquad
      \\frac{\\partial L}{\\partial W_{kj}} = \\sum_i X_{ik}\\, g_{ij}.$$

    Write `d_mat2(g, self)` for `self.mm(mat2)`: here `self` is $X$ of shape `(n, k)`, `g` has the
    shape `(n, m)` of $Y$, and what comes out has the shape `(k, m)` of $W$. It is one matrix
    product. If you forget which: the shapes leave only one choice.
    """,
)


@product.stub
def d_mat2(g, self):
    """The gradient of W, for Y = X @ W: g is Y's, self is X."""
    # your code here: one line
    raise NotImplementedError


@product.reference
def d_mat2(g, self):
    """The gradient of W, for Y = X @ W: g is Y's, self is X."""
    return self.t() @ g  # (k, n) @ (n, m)


@product.mutant(
    "comes out transposed",
    why="""
    This is the gradient of Wᵀ. The sum over examples is right, with rows and columns exchanged. A
    gradient always has the shape of what it is the gradient of: (k, m), with k from `self` first.
    """,
)
def d_mat2(g, self):
    return g.t() @ self


@product.mutant(
    "forgets to transpose",
    why="""
    `self @ g` adds up over the columns of X. The sum must be over its *rows*, the n examples, since
    every example used the same W. Transposing `self` puts them on the inside of the product. (With
    square matrices no shape error warns you, only the numbers are wrong.)
    """,
)
def d_mat2(g, self):
    return self @ g


@product.mutant(
    "the mean over examples",
    why="""
    The sum was divided by the number of examples. The product itself takes no mean: if the loss
    does, its 1/n is in `g` already and would be there twice.
    """,
)
def d_mat2(g, self):
    return self.t() @ g / len(g)


@product.mutant(
    "leaves the input out",
    why="""
    What came out does not depend on X at all, as if the input took no part in the product. W's
    gradient is large where its *input* was large: a weight that was multiplied by 0 had no
    influence on the loss.
    """,
)
def d_mat2(g, self):
    return torch.ones_like(self).t() @ g


# what PyTorch gives
PRODUCT_X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
PRODUCT_GRAD = [[52.0, 61.0, 70.0, 79.0], [64.0, 76.0, 88.0, 100.0]]


@product.check("three examples, two features, four outputs")
def _(f):
    x = torch.tensor(PRODUCT_X)
    yield call(f, torch.arange(12.0).reshape(3, 4), x).gives(torch.tensor(PRODUCT_GRAD))


@product.check("square matrices", hidden=True)
def _(f):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    g = torch.tensor([[1.0, 0.0], [10.0, 0.0]])
    yield call(f, g, x).gives(torch.tensor([[31.0, 0.0], [42.0, 0.0]]))


@product.check("as a part of toytorch")
def _(f):
    def through():
        w = torch.zeros(2, 4, requires_grad=True)
        with product.inject(f):
            (torch.tensor(PRODUCT_X) @ w).backward(torch.arange(12.0).reshape(3, 4))
        return w.grad

    plugged = case("(x @ w).backward(g), through toytorch.ops.mm", through)
    yield plugged.gives(torch.tensor(PRODUCT_GRAD))
