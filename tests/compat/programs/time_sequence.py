"""Sine waves continued by two LSTM cells, trained with LBFGS in float64."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

np.random.seed(0)
torch.manual_seed(0)
x = np.empty((6, 30), "int64")
x[:] = np.array(range(30)) + np.random.randint(-40, 40, 6).reshape(6, 1)
data = np.sin(x / 1.0 / 5).astype("float64")


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 8)
        self.lstm2 = nn.LSTMCell(8, 8)
        self.linear = nn.Linear(8, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 8, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 8, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), 8, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), 8, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


input = torch.from_numpy(data[2:, :-1])
target = torch.from_numpy(data[2:, 1:])
seq = Sequence()
seq.double()
with torch.no_grad():
    for p in seq.parameters():
        p.copy_(torch.from_numpy(np.random.uniform(-0.3, 0.3, tuple(p.shape))))
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=8)
for i in range(2):
    print("STEP: ", i)

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        print("loss:", loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        pred = seq(torch.from_numpy(data[:2, :-1]), future=5)
        print("test loss:", criterion(pred[:, :-5], torch.from_numpy(data[:2, 1:])).item())
        print(pred[:, -5:].detach().numpy().round(3).tolist())
