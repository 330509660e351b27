"""The lines of fast paths that save in a node what its derivatives name."""

from __future__ import annotations

from collections.abc import Callable

from toytorch.core.op import Op

Saved = tuple[str, str]  # what is saved and its version, as source
NOTHING = ("None", "None")
RESULT = ("kept", "0")  # the result without its history, which `lines` makes


def tensor(name: str, some: str = "", array: str = "") -> Saved:
    """A tensor and its version, where `some` holds; what is no tensor where `array` does not."""
    version = f"0 if {name}._storage is None else {name}._storage.version"
    if not some:
        return name, version
    number = f"not ({array}) or " if array else ""
    return f"{name} if {number}{some} else None", f"None if {number}not ({some}) else {version}"


def by_plan(
    op: Op,
    names: list[str],
    tensor_at: Callable[[int, tuple[int, ...]], Saved],
    result_at: Callable[[int], Saved] = lambda index: RESULT,
) -> list[Saved]:
    """What an op's plan says is to be saved.

    names      what the arguments are called
    tensor_at  how the tensor at a place is saved, for the arguments whose derivatives ask for it
    result_at  how the result at a place is
    """
    saved = []
    for kind, index, users in op.plan:
        if kind == "result":
            saved.append(result_at(index))
        elif kind != "argument":
            saved.append((f"{kind}_of({names[index]})", "None"))
        elif op.schema.args[index].is_tensor:
            saved.append(tensor_at(index, users))
        else:
            saved.append((names[index], "None"))
    return saved


def lines(saved: list[Saved], made: str = "c") -> list[str]:
    """The lines that save it, in the node of the result with the array `made`."""
    if not saved:
        return ["node.saved = None", "node.versions = ()"]
    kept = [
        "kept = new(Tensor)",
        f"kept._array = {made}",
        "kept._dtype = result._dtype",
        f"kept._storage = result._storage = Storage({made})",
        "kept._requires_grad = False",
        "kept._grad_edge = None",
    ]
    values, versions = zip(*saved)
    return [
        *(kept if RESULT in saved else ()),
        f"node.saved = ({', '.join(values)},)",
        f"node.versions = ({', '.join(versions)},)",
    ]


def frees(op: Op, saved: list[Saved]) -> list[str]:
    """The line that says whether a node has tensors to let go of, where that depends on the call."""
    held = []
    for k, (kind, index, users) in enumerate(op.plan):
        if kind == "result" or (kind == "argument" and index in op.tensor_at):
            number = kind == "argument" and op.variant and op.schema.args[index].takes_number
            if not number and (" else None" not in saved[k][0] or len(users) > 1):
                return []  # always, in PyTorch
            held.append(f"node.saved[{k}]")
    # A number PyTorch keeps as a tensor, unless it has an overload for it.
    test = "{} is not None" if op.variant is None else "isinstance({}, Tensor)"
    return ["node.frees = " + " or ".join(map(test.format, held))] if held else []
