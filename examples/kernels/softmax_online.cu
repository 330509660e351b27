// Softmax of the rows of x (rows, n), a warp a row, online: the largest number and the sum come from one
// pass. When a larger number turns up, the sum so far is scaled by e^(old largest - new largest).
#define ALL 0xffffffff
extern "C" __global__ void softmax_online(const float* x, float* out, int n) {
    const float* row = x + blockIdx.x * n;
    float* result = out + blockIdx.x * n;
    int lane = threadIdx.x;
    float most = -1e30f, sum = 0.0f;
    for (int i = lane; i < n; i += 32) {
        float v = row[i], larger = fmaxf(most, v);
        sum = sum * expf(most - larger) + expf(v - larger);
        most = larger;
    }
    for (int s = 16; s > 0; s /= 2) {  // the same step, between lanes
        float other = __shfl_xor_sync(ALL, most, s), others_sum = __shfl_xor_sync(ALL, sum, s);
        float larger = fmaxf(most, other);
        sum = sum * expf(most - larger) + others_sum * expf(other - larger);
        most = larger;
    }
    for (int i = lane; i < n; i += 32) result[i] = expf(row[i] - most) / sum;
}
