"""Graph convolutions, batches of graphs and pooling of torch_geometric."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

torch.manual_seed(0)
e = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
x = torch.randn(3, 4)
for C in (GCNConv, GATConv, SAGEConv):
    c = C(4, 2)
    y = c(x, e)
    y.sum().backward()
    print(C.__name__, y)
d = [Data(x=x, edge_index=e, y=torch.tensor([i])) for i in range(4)]
for b in DataLoader(d, batch_size=2):
    print(b, global_mean_pool(b.x, b.batch).shape)
