"""The engine, in-place writes and grad modes, against PyTorch."""
