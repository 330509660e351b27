"""Two communities in a graph: graph convolutions on a sparse matrix, attention over neighbours."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

COUNT = 24
labels = (torch.arange(COUNT) >= COUNT // 2).long()
chance = torch.where(labels[:, None] == labels[None, :], 0.4, 0.05)
adjacency = torch.bernoulli(chance).triu(1)
adjacency = adjacency + adjacency.t() + torch.eye(COUNT)
features = F.normalize(torch.rand(COUNT, 12) + labels[:, None] * torch.rand(12) * 0.3, p=1, dim=1)
order = torch.randperm(COUNT)
train, test = order[:10], order[10:]


def normalized(adj):
    scale = adj.sum(1).pow(-0.5)
    scale[torch.isinf(scale)] = 0.0
    return scale[:, None] * adj * scale[None, :]


class GraphConvolution(nn.Module):
    def __init__(self, fan_in, fan_out, bias=True):
        super().__init__()
        self.fan_in, self.fan_out = fan_in, fan_out
        self.weight = Parameter(torch.FloatTensor(fan_in, fan_out))
        self.bias = (
            Parameter(torch.FloatTensor(fan_out)) if bias else self.register_parameter("bias", None)
        )
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x, adj):
        out = torch.spmm(adj, torch.mm(x, self.weight))
        return out + self.bias if self.bias is not None else out

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.fan_in} -> {self.fan_out})"


class GCN(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.gc1, self.gc2, self.dropout = GraphConvolution(12, 8), GraphConvolution(8, 2), dropout

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


class GATLayer(nn.Module):
    def __init__(self, fan_in, fan_out, heads, concat, dropout):
        super().__init__()
        self.heads, self.concat, self.dropout = heads, concat, dropout
        self.hidden = fan_out // heads if concat else fan_out
        self.W = nn.Parameter(torch.empty(size=(fan_in, self.hidden * heads)))
        self.a = nn.Parameter(torch.empty(size=(heads, 2 * self.hidden, 1)))
        self.leakyrelu, self.softmax = nn.LeakyReLU(0.2), nn.Softmax(dim=1)
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)

    def forward(self, h, adj):
        n = h.shape[0]
        h = torch.mm(h, self.W)
        h = F.dropout(h, self.dropout, training=self.training)
        h = h.view(n, self.heads, self.hidden).permute(1, 0, 2)
        source = torch.matmul(h, self.a[:, : self.hidden, :])
        target = torch.matmul(h, self.a[:, self.hidden :, :])
        e = self.leakyrelu(source + target.mT)
        attention = torch.where(adj > 0, e, -9e16 * torch.ones_like(e))
        attention = F.softmax(attention, dim=-1)
        attention = F.dropout(attention, self.dropout, training=self.training)
        h = torch.matmul(attention, h)
        return h.permute(1, 0, 2).contiguous().view(n, -1) if self.concat else h.mean(dim=0)


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GATLayer(12, 8, 2, True, 0.2), GATLayer(8, 2, 1, False, 0.2)

    def forward(self, x, adj):
        return F.log_softmax(self.two(F.elu(self.one(x, adj)), adj), dim=1)


sparse = normalized(adjacency).to_sparse()
print(sparse._nnz(), sparse.is_coalesced(), adjacency.sum(1).int().tolist())
for model, adj in ((GCN(0.3), sparse), (GAT(), adjacency)):
    print(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03, weight_decay=5e-4)
    for epoch in range(1, 41):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss = F.nll_loss(output[train], labels[train])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            model.eval()
            with torch.no_grad():
                output = model(features, adj)
                right = output.argmax(1).eq(labels)
            held = F.nll_loss(output[test], labels[test])
            print(f"{epoch:03d} {loss:.4f} {held:.4f} {right[train].float().mean():.2f}")
