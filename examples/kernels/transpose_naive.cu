// The transposed of a matrix, first version. A warp reads a row, 4 sectors, and writes a column: each of
// its 32 numbers lies in a sector of its own.
#define TILE 32
extern "C" __global__ void transpose_naive(const float* x, float* out, int rows, int cols) {
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && col < cols) out[col * rows + row] = x[row * cols + col];
}
