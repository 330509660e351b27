"""What the trainer does between start and end: order, means, limits, callbacks, loggers, errors."""

from __future__ import annotations

import csv
import io
import math
import warnings

import pytest

import toytorch as torch
from tests.trainer.helpers import Arms, Record, fresh, loaders, trainer
from toytorch import nn
from toytorch.trainer import (
    Callback,
    CSVLogger,
    EarlyStopping,
    LearningRateMonitor,
    MisconfigurationException,
    ModelCheckpoint,
    ProgressBar,
    TensorBoardLogger,
    Trainer,
    TrainerModule,
)
from toytorch.trainer.callbacks import TextBar


class Scripted(Arms):
    """Its validation loss is read from a list."""

    def __init__(self, losses):
        super().__init__()
        self.losses = losses

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.losses[self.current_epoch])


def test_the_loop_is_the_loop_that_one_would_write():
    model, record = fresh()
    trainer(record, max_epochs=3).fit(model, *loaders())
    by_hand, _ = fresh()
    train, val = loaders()
    made = by_hand.configure_optimizers()
    optimizer, schedule = made["optimizer"], made["lr_scheduler"]["scheduler"]
    losses = []
    for _ in range(3):
        by_hand.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(by_hand.net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        iter(val)  # draws a seed, as every pass over a loader does
        schedule.step()
    assert record.losses == losses
    assert torch.equal(model.net[0].weight, by_hand.net[0].weight)


def test_epoch_means_weigh_by_examples():
    model, record = fresh()
    run = trainer(record, max_epochs=1)
    run.fit(model, *loaders())
    sizes = [16, 16, 16, 16, 6]
    expected = sum(n * v for n, v in zip(sizes, record.losses)) / 70
    assert run.callback_metrics["loss_epoch"] == pytest.approx(expected, rel=1e-12)
    assert run.callback_metrics["loss_step"] == record.losses[-1]
    points, labels = loaders()[1].dataset.tensors
    model.eval()
    whole = nn.functional.cross_entropy(model.net(points), labels).item()
    assert run.validate(model, loaders()[1]) == [{"val_loss": pytest.approx(whole, rel=1e-6)}]
    model.train()
    run.validate(model, loaders()[1])
    assert model.training  # each module gets back its mode


def test_hooks_come_in_order():
    seen = []

    class Watch(Callback):
        pass

    for name in [n for n in dir(Callback) if n.startswith("on_")]:
        setattr(Watch, name, lambda self, *args, name=name: seen.append(name[3:]))
    train, val = loaders()
    trainer(Watch(), max_epochs=1, limit_train_batches=1, limit_val_batches=1).fit(
        fresh()[0], train, val
    )
    expected = """fit_start train_start train_epoch_start train_batch_start before_zero_grad
        before_backward after_backward before_optimizer_step train_batch_end validation_start
        validation_epoch_start validation_batch_start validation_batch_end validation_epoch_end
        validation_end train_epoch_end train_end fit_end"""
    assert " ".join(seen) == " ".join(expected.split())


def test_gathered_gradients_are_those_of_the_large_batch():
    """Three batches of 16, then two with the rest of the epoch."""
    steps, norms = [], []

    class Watch(Callback):
        def on_before_optimizer_step(self, trainer, module, optimizer):
            steps.append(trainer.fit_loop.batches_done + 1)

        def on_before_zero_grad(self, trainer, module, optimizer):
            norms.append(
                nn.utils.get_total_norm([p.grad for p in module.parameters() if p.grad is not None])
            )

    run = trainer(Watch(), max_epochs=2, accumulate_grad_batches=3, gradient_clip_val=1e-3)
    run.fit(fresh()[0], loaders()[0])
    assert steps == [3, 5, 3, 5]
    assert run.global_step == 4
    assert all(n.item() <= 1.001e-3 for n in norms[1:])


@pytest.mark.parametrize(
    ("limit", "batches"), [(2, 2), (0.5, 2), (1.0, 5), (99, 5), (None, 5), (0, 0)]
)
def test_limits(limit, batches):
    record = Record()
    trainer(record, max_epochs=1, limit_train_batches=limit).fit(fresh()[0], loaders()[0])
    assert len(record.losses) == batches


def test_a_loader_without_a_length():
    record = Record()
    run = trainer(record, max_epochs=2, accumulate_grad_batches=2)
    batches = list(loaders()[0])

    class Stream:
        def __iter__(self):
            return iter(batches)

    run.fit(fresh()[0], Stream())
    assert len(record.losses) == 10
    assert run.global_step == 6  # 2 + 2 + 1 batches each


def test_early_stopping():
    stop = EarlyStopping("val_loss", patience=2, min_delta=0.1)
    run = trainer(stop, max_epochs=10)
    run.fit(Scripted([1.0, 0.8, 0.75, 0.6, 0.55, 0.52, 0.1]), *loaders())
    assert stop.stopped_epoch == run.current_epoch == 5
    assert stop.best_score == 0.6
    grow = EarlyStopping("val_loss", patience=1, mode="max")
    trainer(grow, max_epochs=10).fit(Scripted([1.0, 2.0, 1.5]), *loaders())
    assert grow.stopped_epoch == 2
    broken = EarlyStopping("val_loss")
    trainer(broken, max_epochs=10).fit(Scripted([1.0, math.nan]), *loaders())
    assert broken.stopped_epoch == 1
    with pytest.raises(RuntimeError, match=r"`accuracy` which is not available.*`val_loss`"):
        trainer(EarlyStopping("accuracy"), max_epochs=2).fit(fresh()[0], *loaders())


def test_epochs_without_validation_do_not_count():
    stop = EarlyStopping("val_loss", patience=2)
    run = trainer(stop, max_epochs=8, check_val_every_n_epoch=2)
    run.fit(Scripted([0, 1, 0, 2, 0, 3, 0, 4]), *loaders())
    assert stop.stopped_epoch == 5
    assert stop.best_score == 1


def test_the_best_checkpoints_are_kept(tmp_path):
    keeper = ModelCheckpoint(
        tmp_path, "{epoch}-{val_loss:.1f}", "val_loss", save_top_k=2, save_last=True
    )
    trainer(keeper, max_epochs=4).fit(Scripted([0.4, 0.2, 0.5, 0.3]), *loaders())
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "epoch=1-val_loss=0.2.ckpt",
        "epoch=3-val_loss=0.3.ckpt",
        "last.ckpt",
    ]
    assert keeper.best_model_path == str(tmp_path / "epoch=1-val_loss=0.2.ckpt")
    assert keeper.best_model_score == 0.2
    assert torch.load(keeper.best_model_path)["epoch"] == 1
    with pytest.raises(MisconfigurationException, match="could not find the monitored key"):
        trainer(ModelCheckpoint(tmp_path, monitor="no"), max_epochs=1).fit(fresh()[0], *loaders())


def test_a_checkpoint_takes_no_other_files_name(tmp_path):
    for _ in range(2):
        trainer(ModelCheckpoint(tmp_path), max_epochs=1).fit(fresh()[0], *loaders())
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "epoch=0-step=5-v1.ckpt",
        "epoch=0-step=5.ckpt",
    ]


def test_the_csv_logger_and_the_rates(tmp_path):
    run = trainer(
        LearningRateMonitor("epoch"), max_epochs=3, log_every_n_steps=5, logger=CSVLogger(tmp_path)
    )
    run.fit(fresh()[0], *loaders())
    with open(tmp_path / "training_logs" / "version_0" / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    rates = [float(r["lr-AdamW"]) for r in rows if r["lr-AdamW"]]
    assert rates == pytest.approx([0.02, 0.02, 0.014])
    assert [int(r["step"]) for r in rows if r["val_loss"]] == [5, 10, 15]
    assert (
        float([r for r in rows if r["loss_epoch"]][-1]["loss_epoch"])
        == run.callback_metrics["loss_epoch"]
    )
    assert CSVLogger(tmp_path).version == 1
    with pytest.raises(MisconfigurationException, match="no logger"):
        trainer(LearningRateMonitor(), max_epochs=1).fit(fresh()[0], *loaders())


def test_the_tensorboard_logger(tmp_path):
    logger = TensorBoardLogger(tmp_path)
    points = []

    class Writer:
        def add_scalar(self, *point):
            points.append(point)

        def flush(self):
            points.append("flushed")

    logger._writer = Writer()
    trainer(max_epochs=1, logger=logger).fit(fresh()[0], *loaders())
    assert {p[0] for p in points[:-1]} == {"val_loss", "loss_epoch", "epoch"}
    assert points[-1] == "flushed"


def test_the_real_tensorboard_writer(tmp_path):
    tensorboard = pytest.importorskip(
        "toytorch.utils.tensorboard", reason="utils.tensorboard is not built yet"
    )
    try:
        tensorboard.SummaryWriter(log_dir=str(tmp_path / "try")).close()
    except ImportError as error:
        pytest.skip(f"the event writer's extra is not installed: {error}")
    logger = TensorBoardLogger(tmp_path)
    trainer(max_epochs=1, logger=logger).fit(fresh()[0], *loaders())
    logger.experiment.close()
    files = list((tmp_path / "training_logs" / "version_0").iterdir())
    assert files
    assert any(b"val_loss" in f.read_bytes() for f in files if f.is_file())


def test_the_bar():
    out = io.StringIO()
    bar = ProgressBar(lambda total, desc: TextBar(total, desc, out))
    Trainer(max_epochs=2, callbacks=bar).fit(fresh()[0], *loaders())
    lines = out.getvalue().splitlines()
    assert [line.split(" [")[0] for line in lines] == [
        f"Epoch {n}: 100% |{'#' * 20}| 5/5" for n in range(2)
    ]


def test_predict_and_the_plateau():
    class Flat(Scripted):
        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
            return {
                "optimizer": optimizer,
                "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"},
            }

        def predict_step(self, batch, batch_idx):
            return self.net(batch[0]).argmax(1)

    model = Flat([1.0, 1.0, 1.0])
    run = trainer(max_epochs=3)
    run.fit(model, *loaders())
    assert run.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.01)
    assert [len(p) for p in run.predict(model, loaders()[1])] == [16, 14]


def test_two_optimizers_by_hand():
    class Both(Arms):
        automatic_optimization = False

        def training_step(self, batch, batch_idx):
            x, y = batch
            loss = nn.functional.cross_entropy(self.net(x), y)
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()

        def configure_optimizers(self):
            return [
                torch.optim.SGD(self.net[0].parameters(), lr=0.1),
                torch.optim.Adam(self.net[4].parameters()),
            ]

    model = Both()
    before = [p.clone() for p in model.parameters()]
    run = trainer(max_epochs=1)
    run.fit(model, loaders()[0])
    assert run.global_step == 10
    changed = [not torch.equal(a, b) for a, b in zip(before, model.parameters())]
    del changed[1]  # a bias in front of a batch norm: its gradient is nothing but rounding
    assert changed == [True, False, False, True, True]  # batch norm belongs to neither


def step_of(result, **more):
    return type("Model", (Arms,), {"training_step": lambda self, b, i: result, **more})()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (TrainerModule, "No `training_step\\(\\)` method defined on `TrainerModule`"),
        (lambda: step_of("loss"), "must return a Tensor, a dict, or None.*str"),
        (lambda: step_of({"los": 1}), "'loss' key needs to be present.*'los'"),
        (lambda: step_of(torch.ones(2)), "one element.*\\[2\\]"),
        (lambda: step_of(None, configure_optimizers=lambda self: 3), "Unknown configuration.*int"),
        (lambda: step_of(None, configure_optimizers=lambda self: {"optim": 3}), "key 'optimizer'"),
    ],
)
def test_models_that_cannot_be_trained(make, words):
    with pytest.raises(MisconfigurationException, match=words):
        trainer(max_epochs=1).fit(make(), loaders()[0])


def test_wrong_calls():
    model = fresh()[0]
    with pytest.raises(TypeError, match="must be a `TrainerModule`, got `Linear`"):
        trainer().fit(nn.Linear(1, 1), loaders()[0])
    with pytest.raises(TypeError, match="`train_dataloaders` should be an iterable"):
        trainer().fit(model)
    with pytest.raises(MisconfigurationException, match="accumulate_grad_batches"):
        Trainer(accumulate_grad_batches=0)
    with pytest.raises(MisconfigurationException, match="limit_val_batches"):
        Trainer(limit_val_batches=1.5)
    with pytest.raises(RuntimeError, match="not attached"):
        Arms().log("x", 1)
    with pytest.raises(MisconfigurationException, match="`mode` can be min, max, got low"):
        EarlyStopping("x", mode="low")
    with pytest.raises(FileNotFoundError):
        trainer(max_epochs=1, default_root_dir="/nowhere").fit(
            model, loaders()[0], ckpt_path="last"
        )


def test_a_loss_that_is_nan():
    class Broken(Arms):
        def training_step(self, batch, batch_idx):
            return super().training_step(batch, batch_idx) * math.nan

    with pytest.raises(ValueError, match="is nan in epoch 0, batch 0"):
        trainer(max_epochs=1, terminate_on_nan=True).fit(Broken(), loaders()[0])


def test_the_seed_makes_runs_equal():
    weights = []
    for _ in range(2):
        model, record = fresh()
        torch.rand(len(weights) + 1)
        trainer(record, max_epochs=1, seed=3).fit(model, loaders()[0])
        weights.append(record.losses)
    assert weights[0] == weights[1]


def test_no_optimizer_is_said():
    model = step_of(None, configure_optimizers=lambda self: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer(max_epochs=1).fit(model, loaders()[0])
    assert "will run with no optimizer" in str(caught[0].message)
