// A copy of 4 floats a thread: one instruction moves 16 bytes, and a warp's request 512.
extern "C" __global__ void copy_float4(const float4* x, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) out[i] = x[i];
}
