"""Which ops run in the half type under autocast, and which never do.

The lists are PyTorch's for the CPU, by the names of the records here. An op in none of them takes
its operands as they come, and they meet by the ordinary rule of promotion. Functions made of
several records say for themselves what they want: see `toytorch.facts.composed`.
"""

from __future__ import annotations

# Products: most of the time of a network, and sums long enough for errors to cancel.
HALF = frozenset(["linear", "mm", "bmm", "addmm", "addbmm", "baddbmm", "convolution"])

# What needs float32's digits or range.
FLOAT32 = frozenset(
    [
        "avg_pool3d",
        "max_pool3d_with_indices",
        "_adaptive_avg_pool3d",
        "adaptive_max_pool3d",
        "fractional_max_pool2d",
        "fractional_max_pool3d",
        "max_unpool2d",
        "max_unpool3d",
        "reflection_pad1d",
        "reflection_pad2d",
        "replication_pad1d",
        "replication_pad2d",
        "replication_pad3d",
        "polar",
        "prod",
        "cdist",
        "view_as_complex",
        "cholesky_inverse",
        "cholesky_solve",
        "ormqr",
        "geqrf",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "mse_loss",
        "nll_loss",
        "smooth_l1_loss",
        "huber_loss",
        "soft_margin_loss",
        "_ctc_loss",
        "linalg_matrix_rank",
        "linalg_solve_ex",
        "linalg_cholesky_ex",
        "linalg_svdvals",
        "linalg_eigvals",
        "linalg_eigvalsh",
        "linalg_inv_ex",
        "linalg_householder_product",
        "linalg_qr",
        "linalg_svd",
        "linalg_eig",
        "linalg_eigh",
        "linalg_lstsq",
    ]
)

# What joins tensors: all in the widest type among them.
WIDEST = frozenset(["cat", "stack", "index_copy"])


def policy(name: str) -> str:
    """What becomes of the operands of an op: "half", "float32", "widest" or "" for nothing.

    >>> policy("mm"), policy("nll_loss"), policy("cat"), policy("add")
    ('half', 'float32', 'widest', '')
    """
    if name in HALF:
        return "half"
    if name in FLOAT32:
        return "float32"
    return "widest" if name in WIDEST else ""
