"""`vmap`: a function of one example, run on a batch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toytorch.backends import base
from toytorch.core import dispatch, inplace, random, record, write
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, new
from toytorch.facts import state
from toytorch.facts.hints import Args, Fn
from toytorch.facts.pytree import broadcast_to, tree_flatten, tree_unflatten
from toytorch.ops import batching, registry


class Batch:
    """The mode of one `vmap`: ops on batched tensors run on all examples at once."""

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness = size, randomness

    def full(self, value: object) -> Tensor | None:
        """The whole batch of a tensor of which the function sees one example."""
        batches = value._batches if isinstance(value, Tensor) else None
        return None if batches is None else batches.get(self)

    def within(self, value: Tensor) -> tuple[str, str, Tensor] | None:
        """What is printed of one example: the whole batch."""
        whole = self.full(value)
        return None if whole is None else ("BatchedTensor", "bdim=0, ", whole)

    def any_full(self, args: Any) -> bool:
        """Whether any argument is batched."""
        return any(
            self.full(a) is not None or (a.__class__ in (list, tuple) and self.any_full(a))
            for a in args
        )

    def hide(self, whole: Tensor) -> Tensor:
        """What the function sees of a batch: a tensor with one example's shape."""
        seen: Tensor = new(Tensor)
        a, seen._dtype = whole._array, whole._dtype
        empty = 0 in a.shape[:1]  # a batch of no examples has zeros for one
        seen._array = base.of_array(a).xp.zeros(a.shape[1:], a.dtype) if empty else a[0, ...]
        seen._requires_grad, seen._grad_edge, seen._storage = False, None, None
        seen._batches = {self: whole}
        return seen

    def on_call(self, op: Op, args: Args, out: Any) -> Any:
        """An op on one example, from the function's view."""
        batched = self.any_full(args)
        if op.random:
            self.check_randomness(batched)
        if not batched and (not op.random or self.randomness == "same"):
            return dispatch.call(op, args, out)
        if out is not None:
            raise RuntimeError(f"vmap: {op.name}(): out= is not supported inside vmap")
        result: Any = batching.run(op, args, self.full, self.size)
        seen: Any = [self.hide(r) for r in result] if op.many else self.hide(result)
        if op.kind == "view":
            for v in seen if op.many else [seen]:
                v._storage = args[0]._memory()
                inplace.register_view(args[0], v)
        if op.derivatives and state.local.grad and record.wants_grad(op, args):
            record.record(op, args, seen)
        return seen

    def on_inplace(self, op: Op, args: Args) -> Tensor:
        """A write into a batched tensor."""
        target: Tensor = args[0]
        if op.random:
            self.check_randomness(self.any_full(args[1:]))
        whole = self.full(target)
        if whole is None and self.any_full(args):
            raise RuntimeError(
                f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists "
                f"a Tensor `other` in extra_args that has more elements than `self`. This happened "
                f"due to `other` being vmapped over but `self` not being vmapped over in {op.name}_"
                ". Please try to use out-of-place operators instead of inplace arithmetic."
            )
        if op.random and whole is None and self.randomness == "different":
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
                "will appear like same randomness. If this is necessary for your usage, please "
                "file an issue with functorch."
            )
        if whole is None:
            return write.inplace(op, args)
        needs = state.local.grad and bool(op.derivatives) and record.wants_grad(op, args)
        node = record.record(op, args, target, overwritten=target) if needs else None
        if op.random:
            if self.randomness == "same":
                write.inplace(op, args)  # the first example's numbers, for all
                whole.copy_(whole[0].clone().unsqueeze(0).expand(whole.shape))
            else:
                write.inplace(op, batching.elementwise(op, args, self.full))
        else:
            whole.copy_(batching.run(op, args, self.full, self.size))
        inplace.bump(target)
        if node is not None:
            inplace.rebase(target, node)
        return target

    def check_randomness(self, batched: bool = False) -> None:
        """Refuses random numbers where the caller did not say what they should be, and the same ones
        of distributions that a batch gives."""
        if batched and self.randomness == "same":
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input. "
                "Please file an issue with functorch"
            )
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )

    def on_random(self, make: Fn) -> Tensor:
        """A factory of random tensors: `make(lead)` makes one with more dimensions in front."""
        self.check_randomness()
        if self.randomness == "same":
            return make(())
        return self.hide(make((self.size,)))

    def on_random_by(self, make: Fn, input: Tensor) -> Tensor:
        """Random numbers of a tensor's distributions: `make(input)` makes them of one or of a batch."""
        self.check_randomness(self.full(input) is not None)
        if self.randomness == "same":
            return make(input)
        return self.hide(make(batching.spread(input, self.full, self.size)))


def vmap(
    func: Fn,
    in_dims: int | Sequence[int | None] = 0,
    out_dims: int = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Any:
    """A function of batches from a function of examples.

    in_dims and out_dims say which dimension of every argument and result is the batch (None: an
    argument is the same for all). Like `torch.func.vmap`.

    >>> vmap(torch.dot)(torch.ones(3, 2), torch.arange(6.).reshape(3, 2))
    tensor([1., 5., 9.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'."
            f" Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Tensor | dict[str, Tensor], **kwargs: object) -> Any:
        leaves, spec, dims, size = examine(func, in_dims, args)
        if chunk_size is not None:
            return in_chunks(
                func, in_dims, out_dims, randomness, chunk_size, leaves, spec, dims, size, kwargs
            )
        mode = Batch(size, randomness)
        seen = [
            leaf if d is None else mode.hide(leaf.movedim(d, 0)) for leaf, d in zip(leaves, dims)
        ]
        keyword = tree_flatten(kwargs)
        hidden = [mode.hide(v) if isinstance(v, Tensor) and v.ndim else v for v in keyword[0]]
        with state.watching(mode), state.transforming(mode):
            result = func(*tree_unflatten(seen, spec), **tree_unflatten(hidden, keyword[1]))
        return collect(func, mode, result, out_dims)

    return batched


def examine(func: Fn, in_dims: int | Sequence[int | None], args: Args) -> Any:
    """The leaves of the arguments, the dimension of the batch in each, and its size."""
    name = getattr(func, "__name__", repr(func))
    leaves, spec = tree_flatten(args)
    if not leaves:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
            f"(potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    dims = broadcast_to(in_dims if isinstance(in_dims, int) else tuple(in_dims), args)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not "
            "compatible with the structure of inputs."
        )
    sizes = set()
    for i, (leaf, d) in enumerate(zip(leaves, dims)):
        if d is None:
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for an input but "
                f"the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, "
                "please use None as the respective in_dim"
            )
        if not -leaf.ndim <= d < leaf.ndim:
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for some input, "
                f"but that input is a Tensor of dimensionality {leaf.ndim} so expected in_dim to "
                f"satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        dims[i] = d % leaf.ndim
        sizes.add(leaf.shape[d])
    if not sizes:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): at least one input must "
            "have a non-None in_dim."
        )
    if len(sizes) > 1:
        found = [leaf.shape[d] for leaf, d in zip(leaves, dims) if d is not None]
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension,"
            f" got sizes {found} for the mapped dimension"
        )
    return leaves, spec, dims, sizes.pop()


def collect(func: Fn, mode: Batch, result: object, out_dims: int) -> Any:
    """The results with the batch where `out_dims` wants it."""
    name = getattr(func, "__name__", repr(func))
    leaves, spec = tree_flatten(result)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
            )
    dims = broadcast_to(tuple(out_dims) if isinstance(out_dims, list) else out_dims, result)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == len(leaves):
        dims = list(out_dims)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): out_dims is not compatible with "
            "the structure of the outputs."
        )
    made = []
    for leaf, d in zip(leaves, dims):
        whole = mode.full(leaf)
        if d is None:
            if whole is not None:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when "
                    "out_dim is None"
                )
            made.append(leaf)
            continue
        if whole is None:
            whole = leaf.unsqueeze(0).expand(mode.size, *leaf.shape)
        made.append(whole if d == 0 else whole.movedim(0, d))
    return tree_unflatten(made, spec)


def in_chunks(
    func: Fn,
    in_dims: int | Sequence[int | None],
    out_dims: int,
    randomness: str,
    chunk: int,
    leaves: Any,
    spec: Any,
    dims: Any,
    size: int,
    kwargs: Any,
) -> Any:
    """The batch in parts, for functions that need much memory per example."""
    parts, begin = [], random.get_rng_state()
    for start in range(0, size, chunk):
        count = min(chunk, size - start)
        some = [
            leaf if d is None else leaf.narrow(d, start, count) for leaf, d in zip(leaves, dims)
        ]
        if randomness == "same":
            random.set_rng_state(begin)
        run = vmap(func, in_dims, out_dims, randomness)
        parts.append(run(*tree_unflatten(some, spec), **kwargs))
    flat = [tree_flatten(p) for p in parts]
    dims = broadcast_to(tuple(out_dims) if isinstance(out_dims, list) else out_dims, parts[0])
    joined = zip(dims, *(leaves for leaves, _ in flat))
    return tree_unflatten([registry["cat"].function(ts, d) for d, *ts in joined], flat[0][1])
