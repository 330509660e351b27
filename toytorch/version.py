"""The one place of the version number."""

__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"]  # noqa: RUF022

__version__ = "0.1.0"
own = __version__  # whatever __version__ says once `toytorch.alias` has taken PyTorch's name
compatible = "2.13.0+toytorch"  # the PyTorch whose interface this is

# Programs print what PyTorch was built for; toytorch was built for nothing in particular.
cuda = hip = rocm = xpu = None
git_version = "Unknown"  # what PyTorch says of a build outside a repository
debug = False
