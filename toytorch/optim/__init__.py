"""Optimizers."""

from toytorch.optim.adam import Adam, AdamW
from toytorch.optim.optimizer import Optimizer
from toytorch.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
