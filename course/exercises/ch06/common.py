"""What the checks of chapter 06 share."""

import toytorch as torch


def _x(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def _double(values):
    return torch.tensor(values, dtype=torch.float64)
