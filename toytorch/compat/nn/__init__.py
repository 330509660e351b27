"""Modules of `torch.nn` that only other libraries ask for: `toytorch.nn._reduction` and the like."""
