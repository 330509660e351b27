"""`torch._functorch`: where transforms of functions stand in PyTorch, for `functorch` and others."""
