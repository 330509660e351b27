"""Printed CUDA C: compiled by NVRTC where there is one, and run on the CPU by g++."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.loops import nvrtc
from tests.loops.test_loops import PROGRAMS, close
from toytorch.loops import Program
from toytorch.loops.generators import numpy as numpy_blocked
from toytorch.loops.generators.cuda import CudaSource, cuda_source
from toytorch.loops.language.types import TYPES
from toytorch.loops.schedule.build import schedule
from toytorch.loops.schedule.layout import Layout, arrays_of, layout_of, sizes_of

SIZES = {"i": 24, "j": 523, "k": 5, "a": 6, "c": 12, "h": 300}
MORE = {
    "words": """x[i], z[i], u[i] uint8, q[i] int32 -> y[i], s[i] bool, v[i] uint8, w[i] int32
        y = floordiv(x, z) + remainder(x, z) + fmod(x, z) + copysign(x, z) + sign(x)
        s = isnan(x) or isinf(z) or (x > 0 and not isfinite(x / z))
        v = (u >> 1) ^ (u << 2) & 7
        w = q // -3 + q % 5 + maximum(q, 2) - abs(q)""",
    "bits": "x[i] bfloat16 -> y[i] bfloat16\n y = x * 3 + inf * 0",
    "truth": """x[i,j] float64 -> a[i], b[i] bool, c[i] bool
        a = min[j](x * 2)
        b = any[j](x > 3)
        c = all[j](x < 3)""",
    "in place": "x[i,j] -> x[i,j]\n x = x - mean[j](x)",
}


def arrays(program: Program) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    made = []
    # A row is a block with several barriers: few rows, where j counts them.
    sizes = {**SIZES, "j": 20} if program.over == ("i", "k") else SIZES
    for a in arrays_of(program):
        x = rng.standard_normal(tuple(sizes[d] for d in a.dims)) * 3
        made.append(np.asarray(x).astype({"bfloat16": "uint16"}.get(a.type, a.type)))
    return made


def printed(program: Program, given: list[np.ndarray]) -> tuple[CudaSource, Layout]:
    if any(a.type == "bfloat16" for a in program.inputs):
        layout = Layout("flat", (("i",),), (False,), ("1", "1"), (), ("y", "x"))
    else:
        layout = layout_of(program, given)
    return cuda_source(schedule(program, layout, flat=True)), layout


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("name", [*PROGRAMS, *MORE])
def test_it_compiles_for_gpus(name: str, architecture: str) -> None:
    program = Program.parse({**PROGRAMS, **MORE}[name])
    nvrtc.compiles_without_spills(printed(program, arrays(program))[0].source, architecture)


def test_a_bad_kernel_among_many_is_found() -> None:
    """Many are compiled in one program; the failure shows the one that is wrong."""
    good = 'extern "C" __global__ void __launch_bounds__(256) kernel(float* y) { y[0] = 1; }'
    nvrtc.all_compile_without_spills([good] * 3, "sm_90")
    rows = "".join(f"v[{i}] = y[{i} * threadIdx.x];" for i in range(80))
    sums = "".join(f"s += v[{i}] * v[{i * 7 % 80}]; y[{i}] = s;" for i in range(80))
    spilling = good.replace("256", "1024").replace(
        "y[0] = 1;", f"float v[80], s = 0; {rows} {sums}"
    )
    for bad, said in ((good.replace("1;", "one;"), "y[0] = one;"), (spilling, "spill stores")):
        with pytest.raises(AssertionError, match=re.escape(said)):
            nvrtc.all_compile_without_spills([good, bad, good], "sm_90")


RUN = [name for name in (*PROGRAMS, *MORE) if name not in ("kept in rows", "no dimension", "bits")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All kernels in one library; run_K(arguments, blocks, descending) launches number K."""
    sources = []
    for name in RUN:
        program = Program.parse({**PROGRAMS, **MORE}[name])
        sources.append(printed(program, arrays_in_place(name, program))[0].source)
    return built(sources, tmp_path_factory.mktemp("cuda"))


def built(sources: list[str], folder: Path) -> ctypes.CDLL:
    """A library of kernels, for the CPU."""
    compiler = shutil.which("g++")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no g++ with ucontext.h")
    lines = [f'#include "{Path(__file__).parent / "cuda_on_cpu.h"}"']
    for k, source in enumerate(sources):
        head = source.split("kernel(", 1)[1].split(") {", 1)[0]
        types = [" ".join(part.split()[:-1]) for part in head.split(",")]
        values = ", ".join(
            f"*({t}*)args[{n}]".replace("__restrict__", "") for n, t in enumerate(types)
        )
        lines += [
            f"namespace n{k} {{",
            source.replace("kernel(", f"kernel_{k}("),
            "}",
            f'extern "C" int run_{k}(void** args, unsigned blocks, int descending) {{',
            f"    return launch(blocks, [=] {{ n{k}::kernel_{k}({values}); }}, descending);",
            "}",
        ]
    (folder / "all.cpp").write_text("\n".join(lines))
    done = subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            str(folder / "all.so"),
            str(folder / "all.cpp"),
        ],
        text=True,
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(folder / "all.so"))


def arrays_in_place(name: str, program: Program) -> list[np.ndarray]:
    given = arrays(program)
    if name == "in place":
        given[0] = given[1]
    return given


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", RUN)
def test_it_computes_the_same(name: str, descending: bool, library: ctypes.CDLL) -> None:
    program = Program.parse({**PROGRAMS, **MORE}[name])
    wanted, found = ran(
        program,
        arrays_in_place(name, program),
        getattr(library, f"run_{RUN.index(name)}"),
        descending,
    )
    assert found is not None, "a barrier that not all threads reach"
    for a, b in zip(found, wanted):
        close(a, b)


def ran(
    program: Program, given: list[np.ndarray], launch: Any, descending: bool
) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """What NumPy gives and what a kernel on the CPU gives (None: its threads wait for ever)."""
    numbers = [0.5] * len(program.scalars)
    count = len(program.outputs)
    wanted = [np.empty_like(a) for a in given[:count]]
    numpy_blocked.run(program, (*wanted, *(a.copy() for a in given[count:]), *numbers))
    made, layout = printed(program, given)
    scratch = {name: np.empty(1 << 20) for name in made.scratch}
    args = arguments(program, made, layout, given, scratch)
    places = (ctypes.c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
    return wanted, given[:count] if launch(places, 3, int(descending)) == 0 else None


BARRIER = "__syncthreads();"


@pytest.mark.parametrize(
    ("name", "needed"),
    [  # what others protect is protected twice
        ("softmax", [2]),
        ("layer norm", [1, 2]),
        ("loss of rows", [1, 2]),
        ("everything", [2]),
        ("in place", [2]),
    ],
)
def test_a_missing_barrier_is_caught(name: str, needed: list[int], tmp_path: Path) -> None:
    program = Program.parse({**PROGRAMS, **MORE}[name])
    parts = printed(program, arrays_in_place(name, program))[0].source.split(BARRIER)
    library = built(
        [BARRIER.join(parts[:k]) + ";" + BARRIER.join(parts[k:]) for k in needed], tmp_path
    )
    for number, k in enumerate(needed):
        caught = []
        for descending in (False, True):
            wanted, found = ran(
                program,
                arrays_in_place(name, program),
                getattr(library, f"run_{number}"),
                descending,
            )
            caught.append(
                found is None
                or not all(
                    np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
                    for a, b in zip(found, wanted)
                )
            )
        assert any(caught), f"nobody misses barrier {k} of {len(parts) - 1}"


def arguments(
    program: Program,
    made: CudaSource,
    layout: Layout,
    given: list[np.ndarray],
    scratch: dict[str, np.ndarray],
) -> list[ctypes._SimpleCData]:
    """The values of the kernel's parameters."""
    sizes = sizes_of(program, given)
    lengths = [int(np.prod([sizes[d] for d in axis], dtype=int)) for axis in layout.axes]
    named = {f"n{k}": n for k, n in enumerate(lengths)} | {f"size_{d}": n for d, n in sizes.items()}
    nest = schedule(program, layout, flat=True)
    buffers = dict(zip((b.name for b in nest.buffers), zip(given, arrays_of(program))))
    total = 1
    for axis in nest.range:
        last = nest.tile > 1 and axis == len(lengths) - 1
        total *= -(-lengths[axis] // nest.tile) if last else lengths[axis]
    args: list[ctypes._SimpleCData] = []
    for what, name in made.parameters:
        if what == "array":
            args.append(ctypes.c_void_p(buffers[name][0].ctypes.data))
        elif what == "scalar":
            args.append(ctypes.c_float(0.5))
        elif what == "size":
            args.append(ctypes.c_longlong(named[name]))
        elif what == "stride":
            buffer, axis_ = name.rsplit(" ", 1)
            array, record = buffers[buffer]
            dims = [d for d in layout.axes[int(axis_)] if d in record.dims]
            step = array.strides[record.dims.index(dims[-1])] // array.itemsize if dims else 0
            args.append(ctypes.c_longlong(step))
        elif what == "scratch":
            args.append(ctypes.c_void_p(scratch[name].ctypes.data))
        else:
            args.append(ctypes.c_longlong(total))
    return args


def test_constants_in_the_words_of_c() -> None:
    program = Program.parse(
        "x[i] float64, k[i] int64 -> y[i] float64, z[i] int64\n"
        f" y = (x if x > -inf else nan) * 0.1 - 3\n z = k & {-(2**63)}"
    )
    layout = Layout("flat", (("i",),), (False,), ("1",) * 4, (), ("y", "z", "x", "k"))
    source = cuda_source(schedule(program, layout, flat=True)).source
    for word in (
        "__longlong_as_double(0xfff0000000000000LL)",
        "* 0.1;",
        "- 3.0;",
        "(-9223372036854775807LL - 1)",
        "__longlong_as_double(0x7ff8000000000000LL)",
    ):
        assert word in source


def test_types_have_names_in_cuda() -> None:
    assert TYPES["int64"].cuda == "long long" and TYPES["uint8"].cuda == "unsigned char"
