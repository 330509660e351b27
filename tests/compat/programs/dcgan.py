"""A small generative adversarial network of convolutions."""

import torch
import torch.nn as nn
import torch.nn.parallel
import torch.optim as optim
from common import array, digits, fill

torch.backends.cudnn.benchmark = True


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


netG = nn.Sequential(
    nn.ConvTranspose2d(8, 8, 3, 1, 0, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(True),
    nn.ConvTranspose2d(8, 8, 4, 2, 1, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
    nn.Tanh(),
)
netD = nn.Sequential(
    nn.Conv2d(1, 8, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(8, 8, 4, 2, 1, bias=False),
    nn.BatchNorm2d(8),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(8, 1, 3, 1, 0, bias=False),
    nn.Sigmoid(),
)
netG.apply(weights_init)
netD.apply(weights_init)
fill(netG, 1), fill(netD, 2)
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
real_cpu, _ = digits(16)
for step in range(5):
    netD.zero_grad()
    label = torch.full((16,), 1.0, dtype=real_cpu.dtype)
    output = netD(real_cpu).view(-1)
    errD_real = criterion(output, label)
    errD_real.backward()
    D_x = output.mean().item()
    fake = netG(array(16, 8, 1, 1, seed=step))
    label.fill_(0.0)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1.0)
    output = netD(fake).view(-1)
    errG = criterion(output, label)
    errG.backward()
    optimizerG.step()
    print(
        "[%d] Loss_D: %.4f Loss_G: %.4f D(x): %.4f D(G(z)): %.4f"
        % (step, errD_real.item() + errD_fake.item(), errG.item(), D_x, output.mean().item())
    )
