"""Tests of accelerators: the CuPy backend over a stand-in that has CuPy's own signatures."""
