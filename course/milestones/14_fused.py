"""A network traced, differentiated, improved and fused by passes of one's own.

The training step is one graph. Its fused nodes are run by NumPy, a block of rows at a time, so that
what lies between two operations stays in the cache.
"""

import re
import sys
from statistics import median
from time import perf_counter

import numpy as np

from mytorch.derive import derive
from mytorch.fuse import fuse
from mytorch.prune import prune
from mytorch.share import share
from mytorch.tensor import Tensor
from mytorch.trace import trace

ROWS = 64  # of a block
FUNCTIONS = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "where": np.where}


def in_blocks(*arrays, text, shape):
    """Run the text of a fused node, and stack its results."""
    head, _, body = text.partition("\n")
    left, _, right = head.partition(" -> ")
    names, results = re.findall(r"(\w+)\[", left), re.findall(r"(\w+)\[", right)
    code = compile(body, "a fused node", "exec")
    rank, made = len(shape) - 1, np.empty(shape)
    for start in range(0, shape[1] if rank else 1, ROWS):
        rows = slice(start, start + ROWS)
        known = dict(FUNCTIONS)
        for name, array in zip(names, arrays):
            whole = np.ndim(array) == rank and rank > 0 and np.shape(array)[0] > 1
            known[name] = array[rows] if whole else array
        exec(code, known)
        for n, name in enumerate(results):
            made[(n, rows) if rank else n] = known[name]
    return made


def loss_of(x, target, w1, b1, w2, b2):
    """The mean squared error of a network with one hidden layer."""
    hidden = (x @ w1 + b1).tanh()
    error = hidden @ w2 + b2 - target
    return (error * error).mean()


draw = np.random.default_rng(14)
x = draw.uniform(-2, 2, (512, 2))
target = np.sin(3 * x[:, :1]) * x[:, 1:]
weights = [
    draw.normal(size=(2, 64)),
    draw.normal(size=64),
    draw.normal(size=(64, 1)) / 8,
    np.zeros(1),
]

graph = derive(trace(loss_of, x, target, *weights))
before = len(graph.body.nodes)
graph.body.outputs = [graph.body.outputs[0], *graph.body.outputs[3:]]  # none for x and target
graph = prune(share(graph))
between = len(graph.body.nodes)
graph = fuse(graph, in_blocks)
graph.check()
fused = sum(node.op == "fused" for node in graph.body.nodes)
print(f"{before} nodes, {between} after share and prune, then {fused} loops")

leaves = [Tensor(array, requires_grad=True) for array in weights]
loss = loss_of(Tensor(x), Tensor(target), *leaves)
loss.backward()
found = graph.run(x, target, *weights)
gaps = [abs(part - leaf.grad).max() for part, leaf in zip(found[1:], leaves)]
print(f"the largest difference to the engine's gradients is below {1e-12:.0e}: {max(gaps) < 1e-12}")

times = []
for step in range(1, 3001):
    began = perf_counter()
    loss, *gradients = graph.run(x, target, *weights)
    times.append(perf_counter() - began)
    weights = [w - 0.05 * g for w, g in zip(weights, gradients)]
    if step % 750 == 0:
        print(f"step {step}: loss {float(loss):.4f}")

reached = float(loss) < 0.1 and max(gaps) < 1e-12
print(f"{1e3 * median(times):.2f} ms a step; aim: a loss below 0.1")
sys.exit(0 if reached else "the loss is not small enough")
