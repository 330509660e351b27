"""An engine of ignite trains; an evaluator's metrics."""

import torch
from ignite.engine import create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss

torch.manual_seed(0)
x = torch.randn(64, 4)
y = (x.sum(1) > 0).long()
d = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
m = torch.nn.Linear(4, 2)
o = torch.optim.SGD(m.parameters(), lr=0.5)
c = torch.nn.CrossEntropyLoss()
t = create_supervised_trainer(m, o, c)
e = create_supervised_evaluator(m, metrics={"a": Accuracy(), "l": Loss(c)})
t.run(d, max_epochs=3)
e.run(d)
print(e.state.metrics)
