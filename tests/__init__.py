"""The project's tests: one suite per layer, checked against PyTorch wherever PyTorch is present."""
