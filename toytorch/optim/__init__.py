"""Optimizers, and schedules for their learning rates."""

from toytorch.facts.package import show as _show
from toytorch.optim import lr_scheduler, swa_utils
from toytorch.optim.adafactor import Adafactor
from toytorch.optim.adam import Adam, AdamW
from toytorch.optim.adam_variants import Adamax, NAdam, RAdam, SparseAdam
from toytorch.optim.adaptive import Adadelta, Adagrad, RMSprop
from toytorch.optim.classic import ASGD, Rprop
from toytorch.optim.lbfgs import LBFGS
from toytorch.optim.muon import Muon
from toytorch.optim.optimizer import Optimizer
from toytorch.optim.sgd import SGD

_show(globals(), "lr_scheduler", "swa_utils")

# Where `torch.optim._functional` is.
globals()["__path__"].append(f"{globals()['__path__'][0]}/../compat/optim")
