"""The face of GPUs: kernels in emulation."""
