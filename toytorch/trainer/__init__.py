"""Training without writing the loop again: a `Trainer` of the Lightning kind.

A `TrainerModule` says what a step is, the `Trainer` does the rest: epochs, validation, logs,
checkpoints from which training goes on exactly, early stopping, a progress bar.
"""

from toytorch.facts.package import show as _show
from toytorch.trainer import callbacks, loggers
from toytorch.trainer.callbacks import (
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    ProgressBar,
)
from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.hooks import Callback
from toytorch.trainer.loggers import CSVLogger, Logger, TensorBoardLogger
from toytorch.trainer.module import TrainerModule
from toytorch.trainer.random_state import seed_everything
from toytorch.trainer.trainer import Trainer

_show(globals(), "callbacks", "loggers")
