"""`torch.fx.experimental`: `proxy_tensor` records programs op by op."""
