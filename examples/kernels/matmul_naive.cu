// c (m, n) = a (m, k) · b (k, n), first version: a thread an element of c. Every number of a is read from
// global memory n times and every one of b m times: a quarter of a flop for each byte.
extern "C" __global__ void matmul_naive(
    const float* a, const float* b, float* c, int m, int n, int k
) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
