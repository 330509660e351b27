"""Transforms of functions, against PyTorch."""
