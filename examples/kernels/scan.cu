// Prefix sums: out[i] = x[0] + … + x[i]. Each block scans its part (after Hillis and Steele: in log2 steps
// every thread adds what lies s before it) and leaves its total in sums; the host scans those, and the
// second kernel adds to each block what lies before it.
#define BLOCK 128
extern "C" __global__ void scan_blocks(const float* x, float* out, float* sums, int n) {
    __shared__ float part[BLOCK];
    int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int s = 1; s < BLOCK; s *= 2) {
        float before = t >= s ? part[t - s] : 0.0f;
        __syncthreads();  // all have read
        part[t] += before;
        __syncthreads();  // all have written
    }
    if (i < n) out[i] = part[t];
    if (t == BLOCK - 1) sums[blockIdx.x] = part[t];
}

extern "C" __global__ void add_sums(float* out, const float* before, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) out[i] += before[blockIdx.x];
}
