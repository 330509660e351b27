"""Philox4x32-10 as CUDA C: one kernel for each kind of number (see `philox`)."""

from __future__ import annotations

HEAD = """\
struct Words { unsigned int w[4]; };
__device__ Words philox(unsigned long long turn, unsigned long long thread, unsigned long long seed) {
    unsigned int x0 = (unsigned int)turn, x1 = (unsigned int)(turn >> 32);
    unsigned int x2 = (unsigned int)thread, x3 = (unsigned int)(thread >> 32);
    unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
    for (int r = 0; r < 10; ++r) {
        const unsigned long long p0 = x0 * 0xD2511F53ULL, p1 = x2 * 0xCD9E8D57ULL;
        x0 = (unsigned int)(p1 >> 32) ^ x1 ^ k0;
        x1 = (unsigned int)p1;
        x2 = (unsigned int)(p0 >> 32) ^ x3 ^ k1;
        x3 = (unsigned int)p0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return Words{{x0, x1, x2, x3}};
}
"""
UNIFORM = """\
__device__ float uniform(unsigned int x) { return x * 0x1p-32f + 0x1p-33f; }
"""
WIDE = """\
__device__ double wide(unsigned int x, unsigned int y) {
    return (double)(x ^ ((unsigned long long)y << 21));
}
"""
KERNEL = """\
extern "C" __global__ void __launch_bounds__(256) kernel({type}* y, long long count,
        unsigned long long seed, unsigned long long start) {{
    const long long threads = gridDim.x * 256LL, me = blockIdx.x * 256LL + threadIdx.x;
    for (long long first = me; first < count; first += {lanes} * threads) {{
        const Words made = philox(start++, me, seed);
        const unsigned int* w = made.w;
        const {type} drawn[{lanes}] = {{{numbers}}};
        for (int k = 0; k < {lanes}; ++k)
            if (first + k * threads < count) y[first + k * threads] = drawn[k];
    }}
}}
"""
NORMAL = """\
        const float turn = 0x1p-32f * 6.2831855f;
        const float r0 = sqrtf(-2 * logf(uniform(w[0]))), r1 = sqrtf(-2 * logf(uniform(w[2])));
        float s0, c0, s1, c1;  // by the card's own sine, as cuRAND
        __sincosf(w[1] * turn + turn / 2, &s0, &c0);
        __sincosf(w[3] * turn + turn / 2, &s1, &c1);
"""
NORMAL_DOUBLE = """\
        const double r = sqrt(-2 * log(wide(w[0], w[1]) * 0x1p-53 + 0x1p-54));
        double sine, cosine;
        sincospi(wide(w[2], w[3]) * 0x1p-52 + 0x1p-53, &sine, &cosine);
"""
PAIR = "(unsigned long long)w[{0}] << 32 | w[{1}]"


def kernel(type: str, numbers: list[str], helpers: str = "", first: str = "") -> str:
    """The source of a kernel whose threads turn four words into these numbers."""
    text = KERNEL.format(type=type, lanes=len(numbers), numbers=", ".join(numbers))
    at = "        const " + type + " drawn"
    return HEAD + helpers + text.replace(at, first + at)


BELOW = """\
template <class T> __device__ T below(T x) { return x == 1 ? 0 : x; }
"""
UNIFORMS = {
    "32": [f"uniform(w[{k}])" for k in range(4)],
    "64": [f"wide(w[{k}], w[{k + 1}]) * 0x1p-53 + 0x1p-54" for k in (0, 2)],
}
SOURCES = {
    "bits32": kernel("unsigned int", [f"w[{k}]" for k in range(4)]),
    "bits64": kernel("unsigned long long", [PAIR.format(0, 1), PAIR.format(2, 3)]),
    "uniform32": kernel("float", UNIFORMS["32"], UNIFORM),
    "uniform64": kernel("double", UNIFORMS["64"], WIDE),
    "below32": kernel("float", [f"below({x})" for x in UNIFORMS["32"]], UNIFORM + BELOW),
    "below64": kernel("double", [f"below({x})" for x in UNIFORMS["64"]], WIDE + BELOW),
    "normal32": kernel(
        "float", ["r0 * s0", "r0 * c0", "r1 * s1", "r1 * c1"],
        UNIFORM, NORMAL,
    ),
    "normal64": kernel("double", ["r * sine", "r * cosine"], WIDE, NORMAL_DOUBLE),
}  # fmt: skip
