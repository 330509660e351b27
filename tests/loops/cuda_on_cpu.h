// Enough of CUDA to run a printed kernel on the CPU. The threads of a block take turns: one warp
// goes on until it waits at a barrier of the block, then the next, in ascending or descending
// order. So they are as far apart as barriers allow, always in the same way, and one that is
// missing gives the same wrong result at every run. `launch` says 0 if all went
// well, 1 if threads wait for others that never come.
#include <math.h>
#include <ucontext.h>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>
using std::isfinite;
using std::isinf;
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
struct Dim { unsigned x; };
static Dim threadIdx, blockIdx, blockDim{256}, gridDim;
enum Waits { READY, BLOCK, WARP, DONE };
struct Fiber { ucontext_t context; std::vector<char> stack; Waits waits; };
static std::vector<Fiber> fibers(256);
static ucontext_t home;
static double exchanged[256];
static std::function<void()> body;
static void wait(Waits what) {
    Fiber& me = fibers[threadIdx.x];
    me.waits = what;
    swapcontext(&me.context, &home);
}
static void __syncthreads() { wait(BLOCK); }
template <class T> T __shfl_down_sync(unsigned, T x, int distance) {
    const unsigned me = threadIdx.x, other = me + distance;
    std::memcpy(&exchanged[me], &x, sizeof x);
    wait(WARP);
    T y = x;
    if (other / 32 == me / 32) std::memcpy(&y, &exchanged[other], sizeof y);
    wait(WARP);
    return y;
}
static float __int_as_float(int x) { float y; std::memcpy(&y, &x, 4); return y; }
static int __float_as_int(float x) { int y; std::memcpy(&y, &x, 4); return y; }
static double __longlong_as_double(long long x) { double y; std::memcpy(&y, &x, 8); return y; }
// What the prelude says in PTX; `raw_module` puts these in its place.
#ifdef __x86_64__
#include <immintrin.h>
static float widened(unsigned short x) { return _cvtsh_ss(x); }
static unsigned short narrowed(float x) { return _cvtss_sh(x, 0); }
#else
static float widened(unsigned short x) { __fp16 y; std::memcpy(&y, &x, 2); return y; }
static unsigned short narrowed(float x) { __fp16 y = x; unsigned short z; std::memcpy(&z, &y, 2); return z; }
#endif
template <class T> T atomicAdd(T* at, T x) { T old = *at; *at += x; return old; }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static double rsqrt(double x) { return 1 / sqrt(x); }
#define __sincosf card_sincosf  // glibc has one of its own
static void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
static void sincospi(double x, double* s, double* c) { *s = sin(M_PI * x), *c = cos(M_PI * x); }
static void begin() {
    body();
    wait(DONE);
}
// Lets those go on that all wait for each other; false if nobody can.
static bool released(unsigned first, unsigned count, Waits what) {
    for (unsigned t = first; t < first + count; ++t)
        if (fibers[t].waits != what) return false;
    for (unsigned t = first; t < first + count; ++t) fibers[t].waits = READY;
    return true;
}
static int run_block(bool descending) {
    for (Fiber& f : fibers) {
        f.stack.resize(1 << 16);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = f.stack.size();
        makecontext(&f.context, begin, 0);
        f.waits = READY;
    }
    for (;;) {  // one warp after the other goes as far as it can
        for (unsigned k = 0; k < 256; k += 32) {
            const unsigned warp = descending ? 224 - k : k;
            do {
                for (unsigned lane = 0; lane < 32; ++lane) {
                    threadIdx.x = warp + (descending ? 31 - lane : lane);
                    Fiber& f = fibers[threadIdx.x];
                    if (f.waits == READY) swapcontext(&home, &f.context);
                }
            } while (released(warp, 32, WARP));
        }
        if (released(0, 256, DONE)) return 0;
        if (!released(0, 256, BLOCK)) return 1;
    }
}
template <class F> int launch(unsigned blocks, F kernel, bool descending) {
    gridDim.x = blocks;
    body = kernel;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        if (run_block(descending)) return 1;
    return 0;
}
