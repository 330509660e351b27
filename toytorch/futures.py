"""Values that are not there yet, like `torch.futures`, over Python's own futures."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A value, or an error, that somebody sets later; `wait()` gives it. Like `torch.futures.Future`.

    `devices` are those whose streams a value's tensors are computed in; they are taken for programs
    that pass them, as nothing but the host sets values here.

    >>> later = Future()
    >>> doubled = later.then(lambda f: 2 * f.value())
    >>> later.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether there is a value or an error."""
        return self._future.done()

    def wait(self) -> T:
        """The value, as soon as there is one; raises the error if that was set."""
        return self._future.result()

    def value(self) -> T:
        """The value, which must be there: in a callback it is.

        Raises RuntimeError before; the error if that was set.
        """
        if not self.done():
            raise RuntimeError("value() of a Future that is not completed: call wait()")
        return self._future.result()

    def set_result(self, result: T) -> None:
        """Sets the value and runs the callbacks. Raises RuntimeError if there is one already."""
        self._once()
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait` and `value` raise."""
        assert isinstance(result, Exception), (
            f"{result} is of type {type(result)}, not an Exception."
        )
        self._once()
        self._future.set_exception(result)

    def _once(self) -> None:
        if self.done():
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can "
                "only be marked completed once."
            )

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls `callback(self)` when there is a value or an error; at once if there is."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of what `callback(self)` returns, which is called when this one is done.

        An error in the callback is a RuntimeError of the new future, with its text.
        """
        made: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                made.set_result(callback(done))
            except Exception as error:
                said = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                made.set_exception(RuntimeError(said))

        self.add_done_callback(run)
        return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of a list of futures: it is done when all of them are, with errors or without.

    >>> a, b = Future(), Future()
    >>> both = collect_all([a, b])
    >>> a.set_result(1); b.set_result(2)
    >>> [f.value() for f in both.wait()]
    [1, 2]
    """
    made: Future[list[Future[Any]]] = Future()
    left = len(futures)
    if not left:
        made.set_result(futures)

    def count(_: Future[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            made.set_result(futures)

    for one in futures:
        one.add_done_callback(count)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all futures, when they are done; raises the first error among them."""
    return [one.wait() for one in collect_all(futures).wait()]
