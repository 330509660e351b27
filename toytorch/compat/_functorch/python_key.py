"""The recorder of graphs, which is not here."""

from toytorch.compat._absent import attribute

make_fx = attribute("torch.fx.experimental.proxy_tensor", "make_fx")
