"""Files of safetensors: tensors, slices, modules."""

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

folder = Path(tempfile.mkdtemp())
t = {
    "a": torch.arange(6.0).view(2, 3),
    "b": torch.ones(2, dtype=torch.int64),
    "h": torch.ones(3).half(),
    "bf": torch.ones(3).bfloat16(),
}
save_file(t, folder / "x.safetensors")
loaded = load_file(folder / "x.safetensors")
print({k: (v.dtype, v.sum().item()) for k, v in loaded.items()})
print(load(save(t))["a"])
m = torch.nn.Linear(2, 2)
save_model(m, folder / "m.safetensors")
print(load_model(torch.nn.Linear(2, 2), folder / "m.safetensors"))
with safe_open(folder / "x.safetensors", "pt") as f:
    print(sorted(f.keys()), f.get_tensor("a"), f.get_slice("a")[:, :1])
