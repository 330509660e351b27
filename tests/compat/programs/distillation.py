"""A small network learns from a large one by soft targets and cosines; then both are pruned."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.prune as prune
from common import array, fill, labels


def mlp(*sizes):
    layers = []
    for inp, out in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(inp, out), nn.PReLU()]
    return nn.Sequential(*layers[:-1])


x, y = array(64, 10), labels(64, 4)
x = x + F.one_hot(y, 10).float() * 2
teacher, student = fill(mlp(10, 32, 32, 4)), fill(mlp(10, 8, 4), seed=3)
optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for epoch in range(15):
    optimizer.zero_grad()
    F.cross_entropy(teacher(x), y).backward()
    optimizer.step()
teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False
T, alpha = 2.0, 0.3
optimizer = torch.optim.Adadelta(student.parameters(), lr=1.0)
for epoch in range(10):
    logits = student(x)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=-1)
    kd = F.kl_div(F.log_softmax(logits / T, dim=-1), soft, reduction="batchmean") * T * T
    cosine = F.cosine_embedding_loss(logits, teacher(x), torch.ones(64))
    loss = alpha * F.cross_entropy(logits, y) + (1 - alpha) * kd + 0.1 * cosine
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 3 == 0:
        print(epoch, f"{loss.item():.4f} {kd.item():.4f} {cosine.item():.4f}")
agree = (student(x).argmax(1) == teacher(x).argmax(1)).float().mean().item()
print(agree > 0.5, [n for n, _ in student.named_parameters()])
layer = student[0]
prune.l1_unstructured(layer, name="weight", amount=0.4)
print(prune.is_pruned(student), [n for n, _ in layer.named_buffers()], layer.weight_mask.sum())
prune.ln_structured(student[2], "weight", amount=0.25, n=2, dim=0)
print((student[2].weight.abs().sum(1) == 0).sum(), F.cross_entropy(student(x), y))
prune.remove(layer, "weight")
sparsity = 100.0 * float(torch.sum(layer.weight == 0)) / float(layer.weight.nelement())
print("Sparsity: {:.2f}%".format(sparsity), isinstance(layer.weight, nn.Parameter))
prune.global_unstructured(
    [(m, "weight") for m in teacher if isinstance(m, nn.Linear)],
    pruning_method=prune.L1Unstructured,
    amount=0.5,
)
print([int((m.weight == 0).sum()) for m in teacher if isinstance(m, nn.Linear)])
scores = torch.stack([student(x), teacher(x)]).softmax(-1)
print(scores.mean(0).topk(2).values[:2], torch.logsumexp(scores, dim=-1)[0, :3], scores.var())
