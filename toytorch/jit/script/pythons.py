"""Python's builtin functions."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn, Kwargs
from toytorch.jit import types
from toytorch.jit.ir import Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import joined
from toytorch.jit.script.classes import Object
from toytorch.jit.script.subscripts import Subscripts
from toytorch.jit.script.values import At, Counted, Given, Items, Known, ModuleValue

ZERO, NOUGHT, IMAGINARY, NO, NOTHING = map(Known, (0, 0.0, 0j, False, ""))


def no_pairs(pairs: Any) -> bool:
    """Whether it is an empty literal, which has no types yet."""
    node = getattr(pairs, "node", None)
    kinds = ("prim::ListConstruct", "prim::DictConstruct")
    return (
        node is not None
        and node.kind in kinds
        and not node.inputs
        and pairs.type in (types.List(types.TENSOR), types.Dict(types.STR, types.TENSOR))
    )


class Pythons(Subscripts):
    """Emits calls of len, range, print and their like."""

    def is_python(self, function: Fn) -> bool:
        """Whether a function is a builtin that compiled code knows."""
        try:
            return function in self.pythons()
        except TypeError:  # not hashable
            return False

    def pythons(self) -> dict[Any, Fn]:
        """What each builtin does."""
        found = getattr(self, "_pythons", None)
        if found is None:
            found = self._pythons = {
                getattr(builtins, name[4:]): getattr(self, name)
                for name in dir(self)
                if name.startswith("run_")
            }
        return found

    def call_outside(self, function: Fn, modifier: str, *given: Any) -> Any:
        """A function that is left to Python."""
        raise NotImplementedError  # the compiler, which these methods are part of, has it

    def call_python(self, function: Fn, args: Given, kwargs: Kwargs, at: At) -> Any:
        """Calls a builtin."""
        try:
            return self.pythons()[function](at, *args, **kwargs)
        except TypeError as error:
            if "run_" not in str(error):
                raise
            text = str(error).partition("run_")[2]
            raise self.fail(f"Arguments for call are not valid: {text}", at) from None

    def one_of(self, name: str, args: Given, at: At) -> Any:
        """A builtin of the graph, with loops that count as lists."""
        return self.call_builtin(name, [self.as_list(a, at) for a in args], at)

    def as_list(self, item: object, at: At) -> Any:
        """A tuple, a range or a generator as a list."""
        if isinstance(item, Counted):
            if item.as_list is None:
                raise self.fail("zip and enumerate can only be looped over", at)
            return item.as_list()
        if isinstance(item, Items) or isinstance(getattr(item, "type", None), types.Tuple):
            return self.list_of([self.as_value(p, at) for p in self.elements(item, at)], at)
        return item

    # -- numbers and strings -----------------------------------------------------------------------

    def run_int(self, at: At, x: object = ZERO) -> Any:
        return self.converted("Int", int, x, at)

    def run_float(self, at: At, x: object = NOUGHT) -> Any:
        return self.converted("Float", float, x, at)

    def run_complex(self, at: At, x: object = IMAGINARY, y: object = None) -> Any:
        return self.call_builtin("Complex", [x] if y is None else [x, y], at)

    def converted(self, name: str, kind: Any, x: object, at: At) -> Any:
        """A number from a number, a tensor or a string."""
        if isinstance(x, Known) and isinstance(x.object, (int, float)) and x.object == x.object:
            return Known(kind(x.object))
        value = self.as_value(x, at)
        if value.type == {"Int": types.INT, "Float": types.FLOAT}[name]:
            return value
        return self.call_builtin(name, [value], at)

    def run_bool(self, at: At, x: object = NO) -> Any:
        return self.as_condition(self.as_value(x, at), at)

    def run_str(self, at: At, x: object = NOTHING) -> Any:
        value = self.as_value(x, at)
        return value if value.type == types.STR else self.call_builtin("str", [value], at)

    def run_abs(self, at: At, x: object) -> Any:
        return self.on_tensor_or("abs", "abs", [x], at)

    def run_round(self, at: At, x: object, digits: object = None) -> Any:
        return self.on_tensor_or("round", "round", [x] if digits is None else [x, digits], at)

    def on_tensor_or(self, record: str, name: str, args: Given, at: At) -> Any:
        """A record where the first argument is a tensor, else a builtin."""
        value = self.as_value(args[0], at)
        if isinstance(value.type, types.Tensor) and record in registry:
            return self.call_record(record, [value, *args[1:]], at)
        return self.call_builtin(name, [value, *args[1:]], at)

    def run_pow(self, at: At, x: object, y: object) -> Any:
        return self.binary(ast.Pow(), self.as_value(x, at), self.as_value(y, at), at)

    def run_min(self, at: At, *args: object) -> Any:
        return self.extreme("min", args, at)

    def run_max(self, at: At, *args: object) -> Any:
        return self.extreme("max", args, at)

    def extreme(self, name: str, args: Given, at: At) -> Any:
        """min and max, of a list or of several values."""
        if len(args) == 1:
            item = self.as_list(args[0], at)
            if isinstance(getattr(item, "type", None), types.Tensor):
                return self.call_record(name, [item], at)
            return self.call_builtin(name, [item], at)
        values = [self.as_value(a, at) for a in args]
        found: Any = values[0]
        for v in values[1:]:
            if isinstance(v.type, types.Tensor) or isinstance(found.type, types.Tensor):
                raise self.fail(
                    f"{name} of tensors has no meaning in compiled code; use torch.{name}imum", at
                )
            found = self.as_value(self.call_builtin(name, [found, v], at), at)
        return found

    def run_sum(self, at: At, x: object, start: object = None) -> Any:
        item = self.as_list(x, at)
        if isinstance(getattr(item, "type", None), types.Tensor):
            return self.call_record("sum", [item, Known(0)], at)
        return self.call_builtin("sum", [item] if start is None else [item, start], at)

    def run_ord(self, at: At, x: object) -> Any:
        return self.one_of("ord", [x], at)

    def run_hash(self, at: At, x: object) -> Any:
        value = self.as_value(x, at)
        if isinstance(value.type, types.Tensor):
            raise self.fail("hash() of a tensor: a graph does not keep which object it is", at)
        return self.call_builtin("hash", [value], at)

    def run_chr(self, at: At, x: object) -> Any:
        return self.one_of("chr", [x], at)

    def run_hex(self, at: At, x: object) -> Any:
        return self.one_of("hex", [x], at)

    def run_oct(self, at: At, x: object) -> Any:
        return self.one_of("oct", [x], at)

    def run_bin(self, at: At, x: object) -> Any:
        return self.one_of("bin", [x], at)

    def run_divmod(self, at: At, x: object, y: object) -> Any:
        return self.one_of("divmod", [x, y], at)

    # -- containers --------------------------------------------------------------------------------

    def run_len(self, at: At, x: object) -> Any:
        if isinstance(x, Items):
            return Known(len(x.items))
        if isinstance(x, Known) and isinstance(x.object, (tuple, list, dict)):
            return Known(len(x.object))
        if isinstance(x, Counted):
            return x.length()
        if isinstance(x, ModuleValue):
            return Known(len(x.module._modules or x.module._parameters))
        value = self.as_value(x, at)
        if isinstance(value.type, types.Tuple):
            return Known(len(value.type.elements))
        return self.call_builtin("len", [value], at)

    def run_any(self, at: At, x: object) -> Any:
        return self.truth_of("any", x, at)

    def run_all(self, at: At, x: object) -> Any:
        return self.truth_of("all", x, at)

    def truth_of(self, name: str, x: object, at: At) -> Any:
        """any or all, of a list or of a tensor's elements."""
        item = self.as_list(x, at)
        if isinstance(item, Value) and isinstance(item.type, types.Tensor):
            return self.as_condition(self.as_value(self.call_record(name, [item], at), at), at)
        return self.call_builtin(name, [item], at)

    def run_sorted(self, at: At, x: object, reverse: object = None) -> Any:
        return self.one_of("sorted", [x] if reverse is None else [x, reverse], at)

    def run_reversed(self, at: At, x: object) -> Any:
        if isinstance(x, (Items, ModuleValue)):
            items = self.iterable(x, at)
            assert isinstance(items, Items)
            return Items(items.items[::-1])
        return self.one_of("reversed", [x], at)

    def run_list(self, at: At, x: object = None) -> Any:
        if x is None:
            return self.list_of([], at)
        item = self.as_list(x, at)
        if isinstance(getattr(item, "type", None), types.Dict):
            return self.call_builtin("keys", [item], at)
        if isinstance(getattr(item, "type", None), types.Tensor):
            return self.call_record("unbind", [item, Known(0)], at)
        return item if isinstance(x, (Items, Counted)) else self.call_builtin("list", [item], at)

    def run_tuple(self, at: At, x: object) -> Any:
        value = x if isinstance(x, Items) else self.as_value(x, at)
        if isinstance(value, Items) or isinstance(value.type, types.Tuple):
            return value
        raise self.fail(
            f"a tuple cannot be made of {spelled(value.type)}: its length is not known", at
        )

    def run_dict(self, at: At, x: object = None, /, **named: object) -> Any:
        """dict(…): pairs or another dictionary, then what is given by name."""
        more = [v for k, item in named.items() for v in (Known(k), item)]
        parts = [self.as_value(v, at) for v in more]
        if x is None and not named:
            return self.one("prim::DictConstruct", [], types.Dict(types.STR, types.TENSOR), at)
        values = joined([p.type for p in parts[1::2]]) if parts else None
        if named and values is None:
            raise self.fail("Dict values must contain only a single type", at)
        if values is not None:
            extra = self.one("prim::DictConstruct", parts, types.Dict(types.STR, values), at)
        else:
            extra = None
        pairs = None if x is None else self.as_pairs(x, at)
        if pairs is None or (extra is not None and no_pairs(pairs)):
            return extra
        if no_pairs(pairs):
            return self.one("prim::DictConstruct", [], types.Dict(types.STR, types.TENSOR), at)
        made = self.call_builtin("dict", [pairs], at)
        if extra is not None:
            self.call_builtin("update", [made, extra], at)
        return made

    def as_pairs(self, x: object, at: At) -> Any:
        """What a dictionary is made of: a list of pairs, or a dictionary; zip is written out."""
        if isinstance(x, Counted) and x.as_list is None:
            made = self.one("prim::ListConstruct", [], types.List(types.NEVER), at)

            def iteration(i: Value) -> None:
                pair = self.as_value(x.item(i), at)
                made.type = types.List(pair.type)
                self.call_builtin("append", [made, pair], at)

            self.loop(at, [], count=x.length(), start=iteration)
            return made
        if isinstance(x, Items) or isinstance(getattr(x, "type", None), types.Tuple):
            parts = [self.as_value(p, at) for p in self.elements(x, at)]
            pairs = [
                self.tuple_of(self.elements(p, at, 2), at) if isinstance(p.type, types.List) else p
                for p in parts
            ]
            return self.list_of(pairs, at)
        return self.as_list(x, at)

    # -- loops ------------------------------------------------------------------------------------

    def run_range(self, at: At, *args: object) -> Any:
        return self.counting([self.as_value(a, at) for a in args], at)

    def run_enumerate(self, at: At, x: object = None, start: object = None, *more: object) -> Any:
        if more:
            raise self.fail(f"enumerate expected at most 2 arguments, got {2 + len(more)}", at)
        if x is None:
            raise self.fail("enumerate expected at least 1 arguments, got 0", at)
        first = start.object if isinstance(start, Known) else start
        return self.enumerated(x, first, at)

    def run_zip(self, at: At, *args: object) -> Any:
        return self.zipped(args, at)

    # -- the rest ---------------------------------------------------------------------------------

    def run_print(self, at: At, *args: object, **kwargs: object) -> Any:
        if kwargs:
            raise self.fail("print doesn't accept any keyword arguments", at)
        self.emit("prim::Print", [self.as_value(a, at) for a in args], [], at)
        return Known(None)

    def run_type(self, at: At, x: object) -> Any:
        if isinstance(x, ModuleValue):
            return Known(type(x.module))
        kind = getattr(x, "type", None)
        if isinstance(kind, Object):
            return Known(kind.python)
        if isinstance(kind, types.Tensor):
            return self.call_outside(type_of_tensor, "ignore", (x,), {}, at)
        raise self.fail("type() is known of modules and objects only; use isinstance", at)

    def run_getattr(self, at: At, x: object, name: Any, default: object = None) -> Any:
        if not (isinstance(name, Known) and isinstance(name.object, str)):
            raise self.fail("getattr's second argument must be a string literal", at)
        if default is not None:
            owner = x.module if isinstance(x, ModuleValue) else getattr(x, "object", None)
            if not isinstance(x, Value) and not hasattr(owner, name.object):
                return default
        return self.attribute(x, name.object, at)


def type_of_tensor(x: Tensor) -> Tensor:
    """`type(x)` where it is reached: PyTorch asks Python, and takes no answer but a tensor."""
    raise RuntimeError(
        " expected value of type Tensor for return value but instead got value of type _TensorMeta.\n"
        "Value: <class 'torch.Tensor'>\n"
        "Cast error details: Unable to cast <class 'torch.Tensor'> to Tensor\n"
    )


type_of_tensor.__name__ = "type"
