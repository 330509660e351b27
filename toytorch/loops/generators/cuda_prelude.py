"""Functions that generated CUDA C uses; a kernel is given those that it names."""

from __future__ import annotations

# Each with the words that call for it; later ones may use earlier ones.
FUNCTIONS: dict[str, str] = {
    "maximum(": """
template <class T> __device__ T maximum(T x, T y) {  // NaN if one of them is
    return x != x ? x : y != y ? y : x > y ? x : y;
}""",
    "minimum(": """
template <class T> __device__ T minimum(T x, T y) {
    return x != x ? x : y != y ? y : x < y ? x : y;
}""",
    "absolute(": """
template <class T> __device__ T absolute(T x) { return x < 0 ? -x : x == 0 ? T(0) : x; }""",
    "sign(": """
template <class T> __device__ T sign(T x) { return T((x > 0) - (x < 0)); }  // 0 for NaN""",
    "c_remainder(": """
template <class T> __device__ T c_remainder(T x, T y) { return x % y; }
template <> __device__ float c_remainder(float x, float y) { return fmodf(x, y); }
template <> __device__ double c_remainder(double x, double y) { return fmod(x, y); }""",
    "python_remainder(": """
template <class T> __device__ T python_remainder(T x, T y) {  // with the sign of y
    T rest = c_remainder(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}""",
    "floor_divide(": """
template <class T> __device__ T floor_divide(T x, T y) {  // of integers
    T quotient = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}
template <> __device__ float floor_divide(float x, float y) {
    const float rest = c_remainder(x, y), near = (x - rest) / y;  // rest has the sign of x
    const bool above = rest != 0 && (rest < 0) != (y < 0);
    return y == 0 ? x / y : rintf(above ? near - 1 : near);
}
template <> __device__ double floor_divide(double x, double y) {
    const double rest = c_remainder(x, y), near = (x - rest) / y;  // rest has the sign of x
    const bool above = rest != 0 && (rest < 0) != (y < 0);
    return y == 0 ? x / y : rint(above ? near - 1 : near);
}""",
    "shift_left(": """
template <class T> __device__ T shift_left(T x, T y) {  // everything may be shifted out
    return (unsigned long long)y >= 8 * sizeof(T) ? T(0) : T((unsigned long long)x << y);
}""",
    "shift_right(": """
template <class T> __device__ T shift_right(T x, T y) {
    const T none = (long long)x < 0 ? T(-1) : T(0);
    return (unsigned long long)y >= 8 * sizeof(T) ? none : T(x >> y);
}""",
    "from_float16(": """
__device__ float from_float16(unsigned short x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}""",
    "to_float16(": """
__device__ unsigned short to_float16(float x) {
    unsigned short y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}""",
    "from_bfloat16(": """
__device__ float from_bfloat16(unsigned short x) { return __int_as_float((int)x << 16); }""",
    "to_bfloat16(": """
__device__ unsigned short to_bfloat16(float x) {  // half to even
    unsigned bits = __float_as_int(x);
    return (x != x ? bits | 1u << 22 : bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}""",
    "Four<": """
template <class T> struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four { T v[4]; };""",
    "Join_add(": """
struct Join_add { template <class T> __device__ T operator()(T x, T y) { return x + y; } };""",
    "Join_mul(": """
struct Join_mul { template <class T> __device__ T operator()(T x, T y) { return x * y; } };""",
    "Join_maximum(": """
struct Join_maximum { template <class T> __device__ T operator()(T x, T y) {
    return maximum(x, y); } };""",
    "Join_minimum(": """
struct Join_minimum { template <class T> __device__ T operator()(T x, T y) {
    return minimum(x, y); } };""",
    "Join_fmax(": """
struct Join_fmax { template <class T> __device__ T operator()(T x, T y) {
    return fmax(x, y); } };""",
    "Join_logical_or(": """
struct Join_logical_or { template <class T> __device__ T operator()(T x, T y) {
    return x || y; } };""",
    "Join_logical_and(": """
struct Join_logical_and { template <class T> __device__ T operator()(T x, T y) {
    return x && y; } };""",
    "join_threads<": """
template <class T, class Join> __device__ T join_threads(T total, Join join) {
    // First within each warp, then the warps' totals; every thread of the block gets the result.
    __shared__ T totals[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int other = 16; other; other /= 2)
        total = join(total, T(__shfl_down_sync(0xffffffffu, total, other)));
    __syncthreads();  // the totals of the reduction before have been read
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    total = totals[0];
    for (int k = 1; k < blockDim.x / 32; ++k) total = join(total, totals[k]);
    return total;
}""",
}
NEEDS = {
    "python_remainder(": ["c_remainder("],
    "floor_divide(": ["c_remainder("],
    "Join_maximum(": ["maximum("],
    "Join_minimum(": ["minimum("],
}


def of(body: str) -> str:
    """The functions that the body of a kernel uses."""
    wanted = {word for word in FUNCTIONS if word in body}
    for word in list(wanted):
        wanted |= set(NEEDS.get(word, ()))
    return "".join(FUNCTIONS[word] for word in FUNCTIONS if word in wanted).lstrip("\n")
