"""Messages along the edges of a graph: scatter_add, index_add, sparse products, attention."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import array, fill, labels

nodes, edges = 12, 30
edge_index = torch.stack([labels(edges, nodes, 1), labels(edges, nodes, 2)])
x, y = array(nodes, 5), labels(nodes, 3, 4)


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        self.lin.reset_parameters()
        self.bias.data.zero_()

    def forward(self, x, edge_index):
        loops = torch.arange(x.size(0)).repeat(2, 1)
        row, col = torch.cat([edge_index, loops], dim=1)
        deg = torch.zeros(x.size(0)).scatter_add_(0, col, torch.ones(col.numel()))
        norm = deg.pow(-0.5)
        norm[norm == float("inf")] = 0
        weight = norm[row] * norm[col]
        h = self.lin(x)
        out = torch.zeros_like(h).index_add(0, col, h[row] * weight.unsqueeze(-1))
        return out + self.bias


class GAT(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(2 * channels))

    def forward(self, h, edge_index):
        row, col = edge_index
        e = F.leaky_relu(torch.cat([h[row], h[col]], -1) @ self.a, 0.2)
        top = torch.full((h.size(0),), float("-inf")).scatter_reduce(0, col, e, reduce="amax")
        e = (e - top[col].detach()).exp()
        total = torch.zeros(h.size(0)).scatter_add(0, col, e)
        return torch.zeros_like(h).index_add_(0, col, h[row] * (e / total[col]).unsqueeze(1))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.att, self.conv2 = GCNConv(5, 8), GAT(8), GCNConv(8, 3)

    def forward(self, x):
        x = F.relu(self.conv1(x, edge_index))
        return F.log_softmax(self.conv2(x + self.att(x, edge_index), edge_index), dim=1)


model = fill(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
train_mask = torch.zeros(nodes, dtype=torch.bool)
train_mask[:8] = True
for epoch in range(5):
    model.train()
    optimizer.zero_grad()
    out = model(x)
    loss = F.nll_loss(out[train_mask], y[train_mask])
    loss.backward()
    optimizer.step()
    acc = int((out.argmax(dim=-1)[~train_mask] == y[~train_mask]).sum()) / int((~train_mask).sum())
    print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Test: {acc:.4f}")
adj = torch.sparse_coo_tensor(edge_index, torch.ones(edges), (nodes, nodes)).coalesce()
print(torch.sparse.mm(adj, x).sum(dim=0), adj.values().max())
print(torch.bincount(edge_index[1], minlength=nodes), torch.unique(edge_index[0]).numel())
