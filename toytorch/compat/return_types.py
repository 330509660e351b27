"""The classes of results whose parts have names: `torch.return_types.topk`."""

from typing import Any

from toytorch.core.op import registry
from toytorch.ops.named_results import VALUES_AND_INDICES, result_class

FIELDS = {
    "svd": ("U", "S", "V"),
    "qr": ("Q", "R"),
    "geqrf": ("a", "tau"),
    "triangular_solve": ("solution", "cloned_coefficient"),
    "frexp": ("mantissa", "exponent"),
    "histogram": ("hist", "bin_edges"),
    "histogramdd": ("hist", "bin_edges"),
    "lu_unpack": ("P", "L", "U"),
    "aminmax": ("min", "max"),
}


def __getattr__(name: str) -> Any:
    if name in FIELDS:
        return result_class(name, FIELDS[name])
    op = registry.get(name) or registry.get(f"{name}.dim")
    if op is not None and op.schema.result_names:
        return result_class(name, op.schema.result_names)
    if name in (
        "max",
        "min",
        "median",
        "nanmedian",
        "mode",
        "sort",
        "topk",
        "kthvalue",
        "cummax",
        "cummin",
    ):
        return result_class(name, VALUES_AND_INDICES)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
