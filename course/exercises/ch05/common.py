"""What the checks of chapter 05 share."""

import toytorch as torch


def _wanted(value):
    return torch.tensor(value, requires_grad=True)
