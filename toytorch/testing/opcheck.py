"""Whether an operator of one's own is registered as it behaves, like `torch.library.opcheck`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from toytorch.autograd.api import grad
from toytorch.autograd.custom_op import Definition
from toytorch.autograd.custom_op import found as definition_of
from toytorch.core.tensor import Tensor
from toytorch.facts.pytree import tree_leaves, tree_map
from toytorch.jit.compile import compile
from toytorch.testing.compare import assert_close

Call = tuple[tuple[Any, ...], dict[str, Any]]
Check = Callable[[Definition, Call, dict[str, Any]], None]


class OpCheckError(Exception):
    """A check of an operator failed."""


class MetadataMismatchError(AssertionError):
    """What an operator says of its result is not what it gives."""


def tensors_of(tree: object) -> list[Tensor]:
    """The tensors within containers."""
    return [v for v in tree_leaves(tree) if isinstance(v, Tensor)]


def copied(call: Call) -> Any:
    """Arguments of their own for another call."""

    def copy(value: object) -> Any:
        if not isinstance(value, Tensor):
            return value
        made = value.detach().clone()
        return made.requires_grad_() if value.requires_grad else made

    return tree_map(copy, call)


def memory_of(tree: object) -> set[int]:
    """Where the tensors of a tree lie."""
    return {t.untyped_storage().data_ptr() for t in tensors_of(tree) if t.numel()}


def schema(op: Definition, call: Call, closeness: dict[str, Any]) -> None:
    """Only what the signature says is written to or given back."""
    args, kwargs = copied(call)
    positional, named = op.bound(args, kwargs)
    names = [a.name for a in op.schema.args if not a.keyword_only]
    given = {**dict(zip(names, positional)), **named}
    before = tree_map(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, given)
    results = op(*args, **kwargs)
    aliases = {name: mark for mark, name in re.findall(r"\((\w+!?)\)\S* (\w+)", op.text)}
    for name, value in given.items():
        pairs = zip(tensors_of(value), tensors_of(before[name]))
        if "!" not in aliases.get(name, "") and not all(a.equal(b) for a, b in pairs):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
        if name not in aliases and memory_of(value) & memory_of(results):
            raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")


def autograd_registration(op: Definition, call: Call, closeness: dict[str, Any]) -> None:
    """What wants a gradient has a derivative that was registered, or is made of ops that have one."""
    args, kwargs = copied(call)
    registered = op.backward is not None or op.checks_aliases or op.composite
    if not registered and any(t.requires_grad for t in tensors_of(op(*args, **kwargs))):
        raise AssertionError(
            f"{op.qualified}: at least one output of this operator has requires_grad=True but the "
            "operator does not have an autograd kernel defined at an autograd key (e.g. "
            "DispatchKey::Autograd). This could mean that you have incorrectly registered an autograd "
            "kernel to a non-Autograd DispatchKey, which may lead to silently incorrect results. If "
            "your operator consists of regular PyTorch operations, consider not using an operator at "
            "all or registering your operator as CompositeImplicitAutograd. If you have an "
            "autograd.Function registered to a backend (CPU/CUDA/XPU) key, the correct location for it "
            "is the Autograd key."
        )


def faketensor(op: Definition, call: Call, closeness: dict[str, Any]) -> None:
    """Without data its results have the shapes and types that they have with data."""
    args, kwargs = tree_map(lambda v: v.to("meta") if isinstance(v, Tensor) else v, copied(call))
    said = tensors_of(op(*args, **kwargs))
    args, kwargs = copied(call)
    for k, (real, fake) in enumerate(zip(tensors_of(op(*args, **kwargs)), said)):
        which = f" for output[{k}]" if len(said) > 1 else ""
        for what, a, b in (
            ("Shapes", real.shape, fake.shape),
            ("Dtypes", real.dtype, fake.dtype),
            ("Strides", real.stride(), fake.stride()),
        ):
            if a != b:
                raise MetadataMismatchError(
                    f"When comparing the output of {op.packet.default} on FakeTensor and concrete "
                    f"Tensors, found mismatched tensor metadata{which}: {what} {a} and {b} are not equal!"
                )


def compiled(op: Definition, call: Call, closeness: dict[str, Any]) -> None:
    """Compiled, it gives the results and the gradients that it gives by itself."""
    if op.fake is None and not op.composite:
        faketensor(op, call, closeness)  # which says what is missing
    found = []
    for function in (op, compile(lambda *args, **kwargs: op(*args, **kwargs))):
        args, kwargs = copied(call)
        leaves = [t for t in tensors_of((args, kwargs)) if t.requires_grad]
        results = tensors_of(function(*args, **kwargs))
        wanted = [r for r in results if r.requires_grad]
        grads = []
        if leaves and wanted:
            total = sum(r.sum() for r in wanted)
            grads = list(grad(total.abs(), leaves, allow_unused=True, materialize_grads=True))
        found.append([*results, *tensors_of((args, kwargs)), *grads])
    for alone, within in zip(*found):
        assert_close(within, alone, **closeness)


CHECKS: dict[str, Check] = {
    "test_schema": schema,
    "test_autograd_registration": autograd_registration,
    "test_faketensor": faketensor,
    "test_aot_dispatch_static": compiled,
    "test_aot_dispatch_dynamic": compiled,  # a compiled function here takes any shape
}
USUAL = tuple(name for name in CHECKS if name != "test_aot_dispatch_static")


def opcheck(
    op: object,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = USUAL,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """What checks of an operator with these arguments say: "SUCCESS", or the error, by their names.

    It must write to and give back only what its signature says, have a derivative where one is
    wanted, say its results' shapes without data, and give the same when it is compiled. The first
    failure raises OpCheckError, unless `raise_exception` is False.

    >>> @torch.library.custom_op("docs::thrice", mutates_args=())
    ... def thrice(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 3
    >>> opcheck(thrice, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    if not hasattr(op, "_definition"):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
            f"torch.ops.aten.sin.default, got {type(op)}"
        )
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(wanted) <= set(CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={wanted}), expected test_utils to be subset of "
            f"{tuple(CHECKS)} but it was not"
        )
    closeness = {} if atol is None and rtol is None else {"atol": atol, "rtol": rtol}
    said: dict[str, Any] = {}
    for name in wanted:
        try:
            CHECKS[name](definition_of(op), (tuple(args), dict(kwargs or {})), closeness)
            said[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            said[name] = error
    return said
