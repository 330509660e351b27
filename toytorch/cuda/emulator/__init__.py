"""CUDA C without a GPU and without a compiler: kernels are read, checked and run on NumPy arrays.

    source → lexer → macros → parse → syntax → check → program → run → report

`parse` makes a tree (`syntax`) of what stands there. `check` gives every expression its type, writes
down the conversions that C does silently, and turns names into places: a tree of another kind
(`program`). `run` executes it for the threads of many blocks at once: a value is a NumPy array with an
element a thread, and control flow is sets of threads (`threads`). Beside the values, `access` checks
every address, `races` every pair of accesses, and `counts` what each line costs; `warps` has what
threads do together. `launch` puts it in motion.

What the emulation leaves out: the time a launch takes, registers, caches, the order of warps (whatever
depends on it is reported as a race), and that NVIDIA's compiler contracts a · b + c to one rounding.
"""
