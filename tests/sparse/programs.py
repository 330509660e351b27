"""Small sparse tensors of either implementation, for programs that run on both."""

from __future__ import annotations

from typing import Any

from tests.oracle import attempt, error_difference, torch, tt


class Made:
    """One implementation, and the sparse tensors that the programs start from."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.coo = root.sparse_coo_tensor

    def tidy(self, grad: bool = False) -> Any:
        """A coalesced matrix, a leaf."""
        return self.coo([[0, 1, 1], [2, 0, 2]], [0.3, 0.4, 0.5], (2, 3), is_coalesced=True,
                        requires_grad=grad)  # fmt: skip

    def loose(self, grad: bool = False) -> Any:
        """A matrix with two entries at one place, a leaf."""
        return self.coo([[0, 1, 1, 0], [2, 0, 2, 2]], [0.3, 0.4, 0.5, 0.6], (2, 3),
                        requires_grad=grad)  # fmt: skip

    def hybrid(self, grad: bool = False) -> Any:
        """Two sparse and two dense dimensions."""
        values = self.root.arange(8.0).view(2, 2, 2)
        return self.coo([[0, 2], [1, 1]], values, (3, 3, 2, 2), requires_grad=grad)

    def dense(self, *shape: int, grad: bool = False) -> Any:
        """1, 2, 3, ... in a shape, a leaf."""
        n = 1
        for m in shape:
            n *= m
        return self.root.arange(1.0, n + 1).view(shape).requires_grad_(grad)


def shown(program: Any) -> None:
    """Assert that a program's results print the same on both sides, or are refused alike."""
    want, refused = attempt(program, Made(torch))
    got, failure = attempt(program, Made(tt))
    if refused or failure:
        bad = error_difference(refused, failure)
        assert not bad, bad
    else:
        assert repr(got) == repr(want)
