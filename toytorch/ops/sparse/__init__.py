"""Sparse tensors: making them, their layouts, and the kernels of ops on them."""
