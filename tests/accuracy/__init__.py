"""How far results are from the true ones, in units in the last place, beside PyTorch's.

python -m tests.accuracy            everything: each function in float32 and float64, sums and scans
python -m tests.accuracy erf sum    what has one of these in its name
"""
