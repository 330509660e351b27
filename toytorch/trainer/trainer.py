"""The `Trainer`: its settings, and what it offers to models and callbacks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from toytorch.nn.modules.module import Module
from toytorch.trainer import checkpoint as files
from toytorch.trainer.callbacks import EarlyStopping, ModelCheckpoint, ProgressBar
from toytorch.trainer.data import Limit, check_limit, check_loader
from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.evaluation import STEPS, evaluate
from toytorch.trainer.fit import FitLoop
from toytorch.trainer.hooks import Callback
from toytorch.trainer.interrupt import deferred
from toytorch.trainer.loggers import CSVLogger, Logger
from toytorch.trainer.module import TrainerModule
from toytorch.trainer.optimizers import SchedulerConfig, configured
from toytorch.trainer.random_state import seed_everything
from toytorch.trainer.results import Results
from toytorch.utils.data.dataloader import DataLoader


class Trainer:
    """Trains, validates, tests and asks `TrainerModule`s; `lightning.Trainer` is the counterpart.

    Training ends after `max_epochs` epochs or `max_steps` optimizer steps, whichever comes first;
    with neither given after 1000 epochs. Limits of batches are numbers, or shares from 0.0 to 1.0.
    Nothing is written unless a ModelCheckpoint or a logger (True: a CSVLogger) is given, but for
    `interrupted.ckpt` after Ctrl-C. `seed` seeds all random streams when `fit` begins.
    `terminate_on_nan` refuses a loss that is NaN or infinite. A model is trained in the mode it is
    in, module by module, so a frozen part may stay in `eval`.
    """

    def __init__(
        self,
        *,
        max_epochs: int | None = None,
        max_steps: int = -1,
        callbacks: Callback | Sequence[Callback] | None = None,
        logger: Logger | Sequence[Logger] | bool | None = None,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str = "norm",
        accumulate_grad_batches: int = 1,
        default_root_dir: str | os.PathLike[str] | None = None,
        enable_progress_bar: bool = True,
        check_val_every_n_epoch: int = 1,
        limit_train_batches: Limit = None,
        limit_val_batches: Limit = None,
        limit_test_batches: Limit = None,
        limit_predict_batches: Limit = None,
        log_every_n_steps: int = 50,
        seed: int | None = None,
        terminate_on_nan: bool = False,
    ) -> None:
        for name in (
            "limit_train_batches",
            "limit_val_batches",
            "limit_test_batches",
            "limit_predict_batches",
        ):
            check_limit(name, locals()[name])
            setattr(self, name, locals()[name])
        for name in ("accumulate_grad_batches", "check_val_every_n_epoch", "log_every_n_steps"):
            value = locals()[name]
            if not isinstance(value, int) or value < 1:
                raise MisconfigurationException(
                    f"`{name}` should be an int of at least 1, but got {value!r}"
                )
            setattr(self, name, value)
        if gradient_clip_algorithm not in ("norm", "value"):
            raise MisconfigurationException(
                f"`gradient_clip_algorithm` {gradient_clip_algorithm} "
                "is invalid. Allowed algorithms: ['value', 'norm']."
            )
        if max_steps < -1 or (max_epochs is not None and max_epochs < -1):
            raise MisconfigurationException(
                "`max_epochs` and `max_steps` must be a non-negative integer or -1, but got "
                f"max_epochs={max_epochs}, max_steps={max_steps}"
            )
        self.max_epochs = max_epochs if max_epochs is not None else 1000 if max_steps == -1 else -1
        self.max_steps = max_steps
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = gradient_clip_algorithm
        self.default_root_dir = os.fspath(default_root_dir or os.getcwd())
        self.seed, self.terminate_on_nan = seed, terminate_on_nan
        self.loggers = self._loggers(logger)
        given = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or [])
        if enable_progress_bar and not any(isinstance(c, ProgressBar) for c in given):
            given.append(ProgressBar())
        self.callbacks: list[Callback] = sorted(given, key=lambda c: c.last)
        self.enable_progress_bar = enable_progress_bar
        self._forget()

    def _loggers(self, logger: Any) -> list[Logger]:
        if logger is None or logger is False:
            return []
        if logger is True:
            return [CSVLogger(self.default_root_dir)]
        return [logger] if isinstance(logger, Logger) else list(logger)

    def _forget(self) -> None:
        """The state before any run."""
        self.model: Any = None
        self.optimizers: list[Any] = []
        self.lr_scheduler_configs: list[SchedulerConfig] = []
        self.fit_loop: FitLoop | None = None
        self.current_epoch = self.global_step = 0
        self.should_stop = self.interrupted = False
        self.results = Results(training=False)
        self.callback_metrics: dict[str, float] = {}
        self.progress_bar_metrics: dict[str, float] = {}
        self.logged_metrics: dict[str, float] = {}

    # -- what runs ------------------------------------------------------------------------------

    def fit(
        self,
        model: TrainerModule,
        train_dataloaders: object = None,
        val_dataloaders: DataLoader | None = None,
        ckpt_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Trains the model; with `ckpt_path` it goes on exactly where the checkpoint was written.

        "last" stands for the newest checkpoint that this trainer's ModelCheckpoint, or an
        interrupt, left. The loaders, and the settings that shape training, must be those of then.
        Ctrl-C ends the run after the present batch, leaves `interrupted.ckpt` and says so.
        """
        self._attach(model)
        check_loader("train_dataloaders", train_dataloaders)
        if val_dataloaders is not None:
            check_loader("val_dataloaders", val_dataloaders)
        self._needs("training_step", "configure_optimizers")
        whole = None if ckpt_path is None else files.read(self._path(ckpt_path), whole=True)
        self.should_stop = self.interrupted = False
        self.current_epoch = self.global_step = 0
        self.callback_metrics, self.logged_metrics, self.progress_bar_metrics = {}, {}, {}
        if self.seed is not None:
            seed_everything(self.seed)
        self.optimizers, self.lr_scheduler_configs = configured(model.configure_optimizers())
        if model.automatic_optimization and len(self.optimizers) > 1:
            raise MisconfigurationException(
                "Training with multiple optimizers is only supported with manual optimization: set "
                "`self.automatic_optimization = False` and call their steps yourself"
            )
        self.fit_loop = FitLoop(self, train_dataloaders, val_dataloaders)
        if val_dataloaders is not None:
            self._needs("validation_step")
        if whole is not None:
            files.put_back(self, whole)
        counters = [o.register_step_post_hook(self._count) for o in self.optimizers]
        try:
            with deferred(self):
                self.call("on_fit_start")
                self.fit_loop.run()
        except KeyboardInterrupt as error:
            self._interrupted(error)
        except BaseException as error:
            self._exception(error)
            raise
        finally:
            for handle in counters:
                handle.remove()
            for logger in self.loggers:
                logger.save()
        self.call("on_fit_end")

    def validate(
        self,
        model: TrainerModule | None = None,
        dataloaders: DataLoader | None = None,
        ckpt_path: str | os.PathLike[str] | None = None,
        verbose: bool = True,
    ) -> list[dict[str, float]]:
        """[metrics] of one pass over the validation data."""
        return [self._evaluate("validation", model, dataloaders, ckpt_path, verbose)]

    def test(
        self,
        model: TrainerModule | None = None,
        dataloaders: Any = None,
        ckpt_path: str | os.PathLike[str] | None = None,
        verbose: bool = True,
    ) -> list[dict[str, float]]:
        """[metrics] of one pass over the test data."""
        return [self._evaluate("test", model, dataloaders, ckpt_path, verbose)]

    def predict(
        self,
        model: TrainerModule | None = None,
        dataloaders: Any = None,
        ckpt_path: str | os.PathLike[str] | None = None,
    ) -> list[Any]:
        """What `predict_step` returns for each batch."""
        outputs: list[Any] = []
        self._evaluate("predict", model, dataloaders, ckpt_path, False, outputs)
        return outputs

    def _evaluate(
        self,
        kind: str,
        model: TrainerModule | None,
        loader: Any,
        ckpt_path: Any,
        verbose: bool,
        keep: list[Any] | None = None,
    ) -> dict[str, float]:
        if model is None and self.model is None:
            raise MisconfigurationException(f"`Trainer.{kind}` needs a model, or `fit` before it")
        self._attach(self.model if model is None else model)
        check_loader("dataloaders", loader)
        self._needs(STEPS[kind])
        if ckpt_path is not None:
            state = files.read(self._path(ckpt_path), whole=False)
            self.model.load_state_dict(state["state_dict"])
        self.interrupted = False
        limits = {"validation": "limit_val_batches"}
        limit = getattr(self, limits.get(kind, f"limit_{kind}_batches"))
        found = evaluate(self, kind, loader, limit, keep)
        if verbose and self.enable_progress_bar:
            for name, value in found.items():
                print(f"{kind} {name}: {value:.6g}")
        return found

    def save_checkpoint(self, filepath: str | os.PathLike[str], weights_only: bool = False) -> None:
        """Writes all that is needed to go on from here, or the weights only."""
        if self.model is None:
            raise AttributeError(
                "Saving a checkpoint is only possible if a model is attached to "
                "the Trainer. Did you call `Trainer.save_checkpoint()` before "
                "calling `Trainer.{fit,validate,test,predict}`?"
            )
        files.write(self, filepath, weights_only)

    # -- what models and callbacks use ----------------------------------------------------------

    def call(self, name: str, *args: object) -> list[Any]:
        """A moment: the model's hook, then the callbacks'; what they returned."""
        return [self.call_model(name, *args), *self.call_callbacks(name, *args)]

    def call_model(self, name: str, *args: object) -> Any:
        """The model's hook of a moment."""
        return getattr(self.model, name)(*args)

    def call_callbacks(self, name: str, *args: object) -> list[Any]:
        """The callbacks' hooks of a moment, checkpoints last."""
        return [getattr(callback, name)(self, self.model, *args) for callback in self.callbacks]

    def publish(self, results: Results, step: int, epoch: bool, log: bool = True) -> None:
        """Shows what was logged to callbacks and the bar, and hands it to the loggers."""
        self.callback_metrics.update(results.by_name())
        self.progress_bar_metrics.update(results.for_bar())
        both = results.of_epoch() if epoch else results.of_step()
        self.callback_metrics.update(both)
        chosen = results.of_epoch(True) if epoch else results.of_step(True)
        if log and chosen:
            self.log_metrics(chosen, step)

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Hands numbers to the loggers."""
        self.logged_metrics.update(metrics)
        for logger in self.loggers:
            logger.log_metrics({**metrics, "epoch": self.current_epoch}, step)

    @property
    def logger(self) -> Logger | None:
        """The first logger."""
        return self.loggers[0] if self.loggers else None

    @property
    def checkpoint_callback(self) -> ModelCheckpoint | None:
        """The first ModelCheckpoint."""
        return next((c for c in self.callbacks if isinstance(c, ModelCheckpoint)), None)

    @property
    def early_stopping_callback(self) -> EarlyStopping | None:
        """The first EarlyStopping."""
        return next((c for c in self.callbacks if isinstance(c, EarlyStopping)), None)

    # -- inside ---------------------------------------------------------------------------------

    def _attach(self, model: Module | TrainerModule) -> None:
        if not isinstance(model, TrainerModule):
            raise TypeError(f"`model` must be a `TrainerModule`, got `{type(model).__qualname__}`")
        self.model = model
        object.__setattr__(model, "_trainer", self)

    def _needs(self, *names: str) -> None:
        for name in names:
            if getattr(type(self.model), name) is getattr(TrainerModule, name) and (
                name != "predict_step"
            ):
                raise MisconfigurationException(
                    f"No `{name}()` method defined on `{type(self.model).__qualname__}`."
                )

    def _count(self, *_: object) -> None:
        self.global_step += 1

    @property
    def _interrupted_path(self) -> str:
        return os.path.join(self.default_root_dir, "interrupted.ckpt")

    def _path(self, ckpt_path: Any) -> str:
        """The file that "last" or "best" stands for, or the path."""
        keeper = self.checkpoint_callback
        if ckpt_path == "best":
            if keeper is None or not keeper.best_model_path:
                raise ValueError(
                    '`ckpt_path="best"` is set but `ModelCheckpoint` is not configured'
                    " to save the best model."
                )
            return keeper.best_model_path
        if ckpt_path == "last":
            found = [self._interrupted_path]
            if keeper is not None:
                found += keeper.written(self)
            found = [path for path in found if os.path.isfile(path)]
            if not found:
                raise FileNotFoundError(
                    '`ckpt_path="last"` is set, but there is no checkpoint in '
                    f"{self.default_root_dir}"
                )
            return max(found, key=os.path.getmtime)
        return str(os.fspath(ckpt_path))

    def _interrupted(self, error: KeyboardInterrupt) -> None:
        """Ends cleanly after Ctrl-C; between batches the state is whole and is saved."""
        whole = self.fit_loop is not None and self.fit_loop.whole
        self.interrupted = True
        self._exception(error)
        if whole:
            self.save_checkpoint(self._interrupted_path)
            print(
                f"Interrupted. The state after epoch {self.current_epoch}, step "
                f"{self.global_step} is in {self._interrupted_path}; "
                'fit(..., ckpt_path="last") goes on from there.'
            )
        else:
            print(
                "Interrupted in the middle of a batch: nothing was saved, the last checkpoint "
                "stands."
            )

    def _exception(self, error: BaseException) -> None:
        for callback in self.callbacks:
            callback.on_exception(self, self.model, error)
