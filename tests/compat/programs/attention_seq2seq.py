"""Translation with attention: additive scores, masked softmax, teacher forcing, bleu."""

import math

import torch
from torch import nn
from torch.nn import functional as F

PAIRS = [
    ("go .", "va !"), ("i lost .", "j'ai perdu ."), ("he's calm .", "il est calme ."),
    ("i'm home .", "je suis chez moi ."), ("we won .", "nous avons gagne ."), ("he ran .", "il a couru ."),
    ("stay calm .", "restez calme ."), ("i won .", "j'ai gagne ."), ("he lost .", "il a perdu ."),
]  # fmt: skip
STEPS = 7


def table(sentences):
    words = sorted({w for s in sentences for w in s.split()})
    return {w: i for i, w in enumerate(["<pad>", "<bos>", "<eos>", *words])}


source, target = table([a for a, _ in PAIRS]), table([b for _, b in PAIRS])


def array(sentences, vocab):
    rows = [[vocab[w] for w in s.split()] + [vocab["<eos>"]] for s in sentences]
    padded = torch.tensor([r + [0] * (STEPS - len(r)) for r in rows])
    return padded, (padded != 0).type(torch.int32).sum(1)


def sequence_mask(x, valid, value=0):
    mask = torch.arange(x.size(1), dtype=torch.float32)[None, :] < valid[:, None]
    x[~mask] = value
    return x


def masked_softmax(x, valid):
    if valid is None:
        return F.softmax(x, dim=-1)
    shape = x.shape
    valid = torch.repeat_interleave(valid, shape[1]) if valid.dim() == 1 else valid.reshape(-1)
    x = sequence_mask(x.reshape(-1, shape[-1]), valid, value=-1e6)
    return F.softmax(x.reshape(shape), dim=-1)


print(masked_softmax(torch.rand(2, 2, 4), torch.tensor([2, 3])))
print(masked_softmax(torch.rand(2, 2, 4), torch.tensor([[1, 3], [2, 4]])))


class Additive(nn.Module):
    def __init__(self, hiddens, dropout):
        super().__init__()
        self.keys = nn.LazyLinear(hiddens, bias=False)
        self.queries = nn.LazyLinear(hiddens, bias=False)
        self.scores = nn.LazyLinear(1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid):
        features = torch.tanh(self.queries(queries).unsqueeze(2) + self.keys(keys).unsqueeze(1))
        self.weights = masked_softmax(self.scores(features).squeeze(-1), valid)
        return torch.bmm(self.dropout(self.weights), values)


class DotProduct(nn.Module):
    def __init__(self, hiddens, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        self.weights = masked_softmax(scores, valid)
        return torch.bmm(self.dropout(self.weights), values)


class Encoder(nn.Module):
    def __init__(self, words, embed, hiddens, layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding(words, embed)
        self.rnn = nn.GRU(embed, hiddens, layers, dropout=dropout)

    def forward(self, x, *args):
        return self.rnn(self.embedding(x.t().type(torch.int64)))


class Decoder(nn.Module):
    def __init__(self, attention, words, embed, hiddens, layers, dropout):
        super().__init__()
        self.attention = attention
        self.embedding = nn.Embedding(words, embed)
        self.rnn = nn.GRU(embed + hiddens, hiddens, layers, dropout=dropout)
        self.dense = nn.LazyLinear(words)

    def forward(self, x, state):
        enc, hidden, valid = state
        x = self.embedding(x).permute(1, 0, 2)
        outputs, self.seen = [], []
        for step in x:
            query = torch.unsqueeze(hidden[-1], dim=1)
            context = self.attention(query, enc, enc, valid)
            out, hidden = self.rnn(
                torch.cat((context, step.unsqueeze(1)), dim=-1).permute(1, 0, 2), hidden
            )
            outputs.append(out)
            self.seen.append(self.attention.weights)
        return self.dense(torch.cat(outputs, dim=0)).permute(1, 0, 2), [enc, hidden, valid]


def bleu(guess, wanted, k):
    a, b = guess.split(" "), wanted.split(" ")
    score = math.exp(min(0, 1 - len(b) / len(a)))
    for n in range(1, min(k, len(a)) + 1):
        left = [" ".join(b[i : i + n]) for i in range(len(b) - n + 1)]
        hits = 0
        for i in range(len(a) - n + 1):
            part = " ".join(a[i : i + n])
            if part in left:
                left.remove(part)
                hits += 1
        score *= math.pow(hits / (len(a) - n + 1), math.pow(0.5, n))
    return score


src, src_valid = array([a for a, _ in PAIRS], source)
tgt, _ = array([b for _, b in PAIRS], target)
for kind in (Additive, DotProduct):
    encoder = Encoder(len(source), 8, 16, 2, 0.1)
    decoder = Decoder(kind(16, 0.1), len(target), 8, 16, 2, 0.1)
    params = [*encoder.parameters(), *decoder.parameters()]
    bos = torch.full((len(PAIRS), 1), target["<bos>"])
    with torch.no_grad():
        enc, hidden = encoder(src)
        decoder(bos, (enc.permute(1, 0, 2), hidden, src_valid))  # sizes of the lazy layers
    params = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(params, lr=0.02)
    for epoch in range(30):
        given = torch.cat((bos, tgt[:, :-1]), 1)
        enc, hidden = encoder(src)
        scores, _ = decoder(given, (enc.permute(1, 0, 2), hidden, src_valid))
        per_token = F.cross_entropy(
            scores.reshape(-1, len(target)), tgt.reshape(-1), reduction="none"
        )
        mask = (tgt.reshape(-1) != target["<pad>"]).type(torch.float32)
        loss = (per_token * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1)
        optimizer.step()
        if epoch % 10 == 9:
            print(f"{kind.__name__} {epoch}: {loss.item():.3f}")
    encoder.eval()
    decoder.eval()
    words = list(target)
    with torch.no_grad():
        for k in (0, 3, 5):
            enc, hidden = encoder(src[k : k + 1])
            state = [enc.permute(1, 0, 2), hidden, src_valid[k : k + 1]]
            token, out = torch.tensor([[target["<bos>"]]]), []
            for _ in range(STEPS):
                scores, state = decoder(token, state)
                token = scores.argmax(2)
                if token.item() == target["<eos>"]:
                    break
                out.append(words[token.item()])
            print(
                f"{PAIRS[k][0]} => {' '.join(out)}, bleu {bleu(' '.join(out), PAIRS[k][1], k=2):.3f}"
            )
    print(decoder.seen[0].shape, tuple(round(v, 2) for v in decoder.seen[0][0, 0].tolist()))
