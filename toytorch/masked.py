"""Reductions that leave masked elements out, like `torch.masked`.

The functions are the compositions of `toytorch.ops` whose public names start so; records of names
like masked_fill are functions of `toytorch` itself.
"""

from toytorch.ops.define import PUBLIC as _PUBLIC

globals().update(
    {
        name.removeprefix("masked."): function
        for name, function in _PUBLIC.items()
        if name.startswith("masked.")
    }
)
