"""Modules of `torch.fx` that record programs op by op."""
