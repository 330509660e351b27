"""LoRA and its relatives of peft on a tiny model of transformers."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported
from peft import IA3Config, LoraConfig, PromptTuningConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def model():
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(
            n_layer=2,
            n_head=2,
            n_embd=32,
            vocab_size=50,
            n_positions=32,
            bos_token_id=0,
            eos_token_id=1,
        )
    )


x = torch.arange(2, 12)[None]
for c in (
    LoraConfig(
        r=4, lora_alpha=8, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True
    ),
    LoraConfig(
        r=4, use_dora=True, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True
    ),
    IA3Config(
        target_modules=["c_attn"],
        feedforward_modules=[],
        task_type="CAUSAL_LM",
        fan_in_fan_out=True,
    ),
    PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
):
    m = get_peft_model(model(), c)
    m.print_trainable_parameters()
    o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(3):
        loss = m(input_ids=x, labels=x).loss
        loss.backward()
        o.step()
        o.zero_grad()
        print(loss.item())
    m.eval()
    if isinstance(c, LoraConfig):
        print(m.merge_and_unload()(x).logits.sum())
