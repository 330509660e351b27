"""Wrong answers to the exercises of chapter 01."""

import math

import toytorch as torch
from tests.course.wrong import handed_in, like, wrong

# -- tensors.shape --------------------------------------------------------------------------------


@wrong("tensors.shape", "gives a list")
def nested_shape(data):
    shape = []
    while isinstance(data, list):
        if any(nested_shape(row) != nested_shape(data[0]) for row in data):
            raise ValueError("ragged")
        shape.append(len(data))
        data = data[0] if data else None
    return shape


@wrong("tensors.shape", "compares how many numbers the rows hold, not their shapes")
def nested_shape(data):
    def count(part):
        return sum(map(count, part)) if isinstance(part, list) else 1

    if not isinstance(data, list):
        return ()
    if len({count(row) for row in data}) > 1 or len({isinstance(r, list) for r in data}) > 1:
        raise ValueError("ragged")
    return (len(data), *(nested_shape(data[0]) if data else ()))


like(
    "tensors.shape",
    "stops at an empty list",
    ("[nested_shape(row) for row in data]", "[nested_shape(row) for row in data if row != []]"),
)


@wrong("tensors.shape", "compares the first row with the last")
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    if not data:
        return (0,)
    if nested_shape(data[0]) != nested_shape(data[-1]):
        raise ValueError("ragged")
    return (len(data), *nested_shape(data[0]))


@wrong("tensors.shape", "takes the rows out of the learner's list")
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    inner = []
    while data:
        inner.append(nested_shape(data.pop()))
    if any(other != inner[0] for other in inner):
        raise ValueError("ragged")
    return (len(inner), *(inner[0] if inner else ()))


@wrong("tensors.shape", "an error of another kind")
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    if any(len(row) != len(data[0]) for row in data if isinstance(data[0], list)):
        raise ValueError("ragged")
    inner = [nested_shape(row) for row in data]
    if any(other != inner[0] for other in inner):
        raise ValueError("ragged")
    return (len(data), *(inner[0] if inner else ()))


@wrong("tensors.shape", "is shown, not returned")
def nested_shape(data):
    if not isinstance(data, list):
        print(())
        return
    print((len(data),))


like(
    "tensors.shape",
    "an empty list has no shape",
    (
        "return (len(data), *(inner[0] if inner else ()))",
        "return (len(data), *(inner[0] if inner else ())) if data else ()",
    ),
)
like(
    "tensors.shape",
    "compares how deep the rows are, not how long",
    ("other != inner[0]", "len(other) != len(inner[0])"),
)


# -- tensors.dtype --------------------------------------------------------------------------------


@wrong("tensors.dtype", "2.0 is an integer")
def infer_dtype(numbers):
    if any(isinstance(x, complex) for x in numbers):
        return torch.complex64
    if not numbers or any(float(x) != int(x) for x in numbers):
        return torch.float32
    return torch.bool if all(isinstance(x, bool) for x in numbers) else torch.int64


@wrong("tensors.dtype", "the last number decides")
def infer_dtype(numbers):
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}
    return kinds[type(numbers[-1])] if numbers else torch.float32


@wrong("tensors.dtype", "one bool makes all of it bool")
def infer_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if bool in kinds:
        return torch.bool
    if complex in kinds:
        return torch.complex64
    return torch.float32 if float in kinds or not kinds else torch.int64


@wrong("tensors.dtype", "a complex number without an imaginary part is a float")
def infer_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if complex in kinds:
        return torch.complex64 if any(complex(x).imag for x in numbers) else torch.float32
    if float in kinds or not kinds:
        return torch.float32
    return torch.int64 if int in kinds else torch.bool


@wrong("tensors.dtype", "asks torch.tensor")
def infer_dtype(numbers):
    return torch.tensor(numbers).dtype


@wrong("tensors.dtype", "the type of the sum")
def infer_dtype(numbers):
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}
    return kinds[type(sum(numbers))] if numbers else torch.float32


@wrong("tensors.dtype", "a large integer is a float")
def infer_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if complex in kinds:
        return torch.complex64
    if float in kinds or not kinds or any(abs(x) >= 2**31 for x in numbers):
        return torch.float32
    return torch.int64 if int in kinds else torch.bool


like("tensors.dtype", "complex numbers are doubles", ("torch.complex64", "torch.complex128"))
like("tensors.dtype", "integers have 32 bits", ("torch.int64", "torch.int32"))
like(
    "tensors.dtype",
    "a float counts only where there is no integer",
    ("float in kinds or not kinds", "kinds <= {float, bool}"),
)


# -- tensors.scalar -------------------------------------------------------------------------------


def _kind(number):
    return 3 if isinstance(number, complex) else 2 if isinstance(number, float) else 1


@wrong("tensors.scalar", "2.0 is an integer")
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float) and not number.is_integer():
        return torch.float32
    return torch.int64 if dtype == torch.bool and not isinstance(number, bool) else dtype


@wrong("tensors.scalar", "a number that does not fit widens the dtype")
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float32
    if dtype == torch.bool and not isinstance(number, bool):
        return torch.int64
    if dtype == torch.uint8 and number < 0:
        return torch.int16
    return dtype


@wrong("tensors.scalar", "complex128 shrinks")
def with_number(dtype, number):
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if dtype.is_complex or dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float32
    return torch.int64 if dtype == torch.bool and not isinstance(number, bool) else dtype


@wrong("tensors.scalar", "a list of integer dtypes that lacks two")
def with_number(dtype, number):
    if dtype in (torch.uint8, torch.int16, torch.int64):
        return [dtype, dtype, torch.float32, torch.complex64][_kind(number)]
    if dtype == torch.bool:
        whole = torch.bool if isinstance(number, bool) else torch.int64
        return [None, whole, torch.float32, torch.complex64][_kind(number)]
    if dtype.is_complex or not isinstance(number, complex):
        return dtype
    return torch.complex128 if dtype == torch.float64 else torch.complex64


@wrong("tensors.scalar", "adds and looks")
def with_number(dtype, number):
    return (torch.zeros(1, dtype=dtype) + number).dtype


@wrong("tensors.scalar", "asks torch.result_type")
def with_number(dtype, number):
    return torch.result_type(torch.zeros(1, dtype=dtype), number)


@wrong("tensors.scalar", "int64 is wide enough for a double")
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype in (torch.float64, torch.int64) else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float64 if dtype == torch.int64 else torch.float32
    return torch.int64 if dtype == torch.bool and not isinstance(number, bool) else dtype


@wrong("tensors.scalar", "True counts as an integer")
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float32
    return torch.int64 if dtype == torch.bool else dtype


# -- tensors.arange -------------------------------------------------------------------------------


@wrong("tensors.arange", "the last value is left out where it lies near the end")
def count_up(start, end, step):
    count = max(0, math.ceil((end - start) / step - 1e-6))
    return [float(start + index * step) for index in range(count)]


@wrong("tensors.arange", "rounds the values, to hide the error")
def count_up(start, end, step):
    count = max(0, math.ceil((end - start) / step))
    return [round(float(start + index * step), 6) for index in range(count)]


@wrong("tensors.arange", "leaves integers as they are")
def count_up(start, end, step):
    count = max(0, math.ceil((end - start) / step))
    return [start + index * step for index in range(count)]


@wrong("tensors.arange", "asks torch.arange")
def count_up(start, end, step):
    return torch.arange(start, end, step, dtype=torch.float64).tolist()


@wrong("tensors.arange", "spreads the values to the end")
def count_up(start, end, step):
    count = max(0, math.ceil((end - start) / step))
    return [float(start + index * (end - start) / count) for index in range(count)]


@wrong("tensors.arange", "counts with the nearest integer")
def count_up(start, end, step):
    count = max(0, round((end - start) / step))
    return [float(start + index * step) for index in range(count)]


@wrong("tensors.arange", "counts up where it should be empty")
def count_up(start, end, step):
    count = math.ceil(abs((end - start) / step))
    return [float(start + index * step) for index in range(count)]


# -- tensors.means --------------------------------------------------------------------------------


@wrong("tensors.means", "float32 whatever x is")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).float()
    return (rows.T @ x.float()) / rows.sum(0).clamp(min=1)[:, None]


@wrong("tensors.means", "scales x in place")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    x.div_(rows.sum(0)[labels][:, None])
    return rows.T @ x


@wrong("tensors.means", "only the classes that are there")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.unique(labels)).to(x.dtype)
    return (rows.T @ x) / rows.sum(0)[:, None]


@wrong("tensors.means", "one more in every count")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return (rows.T @ x) / (rows.sum(0) + 1)[:, None]


@wrong("tensors.means", "adds up along the wrong dimension")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return (rows.T @ x) / rows.sum(1)[:classes, None].clamp(min=1)


@wrong("tensors.means", "transposed")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return ((rows.T @ x) / rows.sum(0).clamp(min=1)[:, None]).T


@wrong("tensors.means", "classes count from 1")
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(1, classes + 1)).to(x.dtype)
    return (rows.T @ x) / rows.sum(0).clamp(min=1)[:, None]


@wrong("tensors.means", "cut from the graph")
def class_means(x, labels, classes):
    with torch.no_grad():
        rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
        return (rows.T @ x) / rows.sum(0).clamp(min=1)[:, None]


# -- tensors.parse --------------------------------------------------------------------------------

like(
    "tensors.parse",
    "a list of bools is a list of integers",
    ("        if all(isinstance(x, bool) for x in elements):\n            return np.bool_\n", ""),
)
like(
    "tensors.parse",
    "the first element decides the dtype",
    ("any(isinstance(x, float) for x in elements)", "isinstance(elements[0], float)"),
)
like(
    "tensors.parse",
    "tuples are elements",
    ("while isinstance(data, (list, tuple)):", "while isinstance(data, list):"),
    ("nested = isinstance(data, (list, tuple))", "nested = isinstance(data, list)"),
)
like(
    "tensors.parse",
    "names the last place that does not fit",
    ("for index, part in enumerate(data):", "for index, part in reversed(list(enumerate(data))):"),
    (
        "elements += Array.elements_of(part, shape[1:], below)",
        "elements = Array.elements_of(part, shape[1:], below) + elements",
    ),
)
like(
    "tensors.parse",
    "what is no number becomes one if it can",
    (
        "            if not isinstance(data, (bool, int, float)):\n",
        "            data = int(data) if isinstance(data, str) and data.isdigit() else data\n"
        "            if not isinstance(data, (bool, int, float)):\n",
    ),
)
like("tensors.parse", "pads on the right", ("text.rjust(width)", "text.ljust(width)"))
like(
    "tensors.parse",
    "whole floats look like integers",
    ('f"{value:.0f}." for value', 'f"{value:.0f}" for value'),
)
like(
    "tensors.parse",
    "an empty table has no size",
    ("if 0 in self.shape and len(self.shape) > 1:", "if False:"),
    ("step = len(texts) // shape[0]", "step = max(1, len(texts) // max(1, shape[0]))"),
)
like(
    "tensors.parse",
    "further levels are not moved in",
    ("self._nested(row, shape[1:], indent + 1)", "self._nested(row, shape[1:], indent)"),
)
like(
    "tensors.parse",
    "an empty list is a list of integers",
    ("if not elements or any(", "if any("),
    (
        "        if all(isinstance(x, bool) for x in elements):",
        "        if elements and all(isinstance(x, bool) for x in elements):",
    ),
)
like(
    "tensors.parse",
    "every float has four digits",
    ("elif all(value % 1 == 0 for value in values):", "elif False:"),
)
like(
    "tensors.parse",
    "takes the rows out of the list",
    (
        "            data = data[0]\n",
        "            data = data.pop(0) if len(data) > 9 else data[0]\n",
    ),
    (
        "        for index, part in enumerate(data):\n            below",
        "        for index in range(len(data)):\n            part = data[index]\n"
        "            data[index] = None\n            below",
    ),
)
handed_in("tensors.parse", "torch.tensor", lambda: torch.tensor)
