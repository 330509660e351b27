"""Connectionist temporal classification: the likelihood of a text under all its alignments.

Graves et al. 2006. The text is written with blanks between, before and after its letters;
alpha[t, s] is the log-probability of all ways to have read s places of it after t steps, beta that
of all ways to read the rest. Steps run in a Python loop, places and samples in arrays.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.op import Op
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import general


def _texts(xp: ArrayModule, targets: Array, lengths: Array, blank: int) -> Any:
    """The texts with blanks: (N, 2·longest + 1). They are short: the host lays them out."""
    targets, lengths = (base.of_array(a).to_numpy(a) for a in (targets, lengths))
    longest = int(lengths.max(initial=0))
    padded = np.full((len(lengths), longest), blank, np.int64)
    if targets.ndim == 2:
        padded[:, :] = targets[:, :longest]
    else:
        ends = np.cumsum(lengths)
        for row, end, n in zip(padded, ends, lengths):
            row[:n] = targets[end - n : end]
    texts = np.full((len(lengths), 2 * longest + 1), blank, np.int64)
    texts[:, 1::2] = padded
    return xp.asarray(texts)


def _check_lengths(targets: Array, steps: Array, lengths: Array, most: int) -> None:
    """Refuses lengths below 0, or beyond what is there."""
    where = " (while checking arguments for ctc_loss_allocate_outputs)"

    def refuse(name: str, limit: str, values: Array) -> None:
        if values.size:
            raise RuntimeError(
                f"Expected {name} to have value at {limit}, but got value {int(values[0])}{where}"
            )

    refuse("target_lengths", "least 0", lengths[lengths < 0])
    total, longest = int(lengths.sum()), int(lengths.max()) if lengths.size else 0
    found = None
    if targets.ndim == 1 and targets.size != total and total:  # on "meta" all lengths are 0
        found = f"size {total} at dimension 0, but got size {targets.size}"
    elif targets.ndim == 2 and targets.shape[1] < longest:
        found = f"size at least {longest} at dimension 1, but got size {targets.shape[1]}"
    if found is not None:
        raise RuntimeError(f"Expected tensor to have {found} for argument #2 'targets'{where}")
    refuse("input_lengths", "least 0", steps[steps < 0])
    refuse("input_lengths", f"most {most}", steps[steps > most])


def _log_add(*values: Array) -> Any:
    most = functools.reduce(np.maximum, values)
    most = np.where(np.isfinite(most), most, most.dtype.type(0))
    return np.log(sum(np.exp(v - most) for v in values)) + most


def _forward(
    xp: ArrayModule, logs: Array, texts: Array, places: Array, steps: Array, blank: int
) -> Any:
    """alpha (T, N, S), frozen after each sample's last step."""
    n, s = texts.shape
    emitted = np.take_along_axis(logs, np.broadcast_to(texts, (len(logs), n, s)), 2)
    skip = xp.zeros((n, s), bool)  # a letter may follow another letter without a blank between
    skip[:, 2:] = (texts[:, 2:] != blank) & (texts[:, 2:] != texts[:, :-2])
    alpha = xp.full((len(logs), n, s), -np.inf, logs.dtype)
    if not len(logs):
        return alpha, emitted, skip
    alpha[0, :, 0] = emitted[0, :, 0]
    if s > 1:
        alpha[0, :, 1] = np.where(places > 1, emitted[0, :, 1], -np.inf)
    for t in range(1, len(logs)):
        before = alpha[t - 1]
        moved = np.full_like(before, -np.inf)
        moved[:, 1:] = before[:, :-1]
        jumped = np.full_like(before, -np.inf)
        jumped[:, 2:] = np.where(skip[:, 2:], before[:, :-2], -np.inf)
        alpha[t] = _log_add(before, moved, jumped) + emitted[t]
    return alpha, emitted, skip


def _ends(xp: ArrayModule, alpha: Array, steps: Array, places: Array) -> Any:
    """-log of the probability to be at the last blank or the last letter after the last step."""
    rows = xp.arange(len(steps))
    last = alpha[np.maximum(steps - 1, 0), rows]
    at_blank = last[rows, places - 1]
    at_letter = np.where(places > 1, last[rows, np.maximum(places - 2, 0)], -np.inf)
    loss = -np.logaddexp(at_blank, at_letter)
    none = np.where(places == 1, 0.0, np.inf)  # no steps: only the empty text can be read
    return np.where(steps == 0, none, loss).astype(alpha.dtype)


def _ctc(
    xp: ArrayModule, logs: Array, targets: Array, steps: Array, lengths: Array, blank: int
) -> Any:
    if logs.dtype.kind != "f" or logs.dtype.itemsize == 2:
        kind = from_numpy_dtype(logs.dtype).legacy
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{kind}'")
    if targets.dtype.kind != "i" or targets.dtype.itemsize < 4:
        raise RuntimeError(
            "Expected tensor for argument #2 'targets' to have scalar type Long or Int (while "
            "checking arguments for ctc_loss_cpu)"
        )
    if logs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {logs.ndim}-dimensional tensor for argument #1 "
            "'log_probs' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    if not 0 <= blank < logs.shape[2]:
        raise RuntimeError("blank must be in label range")
    if len(steps) != logs.shape[1]:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(lengths) != logs.shape[1]:
        raise RuntimeError("target_lengths must be of size batch_size")
    if targets.ndim == 2 and len(targets) != logs.shape[1]:
        raise RuntimeError(
            f"Expected tensor to have size {logs.shape[1]} at dimension 0, but got "
            f"size {len(targets)} for argument #2 'targets' (while checking "
            "arguments for ctc_loss_allocate_outputs)"
        )
    _check_lengths(targets, steps, lengths, logs.shape[0])
    texts, places = _texts(xp, targets, lengths, blank), 2 * lengths + 1
    alpha, _, _ = _forward(xp, logs, texts, places, steps, blank)
    return _ends(xp, alpha, steps, places)


def _ctc_backward(
    xp: ArrayModule,
    g: Array,
    logs: Array,
    targets: Array,
    steps: Array,
    lengths: Array,
    blank: int,
    zero_infinity: bool,
) -> Any:
    texts, places = _texts(xp, targets, lengths, blank), 2 * lengths + 1
    alpha, emitted, skip = _forward(xp, logs, texts, places, steps, blank)
    loss = _ends(xp, alpha, steps, places)
    count, n, _ = logs.shape
    s = texts.shape[1]
    rows, column = xp.arange(n), xp.arange(s)
    beta = xp.full((n, s), -np.inf, logs.dtype)
    grad = np.zeros_like(logs)
    good = np.where(np.isfinite(loss), loss, 0)
    for t in range(count - 1, -1, -1):
        stay, moved, jumped = beta, np.full_like(beta, -np.inf), np.full_like(beta, -np.inf)
        moved[:, :-1] = beta[:, 1:]
        jumped[:, :-2] = np.where(skip[:, 2:], beta[:, 2:], -np.inf)
        beta = _log_add(stay, moved, jumped) + emitted[t]
        first = (steps - 1 == t)[:, None] & (
            (column == places[:, None] - 1) | (column == places[:, None] - 2)
        )
        beta = np.where((steps - 1 == t)[:, None], np.where(first, emitted[t], -np.inf), beta)
        beta = np.where((steps - 1 >= t)[:, None] & (column < places[:, None]), beta, -np.inf)
        through = np.exp(alpha[t] + beta - emitted[t] + good[:, None])
        through = np.where(np.isfinite(emitted[t]), through, 0)
        share = xp.zeros((n, logs.shape[2]), logs.dtype)
        base.at(xp, "add", share, (rows[:, None], texts), through)
        inside = (t < steps)[:, None]
        grad[t] = np.where(inside, np.exp(logs[t]) - share, 0)
    bad = ~np.isfinite(loss)
    if bad.any():
        grad[:, bad] = 0 if zero_infinity else np.nan
    return grad * g[None, :, None]


ctc_loss: Op = general(
    "_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank=0, bool zero_infinity=False) -> Tensor",
    lambda xp, logs, targets, steps, lengths, blank, zero_infinity: _ctc(
        xp, logs, targets, steps, lengths, blank
    ),
    forms="",
    node="CtcLossBackward0",
    d_log_probs=lambda g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity: (
        ctc_backward.function(
            g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
        )
    ),
    amp="float32",
    doc="-log of the probability of a text under all its alignments; Graves et al. 2006.",
)
ctc_backward: Op = general(
    "_ctc_loss_backward(Tensor grad_output, Tensor log_probs, Tensor targets, Tensor input_lengths,"
    " Tensor target_lengths, int blank, bool zero_infinity) -> Tensor",
    _ctc_backward,
    forms="",
    doc="The gradient of _ctc_loss, as if log_probs came from log_softmax.",
)
