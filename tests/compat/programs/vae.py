"""A variational autoencoder; the noise comes from outside so that it can be repeated."""

import torch
import torch.utils.data
from common import array, digits, fill
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(144, 40)
        self.fc21 = nn.Linear(40, 5)
        self.fc22 = nn.Linear(40, 5)
        self.fc3 = nn.Linear(5, 40)
        self.fc4 = nn.Linear(40, 144)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        assert torch.randn_like(std).shape == eps.shape
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 144))
        return self.decode(self.reparameterize(mu, logvar, eps)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 144), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = fill(VAE())
optimizer = optim.Adam(model.parameters(), lr=1e-3)
x = digits(32)[0].clamp(0, 1)
for epoch in range(6):
    model.train()
    optimizer.zero_grad()
    recon, mu, logvar = model(x, array(32, 5, seed=epoch))
    loss = loss_function(recon, x, mu, logvar)
    loss.backward()
    optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, loss.item() / len(x)))
with torch.no_grad():
    sample = model.decode(array(4, 5, seed=99)).view(4, 1, 12, 12)
    print(sample.mean(dim=(1, 2, 3)))
