"""Nests of loops as Python, NumPy, CUDA C and LLVM's code."""
