// c (m, n) = a (m, k) · b (k, n), second version: a block fetches tiles of a and b into shared memory, and
// its threads use every number TILE times. The intensity grows with the tile.
#define TILE 16
extern "C" __global__ void matmul_tiled(
    const float* a, const float* b, float* c, int m, int n, int k
) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        left[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0.0f;
        right[ty][tx] = first + ty < k && col < n ? b[(first + ty) * n + col] : 0.0f;
        __syncthreads();  // the tiles are there
        #pragma unroll
        for (int i = 0; i < TILE; ++i) sum += left[ty][i] * right[i][tx];
        __syncthreads();  // everybody is done with them
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
