"""All op records, by name: `toytorch.ops.mul` is the record, `toytorch.mul` the function."""

from toytorch.core import printing
from toytorch.core.op import Op, registry
from toytorch.ops import (
    aliases,
    compare,
    complex_parts,
    convert,
    create,
    floating,
    index,
    indexing,
    integer,
    joining,
    layout,
    loss,
    matmul,
    methods,
    operators,
    overloads,
    pointwise,
    products,
    questions,
    random,
    reduce,
    reshaping,
    scattering,
    searching,
    shape,
    sort,
    special,
    statistics,
    view,
)

__all__ = ["Op", "aliases", "compare", "complex_parts", "convert", "create", "floating", "index", "indexing", "integer",
           "joining", "layout", "loss", "matmul", "methods", "operators", "overloads", "pointwise",
           "printing", "products", "questions", "random", "reduce", "registry", "reshaping",
           "scattering", "searching", "shape", "sort", "special", "statistics", "view"]


def __getattr__(name: str) -> Op:
    if name in registry:
        return registry[name]
    raise AttributeError(f"there is no op record {name!r}; toytorch.ops.registry lists all "
                         f"{len(registry)}")
