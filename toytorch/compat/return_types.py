"""The classes of results whose parts have names: `torch.return_types.topk`."""

from typing import Any

from toytorch.core.op import registry
from toytorch.ops.named_results import result_class

FIELDS = {
    "svd": ("U", "S", "V"), "qr": ("Q", "R"), "geqrf": ("a", "tau"),
    "triangular_solve": ("solution", "cloned_coefficient"), "frexp": ("mantissa", "exponent"),
    "histogram": ("hist", "bin_edges"), "histogramdd": ("hist", "bin_edges"),
    "lu_unpack": ("P", "L", "U"), "aminmax": ("min", "max"), "slogdet": ("sign", "logabsdet"),
    "linalg_lu_factor": ("LU", "pivots"), "linalg_ldl_factor": ("LD", "pivots"),
}  # fmt: skip


def __getattr__(whole: str) -> Any:
    name = whole.removesuffix("_out")  # of what out= holds
    if name in FIELDS:
        return result_class(whole, FIELDS[name])
    op = registry.get(f"{name}.dim") or registry.get(name)  # `max` alone has one result
    if op is not None and op.schema.result_names:
        return result_class(whole, op.schema.result_names)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{whole}'")
