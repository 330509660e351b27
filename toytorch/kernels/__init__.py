"""Compiled kernels for NumPy's arrays: products, convolution, pools, sums, norms."""
