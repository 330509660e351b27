"""All op records, by name: `toytorch.ops.mul` is the record, `toytorch.mul` the function."""

import importlib
import os
from typing import Any

from toytorch.core import printing
from toytorch.core.op import Op, registry
from toytorch.ops import (
    activation,
    aliases,
    aten,
    attention,
    choice,
    compare,
    complex_pairs,
    complex_parts,
    conv,
    convert,
    copies,
    covariance,
    create,
    differences,
    distance,
    drop,
    elementary,
    embedding,
    fft,
    fft_frequencies,
    floating,
    fold,
    foreach,
    histograms,
    index,
    index_dim,
    indexing,
    integer,
    integrals,
    joining,
    layer_norm,
    layout,
    linalg_blocks,
    linalg_checks,
    linalg_cholesky,
    linalg_det,
    linalg_eigen,
    linalg_exp,
    linalg_ldl,
    linalg_lowrank,
    linalg_lstsq,
    linalg_lu,
    linalg_norms,
    linalg_products,
    linalg_qr,
    linalg_solve,
    linalg_svd,
    linalg_triangular,
    loss,
    loss_ctc,
    loss_pairs,
    masked_reduce,
    matmul,
    names,
    normalize,
    operands,
    operators,
    order_statistics,
    overloads,
    pad,
    parts,
    pointwise,
    pool,
    products,
    questions,
    random,
    ranges,
    reduce,
    reshaping,
    resize,
    sampling,
    scan,
    scatter_reduce,
    scattering,
    searching,
    segment,
    shape,
    shared,
    signal_windows,
    sort,
    sparse_coo,
    sparse_create,
    sparse_kernels,
    sparse_layout,
    sparse_products,
    sparse_reduce,
    special,
    special_bessel,
    special_gamma,
    special_names,
    special_normal,
    special_polynomial,
    statistics,
    stft,
    view,
)

__all__ = ["Op", "activation", "aliases", "aten", "attention", "choice", "compare", "complex_pairs",
           "complex_parts", "conv", "convert", "copies", "covariance", "create", "differences",
           "distance", "drop", "elementary", "embedding", "fft", "fft_frequencies", "floating",
           "fold", "foreach", "histograms", "index", "index_dim", "indexing", "integer",
           "integrals", "joining", "layer_norm", "layout", "linalg_blocks", "linalg_checks",
           "linalg_cholesky", "linalg_det", "linalg_eigen", "linalg_exp", "linalg_ldl",
           "linalg_lowrank", "linalg_lstsq", "linalg_lu", "linalg_norms", "linalg_products",
           "linalg_qr", "linalg_solve", "linalg_svd", "linalg_triangular", "load_library",
           "loaded_libraries", "loss", "loss_ctc", "loss_pairs", "masked_reduce", "matmul", "names",
           "normalize", "operands", "operators", "order_statistics", "overloads", "pad", "parts",
           "pointwise", "pool", "printing", "products", "questions", "random", "ranges", "reduce",
           "registry", "reshaping", "resize", "sampling", "scan", "scatter_reduce", "scattering",
           "searching", "segment", "shape", "shared", "signal_windows", "sort", "sparse_coo",
           "sparse_create", "sparse_kernels", "sparse_layout", "sparse_products", "sparse_reduce",
           "special", "special_bessel", "special_gamma", "special_names", "special_normal",
           "special_polynomial", "statistics", "stft", "view"]


loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Raises OSError: libraries of operators are written for PyTorch's own C++."""
    raise OSError(f"Could not load this library: {os.path.realpath(path)}")


def __getattr__(name: str) -> Op:
    if name in registry:
        return registry[name]
    if name == "reference":  # seldom wanted, and imports much
        return importlib.import_module("toytorch.ops.reference")  # type: ignore[return-value]
    raise AttributeError(f"there is no op record {name!r}; toytorch.ops.registry lists all "
                         f"{len(registry)}")
