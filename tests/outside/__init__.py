"""Programs nobody here has thought of: `python -m tests.outside --seeds 0:1000`.

A second generator of random programs, beside the first ones of `tests/autograd` and `tests/jit`. It knows
PyTorch only: the signatures that PyTorch's own table of schemas prints, and the samples of PyTorch's
database of operators. It never asks toytorch what there is, so what toytorch lacks is drawn as
well. A program is text; both packages run it, statement by statement, and after each everything
that a program can see is compared (`compare.py`).

    signatures   what PyTorch's schemas say can be called, and how
    leaves       the text of a tensor: types, strides, special values
    arguments    the text of an argument, from its type and its name
    statements   the kinds of statements; `program` draws a program of a seed
    running      runs a program on either side
    compare      what is compared, and what is known to be otherwise
    search       seeds, shrinking, groups
"""
