// softmax(q · kᵀ · scale) · v for one head, q, k, v and out (n, D), without the matrix of scores in memory.
// A block has TILE queries, a thread one of them. Tiles of keys and values pass through shared memory,
// and softmax goes on online: `most`, `total` and `sum` are those of the keys seen so far.
#define D 32
#define TILE 32
extern "C" __global__ void flash_attention(
    const float* q, const float* k, const float* v, float* out, int n, float scale
) {
    __shared__ float keys[TILE][D], values[TILE][D];
    int t = threadIdx.x, row = blockIdx.x * TILE + t;
    float query[D], sum[D], score[TILE];
    for (int d = 0; d < D; ++d) {
        query[d] = row < n ? q[row * D + d] * scale : 0.0f;
        sum[d] = 0.0f;
    }
    float most = -1e30f, total = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        int count = min(TILE, n - first);
        for (int j = 0; j < count; ++j) {  // thread t fetches column t: D is as many as TILE
            keys[j][t] = k[(first + j) * D + t];
            values[j][t] = v[(first + j) * D + t];
        }
        __syncthreads();
        float larger = most;
        for (int j = 0; j < count; ++j) {
            float dot = 0.0f;
            for (int d = 0; d < D; ++d) dot += query[d] * keys[j][d];
            score[j] = dot;
            larger = fmaxf(larger, dot);
        }
        float shrink = expf(most - larger);
        total *= shrink;
        for (int d = 0; d < D; ++d) sum[d] *= shrink;
        for (int j = 0; j < count; ++j) {
            float weight = expf(score[j] - larger);
            total += weight;
            for (int d = 0; d < D; ++d) sum[d] += weight * values[j][d];
        }
        most = larger;
        __syncthreads();
    }
    if (row < n) {
        for (int d = 0; d < D; ++d) out[row * D + d] = sum[d] / total;
    }
}
