"""Special functions: error, gamma, Bessel and zeta functions, orthogonal polynomials."""
