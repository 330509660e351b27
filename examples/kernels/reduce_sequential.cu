// The sum of each block's elements, second version. The first s threads add what lies s further: whole
// warps are active or idle, and neighbours read neighbouring banks. Only the last five steps, within
// one warp, diverge.
extern "C" __global__ void reduce_sequential(const float* x, float* out, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
