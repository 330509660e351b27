// The sum of each block's elements, first version. In each step, every thread whose number is a
// multiple of 2s adds its partner's sum: the active threads are spread over all warps, so that warps
// go both ways until the very end.
extern "C" __global__ void reduce_interleaved(const float* x, float* out, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
        if (t % (2 * s) == 0) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
