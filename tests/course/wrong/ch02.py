"""Wrong answers to the exercises of chapter 02."""

import math

import toytorch as torch
from tests.course.wrong import like, wrong

# -- memory.cell ----------------------------------------------------------------------------------


@wrong("memory.cell", "dimensions of size 1 are not checked")
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        if size == 1:
            continue
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range")
        found += (i % size) * step
    return found


@wrong("memory.cell", "an empty dimension divides by zero")
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        place = i % size
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range")
        found += place * step
    return found


@wrong("memory.cell", "a negative index counts back from the end of the memory")
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range")
        found += i * step
    return found if found >= offset else found + math.prod(shape)


@wrong("memory.cell", "looks at the upper limit only")
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        if i >= size:
            raise IndexError(f"index {i} is out of range")
        found += (i + size if i < 0 else i) * step
    return found


@wrong("memory.cell", "the offset is added for every dimension")
def cell_of(index, shape, stride, offset):
    found = 0
    for i, size, step in zip(index, shape, stride):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range")
        found += offset + (i % size) * step
    return found


@wrong("memory.cell", "checks the cell, not the index")
def cell_of(index, shape, stride, offset):
    found = sum((i % size) * step for i, size, step in zip(index, shape, stride))
    if found >= max(math.prod(shape), 1):
        raise IndexError("out of range")
    return offset + found


@wrong("memory.cell", "the first index may be one too large")
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        if not -size <= i <= size or (i == size and step == 1):
            raise IndexError(f"index {i} is out of range")
        found += (i + size if i < 0 else i) * step
    return found


like("memory.cell", "refuses the smallest negative index", ("not -size <= i", "not -size < i"))


# -- memory.strides -------------------------------------------------------------------------------


@wrong("memory.strides", "asks a new tensor")
def row_major(shape):
    return torch.empty(shape).stride()


@wrong("memory.strides", "four dimensions at most")
def row_major(shape):
    _, b, c, d = [max(size, 1) for size in [1, 1, 1, 1][len(shape) :] + list(shape)]
    return (b * c * d, c * d, d, 1)[4 - len(shape) :]


@wrong("memory.strides", "the neighbour's size alone")
def row_major(shape):
    return (*[max(size, 1) for size in shape[1:]], 1)[: len(shape)]


like(
    "memory.strides",
    "adds instead of multiplying",
    ("step *= max(size, 1)", "step += size - 1"),
)


@wrong("memory.strides", "with a 0 anywhere, all ones")
def row_major(shape):
    if 0 in shape:
        return (1,) * len(shape)
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


@wrong("memory.strides", "a list")
def row_major(shape):
    return [math.prod(max(size, 1) for size in shape[d + 1 :]) for d in range(len(shape))]


@wrong("memory.strides", "includes the dimension itself")
def row_major(shape):
    return tuple(math.prod(max(size, 1) for size in shape[d:]) for d in range(len(shape)))


like(
    "memory.strides",
    "nothing is stepped along a size of 1",
    ("(step)", "(0 if size == 1 else step)"),
)


# -- memory.contiguous ----------------------------------------------------------------------------


@wrong("memory.contiguous", "looks at the last two dimensions")
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    pairs = [(size, step) for size, step in zip(shape, stride) if size != 1][-2:]
    wanted = 1
    for size, step in reversed(pairs):
        if step != wanted:
            return False
        wanted *= size
    return True


@wrong("memory.contiguous", "falling strides without a gap at the end")
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    pairs = [(size, step) for size, step in zip(shape, stride) if size != 1]
    steps = [step for _, step in pairs]
    falls = steps == sorted(steps, reverse=True)
    return falls and sum((size - 1) * step for size, step in pairs) == math.prod(shape) - 1


@wrong("memory.contiguous", "sees a 0 in the last dimension only")
def is_row_major(shape, stride):
    if shape and shape[-1] == 0:
        return True
    wanted = 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if size == 1:
            continue
        if step != wanted:
            return False
        wanted *= size
    return True


@wrong("memory.contiguous", "asks a tensor")
def is_row_major(shape, stride):
    return torch.empty(10_000).as_strided(shape, stride).is_contiguous()


@wrong("memory.contiguous", "no gaps is enough")
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    return sum((n - 1) * step for n, step in zip(shape, stride)) == math.prod(shape) - 1


@wrong("memory.contiguous", "ignores a size of 1 on the left only")
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    while shape and shape[0] == 1:
        shape, stride = shape[1:], stride[1:]
    wanted = 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if step != wanted:
            return False
        wanted *= size
    return True


@wrong("memory.contiguous", "answers with the strides")
def is_row_major(shape, stride):
    wanted = 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if size > 1 and step != wanted:
            return 0
        wanted *= size
    return 1


like(
    "memory.contiguous",
    "begins with the first dimension",
    ("zip(reversed(shape), reversed(stride), strict=True)", "zip(shape, stride, strict=True)"),
)
like("memory.contiguous", "adds sizes up", ("step *= size", "step += size"))


# -- memory.view ----------------------------------------------------------------------------------


def _runs(shape, stride):
    runs = []
    for size, step in zip(shape, stride):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    return runs


def _cut(runs, new_shape):
    found, left, step = [], 1, 1
    for size in reversed(new_shape):
        if size > 1 and left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


@wrong("memory.view", "one run or nothing")
def view_strides(shape, stride, new_shape):
    runs = _runs(shape, stride)
    return None if len(runs) > 1 else _cut(runs, new_shape)


@wrong("memory.view", "joins each pair once")
def view_strides(shape, stride, new_shape):
    pairs = [(size, step) for size, step in zip(shape, stride) if size != 1]
    runs = []
    while pairs:
        size, step = pairs.pop(0)
        if pairs and step == pairs[0][0] * pairs[0][1]:
            more, step = pairs.pop(0)
            size *= more
        runs.append((size, step))
    return _cut(runs, new_shape)


@wrong("memory.view", "repeated numbers have no view")
def view_strides(shape, stride, new_shape):
    if any(step == 0 for size, step in zip(shape, stride) if size > 1):
        return None
    return _cut(_runs(shape, stride), new_shape)


@wrong("memory.view", "takes what is left of a run for granted")
def view_strides(shape, stride, new_shape):
    runs = _runs(shape, stride)
    found, left, step = [], 1, 1
    for size in reversed(new_shape):
        if size > 1 and left <= 1 and runs:
            left, step = runs.pop()
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


@wrong("memory.view", "new dimensions of size 1 take from a run")
def view_strides(shape, stride, new_shape):
    runs = _runs(shape, stride)
    found, left, step = [], 1, 1
    for size in reversed(new_shape):
        if left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


@wrong("memory.view", "joins what is longer than the step, too")
def view_strides(shape, stride, new_shape):
    runs = []
    for size, step in zip(shape, stride):
        if size == 1:
            continue
        if runs and runs[-1][1] >= size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    return _cut(runs, new_shape)


@wrong("memory.view", "asks a tensor")
def view_strides(shape, stride, new_shape):
    try:
        return torch.empty(10_000).as_strided(shape, stride).view(new_shape).stride()
    except RuntimeError:
        return None


@wrong("memory.view", "says False for None")
def view_strides(shape, stride, new_shape):
    return _cut(_runs(shape, stride), new_shape) or False


# -- memory.expand --------------------------------------------------------------------------------


@wrong("memory.expand", "a shorter target is cut off in silence")
def expand_strides(shape, stride, new_shape):
    found = []
    for d in range(-1, -len(new_shape) - 1, -1):
        if -d > len(shape):
            found.append(0)
        elif shape[d] == new_shape[d]:
            found.append(stride[d])
        elif shape[d] == 1:
            found.append(0)
        else:
            raise RuntimeError("cannot expand")
    return tuple(reversed(found))


@wrong("memory.expand", "shrinks to 1")
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError("cannot expand to fewer dimensions")
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if size != new and 1 not in (size, new):
            raise RuntimeError("cannot expand")
        found.append(step if size == new else 0)
    return tuple(found)


@wrong("memory.expand", "a size of 1 always gets the stride 0")
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError("cannot expand to fewer dimensions")
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if size not in (1, new):
            raise RuntimeError("cannot expand")
        found.append(0 if size == 1 else step)
    return tuple(found)


@wrong("memory.expand", "new dimensions step over the whole")
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError("cannot expand to fewer dimensions")
    whole = shape[0] * stride[0] if shape else 1
    found = [whole] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if size not in (1, new):
            raise RuntimeError("cannot expand")
        found.append(step if size == new else 0)
    return tuple(found)


@wrong("memory.expand", "one new dimension at most")
def expand_strides(shape, stride, new_shape):
    if len(new_shape) > len(shape):
        shape, stride = (1, *shape), (0, *stride)
    if len(new_shape) != len(shape):
        raise RuntimeError("cannot expand")
    found = []
    for size, step, new in zip(shape, stride, new_shape):
        if size not in (1, new):
            raise RuntimeError("cannot expand")
        found.append(step if size == new else 0)
    return tuple(found)


@wrong("memory.expand", "asks a tensor")
def expand_strides(shape, stride, new_shape):
    return torch.empty(1000).as_strided(shape, stride).expand(new_shape).stride()


@wrong("memory.expand", "doubles fit, too")
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError("cannot expand to fewer dimensions")
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if new % size:
            raise RuntimeError("cannot expand")
        found.append(step if size == new else 0)
    return tuple(found)


like("memory.expand", "new dimensions have a step of 1", ("[0] * lead", "[1] * lead"))


# -- memory.windows -------------------------------------------------------------------------------


@wrong("memory.windows", "makes it contiguous first")
def windows(x, k):
    x = x.contiguous()
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@wrong("memory.windows", "cut from the graph")
def windows(x, k):
    x = x.detach()
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@wrong("memory.windows", "works out the strides of the batch")
def windows(x, k):
    *lead, height, width = x.shape
    *_, down, right = x.stride()
    steps, step = [], height * width
    for size in reversed(lead):
        steps.insert(0, step)
        step *= size
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@wrong("memory.windows", "two dimensions only")
def windows(x, k):
    height, width = x.shape
    down, right = x.stride()
    shape = (height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (down, right, down, right))


@wrong("memory.windows", "takes every image for a square")
def windows(x, k):
    *lead, height, _ = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, height - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@wrong("memory.windows", "side by side, without an overlap")
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height // k, width // k, k, k)
    return x.as_strided(shape, (*steps, k * down, k * right, down, right))


@wrong("memory.windows", "asks unfold")
def windows(x, k):
    return x.unfold(-2, k, 1).unfold(-2, k, 1)


@wrong("memory.windows", "offset counted twice")
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    strides = (*steps, down, right, down, right)
    return x.as_strided(shape, strides, min(2 * x.storage_offset(), 2))


like(
    "memory.windows",
    "the rows of a window are k cells apart",
    ("right, down, right)", "right, k, 1)"),
)


# -- memory.layout --------------------------------------------------------------------------------

like(
    "memory.layout",
    "a 0 makes strides of 0",
    ("cells *= max(size, 1)", "cells *= size"),
)
like(
    "memory.layout",
    "narrow takes a negative start",
    ("not (start >= 0 and last < self.shape[dim])", "last >= self.shape[dim]"),
)
like(
    "memory.layout",
    "expand shrinks to 1",
    ("if old not in (1, new):", "if old != new and 1 not in (old, new):"),
)
like(
    "memory.layout",
    "windows of no size",
    ("if size < 1 or count < 1:", "if count < 1:"),
)
like(
    "memory.layout",
    "keeps the caller's list as its shape",
    ("self.shape = tuple(shape)", "self.shape = shape"),
)
like(
    "memory.layout",
    "counts windows that were only begun",
    ("(self.shape[dim] - size) // step + 1", "-((size - self.shape[dim]) // step) + 1"),
)
like(
    "memory.layout",
    "a transposed layout begins at cell 0",
    ("[self.strides[d] for d in order], self.offset)", "[self.strides[d] for d in order])"),
)
like(
    "memory.layout",
    "repeated elements count as contiguous",
    ("if size != 1 and stride != cells:", "if size != 1 and stride not in (0, cells):"),
)
like(
    "memory.layout",
    "any number of indices",
    ("if len(index) != len(self.shape):", "if not self.shape and index:"),
)
