"""The one place of the version number."""

__version__ = "0.1.0"

# Programs print what PyTorch was built for; toytorch was built for nothing in particular.
cuda = hip = rocm = xpu = git_version = None
debug = False
