"""CUDA C without a GPU and without a compiler: kernels are read, checked and run on NumPy arrays.

    source → lexer → macros → parse → syntax → check → program → run → report

`parse` makes a tree of what stands there, `check` gives every expression its type and turns names
into places, and `run` executes the result for the threads of many blocks at once. Beside the values,
`memory` checks every address, `races` every pair of accesses, and `counts` what each line costs.
"""
