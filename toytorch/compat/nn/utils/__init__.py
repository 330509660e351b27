"""Further modules of `torch.nn.utils`."""
