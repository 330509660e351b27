"""What is not understood is refused where it stands."""

from __future__ import annotations

import pytest

from toytorch.cuda import CompileError, kernel

# The body of a kernel f(float* x, const float* c, int n), the place of the error, and its words.
WRONG = {
    "x[0] = foo;": ("2:8", "'foo' is not declared"),
    "x[0] = 1.0f": ("2:12", "expected ';' before '}'"),
    "c[0] = 1.0f;": ("2:2", "this is const: it cannot be written to"),
    "x[1.5f] = 0.0f;": ("2:3", "an index is a whole number, not 'float'"),
    "n[0] = 1;": ("2:2", "'int' is no array"),
    "float v = n % 2.0f;": ("2:13", "'%' is not defined for 'float': use fmodf"),
    "goto end;": ("2:1", "goto is not supported"),
    "struct P { int a; };": ("2:1", "structs are not supported"),
    "int m = 1; int m = 2;": ("2:16", "'m' is declared twice"),
    "break;": ("2:1", "'break' stands outside of a loop"),
    "float* p = c;": ("2:12", "'const float*' points to constants"),
    "int* p = x;": ("2:10", "cannot convert 'float*' to 'int*' without a cast"),
    "float a[n];": ("2:9", "the length of an array has to be a constant whole number"),
    "float a[0];": ("2:9", "an array has at least one element"),
    "int a[2] = {1, 2, 3};": ("2:12", "3 values for 2 elements"),
    "x[0] = undefined(1);": ("2:8", "function 'undefined' is not defined"),
    "x[0] = __shfl_down(x[0], 1);": ("2:8", "use __shfl_down_sync with a mask"),
    "x[0] = expf(1.0f, 2.0f);": ("2:8", "expf takes 1 arguments, and got 2"),
    "x[0] = max(1.0f, 2);": ("2:8", "max(float, int) is ambiguous"),
    "x[0] = 1 / 0;": ("2:10", "division by zero"),
    "return 1;": ("2:1", "'f' returns void"),
    "3 = n;": ("2:1", "this is a value: it has no place to write to"),
    "__shared__ float s[4] = {1.0f};": ("2:18", "shared memory has no initial value"),
    "__shared__ float s[20000];": ("1:28", "declares 80000 bytes of shared memory"),
    "x[0] = @;": ("2:8", "unexpected character '@'"),
    "x[0] = 08;": ("2:8", "'08' is no number"),
    "if (n) { x[0] = 1.0f;": ("1:63", "this '{' is never closed"),
    "atomicAdd(c, 1.0f);": ("2:1", "atomicAdd writes, and this address is const"),
    "atomicMax(x, 1.0f);": ("2:1", "atomicMax is not defined for 'float'"),
    "std::max(n, 1);": ("2:4", "names in namespaces are not supported"),
    "float v = threadIdx;": ("2:11", "threadIdx has members: say threadIdx.x"),
    "float v = threadIdx.w;": ("2:20", "threadIdx has no member 'w'"),
    "float4 v = make_float4(1, 2, 3, 4); v.q = 1;": ("2:38", "'float4' has no member 'q'"),
    "half h = __float2half(1.0f); x[0] = h + 1.0f;": ("2:39", "ambiguous in CUDA"),
    "f(x, c, n);": ("2:1", "a kernel cannot be launched from a kernel here"),
    "twice(n);": ("2:1", "is host code"),
    "asm(\"trap;\");": ("2:1", "PTX in `asm` is not supported"),
    "SQ(1, 2);": ("2:1", "macro 'SQ' takes 1 arguments, and got 2"),
    "int i = 0; i();": ("2:12", "'i' is a variable: it cannot be called"),
    "loop(n);": ("2:1", "recursion is not supported"),
    'static_assert(sizeof(int) == 8, "");': ("2:1", "static assertion failed"),
    "printf(n);": ("2:1", "printf needs its format as a string"),
    "void v;": ("2:6", "'v' cannot be void"),
    "#if 1.5\n#endif": ("2:5", "a condition of #if is made of whole numbers"),
    "#if 1": ("2:1", "this has no #endif"),
    "float* const p = x; p++;": ("2:21", "this is const"),
    "int x = 1;": ("2:5", "'x' is declared twice"),
    "bool b = true; b++;": ("2:17", "a bool cannot be counted"),
    "float& r = 1.0f;": ("2:8", "a reference needs a variable"),
    "put(x, 1);": ("2:1", "T would be 'float' and 'int'"),
    "#include \"mine.h\"": ("2:1", "cannot include 'mine.h'"),
}  # fmt: skip
BEFORE = {
    "put(x, 1);": "template <typename T> __device__ void put(T* p, T v) { *p = v; }",
    "twice(n);": "void twice(int n) {}",
    "SQ(1, 2);": "#define SQ(x) ((x) * (x))",
    "loop(n);": "__device__ int loop(int n) { return n ? loop(n - 1) : 0; }",
}


@pytest.mark.parametrize("body", WRONG)
def test_it_is_refused_where_it_stands(body: str) -> None:
    place, words = WRONG[body]
    head = 'extern "C" __global__ void f(float* x, const float* c, int n) {'
    source = f"{head}\n{body}\n}}"
    if body in BEFORE:
        source = f"{BEFORE[body]}\n{source}"
    with pytest.raises(CompileError) as caught:
        kernel(source)
    text = str(caught.value)
    assert words in text
    if body not in BEFORE:
        assert text.startswith(f"kernel.cu:{place}: error: ")
        assert text.endswith("^")


def test_the_caret_stands_under_the_word() -> None:
    source = "__global__ void f(float* x) {\n\tx[0] = y;\n}"
    with pytest.raises(CompileError) as caught:
        kernel(source, file="mine.cu")
    assert str(caught.value) == (
        "mine.cu:2:9: error: 'y' is not declared\n    \tx[0] = y;\n    \t       ^"
    )
    assert isinstance(caught.value, ValueError)


def test_directives_choose() -> None:
    source = """#define FAST
    #ifdef FAST
    #undef FAST
    #else
    nonsense(
    #endif
    #ifndef FAST
    __global__ void f(int* x) { x[0] = 1; }
    #endif"""
    assert repr(kernel(source)) == "<kernel f(int* x)>"
    chosen = """#define TILE 16
    #if TILE == 8 || defined(NOTHING)
    nonsense(
    #elif TILE > 8 && !defined NOTHING
    #if UNKNOWN
    nonsense(
    #endif
    __global__ void f(int* x) { x[0] = TILE; }
    #else
    nonsense(
    #endif"""
    assert repr(kernel(chosen)) == "<kernel f(int* x)>"
    with pytest.raises(CompileError, match="this has no #endif"):
        kernel("#ifdef A\n__global__ void f() {}")
