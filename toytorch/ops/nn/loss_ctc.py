"""Connectionist temporal classification: the likelihood of a text under all its alignments.

Graves et al. 2006. The text is written with blanks between, before and after its letters;
alpha[t, s] is the log-probability of all ways to have read s places of it after t steps, beta that
of all ways to read the rest. A step is a compiled loop over the places of all samples, and all steps are one call.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.backends import base, generic
from toytorch.backends.generic import attempt
from toytorch.core.op import Op
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.kernels.chain import in_time
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.kernel import laid
from toytorch.ops.define import internal


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


# What a step adds up: the ways that were at the same place before, at the one before it, at the second
# before it where there is no wall, and those that start here.
STEP = Recipe("""stay[m], move[m], jump[m], wall[m], start[m], emitted[m], low -> y[m]
    k = maximum(maximum(maximum(stay, move), maximum(jump + wall, start)), low)
    sum = exp(stay - k) + exp(move - k) + exp(jump + wall - k) + exp(start - k)
    y = log(sum) + k + emitted""")
LOW = -1e30  # below which there is no logarithm of a probability but that of 0


def _ways(xp: ArrayModule, emitted: Array, walls: Array, starts: Array) -> Any:
    """The logarithms (T, N, S) of the probabilities of all ways to each place.

    In front of each sample's places there are two that no way comes to.
    """
    steps, n, places = emitted.shape

    def with_front(values: Array) -> Any:
        made = xp.full((*values.shape[:-1], places + 2), -np.inf, values.dtype)
        made[..., 2:] = values
        return made.reshape(*values.shape[:-2], -1)

    e, w, d = with_front(emitted), with_front(walls), with_front(starts)
    made = xp.full((steps + 1, 2 + w.size), -np.inf, e.dtype)
    y, stay, move, jump = made[1:, 2:], made[:, 2:], made[:, 1:-1], made[:, :-2]
    if not (steps and w.size):
        pass
    elif made.__class__ is np.ndarray and e.dtype.char in "fd" and jit.works():
        names = ("y", "stay", "move", "jump", "w", "d", "e")
        arrays = dict(zip(names, (y, stay, move, jump, w, d, e)))
        lies = [(name, a.strides[0] * (name != "w")) for name, a in arrays.items()]
        first = {name: a if name == "w" else a[0] for name, a in arrays.items()}
        in_time(((step(e.dtype.char, w.size), names),), tuple(lies), steps)(**first)
    else:
        for t in range(steps):
            attempt(xp, "program", STEP, y[t], stay[t], move[t], jump[t], w, d[t], e[t], LOW)
    return y.reshape(steps, n, places + 2)[:, :, 2:]


@functools.lru_cache(256)
def step(kind: str, count: int) -> ArrayCall:
    """STEP for so many places of all samples."""
    arrays = [np.empty(count, kind) for _ in range(7)]
    return laid(STEP, *arrays, numbers=(LOW,), bases=False)


def _emitted(xp: ArrayModule, logs: Array, texts: Array, blank: int) -> Any:
    """The logarithms (T, N, S) that the places of texts have, and walls (N, S): 0 where a letter may
    follow another one without a blank between them."""
    n, s = texts.shape
    emitted = xp.take_along_axis(logs, xp.broadcast_to(texts, (len(logs), n, s)), 2)
    walls = xp.full((n, s), -np.inf, logs.dtype)
    walls[:, 2:][(texts[:, 2:] != blank) & (texts[:, 2:] != texts[:, :-2])] = 0
    return emitted, walls


def _forward(xp: ArrayModule, emitted: Array, walls: Array, places: Array) -> Any:
    """alpha (T, N, S); it goes on after a sample's last step, and its text's last place."""
    starts = xp.full(emitted.shape, -np.inf, emitted.dtype)
    starts[:1, :, 0] = 0
    starts[:1, places > 1, 1:2] = 0
    return _ways(xp, emitted, walls, starts)


def _backward(xp: ArrayModule, emitted: Array, walls: Array, steps: Array, places: Array) -> Any:
    """beta (T, N, S): the same from the end, with steps and places in the opposite order."""
    starts = xp.full(emitted.shape, -np.inf, emitted.dtype)
    for sample, (t, end) in enumerate(zip(steps.tolist(), places.tolist())):
        if t:
            starts[t - 1, sample, max(end - 2, 0) : end] = 0
    turned = xp.full(walls.shape, -np.inf, walls.dtype)
    turned[:, 2:] = walls[:, :1:-1]  # into a place from the second after it
    return _ways(xp, emitted[::-1, :, ::-1], turned, starts[::-1, :, ::-1])[::-1, :, ::-1]


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
    emitted, walls = _emitted(xp, logs, texts, blank)
    return _ends(xp, _forward(xp, emitted, walls, places), steps, places)


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
    emitted, walls = _emitted(xp, logs, texts, blank)
    alpha = _forward(xp, emitted, walls, places)
    loss = _ends(xp, alpha, steps, places)
    beta = _backward(xp, emitted, walls, steps, places)
    good = np.where(np.isfinite(loss), loss, 0)
    with np.errstate(invalid="ignore"):  # of what cannot be emitted
        through = np.exp(alpha + beta - emitted + good[:, None])
    through = np.where(np.isfinite(emitted), through, 0)
    index, share = xp.ascontiguousarray(xp.broadcast_to(texts, through.shape)), xp.zeros_like(logs)
    if not attempt(xp, "scatter", share, 2, index, through, True):
        rows = xp.arange(len(logs))[:, None, None], xp.arange(len(texts))[:, None]
        generic.at(xp, "add", share, (*rows, index), through)
    inside = (xp.arange(len(logs))[:, None] < steps)[:, :, None]
    grad = np.where(inside, np.exp(logs) - share, 0).astype(logs.dtype, copy=False)
    bad = ~np.isfinite(loss)
    if bad.any():
        grad[:, bad] = 0 if zero_infinity else np.nan
    return grad * g[None, :, None]


ctc_loss: Op = internal(
    "_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank=0, bool zero_infinity=False) -> Tensor",
    lambda xp, logs, targets, steps, lengths, blank, zero_infinity: _ctc(
        xp, logs, targets, steps, lengths, blank
    ),
    d_log_probs=lambda g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity: (
        ctc_backward.function(
            g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
        )
    ),
    amp="float32",
    doc="-log of the probability of a text under all its alignments; Graves et al. 2006.",
)
ctc_backward: Op = internal(
    "_ctc_loss_backward(Tensor grad_output, Tensor log_probs, Tensor targets, Tensor input_lengths,"
    " Tensor target_lengths, int blank, bool zero_infinity) -> Tensor",
    _ctc_backward,
    doc="The gradient of _ctc_loss, as if log_probs came from log_softmax.",
)
