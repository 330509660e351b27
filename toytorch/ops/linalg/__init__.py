"""Products of matrices, factorisations, and what is computed from them."""
