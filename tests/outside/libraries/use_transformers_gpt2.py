"""GPT-2 of transformers with random weights: gradients, greedy, beam search, sampling."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
m = GPT2LMHeadModel(
    GPT2Config(
        n_layer=2,
        n_head=2,
        n_embd=32,
        vocab_size=100,
        n_positions=64,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=1,
    )
)
x = torch.randint(2, 100, (2, 10))
o = m(x, labels=x)
print(o.loss.item(), o.logits.shape)
o.loss.backward()
print(m.transformer.wte.weight.grad.abs().sum().item())
m.eval()
print(m.generate(x, max_new_tokens=8, do_sample=False, pad_token_id=0))
print(m.generate(x, max_new_tokens=8, num_beams=3, do_sample=False, pad_token_id=0))
torch.manual_seed(1)
print(m.generate(x, max_new_tokens=8, do_sample=True, top_k=20, pad_token_id=0))
