"""BERT of transformers with random weights: loss and gradients of a classifier."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
m = BertForSequenceClassification(
    BertConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        vocab_size=100,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
)
x = torch.randint(1, 100, (2, 10))
mask = torch.ones_like(x)
mask[1, 5:] = 0
o = m(x, attention_mask=mask, labels=torch.tensor([0, 1]))
print(o.loss.item(), o.logits)
o.loss.backward()
print(sum(p.grad.abs().sum().item() for p in m.parameters() if p.grad is not None))
