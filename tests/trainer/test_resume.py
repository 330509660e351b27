"""Training that was stopped goes on as if it had not been: equal to the last bit."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from tests.trainer.helpers import Arms, Record, fresh, loaders, trainer
from toytorch.trainer import ModelCheckpoint

PER_EPOCH = 5


def whole_run(epochs: int = 6, own: bool = False, **options: Any) -> tuple[Arms, Record]:
    """A run without a break."""
    model, record = fresh()
    trainer(record, max_epochs=epochs, **options).fit(model, *loaders(own))
    return model, record


def same(a: Arms, b: Arms) -> bool:
    """Whether all weights and statistics are equal bit for bit."""
    mine, other = a.state_dict(), b.state_dict()
    return mine.keys() == other.keys() and all(torch.equal(mine[k], other[k]) for k in mine)


@pytest.mark.parametrize("own", [False, True])
def test_three_epochs_and_three_more_are_six(tmp_path, own):
    reference, expected = whole_run(own=own)
    model, first = fresh()
    start = trainer(first, ModelCheckpoint(tmp_path), max_epochs=3)
    start.fit(model, *loaders(own))

    again, second = fresh(seed=99)  # other starting values: all must come from the file
    more = trainer(second, ModelCheckpoint(tmp_path), max_epochs=6)
    more.fit(again, *loaders(own), ckpt_path="last")

    assert len(first.losses) == len(second.losses) == 3 * PER_EPOCH
    assert first.losses + second.losses == expected.losses
    assert first.epochs + second.epochs == expected.epochs
    assert same(again, reference)
    assert more.global_step == 30


@pytest.mark.parametrize("at", [1, 7, 10, 13])
@pytest.mark.parametrize("many", [1, 3])
def test_a_run_stopped_in_the_middle_of_an_epoch(tmp_path, at, many):
    """Also with gradients gathered over three batches, two of them before the stop."""
    reference, expected = whole_run(accumulate_grad_batches=many)
    path = tmp_path / "middle.ckpt"

    class Killed(Exception):
        pass

    def kill(stopped: Any) -> None:
        stopped.save_checkpoint(path)
        raise Killed

    model, _ = fresh()
    record = Record(at, kill)
    with pytest.raises(Killed):
        trainer(record, max_epochs=6, accumulate_grad_batches=many).fit(model, *loaders())

    again, rest = fresh(seed=99)
    trainer(rest, max_epochs=6, accumulate_grad_batches=many).fit(again, *loaders(), ckpt_path=path)
    assert record.losses + rest.losses == expected.losses
    assert record.epochs + rest.epochs == expected.epochs  # means over the whole epoch
    assert same(again, reference)


def test_more_steps_than_before(tmp_path):
    """`max_steps` in the middle of an epoch, then without it."""
    reference, expected = whole_run(epochs=3)
    model, first = fresh()
    start = trainer(first, max_epochs=3, max_steps=8)
    start.fit(model, *loaders())
    assert start.global_step == 8
    start.save_checkpoint(tmp_path / "x.ckpt")
    again, second = fresh(seed=99)
    trainer(second, max_epochs=3).fit(again, *loaders(), ckpt_path=tmp_path / "x.ckpt")
    assert first.losses + second.losses == expected.losses
    assert same(again, reference)


def test_an_interrupt_ends_cleanly_and_is_saved(tmp_path, capsys):
    reference, expected = whole_run()
    model, _ = fresh()
    record = Record(8, lambda _: signal.raise_signal(signal.SIGINT))
    # a shell's background job ignores the signal, and then training goes on: as it should
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGINT)
    stopped = trainer(record, max_epochs=6, default_root_dir=tmp_path)
    stopped.fit(model, *loaders())
    assert signal.getsignal(signal.SIGINT) is before
    assert stopped.interrupted
    assert len(record.losses) == 8
    assert str(tmp_path / "interrupted.ckpt") in capsys.readouterr().out

    again, rest = fresh(seed=99)
    trainer(rest, max_epochs=6, default_root_dir=tmp_path).fit(again, *loaders(), ckpt_path="last")
    assert record.losses + rest.losses == expected.losses
    assert same(again, reference)


def test_an_interrupt_in_validation_repeats_the_validation(tmp_path):
    reference, expected = whole_run(epochs=2)

    class Stopped(Arms):
        def validation_step(self, batch, batch_idx):
            super().validation_step(batch, batch_idx)
            torch.rand(3)  # a stream that moves must be put back
            self.trainer.interrupted = True

    torch.manual_seed(5)
    model, record = Stopped(), Record()
    trainer(record, max_epochs=2, default_root_dir=tmp_path).fit(model, *loaders())
    again, rest = fresh(seed=99)
    trainer(rest, max_epochs=2, default_root_dir=tmp_path).fit(again, *loaders(), ckpt_path="last")
    assert record.losses + rest.losses == expected.losses
    assert rest.epochs == expected.epochs
    assert same(again, reference)


def test_an_interrupt_inside_a_step_saves_nothing(tmp_path, capsys):
    class Torn(Arms):
        def training_step(self, batch, batch_idx):
            raise KeyboardInterrupt

    trainer(max_epochs=1, default_root_dir=tmp_path).fit(Torn(), *loaders())
    assert not list(tmp_path.iterdir())
    assert "nothing was saved" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_process(tmp_path):
    """SIGKILL after 12 batches; the last checkpoint is that of step 10."""
    reference, expected = whole_run()
    program = textwrap.dedent("""
        import os, signal, sys
        from tests.trainer.helpers import Record, fresh, loaders, trainer
        from toytorch.trainer import ModelCheckpoint
        model, _ = fresh()
        kill = Record(12, lambda _: os.kill(os.getpid(), signal.SIGKILL))
        keeper = ModelCheckpoint(sys.argv[1], every_n_train_steps=5)
        trainer(kill, keeper, max_epochs=6).fit(model, *loaders())
    """)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        timeout=60,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert ended.returncode == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir()] == ["epoch=1-step=10.ckpt"]
    again, rest = fresh(seed=99)
    trainer(rest, ModelCheckpoint(tmp_path), max_epochs=6).fit(again, *loaders(), ckpt_path="last")
    assert rest.losses == expected.losses[10:]
    assert same(again, reference)


def test_files_that_do_not_fit(tmp_path):
    model, _ = fresh()
    with pytest.raises(FileNotFoundError, match="Checkpoint file not found"):
        trainer(max_epochs=1).fit(model, *loaders(), ckpt_path=tmp_path / "none.ckpt")
    torch.save({"state_dict": {}}, tmp_path / "weights.pt")
    with pytest.raises(KeyError, match="optimizer_states"):
        trainer(max_epochs=1).fit(model, *loaders(), ckpt_path=tmp_path / "weights.pt")
    start = trainer(max_epochs=1)
    start.fit(model, *loaders())
    start.save_checkpoint(tmp_path / "weights.ckpt", weights_only=True)
    loaded = Arms.load_from_checkpoint(tmp_path / "weights.ckpt", schedule="step")
    assert same(loaded, model)


def test_worker_processes_go_on_too(tmp_path):
    """The batches of workers, fetched ahead, are asked for again from the epoch's start."""

    def with_workers() -> tuple[Any, Any]:
        train, val = loaders()
        return torch.utils.data.DataLoader(train.dataset, 16, shuffle=True, num_workers=2), val

    model, expected = fresh()
    trainer(expected, max_epochs=2).fit(model, *with_workers())
    half, first = fresh()
    start = trainer(first, max_epochs=2, max_steps=7)
    start.fit(half, *with_workers())
    start.save_checkpoint(tmp_path / "x.ckpt")
    again, second = fresh(seed=99)
    trainer(second, max_epochs=2).fit(again, *with_workers(), ckpt_path=tmp_path / "x.ckpt")
    assert first.losses + second.losses == expected.losses
    assert same(again, model)
