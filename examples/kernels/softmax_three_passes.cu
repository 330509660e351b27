// Softmax of the rows of x (rows, n), a warp a row, in three passes over memory: the largest number, the
// sum of e^(x - largest), and the quotients.
#define ALL 0xffffffff
extern "C" __global__ void softmax_three_passes(const float* x, float* out, int n) {
    const float* row = x + blockIdx.x * n;
    float* result = out + blockIdx.x * n;
    int lane = threadIdx.x;
    float most = -1e30f;
    for (int i = lane; i < n; i += 32) most = fmaxf(most, row[i]);
    for (int s = 16; s > 0; s /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, s));
    float sum = 0.0f;
    for (int i = lane; i < n; i += 32) sum += expf(row[i] - most);
    for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(ALL, sum, s);
    for (int i = lane; i < n; i += 32) result[i] = expf(row[i] - most) / sum;
}
