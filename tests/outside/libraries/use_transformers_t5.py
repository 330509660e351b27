"""T5 of transformers with random weights: gradients, generation, beam search."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
m = T5ForConditionalGeneration(
    T5Config(
        num_layers=2,
        d_model=32,
        d_kv=8,
        num_heads=4,
        d_ff=64,
        vocab_size=100,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
)
x = torch.randint(2, 100, (2, 10))
y = torch.randint(2, 100, (2, 6))
o = m(input_ids=x, labels=y)
print(o.loss.item())
o.loss.backward()
print(m.shared.weight.grad.abs().sum().item())
m.eval()
print(m.generate(x, max_new_tokens=6, do_sample=False))
print(m.generate(x, max_new_tokens=6, num_beams=2, do_sample=False))
