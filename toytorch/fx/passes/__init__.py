"""Passes over graphs of `torch.fx`."""
