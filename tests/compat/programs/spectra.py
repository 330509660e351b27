"""Signals: a low-pass filter by FFT, a spectrogram, convolution both ways, special functions."""

import math

import torch
import torch.fft
import torch.nn.functional as F
from common import array
from torch import special

n = 128
t = torch.arange(n) / n
clean = torch.sin(2 * math.pi * 4 * t) + 0.5 * torch.cos(2 * math.pi * 9 * t)
noisy = clean + array(n, scale=0.4)
spectrum = torch.fft.rfft(noisy)
frequencies = torch.fft.rfftfreq(n, d=1 / n)
low = torch.where(frequencies <= 12, spectrum, torch.zeros_like(spectrum))
filtered = torch.fft.irfft(low, n=n)
print(f"error {F.mse_loss(noisy, clean):.4f} -> {F.mse_loss(filtered, clean):.4f}")
print(frequencies[spectrum.abs().topk(2).indices].sort().values)
window = torch.hann_window(32)
stft = torch.stft(noisy, n_fft=32, hop_length=8, window=window, return_complex=True)
power = stft.abs().pow(2)
print(stft.shape, stft.dtype, f"{power.mean().item():.4f}", power.mean(-1).argmax().item())
back = torch.istft(stft, n_fft=32, hop_length=8, window=window, length=n)
print(torch.allclose(back, noisy, atol=1e-5))
kernel = torch.tensor([0.25, 0.5, 0.25])
direct = F.conv1d(noisy.view(1, 1, -1), kernel.view(1, 1, -1), padding=2).flatten()
by_fft = torch.fft.irfft(torch.fft.rfft(noisy, n + 2) * torch.fft.rfft(kernel, n + 2), n + 2)
print((direct - by_fft).abs().max() < 1e-5)
image = array(8, 8, seed=4)
shifted = torch.fft.fftshift(torch.fft.fft2(image))
again = torch.fft.ifft2(torch.fft.ifftshift(shifted)).real
print(shifted[4, 4].real, image.sum(), again.sub(image).norm() < 1e-5)
z = torch.view_as_complex(array(4, 2, seed=5))
print(z.angle(), z.abs(), (z * z.conj()).real)
print(torch.polar(z.abs(), z.angle()).sub(z).abs().max() < 1e-6)
x = torch.tensor([0.1, 0.5, 1.5, 3.0])
for name in (
    "erf",
    "erfinv",
    "digamma",
    "gammaln",
    "expit",
    "logit",
    "i0",
    "ndtr",
    "entr",
    "sinc",
    "log1p",
    "exp2",
    "bessel_j0",
    "xlog1py",
):
    f = getattr(special, name)
    v = x.clamp(max=0.9) if name in ("erfinv", "logit") else x
    print(name, f(v, v) if name == "xlog1py" else f(v))
w = torch.tensor([1.0, 0.5, 0.2], requires_grad=True)
loss = torch.fft.fft(torch.fft.ifft(w.to(torch.complex64)) * 2).abs().sum()
loss.backward()
print(loss, w.grad, torch.special.logsumexp(w.detach(), 0))
