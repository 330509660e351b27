// How often each of BINS values occurs. A block counts in shared memory first: atomics there are cheap, and
// threads of other blocks do not meet at them. Then each block adds its counts to the result.
#define BINS 64
extern "C" __global__ void histogram(const int* x, int* counts, int n) {
    __shared__ int mine[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&mine[x[i]], 1);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) atomicAdd(&counts[b], mine[b]);
}
