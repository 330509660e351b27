"""All op records, by name: `toytorch.ops.mul` is the record, `toytorch.mul` the function."""

import importlib
import os
import sys
from typing import Any

import toytorch.ops.aliases
import toytorch.ops.aten
import toytorch.ops.creation.convert
import toytorch.ops.creation.create
import toytorch.ops.creation.dlpack
import toytorch.ops.creation.from_data
import toytorch.ops.creation.random
import toytorch.ops.creation.random_fill
import toytorch.ops.creation.random_of
import toytorch.ops.creation.ranges
import toytorch.ops.creation.shared_memory
import toytorch.ops.elementwise.activation
import toytorch.ops.elementwise.arithmetic
import toytorch.ops.elementwise.compare
import toytorch.ops.elementwise.complex_numbers
import toytorch.ops.elementwise.elementary
import toytorch.ops.elementwise.floating
import toytorch.ops.elementwise.limits
import toytorch.ops.elementwise.operand_checks
import toytorch.ops.foreach
import toytorch.ops.indexing.along_dim
import toytorch.ops.indexing.by_index
import toytorch.ops.indexing.scatter
import toytorch.ops.indexing.scatter_reduce
import toytorch.ops.indexing.subscript
import toytorch.ops.linalg.blocks
import toytorch.ops.linalg.checks
import toytorch.ops.linalg.cholesky
import toytorch.ops.linalg.det
import toytorch.ops.linalg.distance
import toytorch.ops.linalg.eigen
import toytorch.ops.linalg.einsum
import toytorch.ops.linalg.exponential
import toytorch.ops.linalg.ldl
import toytorch.ops.linalg.least_squares
import toytorch.ops.linalg.low_rank
import toytorch.ops.linalg.lu
import toytorch.ops.linalg.matmul
import toytorch.ops.linalg.matmul_calls
import toytorch.ops.linalg.norms
import toytorch.ops.linalg.products
import toytorch.ops.linalg.qr
import toytorch.ops.linalg.solve
import toytorch.ops.linalg.svd
import toytorch.ops.linalg.triangular
import toytorch.ops.named_dims
import toytorch.ops.named_results
import toytorch.ops.nn.attention
import toytorch.ops.nn.conv
import toytorch.ops.nn.dropout
import toytorch.ops.nn.embedding
import toytorch.ops.nn.fold
import toytorch.ops.nn.grid_sample
import toytorch.ops.nn.layer_norm
import toytorch.ops.nn.linear_maps
import toytorch.ops.nn.loss
import toytorch.ops.nn.loss_ctc
import toytorch.ops.nn.loss_pairs
import toytorch.ops.nn.normalize
import toytorch.ops.nn.pad
import toytorch.ops.nn.pool
import toytorch.ops.nn.resize
import toytorch.ops.nn.rms_norm
import toytorch.ops.nn.windows
import toytorch.ops.operators
import toytorch.ops.overloads
import toytorch.ops.queries
import toytorch.ops.reductions.covariance
import toytorch.ops.reductions.differences
import toytorch.ops.reductions.exponentials
import toytorch.ops.reductions.extremes
import toytorch.ops.reductions.histograms
import toytorch.ops.reductions.integrals
import toytorch.ops.reductions.masked
import toytorch.ops.reductions.moments
import toytorch.ops.reductions.order_statistics
import toytorch.ops.reductions.reduce
import toytorch.ops.reductions.scan
import toytorch.ops.reductions.searching
import toytorch.ops.reductions.segment
import toytorch.ops.reductions.sort
import toytorch.ops.shaping.combine
import toytorch.ops.shaping.in_place
import toytorch.ops.shaping.rearrange
import toytorch.ops.shaping.reshape
import toytorch.ops.shaping.several
import toytorch.ops.shaping.slices
import toytorch.ops.shaping.split
import toytorch.ops.shaping.strided
import toytorch.ops.shaping.view
import toytorch.ops.shaping.view_copies
import toytorch.ops.signal.fft
import toytorch.ops.signal.fft_frequencies
import toytorch.ops.signal.stft
import toytorch.ops.signal.windows
import toytorch.ops.sparse.coo
import toytorch.ops.sparse.create
import toytorch.ops.sparse.kernels
import toytorch.ops.sparse.layout
import toytorch.ops.sparse.methods
import toytorch.ops.sparse.products
import toytorch.ops.sparse.reduce
import toytorch.ops.special.bessel
import toytorch.ops.special.error_gamma
import toytorch.ops.special.implicit
import toytorch.ops.special.incomplete_gamma
import toytorch.ops.special.names
from toytorch.core import printing
from toytorch.core.op import Op, registry

__all__ = ["Op", "load_library", "loaded_libraries", "printing", "registry"]


loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Takes in a library's operators, where toytorch has written them for tensors of its own.

    `torchvision/_C.so` is `toytorch.compat.libraries.torchvision._C`. Raises OSError for others,
    which are compiled for PyTorch's own C++.
    """
    folder, file = os.path.split(os.path.realpath(path))
    ours = f"toytorch.compat.libraries.{os.path.basename(folder)}.{file.partition('.')[0]}"
    try:
        importlib.import_module(ours)  # seldom wanted, and made of what lies above
    except ModuleNotFoundError as lacking:
        if not ours.startswith(str(lacking.name)):
            raise
        raise OSError(f"Could not load this library: {os.path.join(folder, file)}") from None


def __getattr__(name: str) -> Op:
    if name in registry:
        return registry[name]
    if name == "reference":  # seldom wanted, and imports much
        return importlib.import_module("toytorch.ops.reference")  # type: ignore[return-value]  # a module, which is no function
    library = sys.modules.get("toytorch.autograd.custom_op")
    if library is not None and name in library.NAMESPACES:
        return library.namespace(name)  # operators of one's own
    raise AttributeError(
        f"there is no op record {name!r}; toytorch.ops.registry lists all {len(registry)}"
    )
