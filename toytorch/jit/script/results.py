"""What functions that are composed of records give, where it is not one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.jit import types
from toytorch.jit.types import Type

LISTS = frozenset(
    (
        "split",
        "chunk",
        "unbind",
        "tensor_split",
        "hsplit",
        "vsplit",
        "dsplit",
        "split_with_sizes",
        "broadcast_tensors",
        "meshgrid",
        "unsafe_chunk",
        "unflatten_dense_tensors",
    )
)
BOOLS = frozenset(
    (
        "allclose",
        "equal",
        "is_floating_point",
        "is_complex",
        "is_tensor",
        "is_signed",
        "is_pinned",
        "is_coalesced",
        "is_neg",
        "is_conj",
        "is_inference",
        "can_cast",
        "is_grad_enabled",
        "is_available",
        "is_nonzero",
        "is_storage",
    )
)
PAIRS: dict[str, tuple[str, ...]] = {
    "topk": ("values", "indices"),
    "sort": ("values", "indices"),
    "kthvalue": ("values", "indices"),
    "mode": ("values", "indices"),
    "cummax": ("values", "indices"),
    "cummin": ("values", "indices"),
    "aminmax": ("min", "max"),
    "frexp": ("mantissa", "exponent"),
    "std_mean": ("std", "mean"),
    "var_mean": ("var", "mean"),
    "slogdet": ("sign", "logabsdet"),
    "qr": ("Q", "R"),
    "linalg_qr": ("Q", "R"),
    "linalg_eigh": ("eigenvalues", "eigenvectors"),
    "linalg_eig": ("eigenvalues", "eigenvectors"),
    "linalg_svd": ("U", "S", "Vh"),
    "svd": ("U", "S", "V"),
    "linalg_slogdet": ("sign", "logabsdet"),
    "geqrf": ("a", "tau"),
    "linalg_inv_ex": ("inverse", "info"),
    "triangular_solve": ("solution", "cloned_coefficient"),
    "lu": ("LU", "pivots"),
}
BY_DIM = {"max": 2, "min": 2, "median": 2, "nanmedian": 2}  # pairs where a dimension is given
INTS = frozenset(("get_device", "get_num_threads", "dense_dim", "sparse_dim", "__len__"))


def result_of(name: str, given: Sequence[Type], named: dict[str, Any]) -> Type:
    """The type of what the composed function `name` gives for arguments of these types."""
    if name in LISTS or (
        name.startswith("atleast_") and given and isinstance(given[0], types.List)
    ):
        return types.List(types.TENSOR)
    if name in BOOLS:
        return types.BOOL
    if name in INTS:
        return types.INT
    if name in PAIRS:
        return several(PAIRS[name])
    if name in BY_DIM and (
        ("dim" in named) or (len(given) > 1 and not isinstance(given[1], types.Tensor))
    ):
        return several(("values", "indices"))
    if name == "where" and len(given) == 1:
        return types.List(types.TENSOR)
    if name in ("nonzero", "unique", "unique_consecutive", "histogram"):
        return flagged(name, named)
    if name in ("result_type", "promote_types", "get_default_dtype"):
        return types.DTYPE
    return types.TENSOR


def flagged(name: str, named: dict[str, Any]) -> Type:
    """Results whose number depends on flags, which must be constants."""

    def on(flag: str) -> bool:
        value = named.get(flag)
        node = getattr(value, "node", None)
        return bool(node is not None and node.attributes.get("value"))

    if name == "nonzero":
        return types.List(types.TENSOR) if on("as_tuple") else types.TENSOR
    if name == "histogram":
        return several(("hist", "bin_edges"))
    count = 1 + on("return_inverse") + on("return_counts")
    return types.TENSOR if count == 1 else types.Tuple((types.TENSOR,) * count)


def several(names: tuple[str, ...]) -> types.Tuple:
    """A named tuple of tensors."""
    return types.Tuple((types.TENSOR,) * len(names), names)
