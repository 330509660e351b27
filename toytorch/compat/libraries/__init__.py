"""Operators that other packages bring compiled for PyTorch's C++, written with tensors.

What a package has in `torchvision/_C.so` is looked for in `torchvision/_C.py` here when the package
hands its file to `torch.ops.load_library`.
"""
