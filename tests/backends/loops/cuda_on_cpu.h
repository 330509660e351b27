// Enough of CUDA to run a printed kernel on the CPU: a block is 256 threads with a barrier, the
// blocks run one after the other.
#include <math.h>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>
using std::isfinite;
using std::isinf;
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)
struct Dim { unsigned x; };
static thread_local Dim threadIdx, blockIdx;
static Dim blockDim{256}, gridDim;
static std::barrier<> fence(256);
static double exchanged[256];
static void __syncthreads() { fence.arrive_and_wait(); }
template <class T> T __shfl_down_sync(unsigned, T x, int distance) {
    const unsigned me = threadIdx.x, other = me + distance;
    std::memcpy(&exchanged[me], &x, sizeof x);
    fence.arrive_and_wait();
    T y = x;
    if (other / 32 == me / 32) std::memcpy(&y, &exchanged[other], sizeof y);
    fence.arrive_and_wait();
    return y;
}
static float __int_as_float(int x) { float y; std::memcpy(&y, &x, 4); return y; }
static int __float_as_int(float x) { int y; std::memcpy(&y, &x, 4); return y; }
static double __longlong_as_double(long long x) { double y; std::memcpy(&y, &x, 8); return y; }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
template <class F> void launch(unsigned blocks, F kernel) {
    gridDim.x = blocks;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 256; ++t)
        threads.emplace_back([=] {
            threadIdx.x = t;
            for (unsigned b = 0; b < blocks; ++b) {
                blockIdx.x = b;
                kernel();
                fence.arrive_and_wait();
            }
        });
    for (auto& t : threads) t.join();
}
