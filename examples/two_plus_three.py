"""2 + 3, followed through every layer of toytorch: from two numbers to a compiled kernel.

    python examples/two_plus_three.py

Read it next to ARCHITECTURE.md: each heading names the files in which that step happens.
"""

import toytorch as torch
from toytorch import ops, viz


def main() -> dict[str, str]:
    """Prints every step, and returns them."""
    steps: dict[str, str] = {}

    def show(title: str, *lines: object) -> None:
        steps[title] = "\n".join(str(line) for line in lines)
        print(f"\n== {title}\n{steps[title]}")

    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(3.0)
    show(
        "A tensor is a view of memory (core/tensor.py, core/storage.py)",
        f"x = {x}: shape {tuple(x.shape)}, strides {x.stride()}, {x.dtype}",
        f"its memory: {x.untyped_storage().nbytes()} bytes",
    )

    add = ops.add
    show(
        "An operation is one record (ops/elementwise/arithmetic.py, core/op.py)",
        add.schema,
        f"formula: {add.formula}",
        *(f"d {name} = {formula}" for name, formula in add.formulas.items()),
    )

    torch.add(x, y)  # the function's source is made when it is first called
    source = add.source()
    show(
        "Its function is generated from the record (core/fast_path.py)",
        source[source.index("def add(") :].rstrip(),
    )

    z = x + y
    show(
        "A call: the kernel is NumPy's add, and the result remembers where it came from "
        "(core/dispatch.py, facts/node.py)",
        f"z = {z.item()}",
        f"node: {z.grad_fn.name()}",
        f"its edges: {[None if n is None else n.name() for n, _ in z.grad_fn.next_functions]}",
    )

    z.backward()
    show(
        "Backward: the engine runs the node, which gives g to both operands (autograd/engine.py)",
        f"dz/dx = {x.grad.item()}, and y wanted none: {y.grad}",
    )

    a, b = torch.full((1000,), 2.0), torch.full((1000,), 3.0)
    traced = torch.jit.trace(lambda x, y: (x + y) * 0.5, (a, b))
    show("A thousand of them, written down as a graph (jit/tracer.py, jit/ir.py)", traced.graph)

    kernels = viz.kernel_sources(lambda x, y: (x + y) * 0.5, a, b)
    languages = kernels.sources[0]
    show(
        "The fuser makes one loop program of two operations (jit/fuser, loops/language)",
        languages["program"],
    )
    show(
        "and generators write it as loops: in Python (loops/generators/python.py)",
        languages["python"].strip(),
    )
    show(
        "for a GPU (loops/generators/cuda.py)",
        languages["cuda"][languages["cuda"].rindex('extern "C"') :].strip(),
    )
    if "llvm" in languages:
        vector = next(line for line in languages["llvm"].splitlines() if " fadd " in line)
        show(
            "and for this processor (loops/generators/llvm.py, loops/runtime/jit.py)",
            vector.strip(),
        )
    half = torch.compile(lambda x, y: (x + y) * 0.5)
    half(a, b)  # written down here, and compiled at the second call
    show("The compiled function gives the same", half(a, b)[:3].tolist())
    return steps


if __name__ == "__main__":
    main()
