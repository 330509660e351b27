"""All programs of the corpus."""

from tests.jit.script import (
    corpus_containers,
    corpus_contexts,
    corpus_flow,
    corpus_numbers,
    corpus_tensors,
    corpus_unions,
)
from tests.jit.script.case import CASES, Case, carried

__all__ = [
    "CASES",
    "Case",
    "carried",
    "corpus_containers",
    "corpus_contexts",
    "corpus_flow",
    "corpus_numbers",
    "corpus_tensors",
    "corpus_unions",
]
