"""Llama of transformers with random weights: gradients, generation with a cache."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
m = LlamaForCausalLM(
    LlamaConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=100,
        max_position_embeddings=64,
    )
)
x = torch.randint(3, 100, (2, 10))
o = m(x, labels=x)
print(o.loss.item())
o.loss.backward()
print(m.model.embed_tokens.weight.grad.abs().sum().item())
m.eval()
print(m.generate(x, max_new_tokens=8, do_sample=False, pad_token_id=0))
