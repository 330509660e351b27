"""Modules of `toytorch.utils` that only other libraries ask for, or that stand above it."""
