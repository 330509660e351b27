"""Compiling, keeping, calling and sharing kernels between threads."""
