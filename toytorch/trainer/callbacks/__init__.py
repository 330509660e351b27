"""Things that happen beside training: checkpoints, an early end, a bar, a record of rates."""

from toytorch.facts.package import show as _show
from toytorch.trainer.callbacks.early_stopping import EarlyStopping
from toytorch.trainer.callbacks.learning_rate import LearningRateMonitor
from toytorch.trainer.callbacks.model_checkpoint import ModelCheckpoint
from toytorch.trainer.callbacks.progress import ProgressBar, TextBar
from toytorch.trainer.hooks import Callback

_show(globals())
