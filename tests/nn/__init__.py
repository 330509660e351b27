"""Modules, losses, optimizers and data, against PyTorch."""
