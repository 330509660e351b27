"""Calls: of functions that CUDA has built in, and of those that the source defines."""

from __future__ import annotations

import functools

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator import types as t
from toytorch.cuda.emulator.check_expressions import ExpressionChecker
from toytorch.cuda.emulator.errors import At, CompileError
from toytorch.cuda.emulator.functions import EITHER, TABLE, NumberFunction

SHUFFLES = {
    "__shfl_sync": "sync",
    "__shfl_up_sync": "up",
    "__shfl_down_sync": "down",
    "__shfl_xor_sync": "xor",
}
VOTES = {
    "__ballot_sync": ("ballot", t.UINT),
    "__any_sync": ("any", t.INT),
    "__all_sync": ("all", t.INT),
}
WORDS = (t.INT, t.UINT, t.ULLONG)
# What may be changed in one indivisible step, and the types for which CUDA has it.
ATOMICS: dict[str, tuple[str, tuple[t.Scalar, ...]]] = {
    "atomicAdd": ("add", (*WORDS, t.FLOAT, t.DOUBLE, t.HALF)),
    "atomicSub": ("sub", (t.INT, t.UINT)),
    "atomicMax": ("max", (*WORDS, t.LLONG)),
    "atomicMin": ("min", (*WORDS, t.LLONG)),
    "atomicExch": ("exchange", (*WORDS, t.FLOAT)),
    "atomicAnd": ("and", WORDS),
    "atomicOr": ("or", WORDS),
    "atomicXor": ("xor", WORDS),
    "atomicCAS": ("compare", (*WORDS, t.USHORT)),
}
MAKE = {f"make_{type.name}": type for type in t.VECTORS}
NOT_HERE = {
    "malloc": "memory on the heap is not supported",
    "cudaMalloc": "this is host code: tensors are the memory here",
    "__syncthreads_count": "use __syncthreads() and atomicAdd on shared memory",
    "__shfl": "it is gone since CUDA 9: use __shfl_sync with a mask",
    "__shfl_down": "it is gone since CUDA 9: use __shfl_down_sync with a mask",
    "__shfl_xor": "it is gone since CUDA 9: use __shfl_xor_sync with a mask",
    "__shfl_up": "it is gone since CUDA 9: use __shfl_up_sync with a mask",
}


class CallChecker(ExpressionChecker):
    """Adds calls to expressions."""

    def of_call(self, node: s.Call) -> p.Expr:
        name, count = node.function.name, len(node.arguments)
        if self.symbol(name) is not None:
            raise CompileError(f"{name!r} is a variable: it cannot be called", node.at)
        own = self.call_of_own(node)
        if own is not None:
            return own
        if name == "__syncthreads":
            self.arity(node, 0)
            return p.Barrier(t.VOID, node.at, None)
        if name == "__syncwarp":
            self.arity(node, 0, 1)
            return p.Barrier(
                t.VOID, node.at, self.mask(node.arguments[0] if count else None, node.at)
            )
        if name in ("__threadfence", "__threadfence_block", "__threadfence_system"):
            self.arity(node, 0)  # order in memory is not reordered here; it is no barrier either
            return p.Convert(t.VOID, node.at, self.constant(t.INT, 0, node.at))
        if name in SHUFFLES:
            return self.shuffle(node)
        if name in VOTES:
            self.arity(node, 2)
            kind, result = VOTES[name]
            predicate = self.truth(self.value(node.arguments[1]))
            return p.Vote(result, node.at, kind, self.mask(node.arguments[0], node.at), predicate)
        if name == "__activemask":
            self.arity(node, 0)
            return p.Vote(t.UINT, node.at, "active", None, None)
        if name in ATOMICS:
            return self.atomic(node)
        if name in ("__ldg", "__ldcs", "__ldca", "__ldcg"):
            self.arity(node, 1)
            return self.read(self._pointed(node), node.at)
        if name == "static_assert":
            self.arity(node, 1, 2)
            if not self.whole(node.arguments[0], "what is asserted"):
                raise CompileError("static assertion failed", node.at)
            return p.Convert(t.VOID, node.at, self.constant(t.INT, 0, node.at))
        if name in ("printf", "assert"):
            return self.text_call(node)
        if name in MAKE:
            vector = MAKE[name]
            self.arity(node, vector.count)
            parts = [self.convert(self.value(a), vector.element) for a in node.arguments]
            return p.MakeVector(vector, node.at, parts)
        if name in TABLE:
            return self.number_function(node)
        hint = f": {NOT_HERE[name]}" if name in NOT_HERE else ""
        raise CompileError(f"function {name!r} is not defined{hint}", node.at)

    def call_of_own(self, node: s.Call) -> p.Expr | None:
        raise NotImplementedError  # in check

    def arity(self, node: s.Call, *counts: int) -> None:
        if len(node.arguments) not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise CompileError(
                f"{node.function.name} takes {wanted} arguments, and got {len(node.arguments)}",
                node.at,
            )

    def mask(self, node: s.Expression | None, at: At) -> p.Expr:
        """The mask of a warp's threads; all of them if none is given."""
        if node is None:
            return self.constant(t.UINT, 0xFFFFFFFF, at)
        return self.convert(self.value(node), t.UINT)

    def _pointed(self, node: s.Call) -> p.Cell:
        pointer = self.value(node.arguments[0])
        if not isinstance(pointer.type, t.Pointer):
            raise CompileError(f"{node.function.name} takes an address first, &x[i]", node.at)
        return self.cell(pointer, pointer.type, node.at)

    def shuffle(self, node: s.Call) -> p.Expr:
        self.arity(node, 3, 4)
        value = self.value(node.arguments[1])
        type = self.number(value, node.function.name)
        if type in (t.BOOL, t.SHORT, t.USHORT) or type.size < 2:
            type = t.INT
        lane = self.convert(self.value(node.arguments[2]), t.INT)
        width: p.Expr = self.constant(t.INT, 32, node.at)
        if len(node.arguments) == 4:
            width = self.convert(self.value(node.arguments[3]), t.INT)
        mask = self.mask(node.arguments[0], node.at)
        kind = SHUFFLES[node.function.name]
        return p.Shuffle(type, node.at, kind, mask, self.convert(value, type), lane, width)

    def atomic(self, node: s.Call) -> p.Expr:
        name = node.function.name
        kind, types = ATOMICS[name]
        self.arity(node, 3 if kind == "compare" else 2)
        cell = self._pointed(node)
        if cell.const:
            raise CompileError(f"{name} writes, and this address is const", node.at)
        # size_t is an unsigned long here, which CUDA has no atomics for.
        if not isinstance(cell.type, t.Scalar) or cell.type not in types:
            hint = ": cast it to unsigned long long*" if cell.type == t.ULONG else ""
            raise CompileError(f"{name} is not defined for '{cell.type}'{hint}", node.at)
        values = [self.convert(self.value(a), cell.type) for a in node.arguments[1:]]
        return p.Atomic(cell.type, node.at, kind, cell.pointer, values)

    def text_call(self, node: s.Call) -> p.Expr:
        """`printf("…", values)` and `assert(condition)`."""
        if node.function.name == "assert":
            self.arity(node, 1)
            asserted = node.arguments[0]
            if isinstance(asserted, s.Binary) and isinstance(asserted.right, s.Text):
                asserted = asserted.left  # assert(n > 0 && "n is a size")
            condition = self.truth(self.value(asserted))
            return p.Assertion(t.VOID, node.at, condition)
        first = node.arguments[0] if node.arguments else None
        if not isinstance(first, s.Text):
            raise CompileError("printf needs its format as a string in quotes", node.at)
        given: list[p.Expr] = []
        for argument in node.arguments[1:]:
            value = self.value(argument)
            if isinstance(value.type, t.Scalar) and value.type in (t.FLOAT, t.HALF):
                value = self.convert(value, t.DOUBLE)  # as all variadic functions of C do
            elif isinstance(value.type, t.Scalar):
                value = self.convert(value, t.common(value.type, t.INT))
            given.append(value)
        return p.Print(t.INT, node.at, first.value, given)

    def number_function(self, node: s.Call) -> p.Expr:
        name = node.function.name
        given = [self.value(argument) for argument in node.arguments]
        types = [self.number(value, name) for value in given]
        choices = TABLE[name]
        self.arity(node, len(choices[0].parameters))
        chosen = self.overload(name, choices, types, node.at)
        arguments = [self.convert(v, type) for v, type in zip(given, chosen.parameters)]
        key = f"{name}:{choices.index(chosen)}"
        return p.Math(chosen.result, node.at, key, arguments)

    def overload(
        self, name: str, choices: list[NumberFunction], types: list[t.Scalar], at: At
    ) -> NumberFunction:
        """The function that fits the types; CompileError where C++ could not choose either."""
        if len(choices) == 1:
            return choices[0]
        types = [t.promoted(type) for type in types]
        whole = [type for type in types if not type.is_float]
        if name in EITHER:
            clear = types[0].rank == types[1].rank or not whole
        elif name == "abs":
            clear = types[0].is_signed
        else:
            clear = not whole or len(types) > 1  # pow(x, 2) is one of doubles
        if not clear or t.HALF in types:
            given = ", ".join(str(type) for type in types)
            raise CompileError(f"{name}({given}) is ambiguous: convert to a type it has", at)
        wanted = functools.reduce(t.common, types)
        if whole and name not in (*EITHER, "abs"):
            wanted = t.DOUBLE
        for choice in choices:
            if choice.parameters[0].dtype == wanted.dtype:
                return choice
        raise CompileError(f"{name} is not defined for '{wanted}'", at)
