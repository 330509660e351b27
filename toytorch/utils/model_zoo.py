"""The older names of `torch.hub`, which refuses them."""

from toytorch.hub import load_state_dict_from_url
from toytorch.hub import load_state_dict_from_url as load_url

__all__ = ["load_state_dict_from_url", "load_url"]
