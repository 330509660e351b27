// The transposed of a matrix, second version. A tile goes through shared memory, so that both global
// accesses are by rows. But a column of the tile lies in one bank: its 32 numbers come one by one.
#define TILE 32
extern "C" __global__ void transpose_tiled(const float* x, float* out, int rows, int cols) {
    __shared__ float tile[TILE][TILE];
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = x[row * cols + col];
    __syncthreads();
    col = blockIdx.y * TILE + threadIdx.x;  // of the result
    row = blockIdx.x * TILE + threadIdx.y;
    if (row < cols && col < rows) out[row * rows + col] = tile[threadIdx.x][threadIdx.y];
}
