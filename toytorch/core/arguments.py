"""What callers give to ops: by position, by name, one number or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toytorch.backends.sparse import unsupported
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, as_dtype
from toytorch.facts.device import device, layout, memory_format
from toytorch.facts.dtype import dtype
from toytorch.facts.dtype import too_large as beyond_64_bits
from toytorch.facts.hints import Args
from toytorch.facts.schema import NOT_GIVEN, REQUIRED, Argument, class_of, wrong_argument

NUMBERS = (bool, int, float, complex)


def spread(values: tuple[Any, ...], name: str = "", word: str = "size") -> tuple[Any, ...]:
    """The ints of `f(2, 3)` or of `f((2, 3))`, for the argument `word` of the function `name`."""
    given = values
    for v in values:
        if v.__class__ is not int:
            break
    else:
        return values
    if len(values) == 1 and values[0].__class__ is tuple:
        for v in values[0]:
            if v.__class__ is not int:
                break
        else:
            return values[0]
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    try:
        if values and values[0].__class__ is bool:  # of what follows, nobody asks
            raise TypeError(no_ints(given, values, name, word))
        return tuple(v if v.__class__ is int else as_int(v) for v in values)
    except TypeError:
        if not name:
            raise
        raise TypeError(no_ints(given, values, name, word)) from None


def no_ints(
    given: tuple[Any, ...], values: tuple[Any, ...], name: str, word: str, position: int = 1
) -> str:
    """What to say of an argument that is to be some ints, and is not."""
    place = next(i for i, v in enumerate(values) if v.__class__ is bool or not is_index(v))
    kind = class_of(values[place])
    head = f"{name}(): argument '{word}'"
    if place:
        return (
            f"{head} failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    if given is not values:
        return (
            f"{head} (position {position}) must be tuple of ints, but found element of type {kind} "
            "at pos 0"
        )
    if len(given) == 1:
        return f"{head} (position {position}) must be tuple of ints, not {kind}"
    return f"{name}() takes 1 positional argument but {len(given)} were given"


def not_ints(function: str, word: str, value: object) -> TypeError:
    """What PyTorch says of what is given by name for some ints, and is neither a tuple nor a list."""
    return TypeError(
        f"{function}(): argument '{word}' must be tuple of ints, not {class_of(value)}"
    )


def is_index(value: Any, arrays: bool = True) -> bool:
    """Whether `as_int` takes a value; for a dimension, PyTorch takes no array of NumPy's."""
    if not arrays and isinstance(value, np.ndarray):
        return False
    try:
        as_int(value)
    except TypeError:
        return False
    return True


def as_int(value: Any) -> int:
    """An integer from what Python may use as an index; a traced one stays what it is."""
    if isinstance(value, int) and value.__class__ is not bool:
        return value
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(
            f"expected a sequence of ints, but found an element of type {type(value).__name__}"
        ) from None


def called(op: Op, i: int) -> str:
    """An argument's name, as callers spell it."""
    name = op.schema.args[i].name
    return "input" if name == "self" else name


def missing(op: Op, places: list[int]) -> str:
    """What to say where arguments without defaults were not given."""
    names = ", ".join(f'"{called(op, i)}"' for i in places)
    return (
        f"{op.schema.name.split('.')[0]}() missing {len(places)} required positional "
        f"argument{'s' * (len(places) == 1)}: {names}"
    )


def is_dim(argument: Argument) -> bool:
    """Whether an argument is the number of one dimension."""
    return argument.type.rstrip("?") == "int" and argument.name.startswith("dim")


def as_dim(op: Op, i: int, value: object) -> Any:
    """The number or name of a dimension; what is neither is refused."""
    if isinstance(value, bool):
        whole = False
    elif isinstance(value, Tensor):
        whole = is_integer(value)
    else:
        optional = value is None and op.schema.args[i].is_optional
        whole = optional or isinstance(value, str) or is_index(value, arrays=False)
    if not whole:
        raise wrong_argument(op.name.split(".")[0], called(op, i), i + 1, "int", value)
    return plain_number(value)


def number(op: Op, i: int, value: Any) -> Any:
    """What was given where the schema has a number: that of a tensor, whose history is refused, and
    of NumPy's scalars; else itself."""
    if isinstance(value, np.generic):
        return plain_number(value)
    if not isinstance(value, (Tensor, *NUMBERS)):
        raise refused(op, i, value)
    real = op.schema.args[i].type.startswith("float")
    if value.__class__ is complex and real:
        raise refused(op, i, value)
    if value.__class__ is not Tensor:
        return value
    if value.ndim or value._requires_grad:
        kind = "float" if real else "Number"
        raise wrong_argument(op.name.split(".")[0], called(op, i), i + 1, kind, value)
    return value.item()


def is_number(value: object) -> bool:
    """Whether a value is a number of Python or NumPy, or a tensor that stands for one."""
    if isinstance(value, Tensor):
        return not value.ndim and not value._requires_grad
    return isinstance(value, (*NUMBERS, np.generic))


def all_are(kind: str, values: object) -> bool:
    """Whether something is a list of what an argument of a type takes."""
    return isinstance(values, (list, tuple)) and all(map(TAKES[kind], values))


def all_int(values: Sequence[object]) -> bool:
    """Whether values are Python's own integers, as most are."""
    for v in values:  # noqa: SIM110  # `all` with a generator takes three times as long
        if v.__class__ is not int:
            return False
    return True


def are_ints(values: object) -> bool:
    """Whether something stands for integers, or for one: of a list the first may be no truth."""
    if isinstance(values, (list, tuple)):
        return all_int(values) or (
            values[0].__class__ is not bool
            and all(v.__class__ is bool or is_index(v) for v in values)
        )
    return values.__class__ is not bool and is_index(values)


# Whether PyTorch's parser takes a value for an argument of a type.
TAKES: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "Operand": lambda v: isinstance(v, (Tensor, *NUMBERS, np.generic)),
    "int": lambda v: (
        v.__class__ is not bool
        and (is_integer(v) if isinstance(v, Tensor) else is_index(v, arrays=False))
    ),
    "SymInt": lambda v: are_ints(v) and not isinstance(v, (list, tuple)),
    "float": lambda v: is_number(v),  # a complex one is refused where it is made a real one
    "Scalar": lambda v: is_number(v),
    "bool": lambda v: isinstance(v, bool),
    "str": lambda v: isinstance(v, str),
    "int[]": are_ints,
    "float[]": lambda v: all_are("float", v),
    "Tensor[]": lambda v: all_are("Tensor", v),
    "str[]": lambda v: all_are("str", v),
    "dtype": lambda v: isinstance(v, dtype) or (v.__class__ is type and v in NUMBERS),
    "layout": lambda v: isinstance(v, layout),
    "memory_format": lambda v: isinstance(v, memory_format),
    "Device": lambda v: v.__class__ is not bool and isinstance(v, (device, str, int)),
}
# Arguments that compilers of PyTorch's may trace ("SymInt" in its schemas), for which a tensor may have
# dimensions of one, and an array of NumPy's stand.
TRACED = {
    "C", "HxW", "N", "groups", "high", "ignore_index", "k", "low", "m",
    "minlength", "num_samples", "output_size", "padding_idx", "repeats", "sections", "split_size",
    "storage_offset",
}  # fmt: skip
TYPED = ("int", "bool", "str", "memory_format")  # asked for before anything is computed
SAID = {"int[]": "tuple of ints", "float[]": "tuple of floats", "Scalar": "Number"}
SAID |= {"Tensor[]": "tuple of Tensors", "Operand": "Tensor", "Device": "torch.device"}
SAID |= {kind: f"torch.{kind}" for kind in ("dtype", "layout", "memory_format")}


def takes(kind: str, name: str, value: object) -> bool:
    """Whether an argument of a type takes a value; a dimension may also have a name."""
    if kind.endswith("?") and value is None:
        return True
    kind = kind.rstrip("?")
    named = kind.startswith("int") and name.startswith("dim") and holds_names(value)
    if kind == "int" and name in TRACED:
        kind = "SymInt"
    return kind not in TAKES or named or TAKES[kind](value)


def holds_names(value: object) -> bool:
    """Whether a value is the name of a dimension, or has some in it."""
    return isinstance(value, str) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value)
    )


def alone(op: Op, keepdim: bool) -> Any:
    """The dimension of an op with `Op.alone` where none was given: None, unless it is to be kept."""
    if keepdim is False:
        return None
    raise TypeError(
        f"{op.name}() received an invalid combination of arguments - got (Tensor, "
        f"keepdim={type(keepdim).__name__})"
    )


def as_typed(op: Op, i: int, value: Any) -> Any:
    """An argument that is an int, a truth or a text; what is none is refused."""
    a = op.schema.args[i]
    if not takes(a.type, a.name, value):
        raise refused(op, i, value)
    return value if value is None or not a.type.startswith("int") else as_int(value)


def as_ints(op: Op, i: int, value: Any) -> Any:
    """An argument that is some ints, of which one will do; what is none is refused."""
    if value.__class__ is tuple and all_int(value):
        return value
    a = op.schema.args[i]
    if value is None and (a.is_optional or a.default == ()):
        return a.default
    if not takes(a.type, a.name, value):
        raise refused(op, i, value)
    return plain_ints(value)


def option(op: Op, i: int, value: Any) -> Any:
    """An argument that is no tensor, as the op's kernel takes it; what the schema does not is refused."""
    a = op.schema.args[i]
    kind = a.type.rstrip("?")
    if value is None and i == 1 and op.alone == "no None":
        raise refused(op, i, value)
    if is_dim(a):
        return as_dim(op, i, value)
    if value is None and a.is_optional:
        return value
    found = too_large(kind, value, f"{op.name.split('.')[0]}(): argument '{called(op, i)}'")
    if found is not None:
        raise found
    if kind == "dtype":
        return as_dtype(value)
    if kind in ("float", "Scalar"):
        return number(op, i, value)
    if kind == "int[]":
        return as_ints(op, i, value)
    return as_typed(op, i, value) if kind in TYPED else value


def plain_ints(value: Any) -> Any:
    """Python's integers for what stands for some or for one; anything else as it is."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        return as_int(value)
    if value.__class__ not in (list, tuple) or all_int(value):
        return value
    return value.__class__(as_int(v) if isinstance(v, (Tensor, np.ndarray)) else v for v in value)


def refused(op: Op, i: int, value: object) -> Exception:
    """What PyTorch says of an argument of another type than the schema's."""
    kind = op.schema.args[i].type.rstrip("?")
    if called(op, i) == "reduction":  # a word of Python's functions, which PyTorch reads before it
        return ValueError(f"{value} is not a valid value for reduction")
    if called(op, i) == "start" and isinstance(value, Tensor) and not op.schema.args[i].is_optional:
        return RuntimeError("start must be an 0-dim integral Tensor.")  # of an overload for tensors
    return wrong_argument(op.name.split(".")[0], called(op, i), i + 1, SAID.get(kind, kind), value)


def first_wrong(op: Op, args: Args) -> Exception | None:
    """What to say of the first argument that has another type than the schema's; None without one."""
    for i, (a, value) in enumerate(zip(op.schema.args, args)):
        if not takes(a.type, a.name, value):
            return refused(op, i, value)
        found = too_large(a.type, value, f"{op.name.split('.')[0]}(): argument '{called(op, i)}'")
        if found is not None:
            return found
    return None


def too_large(kind: str, value: object, argument: str = "") -> Exception | None:
    """What PyTorch says of an integer of more than 64 bits, alone or among some; None where it is none."""
    if "int[]" in kind and isinstance(value, (tuple, list)):
        for i, v in enumerate(value):
            found = too_large("int", v)
            if found is not None:
                return TypeError(
                    f'{argument} failed to unpack the object at pos {i + 1} with error "{found}'
                )
    if (
        not isinstance(value, int)
        or "float" in kind
        or -(1 << 63) <= value < 1 << (63 if "int" in kind else 64)
    ):
        return None
    if "int" in kind:
        return ValueError("Overflow when unpacking long long")
    return beyond_64_bits(value)


def plain_number(value: Any) -> Any:
    """NumPy's scalars as Python's numbers, as PyTorch reads them (a truth is a float): NumPy would
    compute in their type. Else what was given."""
    if not isinstance(value, np.generic):
        return value
    return float(value) if isinstance(value, np.bool_) else value.item()


def plain_numbers(args: Args) -> tuple[Any, ...]:
    """Arguments with NumPy's scalars as Python's numbers."""
    for a in args:
        if isinstance(a, np.generic):
            return tuple(map(plain_number, args))
    return args


def is_integer(value: object) -> bool:
    """Whether a value is a tensor of one integer, which may stand for a number."""
    if not isinstance(value, Tensor) or value.ndim:
        return False
    kind = value.dtype
    return kind.rank > 0 and not (kind.is_floating_point or kind.is_complex)


def with_integers(op: Op, args: Args) -> tuple[Any, ...]:
    """Arguments with Python's numbers for tensors of one integer, where the schema has integers."""
    stand = [
        isinstance(value, (Tensor, np.ndarray))
        and a.type.startswith("int")
        and takes(a.type, a.name, value)
        for a, value in zip(op.schema.args, args)
    ]
    return tuple(as_int(v) if s else v for v, s in zip(args, stand)) if any(stand) else args


def not_a_tensor(op: Op, i: int, value: object) -> str:
    """What to say of an argument that should be a tensor."""
    if value is REQUIRED:
        return missing(op, [i])
    return str(wrong_argument(op.name, called(op, i), i + 1, "Tensor", value))


def bound(
    op: Op, values: tuple[Any, ...], more: dict[str, Any], in_place: bool = False
) -> tuple[tuple[Any, ...], Any]:
    """An op's arguments and its `out`, some of which were given by other names than the function's
    own parameters: options, and NumPy's words (`axis=`).

    values    the arguments as far as the function's parameters have them, in the schema's order
    in_place  whether this is the form with an underscore, which takes no `out`
    """
    given, out = list(values), None
    for word, value in more.items():
        if word == "out" and op.has_out and not in_place:
            out = value
            continue
        i = op.words.get(word, -1)
        a = op.schema.args[i]
        if not i and op.number_is_self and (word == "self") != isinstance(value, NUMBERS):
            i = -1  # a number is `self`, and no `input`
        left = i >= 0 and (given[i] is a.default or given[i] is NOT_GIVEN)
        if i < 0 or not (left or (a.is_variadic and given[i] == ())):
            name = op.name.split(".")[0] + "_" * in_place
            if word == op.elsewhere and not in_place and takes("dtype", word, value):
                raise NotImplementedError(unsupported(f"{op.name}.dtype", "CPU"))
            raise TypeError(f"{name}() got an unexpected keyword argument '{word}'")
        if a.is_variadic and not isinstance(value, (tuple, list)):
            raise not_ints(op.name, word, value)
        given[i] = spread((value,)) if a.is_variadic else value
        if not a.is_tensor and not a.is_variadic:
            given[i] = option(op, i, value)
    if op.alone and given[1] is NOT_GIVEN:
        given[1] = alone(op, given[2]) if op.schema.args[2:] else None
    lacking = [i for i, value in enumerate(given) if value is REQUIRED]
    if lacking:
        raise TypeError(missing(op, lacking))
    return tuple(given), out


def given(op: Op, args: Args) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a caller may have written for arguments in the order of a signature: no defaults."""
    first, more = list[Any](), dict[str, Any]()
    for i, (argument, value) in enumerate(zip(op.schema.args, args)):
        if value is argument.default and not (i == 1 and op.alone and True in args[2:3]):
            continue
        if argument.keyword_only or len(first) < i:
            more[called(op, i)] = value
        else:
            first.append(value)
    return tuple(first), more
