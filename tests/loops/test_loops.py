"""Programs of every kind over arrays of every layout: compiled, as printed Python, and by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toytorch.loops import Program, Unsupported, compile_program, run
from toytorch.loops.generators import numpy as numpy_blocked
from toytorch.loops.runtime.jit import works
from toytorch.loops.schedule.layout import layout_of

PROGRAMS = {
    "elementwise": "x[i,j,k], w[k], s -> y[i,j,k]\n y = tanh(x*w + s) if x > 0 else sigmoid(x)",
    "two outputs": "x[i,j], u[i], v[j] -> y[i,j], z[i,j]\n y = maximum(x + u, v) / 2\n z = x*y",
    "indices": "x[i,j,k] -> y[i,j,k]\n y = x + float32(index(k)) * 0.5 - float32(index(i) >> 1)",
    "indices of rows": "x[i,j] -> y[i,j], s[i]\n s = sum[j](x * float32(index(j)))\n y = x - s",
    "indices of columns": "x[i,j] -> s[j]\n s = sum[i](x * float32(index(i) - index(j)))",
    "transposed": "x[j,i] -> y[i,j]\n y = x + 1",
    "softmax": "x[i,j] -> y[i,j]\n e = exp(x - max[j](x))\n y = e / sum[j](e)",
    "largest but NaN": "x[i,j] -> y[i,j], m[i]\n m = fmax[j](x)\n y = x - m",
    "log softmax": "x[i,j] -> y[i,j]\n z = x - max[j](x)\n y = z - log(sum[j](exp(z)))",
    "layer norm": """x[i,j], w[j], b[j], eps -> y[i,j], m[i], r[i]
        m = mean[j](x)
        d = x - m
        r = rsqrt(mean[j](d*d) + eps)
        y = d*r*w + b""",
    "batch norm": """x[a,c,h], w[c], b[c], eps -> y[a,c,h], m[c], v[c]
        m = mean[a,h](x)
        d = x - m
        v = mean[a,h](d*d)
        y = d*rsqrt(v + eps)*w + b""",
    "columns": """x[i,j] -> s[j], m[j], a[j] bool
        s = sum[i](x)
        m = max[i](x)
        a = all[i](x > -3)""",
    "softmax down": "x[i,j] -> y[i,j]\n e = exp(x - max[i](x))\n y = e / sum[i](e)",
    "everything": "x[i,j] -> s[], p[]\n s = sum[i,j](x*x)\n p = prod[i,j](x*0.01 + 1)",
    "the middle": "x[i,j,k] -> s[i,k]\n s = sum[j](x)",
    "both ends": "x[i,j,k] -> s[j], t[j]\n s = min[i,k](x)\n t = sum[i,k](exp(x))",
    "kept in columns": """x[i,j,k] -> y[i,j,k], z[i,j,k]
        e = exp(x)
        s = sum[i,j](e)
        t = sum[i,j](e/s*e)
        y = e/s + t
        z = e*t""",
    "kept in rows": """x[i,j,k] -> y[i,j,k] float16
        e = exp(x)
        f = tanh(x)
        s = sum[j,k](e*f)
        t = sum[j,k](e/s*e)
        y = e/s + t*f""",
    "loss of rows": """x[i,j], t[i,j] -> l[i]
        z = x - max[j](x)
        l = log(sum[j](exp(z)))*sum[j](t) - sum[j](z*t)""",
    "a broadcast result": "x[i,j] -> y[i,j], m[i,j]\n m = mean[j](x)\n y = x - m",
    "wide": "x[i,j] float64, y[i,j] -> z[i,j] float64\n z = x + float64(y)",
    "no dimension": "x[], k -> y[]\n y = x*k",
}
SIZES = [
    {"i": 5, "j": 7, "k": 3},
    {"i": 1, "j": 33, "k": 8},
    {"i": 17, "j": 1, "k": 1},
    {"i": 300, "j": 40, "k": 2},
    {"i": 6, "j": 700, "k": 5},
]


def laid_out(shape: tuple[int, ...], type: str, how: str, rng: Any) -> np.ndarray:
    """Random numbers of a shape, in one of the ways memory can be walked."""

    def normal(size: tuple[int, ...]) -> np.ndarray:
        return np.asarray(rng.standard_normal(size)).astype(type)

    if not shape:
        return normal(shape)
    if how == "transposed":
        return normal(shape[::-1]).transpose()
    if how == "every second":
        return normal(tuple(2 * n for n in shape))[tuple(slice(None, None, 2) for _ in shape)]
    if how == "backwards":
        return normal(shape)[tuple(slice(None, None, -1) for _ in shape)]
    if how == "broadcast":
        return np.broadcast_to(normal((1, *shape[1:])), shape)
    return normal(shape)


def close(a: np.ndarray, b: np.ndarray) -> None:
    loose = a.dtype == np.float16
    np.testing.assert_allclose(a, b, rtol=2e-3 if loose else 5e-5, atol=2e-3 if loose else 5e-5)


HOW = ["plain", "transposed", "every second", "backwards", "broadcast"]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("how", HOW)
def test_all_ways_agree(name: str, how: str) -> None:
    """The compiled kernel, the printed Python (where small) and NumPy, on every layout."""
    program = Program.parse(PROGRAMS[name])
    rng = np.random.default_rng(len(name))
    for sizes in SIZES if how == "plain" else SIZES[:4:3]:
        sizes = {**sizes, "a": sizes["i"], "c": sizes["j"], "h": sizes["k"]}
        inputs = [
            laid_out(tuple(sizes[d] for d in a.dims), a.type, how if k == 0 else "plain", rng)
            for k, a in enumerate(program.inputs)
        ]
        numbers = [0.5] * len(program.scalars)

        def outputs(fill: float, sizes: dict[str, int] = sizes) -> list[np.ndarray]:
            return [np.full(tuple(sizes[d] for d in o.dims), fill, o.type) for o in program.outputs]

        wanted, made = outputs(7), outputs(9)
        numpy_blocked.run(program, (*wanted, *inputs, *numbers))
        run(program, *made, *inputs, *numbers)
        for a, b in zip(made, wanted):
            close(a, b)
        if np.prod([sizes[d] for d in program.dims]) < 200:
            read = outputs(8)
            kernel = compile_program(program, *read, *inputs)
            kernel.interpret(*read, *inputs, *numbers)
            for a, b in zip(read, wanted):
                close(a, b)


@pytest.mark.parametrize(
    "name",
    [
        "elementwise",
        "softmax",
        "layer norm",
        "softmax down",
        "batch norm",
        "kept in columns",
        "a broadcast result",
    ],
)
def test_in_place(name: str) -> None:
    """An output may be exactly an input."""
    program = Program.parse(PROGRAMS[name])
    rng = np.random.default_rng(0)
    sizes = {"i": 9, "j": 50, "k": 4, "a": 9, "c": 50, "h": 4}
    inputs = [
        np.asarray(rng.standard_normal(tuple(sizes[d] for d in a.dims)), "float32")
        for a in program.inputs
    ]
    numbers = [0.5] * len(program.scalars)
    wanted = [np.empty(tuple(sizes[d] for d in o.dims), o.type) for o in program.outputs]
    numpy_blocked.run(program, (*wanted, *inputs, *numbers))
    made = [np.empty_like(w) for w in wanted]
    made[0] = inputs[0]
    run(program, *made, *inputs, *numbers)
    for a, b in zip(made, wanted):
        close(a, b)


def test_running_statistics_in_place() -> None:
    """Values of rows may be updated in place too."""
    p = Program.parse("x[i,j], m[j] -> m[j]\n m = m*0.9 + mean[i](x)*0.1")
    x, m = np.ones((4, 6), "float32"), np.zeros(6, "float32")
    run(p, m, x, m)
    np.testing.assert_allclose(m, 0.1, rtol=1e-6)
    q = Program.parse("x[i,j], m[i] -> m[i]\n m = m*0.9 + mean[j](x)*0.1")
    m = np.ones(4, "float32")
    run(q, m, x, m)
    np.testing.assert_allclose(m, 1.0, rtol=1e-6)


def test_nothing_to_do() -> None:
    """Sums over nothing are 0, products 1; elementwise over nothing does nothing."""
    p = Program.parse("x[i,j] -> s[i], p[i]\n s = sum[j](x)\n p = prod[j](x)")
    s, q = np.ones(3, "float32"), np.zeros(3, "float32")
    run(p, s, q, np.empty((3, 0), "float32"))
    assert s.tolist() == [0, 0, 0] and q.tolist() == [1, 1, 1]
    run(p, s[:0], q[:0], np.empty((0, 4), "float32"))
    down = Program.parse("x[i,j] -> s[j]\n s = sum[i](x)")
    s[:] = 5
    run(down, s, np.empty((0, 3), "float32"))
    assert s.tolist() == [0, 0, 0]
    run(Program.parse("x[i] -> y[i]\n y = exp(x)"), s[:0], s[:0].copy())
    run(Program.parse("x[i] -> x[i]\n x = exp(x)"), s[:0], s[:0])


@pytest.mark.parametrize("where", ["rows", "columns"])
def test_nan_wins_in_max_and_min(where: str) -> None:
    x = np.random.default_rng(0).standard_normal((40, 40)).astype("float32")
    x[7, 11] = np.nan
    over, kept = ("j", "i") if where == "rows" else ("i", "j")
    p = Program.parse(f"x[i,j] -> a[{kept}], b[{kept}]\n a = max[{over}](x)\n b = min[{over}](x)")
    a, b = np.empty((2, 40), "float32")
    run(p, a, b, x)
    axis = 1 if where == "rows" else 0
    np.testing.assert_array_equal(a, x.max(axis))
    np.testing.assert_array_equal(b, x.min(axis))


@pytest.mark.parametrize("shape", [(3, 1_000_003), (1_000_003, 3)])
def test_long_sums_are_exact_to_the_last_digits(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).random(shape, "float32")
    for over, kept in ("ij", "ji"):
        p = Program.parse(f"x[i,j] -> s[{kept}]\n s = sum[{over}](x)")
        true = x.astype("float64").sum(0 if over == "i" else 1)
        made = np.empty(true.shape, "float32")
        run(p, made, x)
        np.testing.assert_allclose(made, true, rtol=2e-6)


def test_contiguous_arrays_are_one_loop() -> None:
    p = Program.parse("x[a,b,c,d], y[a,b,c,d] -> z[a,b,c,d]\n z = x*y")
    x = np.ones((2, 3, 4, 5), "float32")
    assert layout_of(p, [x, x.copy(), x.copy()]).axes == (("a", "b", "c", "d"),)
    t = np.ones((5, 4, 3, 2), "float32").transpose()
    assert layout_of(p, [t, t.copy("K"), t.copy("K")]).axes == (("d", "c", "b", "a"),)


def test_a_kernel_says_no_to_other_arrays() -> None:
    p = Program.parse("x[i,j], s -> y[i,j]\n y = x * s")
    x, y = np.ones((4, 6), "float32"), np.empty((4, 6), "float32")
    kernel = compile_program(p, y, x)
    assert kernel(y, x, 2.0) is True
    assert kernel(y, np.ones((4, 12), "float32")[:, ::2], 2.0) is False
    assert kernel(y, x.astype("float64"), 2.0) is False
    assert kernel(y, np.ones((3, 6), "float32"), 2.0) is False
    assert kernel(y, x.tolist(), 2.0) is False
    assert kernel(x, x, 2.0) is False  # in place is another kernel
    assert kernel(np.empty((9, 2), "float32"), np.ones((9, 2), "float32"), 3) is True
    if works():
        with pytest.raises(TypeError, match="must be real number"):
            kernel(y, x, "two")
        assert kernel.function(y, x) is False


def test_errors_say_what_was_wrong() -> None:
    p = Program.parse("x[i,j], w[j] -> y[i,j]\n y = x * w")
    x, w, y = np.ones((3, 4), "float32"), np.ones(4, "float32"), np.empty((3, 4), "float32")
    with pytest.raises(TypeError, match="expected 3 arrays and scalars, got 2"):
        run(p, y, x)
    with pytest.raises(ValueError, match=r"w.j. float32 has the size 3 along j, which is 4"):
        run(p, y, x, w[:3])
    with pytest.raises(TypeError, match="got an array of float64"):
        run(p, y, x, w.astype("float64"))
    with pytest.raises(TypeError, match=r"expects a numpy.ndarray, got list"):
        run(p, y, x, [1, 2, 3, 4])
    q = Program.parse("x[i,j] -> a[i], b[j]\n a = sum[j](x)\n b = sum[i](x)")
    with pytest.raises(Unsupported, match="reductions over"):
        run(q, np.empty(3, "float32"), w, x)
    with pytest.raises(Unsupported, match="in another order"):
        run(Program.parse("x[i,j] -> y[i,j]\n y = x + 1"), y[:3, :3], y[:3, :3].T)
    whole = np.zeros(20, "uint8")
    first = 1 + -whole.ctypes.data % 4
    odd = whole[first : first + 16].view("float32")
    with pytest.raises(Unsupported, match="not aligned"):
        run(Program.parse("x[i] -> y[i]\n y = x + x"), np.empty(4, "float32"), odd)
