"""All op records, by name: `toytorch.ops.mul` is the record, `toytorch.mul` the function."""

from toytorch.core import printing
from toytorch.core.op import Op, registry
from toytorch.ops import (
    compare,
    convert,
    create,
    index,
    indexing,
    loss,
    matmul,
    methods,
    pointwise,
    random,
    reduce,
    shape,
    sort,
    special,
    view,
)

__all__ = ["Op", "compare", "convert", "create", "index", "indexing", "loss", "matmul", "methods",
           "pointwise", "printing", "random", "reduce", "registry", "shape", "sort", "special",
           "view"]


def __getattr__(name: str) -> Op:
    if name in registry:
        return registry[name]
    raise AttributeError(f"there is no op record {name!r}; toytorch.ops.registry lists all "
                         f"{len(registry)}")
