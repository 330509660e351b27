"""Errors in compiled code, as the caller sees them: where in the program, and what was wrong.

As in PyTorch every mistake of an operation is a RuntimeError, what the program itself raises is a
`torch.jit.Error`, and NotImplementedError stays one. The error as it was is the `__cause__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from toytorch.jit.ir import Node, Source

TITLE = "The following operation failed in the TorchScript interpreter."
NODE = "_graph_node"


class Error(Exception):
    """What compiled code raises with `raise` or `assert`, like `torch.jit.Error`."""


def note(error: Exception, node: Node) -> None:
    """Keeps with an error which node failed; the innermost is noted first."""
    known = error.__dict__.setdefault(NODE, [])
    if not known or known[-1] is not node:
        known.append(node)


def reraise(error: Exception) -> NoReturn:
    """Raises what a caller of compiled code gets for an error that a node raised; the error itself
    where no node did."""
    nodes: list[Node] = error.__dict__.get(NODE, [])
    if not nodes or isinstance(error, Error) or str(error).startswith(TITLE):
        raise error
    places: list[Source] = []
    for node in nodes:
        source = node.source
        while source is not None:
            places.append(source)
            source = source.caller
        if places:
            break  # the innermost knows from where it was called
    lines = [source.pointing(True) for source in reversed(places)]
    asserted = "_assert" in nodes[0].attributes or (
        isinstance(error, AssertionError) and getattr(nodes[0].op, "asserts", False)
    )
    raised = nodes[0].kind == "prim::RaiseException" or asserted
    name = type(error).__name__
    if raised:
        name = f"RuntimeError: {name}" if asserted else f"{type(error).__module__}.{name}"
    made = as_failed(error, lines, name)
    raise (Error(*made.args) if raised else made) from error


def as_failed(error: Exception, lines: list[str], name: str = "") -> Exception:
    """What is raised for an error of an operation, with the places where it came about."""
    kind = NotImplementedError if isinstance(error, NotImplementedError) else RuntimeError
    text = f"{name or type(error).__name__}: {error}\n"
    return kind(
        "\n".join([TITLE, "Traceback of TorchScript (most recent call last):", *lines, text])
    )
