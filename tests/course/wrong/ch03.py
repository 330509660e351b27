"""Wrong answers to the exercises of chapter 03."""

import numpy as np

import toytorch as torch
from tests.course.wrong import handed_in, like, wrong

# -- ops.signature --------------------------------------------------------------------------------


like(
    "ops.signature",
    "needs a space after each comma",
    (
        'for part in re.split(r",\\s*(?![^\\[]*\\])", inside):',
        'for part in re.split(r", (?![^\\[]*\\])", inside):',
    ),
)
like(
    "ops.signature",
    "a text with = in it falls apart",
    ('before, equals, default = part.partition("=")', 'before, *default = part.split("=")'),
    ("equals", "default"),
    ("(default)", "(default[-1].strip())"),
)
like(
    "ops.signature",
    "one dict for all calls",
    ("(text):", "(text, defaults={}):"),
    ("names, defaults = [], {}", "names = []"),
)
like(
    "ops.signature",
    "cuts at the last bracket",
    ('(") ->", 1', '(")", 1'),
)
like(
    "ops.signature",
    "numbers are floats, the rest is text",
    (
        '"""A signature -> (name, parameter names, {name: default})."""',
        '"""A signature -> (name, parameter names, {name: default})."""\n'
        "    def value(default):\n"
        "        try:\n"
        "            return float(default)\n"
        "        except ValueError:\n"
        '            return default.strip("\'")\n',
    ),
    ("ast.literal_eval", "value"),
)
like(
    "ops.signature",
    "what follows the star is no parameter",
    ('if part in ("", "*"):', 'if part == "*":\n            break\n        if not part:'),
)
like(
    "ops.signature",
    "a parameter with a default is no name",
    ("        names.append(before.split()[-1])\n", ""),
    (
        "defaults[names[-1]] = ast.literal_eval(default)",
        "defaults[before.split()[-1]] = ast.literal_eval(default)\n"
        "        else:\n"
        "            names.append(before.split()[-1])",
    ),
)
like(
    "ops.signature",
    "forgets defaults that count as false",
    (
        "return name, names, defaults",
        "return name, names, {key: value for key, value in defaults.items() if value}",
    ),
)


# -- ops.broadcast --------------------------------------------------------------------------------


def _pair(m, n):
    return n if m == 1 else m


@wrong("ops.broadcast", "an error that does not say which shapes")
def broadcast_shape(a, b):
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError("cannot broadcast")
    return tuple(_pair(m, n) for m, n in zip(left, right))


@wrong("ops.broadcast", "asks torch")
def broadcast_shape(a, b):
    try:
        return tuple(torch.broadcast_shapes(a, b))
    except RuntimeError:
        raise ValueError(f"{a} and {b} cannot broadcast") from None


@wrong("ops.broadcast", "a 0 stretches as a 1 does")
def broadcast_shape(a, b):
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    for m, n in zip(left, right):
        if m != n and not {0, 1} & {m, n}:
            raise ValueError(f"{a} and {b} cannot broadcast")
    return tuple(0 if 0 in (m, n) else max(m, n) for m, n in zip(left, right))


@wrong("ops.broadcast", "fills up with a single 1")
def broadcast_shape(a, b):
    left, right = tuple(a), tuple(b)
    if len(left) < len(right):
        left = (1, *left)
    if len(right) < len(left):
        right = (1, *right)
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
    return tuple(_pair(m, n) for m, n in zip(left, right))


@wrong("ops.broadcast", "checks the last dimension only")
def broadcast_shape(a, b):
    if a and b and a[-1] != b[-1] and 1 not in (a[-1], b[-1]):
        raise ValueError(f"{a} and {b} cannot broadcast")
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    return tuple(_pair(m, n) for m, n in zip(left, right))


@wrong("ops.broadcast", "gives a list")
def broadcast_shape(a, b):
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
    return [_pair(m, n) for m, n in zip(left, right)]


@wrong("ops.broadcast", "from back to front")
def broadcast_shape(a, b):
    shape = []
    for d in range(1, max(len(a), len(b)) + 1):
        m = a[-d] if d <= len(a) else 1
        n = b[-d] if d <= len(b) else 1
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(_pair(m, n))
    return tuple(shape)


like(
    "ops.broadcast",
    "the smaller number of dimensions",
    ("max(len(a), len(b))", "min(len(a), len(b))"),
)


# -- ops.promote ----------------------------------------------------------------------------------


def _kind(dtype):
    return 2 if dtype.is_floating_point else int(dtype != torch.bool)


def _rank(x):
    return 2 if not isinstance(x, torch.Tensor) else 1 if x.ndim == 0 else 0


def _settle(ranks):
    result = None
    for high in (ranks[2], ranks[1], ranks[0]):
        if result is None or high is None:
            result = result or high
        elif _kind(result) > _kind(high):
            result = torch.promote_types(high, result)
        else:
            result = high
    return result


def _meet(ranks, rank, dtype):
    ranks[rank] = dtype if ranks[rank] is None else torch.promote_types(ranks[rank], dtype)


@wrong("ops.promote", "two at a time, from left to right")
def common_dtype(*operands):
    first, *others = operands
    dtype, rank = torch.as_tensor(first).dtype, _rank(first)
    for x in others:
        new, at = torch.as_tensor(x).dtype, _rank(x)
        if at == rank:
            dtype = torch.promote_types(dtype, new)
        else:
            high, low = (dtype, new) if rank < at else (new, dtype)
            dtype = torch.promote_types(high, low) if _kind(low) > _kind(high) else high
        rank = min(rank, at)
    return dtype


@wrong("ops.promote", "a tensor of one number is a 0-d tensor")
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        tensor = isinstance(x, torch.Tensor)
        rank = 2 if not tensor else 1 if x.numel() == 1 else 0
        _meet(ranks, rank, torch.as_tensor(x).dtype)
    return _settle(ranks)


@wrong("ops.promote", "True is an integer")
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        _meet(ranks, _rank(x), torch.as_tensor(int(x) if x is True or x is False else x).dtype)
    return _settle(ranks)


@wrong("ops.promote", "needs two operands")
def common_dtype(*operands):
    a, b, *more = operands
    ranks = {0: None, 1: None, 2: None}
    for x in (a, b, *more):
        _meet(ranks, _rank(x), torch.as_tensor(x).dtype)
    return _settle(ranks)


@wrong("ops.promote", "asks torch.result_type")
def common_dtype(*operands):
    result = torch.as_tensor(operands[0])
    for x in operands[1:]:
        result = torch.zeros(result.shape, dtype=torch.result_type(result, x))
    return result.dtype


@wrong("ops.promote", "the first of a rank decides for it")
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        ranks[_rank(x)] = ranks[_rank(x)] or torch.as_tensor(x).dtype
    return _settle(ranks)


@wrong("ops.promote", "numbers are of the default dtype")
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        tensor = isinstance(x, torch.Tensor)
        _meet(ranks, _rank(x), x.dtype if tensor else torch.get_default_dtype())
    return _settle(ranks)


@wrong("ops.promote", "an empty tensor has no say")
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        if isinstance(x, torch.Tensor) and x.numel() == 0 and len(operands) > 1:
            continue
        _meet(ranks, _rank(x), torch.as_tensor(x).dtype)
    return _settle(ranks) or torch.float32


like(
    "ops.promote",
    "compares the kinds the wrong way round",
    ("kind(result) > kind(high)", "kind(result) < kind(high)"),
)
like(
    "ops.promote", "numbers have no say", ("(ranks[2], ranks[1], ranks[0])", "(ranks[1], ranks[0])")
)


# -- ops.dispatch ---------------------------------------------------------------------------------


like(
    "ops.dispatch",
    "always the default dtype",
    ('"float" and not dtype.is_floating_point:', '"float":'),
)
like(
    "ops.dispatch",
    "wraps what may be no array",
    ('np.asarray(record["kernel"](*arrays))', 'record["kernel"](*arrays)'),
)


@wrong("ops.dispatch", "runs the kernel twice")
def run(record, a, b):
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    a, b = (x.expand(shape).numpy() for x in (a, b))
    if record["kernel"](a, b) is None:
        raise TypeError("the kernel gave nothing")
    return torch.from_numpy(np.asarray(record["kernel"](a, b)))


@wrong("ops.dispatch", "a number is a full tensor")
def run(record, a, b):
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    dtype = torch.promote_types(a.dtype, b.dtype)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.to(dtype).expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


like(
    "ops.dispatch",
    "float32, not the default",
    ("get_default_dtype()", "float32"),
)


@wrong("ops.dispatch", "the number gives way")
def run(record, a, b):
    tensors = [x for x in (a, b) if isinstance(x, torch.Tensor)]
    dtype = torch.result_type(*tensors) if len(tensors) > 1 else tensors[0].dtype
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


like(
    "ops.dispatch",
    "floats for every record",
    ('record["promotion"] == "float" and not', "not"),
)


@wrong("ops.dispatch", "changes the default dtype on the way")
def run(record, a, b):
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    if dtype.is_floating_point:
        torch.set_default_dtype(dtype)
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


like("ops.dispatch", "every result is a float", ('record["promotion"] == "float" and not', "not"))
like(
    "ops.dispatch",
    "the shape of the first operand",
    ("torch.broadcast_shapes(a.shape, b.shape)", "a.shape"),
)


# -- ops.registry ---------------------------------------------------------------------------------

like(
    "ops.registry",
    "one table for all",
    ("        self.table = {}\n", "        pass\n"),
    (
        '    """A table of element-wise operations on NumPy arrays and numbers."""\n',
        '    """A table of element-wise operations on NumPy arrays and numbers."""\n\n    table = {}\n',
    ),
    ('table = self.__dict__.get("table", {})', "table = Ops.table"),
)
like(
    "ops.registry",
    "a number is an array without dimensions",
    ("ranks[2].append(Ops.DEFAULT[type(x)])", "ranks[1].append(Ops.DEFAULT[type(x)])"),
)
like(
    "ops.registry",
    "an array of one element is a number",
    ("ranks[0 if x.ndim else 1]", "ranks[0 if x.size > 1 else 1]"),
)
like(
    "ops.registry",
    "a float is a double",
    ("        float: np.dtype(np.float32),\n", "        float: np.dtype(float),\n"),
)
like(
    "ops.registry",
    "the first of the highest kind decides the width",
    ("found = reduce(np.promote_types, highest)", "found = highest[0]"),
)
like(
    "ops.registry",
    "an empty dimension is filled",
    ("result[place] = size\n", "result[place] = max(size, result[place])\n"),
)
like(
    "ops.registry",
    "a size of 0 fits everything",
    ("if result[place] not in (1, size):", "if result[place] not in (0, 1, size):"),
)
like(
    "ops.registry",
    "two operands only",
    (
        "        result = kernel(*[np.broadcast_to(x, shape) for x in arrays])\n",
        "        a, b = arrays\n"
        "        result = kernel(np.broadcast_to(a, shape), np.broadcast_to(b, shape))\n",
    ),
)
like(
    "ops.registry",
    "the result has the dtype of the operands",
    ("result = np.asarray(result)\n", "result = np.asarray(result).astype(dtype)\n"),
)
like(
    "ops.registry",
    "out must have the dtype of the result",
    ("Ops.level(result.dtype) > Ops.level(out.dtype)", "result.dtype != out.dtype"),
)
like(
    "ops.registry",
    "writes first and looks then",
    (
        "        if result.shape != out.shape:",
        "        out[...] = 0\n        if result.shape != out.shape:",
    ),
)
like(
    "ops.registry",
    "as many elements are enough",
    ("if result.shape != out.shape:", "if result.size != out.size:"),
    ("out[...] = result\n", "out[...] = result.reshape(out.shape)\n"),
)
like(
    "ops.registry",
    "the kernel is asked twice",
    (
        "        result = np.asarray(result)\n",
        "        result = np.asarray(kernel(*(np.broadcast_to(x, shape) for x in arrays)))\n",
    ),
)
handed_in("ops.registry", "torch.result_type", lambda: torch.result_type)
