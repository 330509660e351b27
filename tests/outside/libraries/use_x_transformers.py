"""A decoder of x_transformers, forward and backward."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
m = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2))
x = torch.randint(0, 50, (1, 16))
y = m(x)
print(y.shape, y.sum().item())
y.sum().backward()
