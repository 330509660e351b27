"""How many floating-point operations the products of a program take, by module.

Counted are products of matrices and convolutions, in the forward pass and, where it runs inside of
the context, in the backward pass: a product has another for each operand that gets a gradient.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from toytorch.core import dispatch
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from toytorch.nn.modules.module import Module
from toytorch.ops import aten, flops

__all__ = ["FlopCounterMode"]

# By the function that counts a record's operations: which operands have a product in the backward
# pass, and the names under which PyTorch shows the two passes (None: the record's own).
PRODUCTS: dict[Any, tuple[tuple[int, ...], Callable[[Op, tuple[Any, ...]], tuple[str, str]]]] = {
    flops.matrices: ((0, 1), lambda op, args: (op.name, op.name)),
    flops.added_matrices: ((1, 2), lambda op, args: (op.name, op.name.replace("add", "", 1))),
    flops.layer: ((1, 2), lambda op, args: ("mm" if args[0] is None else "addmm", "mm")),
    flops.windows: ((0, 1), lambda op, args: ("convolution", "convolution_backward")),
}
SUFFIXES = ("", "K", "M", "B", "T")


class FlopCounterMode:
    """A context that counts the operations of what runs inside. Like `torch.utils.flop_counter`.

    At its end a table is printed, unless `display` is False, of modules `depth` levels deep.

    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: object = None,
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._names: Any = weakref.WeakKeyDictionary()
        self._inside: list[str] = []
        self._quiet, self._on = 0, False
        self._ends: list[Callable[[], object]] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._on = True
        before = register_module_forward_pre_hook(self._enters)
        after = register_module_forward_hook(self._leaves, always_call=True)
        watch = state.watching(self)
        watch.__enter__()
        self._ends = [lambda: watch.__exit__(None, None, None), before.remove, after.remove]
        return self

    def __exit__(self, *error: object) -> None:
        self._on = False
        for end in self._ends:
            end()
        if self.display:
            print(self.get_table(self.depth))

    def _enters(self, module: Module, args: object) -> None:
        if module not in self._names:
            root = type(module).__name__
            for path, child in module.named_modules():
                self._names.setdefault(child, f"{root}.{path}" if path else root)
        self._inside.append(self._names[module])

    def _leaves(self, module: Module, args: object, output: object) -> None:
        if self._inside:
            self._inside.pop()

    def on_call(self, op: Op, args: tuple[Any, ...], out: Any) -> Any:
        """Counts a call, and its backward pass when it comes."""
        result = dispatch.call(op, args, out)
        if self._quiet or op.flops is None or op.flops not in PRODUCTS:
            return result
        operands, names = PRODUCTS[op.flops]
        forward, backward = names(op, args)
        count, where = op.flops(*args), ("Global", *dict.fromkeys(self._inside))
        self._add(where, forward, count)
        wanted = sum(isinstance(args[i], Tensor) and args[i].requires_grad for i in operands)
        if wanted and isinstance(result, Tensor) and result.grad_fn is not None:

            def begins(grads: object) -> None:
                self._add(where, backward, wanted * count)
                self._quiet += 1  # the calls that compute the gradients have just been counted

            def ends(inputs: object, outputs: object) -> None:
                self._quiet -= 1

            result.grad_fn.register_prehook(begins)
            result.grad_fn.register_hook(ends)
        return result

    def _add(self, where: tuple[str, ...], name: str, count: int) -> None:
        if self._quiet or not self._on:  # a backward pass may run outside
            return
        packet = getattr(aten, name)
        for module in where:
            self.flop_counts[module][packet] += count

    def get_total_flops(self) -> int:
        """The count of everything."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module: {operation: count}}; `Global` has everything."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, of modules at most `depth` levels deep."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = min(max((len(str(total)) - 2) // 3, 0), len(SUFFIXES) - 1)
        rows: list[tuple[str, str, str]] = []
        subsumed = False

        def shown(label: str, count: int) -> tuple[str, str, str]:
            size = f"{count / 1000**unit:.3f}{SUFFIXES[unit]}" if unit else str(count)
            return label, size, f"{count / total:.2%}" if total else "0%"

        for module in sorted(self.flop_counts):
            level = module.count(".") + 1
            if module == "Global" or level > depth:
                continue
            count = sum(self.flop_counts[module].values())
            subsumed |= count >= total
            rows.append(shown(module, count))
            rows += [shown(f"- {name}", n) for name, n in self.flop_counts[module].items()]
        if not subsumed and "Global" in self.flop_counts:
            names = self.flop_counts["Global"].items()
            rows = [shown("Global", total), *(shown(f"- {name}", n) for name, n in names), *rows]
        header = ("Module", "FLOP", "% Total")
        wide = [max(len(row[i]) for row in (*rows, header)) + 2 * (i > 0) for i in range(3)]
        lines = [header, tuple("-" * n for n in wide), *rows]
        return "\n".join(f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}" for a, b, c in lines)
