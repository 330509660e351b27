"""A small GPT learns to sort: grouped weight decay, callbacks of a trainer, sampling of the top k."""

import math
import pickle
import time
from collections import defaultdict
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader


class SortDataset(Dataset):
    def __init__(self, split, length=4, digits=3):
        assert split in {"train", "test"}
        self.split, self.length, self.digits = split, length, digits

    def __len__(self):
        return 1000

    def get_block_size(self):
        return self.length * 2 - 1

    def __getitem__(self, idx):
        while True:
            inp = torch.randint(self.digits, size=(self.length,), dtype=torch.long)
            if torch.rand(1).item() < 0.5 and inp.unique().nelement() > self.length // 2:
                continue
            h = hash(pickle.dumps(inp.tolist()[0]))
            if self.split == ("test" if sum(inp.tolist()) % 4 == 0 else "train"):
                break
            assert isinstance(h, int)
        cat = torch.cat((inp, torch.sort(inp)[0]), dim=0)
        x, y = cat[:-1].clone(), cat[1:].clone()
        y[: self.length - 1] = -1
        return x, y


class NewGELU(nn.Module):
    def forward(self, x):
        return (
            0.5
            * x
            * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        )


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(c.width, 3 * c.width), nn.Linear(c.width, c.width)
        self.attn_drop, self.resid_drop = nn.Dropout(0.1), nn.Dropout(0.1)
        self.register_buffer(
            "bias", torch.tril(torch.ones(c.block, c.block)).view(1, 1, c.block, c.block)
        )
        self.heads, self.width = c.heads, c.width

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_drop(F.softmax(att, dim=-1)) @ v
        return self.resid_drop(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(c.width), Attention(c), nn.LayerNorm(c.width)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(c.width, 4 * c.width),
                c_proj=nn.Linear(4 * c.width, c.width),
                act=NewGELU(),
                dropout=nn.Dropout(0.1),
            )
        )
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.block = c.block
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(c.vocab, c.width),
                wpe=nn.Embedding(c.block, c.width),
                drop=nn.Dropout(0.1),
                h=nn.ModuleList([Block(c) for _ in range(c.layers)]),
                ln_f=nn.LayerNorm(c.width),
            )
        )
        self.lm_head = nn.Linear(c.width, c.vocab, bias=False)
        self.apply(self._init_weights)
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * c.layers))
        print(
            "number of parameters: %.2fK"
            % (sum(p.numel() for p in self.transformer.parameters()) / 1e3,)
        )

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
        elif isinstance(module, nn.LayerNorm):
            torch.nn.init.zeros_(module.bias)
            torch.nn.init.ones_(module.weight)

    def configure_optimizers(self, decay_rate):
        decay, no_decay = set(), set()
        for mn, m in self.named_modules():
            for pn, _ in m.named_parameters():
                fpn = f"{mn}.{pn}" if mn else pn
                if pn.endswith("bias"):
                    no_decay.add(fpn)
                elif pn.endswith("weight") and isinstance(m, torch.nn.Linear):
                    decay.add(fpn)
                elif pn.endswith("weight") and isinstance(
                    m, (torch.nn.LayerNorm, torch.nn.Embedding)
                ):
                    no_decay.add(fpn)
        params = dict(self.named_parameters())
        assert len(decay & no_decay) == 0 and len(params.keys() - (decay | no_decay)) == 0
        groups = [
            {"params": [params[pn] for pn in sorted(decay)], "weight_decay": decay_rate},
            {"params": [params[pn] for pn in sorted(no_decay)], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=5e-4, betas=(0.9, 0.95))

    def forward(self, idx, targets=None):
        _, t = idx.size()
        assert t <= self.block, f"Cannot forward sequence of length {t}"
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
            )
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, count, temperature=1.0, do_sample=False, top_k=None):
        for _ in range(count):
            cond = idx if idx.size(1) <= self.block else idx[:, -self.block :]
            logits, _ = self(cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, top_k)
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            if do_sample:
                following = torch.multinomial(probs, num_samples=1)
            else:
                _, following = torch.topk(probs, k=1, dim=-1)
            idx = torch.cat((idx, following), dim=1)
        return idx


class Trainer:
    def __init__(self, model, dataset):
        self.model, self.dataset, self.callbacks = model, dataset, defaultdict(list)
        self.optimizer = model.configure_optimizers(0.1)

    def add_callback(self, event, callback):
        self.callbacks[event].append(callback)

    def run(self, most):
        loader = DataLoader(
            self.dataset,
            sampler=torch.utils.data.RandomSampler(
                self.dataset, replacement=True, num_samples=int(1e10)
            ),
            shuffle=False,
            batch_size=16,
            num_workers=0,
        )
        self.model.train()
        self.iter_num, self.iter_time, data = 0, time.time(), iter(loader)
        while self.iter_num < most:
            x, y = next(data)
            _, self.loss = self.model(x, y)
            self.model.zero_grad(set_to_none=True)
            self.loss.backward()
            self.norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            for callback in self.callbacks["on_batch_end"]:
                callback(self)
            self.iter_num += 1


train, test = SortDataset("train"), SortDataset("test")
x, y = train[0]
print(x, y)
config = SimpleNamespace(vocab=3, block=train.get_block_size(), width=16, heads=2, layers=2)
model = GPT(config)
trainer = Trainer(model, train)
trainer.add_callback(
    "on_batch_end",
    lambda t: (
        t.iter_num % 15 == 0 and print(f"iter {t.iter_num}: {t.loss.item():.4f} norm {t.norm:.3f}")
    ),
)
trainer.run(61)
model.eval()
right = 0
for x, _ in DataLoader(test, batch_size=20):
    inp = x[:, :4]
    out = model.generate(inp, 4, do_sample=False)[:, 4:]
    right += int((out == torch.sort(inp)[0]).all(1).cpu().sum())
    if inp.data_ptr() and right > 10:
        break
print(
    right > 0, model.generate(torch.zeros(2, 1, dtype=torch.long), 5, 1.5, do_sample=True, top_k=2)
)
