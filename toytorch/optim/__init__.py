"""Optimizers."""

from toytorch.optim.adam import Adam, AdamW
from toytorch.optim.lbfgs import LBFGS
from toytorch.optim.optimizer import Optimizer
from toytorch.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer"]
