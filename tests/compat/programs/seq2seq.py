"""An encoder and a decoder with attention learn to turn a sequence round."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import fill, labels
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SOS, EOS, HIDDEN = 0, 1, 20


class EncoderRNN(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, HIDDEN, padding_idx=EOS)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True, bidirectional=True)

    def forward(self, input, lengths):
        packed = pack_padded_sequence(
            self.embedding(input), lengths, batch_first=True, enforce_sorted=False
        )
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return output[..., :HIDDEN] + output[..., HIDDEN:], hidden.sum(0, keepdim=True)


class BahdanauAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.Wa, self.Ua = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.Va = nn.Linear(HIDDEN, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores.masked_fill(mask.unsqueeze(1), -1e9), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, HIDDEN)
        self.attention = BahdanauAttention()
        self.gru = nn.GRU(2 * HIDDEN, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, words)

    def forward(self, keys, hidden, mask, target=None, steps=6):
        word = torch.full((keys.size(0), 1), SOS, dtype=torch.long)
        outputs, seen = [], []
        for i in range(steps):
            context, weights = self.attention(hidden.permute(1, 0, 2), keys, mask)
            step = torch.cat((self.embedding(word), context), dim=2)
            output, hidden = self.gru(step, hidden)
            outputs.append(self.out(output))
            seen.append(weights)
            word = (
                target[:, i].unsqueeze(1)
                if target is not None
                else (outputs[-1].topk(1)[1].squeeze(-1).detach())
            )
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), torch.cat(seen, dim=1)


source = labels(24 * 6, 8, seed=3).view(24, 6) + 2
lengths = torch.tensor([6] * 12 + [4] * 12)
source[12:, 4:] = EOS
target = torch.stack([torch.cat([s[:n].flip(0), s[n:]]) for s, n in zip(source, lengths)])
encoder, decoder = fill(EncoderRNN(10), seed=1), fill(AttnDecoderRNN(10), seed=2)
optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
criterion = nn.NLLLoss(ignore_index=EOS)
for epoch in range(12):
    for o in optimizers:
        o.zero_grad()
    keys, hidden = encoder(source, lengths)
    outputs, attention = decoder(keys, hidden, source == EOS, target)
    loss = criterion(outputs.view(-1, outputs.size(-1)), target.view(-1))
    loss.backward()
    for o in optimizers:
        o.step()
    if epoch % 3 == 2:
        print(epoch, f"{loss.item():.4f}", tuple(attention.shape), attention[12, 0, 4:].sum())
with torch.no_grad():
    outputs, _ = decoder(*encoder(source[:3], lengths[:3]), source[:3] == EOS)
print(outputs.shape, outputs.exp().sum(-1).round(decimals=3)[0])
