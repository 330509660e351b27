"""Tensors, promotion, printing, indexing and memory, against PyTorch."""
