"""A name that libraries import with which they index under `vmap`."""

from contextlib import nullcontext


class TransformGetItemToIndex(nullcontext[None]):
    """A context in which `table[i]` is possible for an `i` that `vmap` batches: here it always is."""
