// The transposed of a matrix, third version. With one column more, neighbours in a column of the tile are
// 33 words apart, and each lies in another bank.
#define TILE 32
extern "C" __global__ void transpose_padded(const float* x, float* out, int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = x[row * cols + col];
    __syncthreads();
    col = blockIdx.y * TILE + threadIdx.x;  // of the result
    row = blockIdx.x * TILE + threadIdx.y;
    if (row < cols && col < rows) out[row * rows + col] = tile[threadIdx.x][threadIdx.y];
}
