"""A training loop under accelerate."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

set_seed(0)
a = Accelerator(cpu=True, gradient_accumulation_steps=2)
m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
o = torch.optim.AdamW(m.parameters(), lr=1e-2)
s = torch.optim.lr_scheduler.StepLR(o, 2)
d = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1)),
    batch_size=4,
    shuffle=True,
)
m, o, d, s = a.prepare(m, o, d, s)
for _ in range(2):
    for x, y in d:
        with a.accumulate(m):
            loss = torch.nn.functional.mse_loss(m(x), y)
            a.backward(loss)
            a.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            s.step()
            o.zero_grad()
            print(loss.item())
print(a.gather(torch.ones(2)), a.unwrap_model(m))

with tempfile.TemporaryDirectory() as f:
    a.save_state(f)
    a.load_state(f)
