"""Runs programs of seeds on both packages, finds the first difference, makes the program shorter."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.oracle import ORACLE, SUBJECT, dtype_name, torch, tt
from tests.outside import compare
from tests.outside.compare import Comparer, Difference
from tests.outside.program import draw
from tests.outside.running import Failure, Program, Run, limited

TRIES = 6  # runs with other roundings
MORE = 24  # and where some of the numbers are infinite, of which only the signs may differ


class Found(NamedTuple):
    program: Program
    line: int  # the statement after which the sides differ
    difference: Difference

    @property
    def group(self) -> str:
        """What differs and in which call: one cause, as a rule."""
        text = self.program.lines[self.line]
        if text.startswith("f") or re.match(r"v\d+ = f\d", text):
            what = "function"
        else:
            called = re.search(
                r"(torch\.[\w.]+|(?<=[\w\])])\.\w+)\(?",
                re.sub(
                    r"torch\.tensor\(.*?\]\)?, dtype=torch.\w+\)|torch\.zeros\(.*?\)", "T", text
                ),
            )
            what = called.group(0) if called else re.sub(r"\bv\d+", "v", text)[:40]
        return f"{self.difference.kind}: {what}"


def compiled_names(program: Program) -> set[str]:
    return set(re.findall(r"^(f\d+) = ", str(program), re.M))


ASSERTED = compare.ASSERTED
HALF_PAIRS = (
    "a tensor of scalar type: Half"  # as a complex number, which is a name only here, by design
)
# What torch.unique_consecutive gives for flags by position are results that nobody computed.
FLAGS_LOST = re.compile(r"torch\.unique_consecutive\([^=]*\b(True|False)\b")


# What compiled functions give are no views that nobody sees: `detach_` does not refuse them.
OF_VIEWS = re.compile(r"(?:v\d+ = )?(v\d+)\.(?:detach_|_is_view)\(\)$")

# PyTorch's vectors of float32 and half types give NaN for the GELU of an infinity, its loops of single
# elements an infinity or 0.
GELU = re.compile(r"gelu\(|\.GELU\(")
# A mode of interpolation, or of padding, that there is none of, by number.
NO_MODE = re.compile(
    r"torch\.grid_sampler(?:_\dd)?\(.*, (?:grid=)?\w+, (?:interpolation_mode=)?"
    r"(?:-\d|[3-9]|\d, (?:padding_mode=)?(?:-\d|[3-9]))"
)

# The most frequent of numbers that PyTorch hands to std::sort, which leaves open where NaN comes.
MODES = re.compile(r"\bmode\(")

GROWS = re.compile(r"out=|resize_\w*\(")
NEGATIVE = re.compile(r"as_strided_?\((?:v\d+, )?(?:size=)?\([\d, ]*-\d")
MEDIANS = re.compile(r"median\(")
COVARIANCE = re.compile(r"\bcov\(.*weights=")

PART = re.compile(r"(v\d+) = (v\d+)\[-?\d+\]$")
COUNTED = re.compile(r"(v\d+)\._version\b")
LIES = re.compile(r"v\d+ = (v\d+)\.(?:stride|storage_offset|is_contiguous)\(.*\)$")
# Where a complex number is infinite, PyTorch divides by its size as complex numbers are divided (both
# parts are NaN) or each part by itself, as the place in the memory has it: its vectors do the latter.
UNITS = re.compile(r"torch\.sgn\(|\.sgn_?\(")


def of_pytorch_alone(text: str, failed: Failure | None, ours: Failure | None, theirs: Run) -> bool:
    """Whether a statement went otherwise for a reason in PyTorch: its library of Fourier transforms
    knows no transforms of nothing, an assertion about its own insides failed, and complex numbers of
    halves are a name only here, by design."""
    if ours is not None and HALF_PAIRS in ours.message:
        return True
    if failed is not None:
        own = ("MKL FFT error", "SmallVector unable to grow")  # of -1 dimensions
        return failed.message.startswith(own) or any(
            said in failed.message for said in (ASSERTED, "for 'ComplexHalf'")
        )
    made = theirs.space.get(text.partition(" = ")[0])
    return isinstance(made, torch.Tensor) and dtype_name(made.dtype) == "complex32"


def first_difference(program: Program, traces: bool = False) -> Found | None:
    """Both sides run, statement by statement, until they differ; PyTorch `traces` what is to be traced,
    or runs it."""
    theirs, ours = Run(torch, traces), Run(tt)
    comparer = Comparer(compiled_names(program), traces)
    for i, text in enumerate(program.lines):
        a, warned = theirs.step(text)
        with limited():
            b, too = ours.step(text)
        found = compare.failures(a, b)
        if found is not None and of_pytorch_alone(text, a, b, theirs):
            return None
        if re.match(r"(v\d+) = f\d+\(", text):
            named = set(re.findall(r"v\d+", text))
            comparer.from_functions.update(named)
            comparer.written_inside.update(named)
        if comparer.written_inside:
            comparer.written_inside |= beside(comparer.written_inside, theirs.values())
        part = PART.match(text)  # of a tuple, which is the same tensor by another name
        several = part is not None and not isinstance(theirs.space.get(part[2]), torch.Tensor)
        if part is not None and several and part[2] in comparer.from_functions:
            comparer.from_functions.add(part[1])
        seen = OF_VIEWS.search(text)
        if seen is not None and depends_on(seen[1], comparer.from_functions, program.lines[:i]):
            return None
        if ".output_nr" in text and comparer.from_functions & set(re.findall(r"v\d+", text)):
            return None  # all results of a graph hang on one node (`compare.NODES`)
        if "autograd.grad(" in text and comparer.from_functions:
            comparer.from_functions.update(re.findall(r"^v\d+", text))  # from which these come, too
        if "._version" in text and any(".step()" in line for line in program.lines[:i]):
            return None  # how often a rule writes is its own affair
        counted = COUNTED.search(text)
        if counted is not None and comparer.counts_otherwise(counted[1]):
            return None
        lies = LIES.match(text)
        if lies is not None and lies[1] in comparer.nowhere:
            return None  # how nothing lies, which is not compared either (`Comparer.one`)
        if ".is_conj()" in text:
            return None  # a mark of PyTorch's, where ours has conjugated (`Comparer.one`)
        if "pickle.loads(" in text:
            comparer.unpickled.update(re.findall(r"^v\d+", text))
        if ".step()" in text:
            comparer.first.clear()  # how often a rule writes is its own affair
        asked = compare.WARNINGS_COMPARED and not re.match(r"\w+ = (compiled|traced)\(|def ", text)
        if found is None and asked and warned != too:
            found = Difference("warnings", "", str(warned), str(too))
        try:
            found = found or comparer.differences(ours.values(), theirs.values())
            if found is not None and found[:1] + found[2:3] == ("dtype", "complex32"):
                return None  # a type that is a name only here, by design
            if found is not None and FLAGS_LOST.search(text):
                return None
            if a is not None and found is not None and found.kind == "shape" and "out=" in text:
                return None  # PyTorch may have resized the out= of what it then refused
        except Exception as e:
            found = Difference("question", "", "", f"{type(e).__name__}: {e}")
        if found is not None:
            return Found(program, i, found)
    return None


def depends_on(name: str, functions: set[str], lines: Sequence[str]) -> bool:
    """Whether a variable is what a compiled function gave, or part of it."""
    made = {m[1]: m[2] for m in map(PART.match, lines) if m}
    return name in functions or made.get(name) in functions


def beside(names: set[str], values: dict[str, Any]) -> set[str]:
    """The variables that lie in the memory of others, whose writes count for all of them."""
    places = [
        (compare.root_of(path), v.untyped_storage()._cdata)
        for path, v in compare.all_leaves(ORACLE, values)
        if isinstance(v, torch.Tensor)
        and v.layout is torch.strided
        and not v._is_zerotensor()  # which has no memory
    ]
    taken = {at for name, at in places if name in names}
    return {name for name, at in places if at in taken}


def disturb(
    values: dict[str, Any], seen: dict[int, int], rng: np.random.Generator, text: str = ""
) -> None:
    """Moves the last bits of what the last statement, `text`, computed."""
    summed = FOURIER.search(text) is not None  # each sum is rounded beside the largest of them
    known = {id(x) for x in tensors_in(values)}
    for x in tensors_in(values):
        if x.is_inference() or (x._base is not None and id(x._base) in known):
            continue
        if not (x.is_floating_point() or x.is_complex()) or seen.get(id(x)) == x._version:
            continue
        seen[id(x)] = x._version
        eps = 2 * torch.finfo(x.dtype).eps
        with torch.no_grad():
            d = x.data.resolve_conj()
            sign = torch.from_numpy(rng.choice([-1.0, 1.0, 0.5], size=tuple(d.shape)))
            part = torch.view_as_real(d).frac().abs().sum(-1) if x.is_complex() else d.frac()
            # Numbers beyond 1/eps are whole whatever they were before they were rounded.
            rounded = (part != 0) | (d.abs() > 1 / eps)
            if summed:
                known = d.abs()[torch.isfinite(d.abs())]
                largest_one = known.max() if known.numel() else 0
                moved = d + eps * sign * largest_one if rounded.any() else d
            else:
                moved = torch.where(rounded & torch.isfinite(d.abs()), d * (1 + eps * sign), d)
            if ZEROS.search(text):
                parts = torch.view_as_real(moved.resolve_conj()) if x.is_complex() else moved
                either = torch.from_numpy(rng.choice([-1.0, 1.0], size=tuple(parts.shape)))
                parts = torch.where(parts == 0, torch.zeros_like(parts).copysign(either), parts)
                moved = torch.view_as_complex(parts) if x.is_complex() else parts
            try:
                x.data.copy_(moved.to(x.dtype))
            except RuntimeError:
                continue  # elements that share memory


EPS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7}


class Unsure:
    """PyTorch, whose numbers in a program's text have other last bits."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def from_numpy(self, array: Any) -> Any:
        return self.tensor(array)

    def tensor(self, *args: Any, **kwargs: Any) -> Any:
        made = torch.tensor(*args, **kwargs)
        disturb({"x": made}, {}, self.rng)
        return made


def tensors_in(values: dict[str, Any]) -> list[Any]:
    return [v for _, v in compare.all_leaves(ORACLE, values) if isinstance(v, torch.Tensor)]


def written_twice(values: dict[str, Any], lines: Sequence[str]) -> bool:
    """Whether there was a write to a tensor of which several elements are one place of memory."""
    by_data = any(".data" in text for text in lines)  # whose writes are not counted
    for t in tensors_in(values):
        if t.layout is not torch.strided or t.is_inference():
            continue
        if not (by_data or t._version or t.grad is not None):
            continue
        steps = sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1)
        reach = 0
        for s, n in steps:
            if s <= reach:
                return True
            reach += s * (n - 1)
    return False


def largest(values: dict[str, Any]) -> float:
    """The largest number of ordinary size that the program holds, at least 1."""
    most = 1.0
    for t in tensors_in(values):
        if t.numel() and t.layout is torch.strided and t.dtype is not torch.bool:
            x = t.detach().abs().to(torch.float64)
            x = x[x < 1e4]
            most = max(most, float(x.max()) if x.numel() else 1.0)
    return most


def narrowest(values: dict[str, Any], line: str) -> str:
    """The float type with the fewest bits that takes part: what it rounded stays so."""
    found = {dtype_name(t.dtype) for t in tensors_in(values)} | set(
        re.findall(r"torch\.(\w*float\d+)", line)
    )
    if any(not (t.is_floating_point() or t.is_complex()) for t in tensors_in(values)):
        found.add("float32")  # the default, which integers become
    for name in ("bfloat16", "float16", "float32"):
        if name in found:
            return name
    return ""


FACTORS = re.compile(
    r"torch\.(?:linalg\.)?(?:eigh|svd|eig|geqrf|svd_lowrank|pca_lowrank)\(|\.svd\("
)
DECOMPOSED = re.compile(
    r"torch\.(?:(?:linalg\.)?(?:solve_triangular|triangular_solve|cholesky_solve|lu_solve)"
    r"|linalg\.(?:lstsq|solve|solve_ex|det|slogdet|inv|inv_ex|pinv|matrix_rank|cond)"
    r"|linalg\.householder_product|cholesky_inverse|ormqr|orgqr"
    r"|slogdet|logdet|det|inverse|pinverse|geqrf|linalg\.qr|qr)\(|\.geqrf\(|\.qr\("
)
# Complex arithmetic, of which PyTorch's loops of vectors and of single elements leave other parts of
# an infinite result NaN.
PARTS = re.compile(r" (?:\*\*?|/)=? |\b(?:addc\w+|mul\w*|div\w*|exp|prod|cumprod|pow)_?\(")
FOURIER = re.compile(r"torch\.(?:fft\.\w+|i?stft)\(")
PRODUCTS = re.compile(
    r" @ |@=|\b(?:\w*mm|matmul|dot|bmm|mv|inner|tensordot|einsum|linear|multi_dot)_?\("
)
# Sums of products, where a zero has the sign that the order of the sum, or BLAS, gives it; and what
# PyTorch's vectors give with another sign of zero than its loops of single elements.
ZEROS = re.compile(
    rf"{PRODUCTS.pattern}|{DECOMPOSED.pattern}|interpolate\(|(?i:upsample|softshrink)"
    r"|\b(?:maximum|minimum|fmax|fmin|a?max|a?min|aminmax)\("
)
SIGNS = re.compile(r"(v\d+)\.signbit\(\)|torch\.signbit\((v\d+)\)")
# Least squares by the default driver, of which rcond= may leave out columns.
PIVOTED = re.compile(
    r"lstsq\((?!.*driver='gels[ds]?')(?=.*rcond=[\d.-]|\w+, \w+, [\d.-]|.*\), [\d.-]+\)$)"
)
# Eigenvalues and least squares of what is not finite, of which PyTorch asks nothing: of 1x1 matrices
# eigenvalues are NaN, LAPACK crashes on others, and its least squares are NaN or 0.
ASKED_NOTHING = re.compile(r"eigvals\(|lstsq\(")
# Results of another type, a form for other devices: the CPU says in one of two classes that it has none.
OF_A_DEVICE = re.compile(r"aten::\w*mm\.dtype")
# What is rounded within the last statement.
ROUNDED = re.compile(r"\bv\d+\.(?:float|half|bfloat16)\(\)")
# Several values for one place: which of them stays is nowhere said.
PUT = re.compile(r"\.put_?\(")
# PyTorch's gradient of what is scattered into keeps what was written over, and loses the rest, which its
# own gradcheck refuses (tests/ops/test_database.py).
SCATTERED = re.compile(r"\bas_strided_scatter\(")
DERIVED = re.compile(r"backward\(|autograd\.grad\(")
EIGENVALUES = re.compile(r"linalg\.eigvals\(")
BITS = re.compile(r"view(?:_copy)?\(.*torch\.(?:u?int\d+|bool|float\d+)\)|view\(dtype")


def turned(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], narrow: str) -> bool:
    """Whether two sets of vectors are the same up to their signs, or phases: of singular vectors and
    eigenvectors nobody says which."""
    size = max(float(np.abs(a).max(initial=0)), 1.0)  # what a small entry was rounded beside
    return bool(compare.close(np.abs(a) + size, np.abs(b) + size, narrow).all())


def in_any_order(found: Found) -> bool:
    """Whether the last dimensions of two results hold the same numbers, of which LAPACK says no order."""
    made = results(found)
    if made is None or made[0].shape != made[1].shape:
        return False
    a, b = (np.sort_complex(v.reshape(-1, v.shape[-1])) for v in made)
    return bool(compare.close(a, b, str(a.dtype)).all())


def bits_of_nan(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays of bits differ only in sign and payload of NaN, which IEEE 754 leaves open,
    and in the last bits of other numbers."""
    if a.dtype != b.dtype or a.dtype.kind not in "biufc":
        return False
    for kind in (np.float16, np.float32, np.float64):
        try:
            x, y = (np.ascontiguousarray(v).reshape(-1).view(kind) for v in (a, b))
        except ValueError:
            continue
        if compare.close(x, y, str(x.dtype)).all():
            return True
    return False


def of_our_nans(found: Found) -> bool:
    """Whether PyTorch's result is ours where NaN have the sign and payload that they have here, of which
    IEEE 754 says nothing."""
    made, theirs, ours = results(found), Run(torch), Run(tt)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        theirs.step(text)
        ours.step(text)
    for name in re.findall(r"\bv\d+\b", last.partition(" = ")[2]):
        a, b = theirs.space.get(name), ours.space.get(name)
        if isinstance(a, torch.Tensor) and isinstance(b, tt.Tensor) and a.is_floating_point():
            bits = torch.from_numpy(SUBJECT.numpy(b.detach()).copy())
            if bits.dtype is a.dtype and bits.shape == a.shape:
                a.data.copy_(torch.where(a.data.isnan(), bits, a.data))
    theirs.step(last)
    return made is not None and alike(value_at(theirs, found.difference.path), made[1])


def apart_out(line: str, plain: Run, path: str) -> np.ndarray[Any, Any] | None:
    """What PyTorch's call gives where out= is memory of its own: where that is another result, the
    call has read what it had written, which its documentation does not allow for."""
    name = re.search(r"out=(v\d+)\b", line)
    if name is None or name[1] not in plain.space:
        return None
    changed = line.replace(name[0], f"out=torch.empty_like({name[1]})")
    failed, _ = plain.step(re.sub(r"^\w+ = ", "apart_ = ", changed))
    return (
        None if failed is not None else value_at(plain, "apart_" + path[len(path.split("[")[0]) :])
    )


def alike(a: np.ndarray[Any, Any] | None, b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays, of which one may be missing, are the same but for rounding."""
    if a is None or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(compare.close(a, b, str(b.dtype)).all())


WRITTEN = re.compile(
    r"out=(v\d+)\b|^(?:v\d+ = )?(v\d+)(?:\[.*\] [-+*/%@]*= | [-+*/%@]+= |\.\w+_\()"
)


def from_a_copy(line: str, plain: Run, path: str) -> np.ndarray[Any, Any] | None:
    """What PyTorch's call gives where it reads a copy of the memory that it writes to: which elements
    it reads before they are written over is nowhere said (`v[[1, 0]] = v`, `masked_scatter_`,
    `amin(v, out=v)`)."""
    found = WRITTEN.search(line)
    name = found and (found[1] or found[2])
    target = plain.space.get(name) if name else None
    if found is None or not isinstance(target, torch.Tensor):
        return None
    at = target.untyped_storage().data_ptr()

    def copied(m: re.Match[str]) -> str:
        value = plain.space.get(m[0])
        shared = isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() == at
        return f"{m[0]}.clone()" if shared else m[0]

    if found[1]:
        kept = (found.start(1), found.end(1))
    else:
        kept = (found.start(2), found.end(2))
    bound = re.match(r"v\d+ = ", line)
    start = bound.end() if bound else 0
    parts = [line[start : kept[0]], line[kept[1] :]]
    changed = [re.sub(r"\bv\d+\b", copied, part) for part in parts]
    if changed == parts:
        return None
    failed, _ = plain.step(f"{line[:start]}{changed[0]}{name}{changed[1]}")
    return None if failed is not None else value_at(plain, path)


def value_at(run: Run, path: str) -> np.ndarray[Any, Any] | None:
    try:
        found = eval(path, run.space)
        return ORACLE.numpy(found) if isinstance(found, torch.Tensor) else np.asarray(found)
    except Exception:
        return None


# Rational approximations with errors up to 2e-5 near zeros: airy_ai(-2.166) is 0.1193463 and not
# PyTorch's 0.1193482. Ours are held to mpmath's values by tests/accuracy.
# Chebyshev's polynomials are cosines of multiples of angles, and the exponential of a matrix of half
# types is a sum of powers of it, each rounded, of which float64 tells what is right.
APPROXIMATE = re.compile(r"airy_ai|bessel_\w\d|polygamma|chebyshev_polynomial|matrix_exp")


def results(found: Found) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """What both sides have where they differ, if it is numbers of one shape and type."""
    lines, path = found.program.lines[: found.line + 1], found.difference.path
    theirs, ours = Run(torch), Run(tt)
    for text in lines:
        theirs.step(text)
        ours.step(text)
    a = value_at(theirs, path)
    try:
        b = SUBJECT.numpy(eval(path, ours.space))
    except Exception:
        return None
    return None if a is None or a.shape != b.shape or a.dtype != b.dtype else (a, b)


def nearly(found: Found) -> bool:
    """Whether both sides' results are the same to four digits."""
    made = results(found)
    return made is not None and np.allclose(*made, 1e-4, 1e-6, equal_nan=True)


def where_finite(found: Found, apart: float = 0) -> bool:
    """Whether both sides' results are the same but for rounding where both are finite, or that far
    apart."""
    made = results(found)
    if made is None:
        return False
    a, b = made
    known = np.isfinite(a) & np.isfinite(b)
    if apart and np.allclose(a[known], b[known], 1e-5, apart):
        return True
    return alike(a[known], b[known])


OVER_ITSELF = re.compile(r"^( *(?:\w+ = )?)(.*\(.*)\bout=(\w+|\([\w, ]+\))\)$")
# Polynomials of NaN by whole degrees: PyTorch gives back what it has not computed.
POLYNOMIALS = re.compile(r"polynomial_\w\(")


def of_copies(text: str, values: dict[str, Any] | None = None) -> str:
    """A statement, or a function's text, in which what is both an operand and out= is copied first,
    and so is what lies in its memory, if there are values: what PyTorch reads of it after it has
    written there is nowhere said."""
    lines = []
    for line in text.split("\n"):
        m = OVER_ITSELF.match(line)
        if m is not None:
            outs = set(re.findall(r"\w+", m[3]))
            names = beside(outs, values or {}) | outs
            copied = re.sub(rf"\b({'|'.join(names)})\b(?!=[^=])", r"\1.clone()", m[2])
            line = f"{m[1]}{copied}out={m[3]})"
        lines.append(line)
    return "\n".join(lines)


def over_itself(found: Found) -> bool:
    """Whether our result is PyTorch's of a program that copies operands which are out=, too."""
    theirs, ours, any_changed = Run(torch), Run(tt), False
    for text in found.program.lines[: found.line + 1]:
        changed = of_copies(text, theirs.values())
        any_changed = any_changed or changed != text
        theirs.step(changed)
        ours.step(text)
    path = found.difference.path
    if not any_changed:
        return False
    try:
        mine_too = SUBJECT.numpy(eval(path, ours.space))
    except Exception:
        return False
    return alike(value_at(theirs, path), mine_too)


def taken_of_copies(found: Found) -> bool:
    """Whether PyTorch takes the last statement, too, where what is both an operand and out= is copied
    first: it resizes out= before it looks at the operands' shapes."""
    run = Run(torch)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)
    copied = of_copies(last, run.values())
    return copied != last and run.step(copied)[0] is None


ASSIGNED = re.compile(r"(v\d+)\[(.+?)\] (\S+)= (.+)$")


def taken_step_by_step(found: Found) -> bool:
    """Whether PyTorch takes `v[i] += x` where it is asked for the history of v before it is assigned to:
    that of a view was changed by the sum, through another view, which it has not yet noticed."""
    *before, last = found.program.lines[: found.line + 1]
    written = ASSIGNED.match(last)
    if written is None or "a leaf Variable that requires grad" not in found.difference.expected:
        return False
    run = Run(torch)
    for text in before:
        run.step(text)
    name, at, op, value = written.groups()
    steps = (f"v0 = {name}[{at}]", f"v0 {op}= {value}", f"{name}.grad_fn", f"{name}[{at}] = v0")
    return all(run.step(text)[0] is None for text in steps)


def of_conjugates(found: Found) -> bool:
    """Whether an operand of the last statement is marked as conjugated in PyTorch, which then computes
    with a copy, and sees no memory in common."""
    run = Run(torch)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)
    named = {n: run.values().get(n) for n in re.findall(r"\bv\d+\b", last)}
    return any(t.is_conj() for t in tensors_in(named))


def taken_of_a_copy(found: Found) -> bool:
    """Whether PyTorch takes the last statement, too, where it reads a copy of the memory that it writes
    to: `v //= v.T` divides by what it has made 0 before."""
    run = Run(torch)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)
    written = WRITTEN.search(last)
    name = written and (written[1] or written[2])
    return bool(name) and from_a_copy(last, run, str(name)) is not None


def of_doubles(found: Found) -> bool:
    """Whether our result is PyTorch's of the same numbers in float64: of large numbers it finds the
    phase of a wave in float32, which leaves nothing of it."""
    made, run = results(found), Run(torch)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)

    def wide(m: re.Match[str]) -> str:
        value = run.space.get(m[0])
        whole = isinstance(value, torch.Tensor) and not value.is_floating_point()
        return f"{m[0]}{'.float()' if whole else ''}.double()"

    name, _, call = last.partition(" = ")
    widened = re.sub(r"\bv\d+\b", wide, call)
    run.step(f"{name} = ({widened}).float()")
    exact = value_at(run, found.difference.path)
    if made is None or exact is None or made[1].dtype.kind != "f":
        return False
    return alike(exact.astype(made[1].dtype), made[1])


def read_after_resizing(found: Found) -> bool:
    """Whether an out= is an operand, too, and of another shape than the result: PyTorch resizes it
    and then reads what is left; the result of copied operands is what nobody can mistake."""
    before, ours = Run(torch), Run(tt)
    for text in found.program.lines[: found.line]:
        before.step(text)
        ours.step(text)
    last, path = found.program.lines[found.line], found.difference.path
    ours.step(last)
    try:
        mine = SUBJECT.numpy(eval(path, ours.space))
    except Exception:
        return False
    return alike(from_a_copy(last, before, path), mine)


def finite(found: Found, amiss: Any = lambda x: ~torch.isfinite(x)) -> bool:
    """Whether all that the program holds before its last statement is finite, as is its text; or has
    no numbers that are `amiss`."""
    run = Run(torch)
    for text in found.program.lines[: found.line]:
        run.step(text)
    last = found.program.lines[found.line]
    return not re.search(r"\b(inf|nan)\b", last) and all(
        not bool(amiss(t.detach()).any())
        for n in re.findall(r"\bv\d+\b", last.partition(" = ")[2])
        for t in tensors_in({n: run.values().get(n)})
        if t.layout is torch.strided
    )


CALLS = r"(?:\.\w+\((?:[^()]|\([^()]*\))*\))*"  # of methods, whose arguments may be tuples


def deficient(found: Found) -> bool:
    """Whether a matrix of the last statement has not the full rank, whose factors rounding chooses."""
    run = Run(torch)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)
    names = re.findall(r"\bv\d+\b", last.partition(" = ")[2])
    operands = tensors_in({n: run.values().get(n) for n in names})
    for text in re.findall(r"torch\.tensor\(\[.*?\], dtype=torch\.\w+\)" + CALLS, last):
        operands += tensors_in({"x": eval(text, run.space)})
    for t in operands:
        if t.layout is torch.strided and t.ndim > 1 and t.numel() and torch.isfinite(t).all():
            x = t.detach().to(torch.complex128).numpy()
            if (np.linalg.matrix_rank(x, rtol=1e-5) < min(x.shape[-2:])).any():
                return True
    return False


def turned_diagonal(t: Any) -> Any:
    """Where the diagonal of matrices is not real."""
    return t.diagonal(0, -2, -1).imag != 0 if t.is_complex() and t.ndim > 1 else torch.zeros(())


def near_the_end(t: Any) -> Any:
    """Where products of finite numbers overflow."""
    if not (t.is_floating_point() or t.is_complex()):
        return torch.zeros(())
    return torch.isfinite(t) & (t.abs() > torch.finfo(t.dtype).max ** 0.5)


def signs_of_nan(found: Found) -> bool:
    """Whether signs differ only of NaN, of which IEEE 754 says nothing."""
    made, run = results(found), Run(torch)
    for text in found.program.lines[: found.line]:
        run.step(text)
    asked = SIGNS.search(found.program.lines[found.line])
    operand = value_at(run, next(filter(None, asked.groups()))) if asked else None
    return (
        made is not None
        and operand is not None
        and bool(((made[0] == made[1]) | np.isnan(operand)).all())
    )


def of_rows(found: Found) -> bool:
    """Whether our result is PyTorch's of operands that lie in rows."""
    run, made = Run(torch), results(found)
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)
    name, _, call = last.partition(" = ")
    given = re.sub(
        r"(\bv\d+\b|\.expand\([^()]*\)|\.as_strided\(\([^()]*\), \([^()]*\)\))",
        r"\1.contiguous()",
        call,
    )
    run.step(f"{name} = {given}")
    return made is not None and alike(value_at(run, found.difference.path), made[1])


def is_complex(found: Found) -> bool:
    made = results(found)
    return made is not None and made[0].dtype.kind == "c"


def overflows(found: Found) -> bool:
    """Whether what goes into the last statement, or what comes out of it, is not all finite."""
    made = results(found)
    return not finite(found) or (made is not None and not all(np.isfinite(v).all() for v in made))


TRACED = re.compile(r"(f\d+) = traced\(f\d+, (?:apart\((.*)\)|\((.*),\))\)$")
CALLED = re.compile(r"(v\d+) = (f\d+)\((.*)\)$")


def unrolled(found: Found, anywhere: bool = False) -> Program | None:
    """The program with the statements of functions in the place of their calls; None if none is called
    in its last line, or `anywhere`."""
    texts: dict[str, str] = {}
    made: list[str] = []
    *before, last = found.program.lines[: found.line + 1]
    if not any(
        CALLED.match(t) or TRACED.match(t) for t in ((*before, last) if anywhere else (last,))
    ):
        return None
    for i, line in enumerate((*before, last)):
        called, traced = CALLED.match(line), TRACED.match(line)
        if line.startswith("def f"):
            texts[line[4 : line.index("(")]] = line
        elif called is not None and called[2] in texts:
            made += body(texts[called[2]], called[3].split(", "), i, called[1])
        elif traced is not None and traced[1] in texts:  # what traces, runs once
            given = (traced[2] or traced[3]).split(", ")
            names = {n: f"v8{i:03d}{k:02d}" if traced[2] else n for k, n in enumerate(given)}
            made += [f"{new} = {n}.detach().clone()" for n, new in names.items() if n != new]
            made += body(texts[traced[1]], [names[n] for n in given], i)
        elif not re.match(r"f\d+ = compiled", line):
            made.append(line)
    return Program(found.program.seed, tuple(made))


def body(text: str, given: Sequence[str], at: int, result: str = "") -> list[str]:
    """The statements of a function for these arguments, in names that belong to one call."""
    head, *lines, returned = (t.strip() for t in text.rstrip().split("\n"))
    names = dict(zip(re.findall(r"\bx\d+", head), given))

    def named(m: re.Match[str]) -> str:
        return names.get(m[0], f"v9{at:03d}{m[0][1:].zfill(2)}")

    if result:
        lines.append(f"{result} = {returned.removeprefix('return ')}")
    return [re.sub(r"\b[xy]\d+\b(?!=[^=])", named, t) for t in lines]  # but no keyword


def explained_outside(found: Found) -> bool:
    """Whether the statements of functions, where they stand by themselves, differ as the functions do,
    and that is explained; or what they give, which a function then refuses or takes."""
    program = unrolled(found)
    outside = None if program is None else first_difference(program)
    return (
        outside is not None
        and found.difference.kind in (outside.difference.kind, "refused", "accepted")
        and explained(outside)
    )


def freed_by_one_node(found: Found) -> bool:
    """Whether nothing differs where functions' statements stand by themselves: a function's results hang
    on one node (`compare.NODES`), which is freed whole, though only part of it was asked for."""
    program = unrolled(found, anywhere=True)
    return program is not None and first_difference(program) is None


def of_single_operands(found: Found) -> bool:
    """Whether our result is PyTorch's of a call in which what is given twice is copied."""
    run, seen = Run(torch), set[str]()
    *before, last = found.program.lines[: found.line + 1]
    for text in before:
        run.step(text)

    def copied(m: re.Match[str]) -> str:
        again = m[0] in seen
        seen.add(m[0])
        return f"{m[0]}.clone()" if again else m[0]

    run.step(re.sub(r"\bv\d+\b", copied, last))
    made = results(found)
    return made is not None and alike(value_at(run, found.difference.path), made[1])


def of_a_loss(found: Found) -> bool:
    """Whether the last statement asks for the memory behind a loss that is one number, or a view of
    that, where PyTorch has the summands."""
    program = unrolled(found, anywhere=True)
    *before, last = found.program.lines[: found.line + 1] if program is None else program.lines
    shown = re.search(
        r"(\w+)\.(?:as_strided(?:_copy)?|untyped_storage)\(|as_strided(?:_copy)?\((\w+)", last
    )
    run = Run(torch)
    for text in before:
        run.step(text)
    same = beside({shown[1] or shown[2]} if shown else set(), run.values())
    return any(
        re.match(rf"{name} = .*\b(smooth_l1|mse|soft_margin)_loss\(", t)
        for name in same
        for t in before
    )


def as_traced(found: Found) -> bool:
    """Whether PyTorch's traces of functions, too, do otherwise than the functions: as ours do."""
    program = Program(found.program.seed, found.program.lines[: found.line + 1])
    return " = traced(" in str(program) and first_difference(program, traces=True) is None


def explained(found: Found) -> bool:
    """Whether PyTorch's own results move as far when the last bits of what it computed move."""
    kind = found.difference.kind
    last = found.program.lines[found.line]
    if as_traced(found) or explained_outside(found):
        return True
    if "torch.native_group_norm(" in last and kind == "value":
        return True  # PyTorch reads weight and bias beside each other, whatever their strides say
    if re.search(r"(Group|Batch|Instance)Norm\w*\(", last) and kind == "value":
        run = Run(
            torch
        )  # x·a + b, where what x·a was rounded by is left of the smallest deviations
        for text in found.program.lines[: found.line]:
            run.step(text)
        smallest = 1 / 1e-5**0.5  # what a number is multiplied by at most
        if nearly(found) or where_finite(found, 1.2e-7 * largest(run.values()) * smallest):
            return True
    if re.search(r"torch\.(linalg\.)?lu\w*\(", last):
        return True  # which of two rows that rounding, or NaN, makes alike comes first
    if kind == "value" and DECOMPOSED.search(last) and not finite(found):
        return True  # LAPACK says nothing of infinities and NaN
    if kind == "value" and (DECOMPOSED.search(last) or FACTORS.search(last)) and deficient(found):
        return True
    if kind == "value" and FOURIER.search(last) and overflows(found) and where_finite(found):
        return True  # which sums of infinities are NaN is the algorithm's affair
    called = CALLED.match(last)
    inside = called and next(
        (t for t in found.program.lines if t.startswith(f"def {called[2]}(")), ""
    )
    parts = kind == "value" and (PARTS.search(last) or (inside and PARTS.search(inside)))
    infinite = parts and is_complex(found) and overflows(found)
    if infinite and where_finite(found):
        return True
    if kind == "value" and PRODUCTS.search(last) and overflows(found) and where_finite(found):
        return True  # nor BLAS of what infinity times 0 is, or a complex product with an infinity
    if kind == "value" and SIGNS.search(last) and signs_of_nan(found):
        return True
    if kind == "value" and UNITS.search(last) and not finite(found) and where_finite(found):
        return True
    if kind == "value" and GELU.search(last) and not finite(found) and where_finite(found, 1e-6):
        return True
    if kind == "value" and MODES.search(last) and not finite(found, torch.isnan):
        return True
    if kind == "value" and MEDIANS.search(last) and of_rows(found):
        return True  # PyTorch reads beyond what an expanded dimension has in memory
    if kind == "value" and COVARIANCE.search(last) and not last.startswith(found.difference.path):
        return True  # PyTorch writes over what it is given, where that is a single observation
    if kind == "value" and NO_MODE.search(last):
        return True  # PyTorch asks nothing of the number, and gives back what it has not computed
    if kind == "value" and PIVOTED.search(last):
        return True  # PyTorch hands LAPACK's gelsy pivots that nobody has set
    if kind == "value" and "batch_norm(" in last and of_single_operands(found):
        return (
            True  # PyTorch reads a parameter after it has written to the statistic that it is, too
        )
    if kind == "value" and "cholesky_inverse(" in last and not finite(found, turned_diagonal):
        return True  # of a factor, whose diagonal is real, LAPACK reads the imaginary part at times
    large = kind == "value" and CALLED.match(last) and not finite(found, near_the_end)
    if large and where_finite(found):
        return True  # x·y + z rounded once is finite where x·y alone is not
    if kind == "sharing" and "saved(" in last and ".numpy()" in str(found.program):
        return True  # PyTorch's files hold memory that came back from NumPy once more
    behind = kind == "refused" and "setStorage" in found.difference.got
    if (behind or (kind == "plain" and ".nbytes()" in last)) and of_a_loss(found):
        return True
    if kind == "refused" and "second time" in found.difference.got and freed_by_one_node(found):
        return True
    if kind == "value" and EIGENVALUES.search(last) and in_any_order(found):
        return True
    if kind in ("value", "grad") and SCATTERED.search(str(found.program)) and DERIVED.search(last):
        return True
    if kind == "value" and PUT.search(last) and "accumulate=True" not in last:
        return True
    if kind == "value" and APPROXIMATE.search(last) and (nearly(found) or of_doubles(found)):
        return True
    if kind == "shape" and re.search(r"-\d", found.difference.expected):
        return True  # a size below 0, which `as_strided_` of PyTorch takes as it is
    if kind == "value" and POLYNOMIALS.search(str(found.program)) and not finite(found):
        return True
    if kind in ("value", "shape") and over_itself(found):
        return True
    if kind == "shape" and "out=" in last:
        return read_after_resizing(found)
    if kind == "accepted" and (taken_of_copies(found) or taken_of_a_copy(found)):
        return True
    if kind == "refused" and not taken_of_copies(found) and of_copies(last) != last:
        return True  # PyTorch takes it because it resizes out= before it looks at the operands
    if kind == "accepted" and taken_step_by_step(found):
        return True
    if (
        kind == "refused"
        and "single memory location" in found.difference.got
        and of_conjugates(found)
    ):
        return True
    root = compare.root_of(found.difference.path)
    if (
        kind == "value"
        and f"\n{root} = torch.from_dlpack(" in str(found.program)
        and GROWS.search(last)
    ):
        return True  # PyTorch's DLPack shows memory that is gone when its owner has grown
    if kind == "refused" and NEGATIVE.search(last):
        return True  # a size below 0, which is nothing that a tensor can have
    if kind == "refused" and ASKED_NOTHING.search(last) and not finite(found):
        return True
    if kind == "class of error" and OF_A_DEVICE.search(str(found.difference)):
        return True
    if kind in ("accepted", "refused", "class of error"):
        return False
    if kind not in ("value", "grad", "array", "number", "plain"):
        return False
    lines = list(found.program.lines[: found.line + 1])
    path = found.difference.path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = Run(torch)
        ours = Run(tt)
        for text in lines:
            failed, _ = plain.step(text)
            ours.step(text)
        if failed is not None:
            return True  # how far it came before it failed
        try:
            mine = eval(path, ours.space)
        except Exception:
            return False
        mine = SUBJECT.numpy(mine) if isinstance(mine, tt.Tensor) else np.asarray(mine)
        if written_twice(plain.values(), lines):
            return True  # what comes of it depends on the order
        a = value_at(plain, path)
        if a is not None and a.shape == mine.shape and FACTORS.search(lines[-1]):
            return turned(a, mine, dtype_name(eval(path, plain.space).dtype))
        bits = a is not None and a.shape == mine.shape and BITS.search("\n".join(lines))
        if bits and (bits_of_nan(a, mine) or of_our_nans(found)):
            return True  # else the bits may be those of numbers that were rounded: see below
        if "out=" in lines[-1]:
            before = Run(torch)
            for text in lines[:-1]:
                before.step(text)
            if alike(apart_out(lines[-1], before, path), mine):
                return True
        before = Run(torch)
        for text in lines[:-1]:
            before.step(text)
        if alike(from_a_copy(lines[-1], before, path), mine):
            return True
        scale = largest(plain.values())
        narrow = narrowest(plain.values(), lines[-1])
        if a is None or a.dtype.kind not in "fcbiu" or a.shape != mine.shape:
            return False
        moved = []
        rounded = ROUNDED.search(lines[-1])
        if rounded is not None:
            lines[-1:] = [f"v0 = {rounded[0]}", lines[-1].replace(rounded[0], "v0")]
        # Of a number that was cut off to an integer, a single last bit tells.
        for k in range(TRIES if mine.dtype.kind in "fc" and np.isfinite(mine).all() else MORE):
            run, rng, seen = Run(torch), np.random.default_rng(k), dict[int, int]()
            run.space["torch"] = Unsure(rng)
            for text in lines[:-1]:
                run.step(text)
                disturb(run.values(), seen, rng, text)
            run.step(lines[-1])
            b = value_at(run, path)
            if b is not None and b.shape == a.shape:
                moved.append(b)
    if not moved:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.all((a == mine) | np.any([m != a for m in moved], axis=0)))
    if a.dtype.kind == "c" and not (np.isfinite(a) & np.isfinite(mine)).all():
        return all(
            within(*(part(v) for v in (a, mine)), [part(m) for m in moved], narrow, scale)
            for part in (np.real, np.imag)
        )
    return within(a, mine, moved, narrow, scale)


def within(
    a: np.ndarray[Any, Any],
    mine: np.ndarray[Any, Any],
    moved: Sequence[np.ndarray[Any, Any]],
    narrow: str,
    scale: float,
) -> bool:
    """Whether numbers are as near to PyTorch's as its own with other roundings are; of complex
    numbers of which one is not finite, this is asked of each part."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), mine.astype(wide)
    with np.errstate(all="ignore"):
        far = np.max([np.where(m == a, 0, np.abs(m.astype(wide) - x)) for m in moved], axis=0)
        gap = np.abs(x - y)
        odd = np.isfinite(x) != np.isfinite(y)  # beside a pole, beyond which there may be NaN
        eps = np.finfo(a.dtype).eps if a.dtype.kind in "fc" else 0
        ok = compare.close(a, mine, narrow or str(a.dtype))
        ok |= gap <= 4 * max(eps, EPS.get(narrow, 0)) * scale
        ok |= (gap <= 30 * far) | (
            odd & np.any([np.isfinite(m) != np.isfinite(x) for m in moved], axis=0)
        )
    return bool(np.all(ok))


def look(seed: int) -> Found | None:
    """The difference of a seed's program that rounding does not explain; None without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = draw(seed)
    found = first_difference(program)
    if found is not None and as_traced(found):  # what comes after it is compared, too
        found = first_difference(program, traces=True)
    return None if found is None or explained(found) else found


def shorter(found: Found) -> Found:
    """The same kind of difference with as few statements as possible."""
    lines = list(found.program.lines[: found.line + 1])
    best = found._replace(program=Program(found.program.seed, tuple(lines)))
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(best.program.lines))):
            less = best.program.lines[:i] + best.program.lines[i + 1 :]
            got = first_difference(Program(found.program.seed, less))
            if (
                got is not None
                and got.difference.kind == found.difference.kind
                and not explained(got)
            ):
                best = got._replace(program=Program(found.program.seed, less[: got.line + 1]))
                changed = True
                break
    return best
