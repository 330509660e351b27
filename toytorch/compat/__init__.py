"""What only other libraries ask for.

Files of this folder are modules of the package itself: `toytorch/compat/_tensor.py` is `toytorch._tensor`.
"""
