# %% [markdown] slide="slide"
# # 13 · Tracing and scripting
#
# Python runs a line, and forgets it. It computes `x * y` without knowing that
# `tanh` comes next. Whoever wants to fuse both, or to run the program where
# there is no Python, needs **the whole program at once**.
#
# > **The question of this chapter:** How does one get a program out of a Python
# > function, and what is lost?

# %% [markdown] slide="notes"
# 45 minutes: the first picture and the prediction 7, what a trace misses 8, the
# graph 4, script 6, exercise 1 live 8, your tracer on a network 5, measure 3, traps
# 4.

# %% keep=true slide="more" show="output"
import ast
import inspect
import textwrap
import time
import warnings
from dataclasses import dataclass

import numpy as np

import toytorch as torch
from course import check, hint, look, setup, use
from toytorch import viz

setup()


def halve_large(x):
    y = x * x
    if y.sum() > 10:
        y = y / 2
    print("called")
    return y.tanh()


viz.trace_steps(halve_large, torch.ones(3))

# %% [markdown]
# Press *Next*. This is **tracing**: the function is called once, with real tensors,
# and each operation that it asks for becomes a line of the graph. On the left is the
# program, on the right what the tracer has seen. Three lines of the program are never
# marked. The `if` and the `print` are Python's own business, and the division was not
# asked for with these elements.
#
# PyTorch 2.13 calls `torch.jit.trace` deprecated and refers to `torch.compile` and `torch.export`.
# These trace as well, and have the same questions to answer.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The function is traced with ones: the sum is 3, so nothing is halved. Then the
# graph runs with twos: the sum is 12. **Predict:** what is the result,
# `tanh(2 · 2 / 2)` = 0.964 or `tanh(2 · 2)` = 0.999? And how often is `called` printed?

# %% [markdown] slide="notes"
# Let the class vote on both questions. The print ran while tracing, and a second
# time when the function itself was called; never when the graph runs.

# %% slide="more"
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    traced = torch.jit.trace(halve_large, torch.ones(3), check_trace=False)
print("the graph:   ", traced(torch.full((3,), 2.0)))
print("the function:", halve_large(torch.full((3,), 2.0)))
print(textwrap.shorten(str(told[0].message), 72))

# %% [markdown]
# The graph has no `if`, so it cannot halve. It says nothing and computes something
# else than the function. While tracing there was a warning, because the function
# asked a tensor for a truth value. The graph printed nothing: `print` is no
# operation on tensors.

# %% [markdown] slide="slide"
# ## Play: what does a trace miss?
#
# Each function is traced with the first argument. Then graph and function get the
# second one. **Predict** for each whether they agree.

# %% [markdown] slide="notes"
# Vote on each of the eight. What has to be on the whiteboard at the end: branches, Python
# values, and effects. Random numbers of NumPy are Python values.

# %%
counted = []


def count_calls(x):
    counted.append(1)
    return x * len(counted)


def repeat(x):
    for _ in range(int(x.max())):
        x = x + 1
    return x


functions = {
    "torch.where(x > 0, x, -x)": lambda x: torch.where(x > 0, x, -x),
    "x if x.sum() > 0 else -x": lambda x: x * 1 if x.sum() > 0 else -x,
    "x * x.sum()": lambda x: x * x.sum(),
    "x * x.sum().item()": lambda x: x * x.sum().item(),
    "x.mean()": lambda x: x.mean(),
    "x + np.random.rand()": lambda x: x + np.random.rand(),
    "for _ in range(int(x.max()))": repeat,
    "x * len(counted)": count_calls,
}
first, second = torch.tensor([1.0, 2.0]), torch.tensor([-3.0, -1.0])

# %% slide="more"
warnings.simplefilter("ignore", torch.jit.TracerWarning)
for name, f in functions.items():
    graph = torch.jit.trace(f, first, check_trace=False)
    agree = torch.equal(graph(second), f(second))
    print(f"{name:30}{'agree' if agree else 'DIFFER'}")

# %% [markdown]
# A trace misses three kinds of things:
#
# | what | why | instead |
# | --- | --- | --- |
# | **branches and loops** | only the path that was taken is asked for | `torch.where`, or a script |
# | **Python values** | `item()`, `len`, `shape`, NumPy: the number of this one call becomes a constant | operations on tensors |
# | **effects** | `print`, `append`, counters happen once, while tracing | nothing |
#
# `torch.where` asks for both results and chooses by an operation. So the trace has
# everything. `x.mean()` is one operation and divides by the count that it finds.
#
# Shapes are Python values, too. `lambda x: x / len(x)`, traced with two elements, divides by 2 for
# ever in PyTorch. toytorch traces again when a shape is new, so here it would go well.

# %% [markdown] slide="subslide"
# ### The graph
#
# What has been recorded is data: **values**, **nodes** that make them, **blocks** of
# nodes. Each value is made once. This is called *static single assignment*.

# %% [markdown] slide="notes"
# Read the text aloud: the third value is the sum of the second and a constant. Then
# the picture. Constants stand in the boxes that use them.

# %% slide="more"
def layer(x, w, b):
    return torch.tanh(x @ w + b)


small = torch.jit.trace(layer, (torch.ones(2, 3), torch.ones(3, 4),
                                torch.zeros(4)))
for node in small.graph.nodes:
    inputs = ", ".join("%" + v.debugName() for v in node.inputs)
    print(f"%{node.output.debugName():2} = {node.kind}({inputs})")

# %% slide="more" show="output"
viz.ir(small.graph)

# %% [markdown] slide="slide"
# ## Play: read the source instead
#
# `torch.jit.script` never calls the function. It reads its **text**, and a branch
# becomes a node with two blocks.

# %% [markdown] slide="notes"
# Step through the run: the If node chooses a block, and the loop runs its block
# again and again. Ask what the loop's block is given in the second turn.

# %% slide="more"
@torch.jit.script
def grow(x, turns: int):
    for _ in range(turns):
        if bool(x.sum() > 5):
            x = x * 0.5
        else:
            x = x + 1.0
    return x


# %% slide="more" show="output"
viz.ir(grow.graph)

# %% [markdown]
# The graph has values, and no variables. The variable `x` has five values here: the
# argument, what the loop carries, what each branch makes, and what comes out. The
# `If` node says which value the name has afterwards. The next picture runs the graph, node by node:

# %% slide="subslide" show="output"
viz.run_steps(grow, torch.ones(3), 3)

# %% [markdown] slide="notes"
# The first turn adds, since the sum is 3. The second one halves. Blocks are run as
# often as the loop turns, and values of a block get new values each time.

# %% [markdown]
# The price is a language. The compiler has to understand every line, so it takes a
# part of Python only. Here `turns` had to be declared as an integer: without a word, every
# parameter is a tensor.

# %% [markdown] slide="slide"
# ## Build
#
# 1. **Symbols that write down** what is asked of them
# 2. **A graph**: five records, an interpreter and a checker
# 3. **A tracer** for your own `Tensor`
# 4. **What did the trace miss?** Traces compared
# 5. **A script compiler**: from source to branches and loops

# %% [markdown] slide="notes"
# Exercise 1 live. The others are homework, about three hours; 2, 3 and 5 are files of
# the learner's own package, which chapter 14 rewrites programs with.

# %% exercise="tracing.symbols" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. Begin with the class Symbol that only knows its place. Who calls
# `__rmul__`, and with which arguments?

# %% check="tracing.symbols" points=2

# %% exercise="tracing.graph" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifty-five minutes, homework. On the whiteboard: the dictionary of the interpreter
# for the table of the prompt, one column for each turn.

# %% check="tracing.graph" points=5

# %% [markdown]
# From here on, your `Graph` is a file of your package. The tracer stands on it, and
# on your `Tensor` of chapter 04:

# %%
from mytorch.graph import Graph
from mytorch.tensor import Tensor

x = Tensor([1.0, 2.0])
print((x * x).sum())

# %% exercise="tracing.trace" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty minutes. Ask first: what does Python do for Tensor + Traced? It asks the
# subclass first, if it has a reflected method of its own.

# %% check="tracing.trace" points=4

# %%
from mytorch.trace import trace

print(trace(lambda x: (x * x).sum(), x))

# %% exercise="tracing.missed" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. A trace says what one call did. Two traces say whether two calls
# did the same.

# %% check="tracing.missed" points=2

# %% exercise="tracing.script" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Sixty minutes, homework. The table of the prompt on the whiteboard: what does each name
# mean behind the `if`?

# %% check="tracing.script" points=6

# %% [markdown] slide="slide"
# ## Plug in: your tracer reads your network
#
# Two layers of your `Linear`, and a softmax made of your operations. The tracer has never
# heard of modules. **Predict:** how many inputs has the graph, and where are the
# weights?

# %% [markdown] slide="notes"
# One input. The weights are constants: they were no arguments. That is what the
# third trap is about.

# %%
from mytorch.linear import Linear

layers = [Linear(2, 4, seed=1), Linear(4, 3, seed=2)]


def network(x):
    """Logarithms of the probabilities of three classes."""
    hidden = layers[0](x).tanh()
    scores = layers[1](hidden)
    return scores - scores.exp().sum(1, keepdims=True).log()


# %% slide="more"
my_trace = use("tracing.trace")
np.set_printoptions(precision=2, suppress=True, threshold=4, edgeitems=1)
graph_of_network = my_trace(network, np.ones((5, 2)))
graph_of_network.check()
print(graph_of_network)

# %% [markdown] slide="subslide"
# ## The graph gives what the network gives

# %% [markdown] slide="notes"
# The shapes in the graph are those of the example. The interpreter does not look at
# them, so other counts of rows work: nothing here depends on the count.

# %% slide="more"
points = np.random.default_rng(0).normal(size=(500, 2))
by_graph = graph_of_network.run(points)
by_network = network(Tensor(points)).data
print("largest difference:", abs(by_graph - by_network).max())
print("same class for", (by_graph.argmax(1) == by_network.argmax(1)).sum(),
      "of 500 points")

# %% [markdown]
# Not one line of the network was changed. `Linear` calls `x @ self.weight + self.bias`,
# and x is a `Traced`, which is a `Tensor`. That is why tracing works for code that
# nobody has prepared for it.

# %% [markdown] slide="slide"
# ## Plug in: your compiler runs Newton's method
#
# The square root, until it is good enough. Your `script` compiles the text, and your
# interpreter runs the graph. **Predict** how many turns change y for x = 2.

# %% [markdown] slide="notes"
# Step through it. The If node is what a tracer could not have seen, and the carried y
# is one value in each turn.

# %%
def root(x, turns):
    y = x
    for _ in range(turns):
        error = y * y - x
        if error * error > 0.0001:
            y = y - error / (2 * y)
    return y


scripted = use("tracing.script")(inspect.getsource(root))
scripted.check()
print(scripted)


# %% folded=true
def run_shown(graph, *arrays):
    """Run one of your graphs, and step through it."""
    lines, frames, known = str(graph).splitlines(), [], {}

    def line_of(value):
        made = f"%{value.name} :"  # stands where it is made
        return next(n for n, line in enumerate(lines) if made in line)

    def note(caption, value=None):
        keys = [v for v in known if not constant.get(v)]
        shown = [f"%{v.name} is {float(known[v]):.6g}" for v in keys]
        marked = {keys.index(value)} if value in keys else set()
        frames.append((caption, (lines, {line_of(value) if value else 0}),
                       (shown, marked)))

    constant = {}

    def run(block, given):
        known.update(zip(block.inputs, given))
        for node in block.nodes:
            inputs = [known[v] for v in node.inputs]
            if node.op == "if":
                results = run(node.blocks[0 if inputs[0] else 1], [])
            elif node.op == "loop":
                turns, *results = inputs
                for turn in range(int(turns)):
                    inner = node.blocks[0]
                    known.update(zip(inner.inputs, [turn, *results]))
                    note(f"Turn {turn} begins.", inner.inputs[0])
                    results = run(inner, [turn, *results])
            else:
                results = [graph.ops[node.op](*inputs, **node.attributes)]
            for value, result in zip(node.outputs, results):
                known[value] = result
                constant[value] = node.op == "constant"
                if not constant[value]:
                    note(f"{node.op} gives {float(result):.6g}.", value)
        return [known[v] for v in block.outputs]

    for value, array in zip(graph.body.inputs, arrays):
        known[value] = array
    note("The inputs are entered.")
    run(graph.body, arrays)
    return viz.text_steps(frames, ("your graph", "values"))


# %% slide="more" show="output"
run_shown(scripted, 2.0, 5)

# %%
for x in (2.0, 9.0, 1e4):
    roots = [round(float(scripted.run(x, n)), 4) for n in (1, 3, 5, 12)]
    print(f"{x:7}: {roots}")

# %% [markdown] slide="slide"
# ## Plug in: what did the traces miss?
#
# Your `missed` gets functions of your `Tensor`. Each is called twice, with other
# elements or with another shape.

# %% [markdown] slide="notes"
# The last line surprises: your own mean computes its factor in Python, from the
# shape. PyTorch's mean is one operation.

# %% slide="more"
told_by = use("tracing.missed")
generator = np.random.default_rng(1)
one, other = (np.array([1.0, 2.0]),), (np.array([-3.0, 1.0]),)
longer = (np.array([1.0, 2.0, 3.0]),)
programs = {
    "x.relu()": lambda x: x.relu(),
    "x if sum > 0 else x + x": lambda x: x if x.data.sum() > 0 else x + x,
    "x * float(x.data.sum())": lambda x: x * float(x.data.sum()),
    "x + noise": lambda x: x + generator.normal(),
    "x.mean()": lambda x: x.mean(),
}
for name, f in programs.items():
    print(f"{name:26}{told_by(f, one, other):10}{told_by(f, one, longer)}")

# %% [markdown]
# The framework asks the same question in another manner. `torch.jit.trace` runs function
# and graph once more (`check_trace=True`) and compares their results. `torch.compile`
# writes down what it relied on, as *guards*: if one of them is not true in a later
# call, it traces again.

# %% [markdown] slide="slide"
# ## Look inside
#
# The framework's interpreter is yours with other names. This runs a block:

# %% [markdown] slide="notes"
# Put it beside the learner's own: the same dictionary from values to results, and
# the same calls for blocks.

# %% slide="more" show="output"
from toytorch.jit.interpreter import Reader

look(Reader.run_block)

# %%
look(Reader.run_loop)

# %%
from toytorch.jit.check import _block

look(_block)

# %% [markdown]
# And this is where the tracer meets an operation. It is a *mode* (chapter 03): while it
# is on, `dispatch` hands each call to it. So it also sees operations on tensors that nobody has traced, which
# your subclass does not:

# %%
from toytorch.jit.tracer import Tracer

look(Tracer.on_call)

# %% [markdown] slide="slide"
# ## Measure: what does a graph cost?
#
# The network of above, called with your `Tensor` and run as a graph, for batches of
# 1 to 10,000 rows. **Predict:** how much does the graph gain, and for which of them?

# %% [markdown] slide="notes"
# Most people expect a gain. There is none: looking things up costs what making tensors
# costs. A graph is worth something because it can be changed.

# %%
def median_and_spread(f, repeats=15, inner=5):
    """The median and both quartiles of a call's time, in milliseconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(inner):
            f()
        times.append(1e3 * (time.perf_counter() - began) / inner)
    return np.quantile(times, [0.5, 0.25, 0.75])


sizes = [1, 10, 100, 1000, 10_000]
measured = []
for size in sizes:
    rows = np.ones((size, 2))
    x = Tensor(rows)
    runs = (lambda x=x: network(x),
            lambda rows=rows: graph_of_network.run(rows))
    measured.append([median_and_spread(run) for run in runs])

# %% slide="subslide" folded=true varies=true
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 3.1))
lines = (("calling your Tensor", "#e2572b"),
         ("running your graph", "#2a6fb0"))
for which, (label, color) in enumerate(lines):
    middle, least, most = np.array([row[which] for row in measured]).T
    ax.errorbar(sizes, middle, [middle - least, most - middle], fmt="o-",
                color=color, capsize=3, label=label)
ax.set(xscale="log", yscale="log", xlabel="rows of a batch",
       ylabel="milliseconds a call")
ax.legend()
plt.show()

# %% [markdown] slide="notes"
# The bars hold the middle half of fifteen measurements. Where they overlap, a single
# measurement would have said anything.

# %% slide="more" varies=true
for size, (call, run) in zip(sizes, measured):
    print(f"{size:6} rows: {call[0]:7.3f} ms and {run[0]:7.3f} ms,",
          f"{call[0] / run[0]:.2f} times")

# %% [markdown]
# The two lines lie on each other. The interpreter makes no tensors, but it looks up each
# input and each result in a dictionary, and NumPy's work is the same. A graph alone gains
# nothing. It gains once somebody *changes* it: leaves out what nobody
# needs, and makes one loop of many operations. That is chapter 14.

# %% [markdown] slide="slide"
# ## Traps
#
# The mean of three numbers, traced, and run with six:

# %% [markdown] slide="notes"
# One third of the sum of six numbers. Nothing warns. The type in the printed graph
# tells: it was made for three.

# %% slide="more"
mean_graph = my_trace(lambda x: x.mean(), np.ones(3))
print(mean_graph)
print("of three:", mean_graph.run(np.ones(3)))
print("of six:  ", mean_graph.run(np.ones(6)))

# %% [markdown]
# The factor 1/3 was computed by Python from the shape of the example. Trace with the shapes that you
# will use, or trace twice with different shapes and compare, as `missed` does.

# %% [markdown] slide="subslide"
# ## Trained on, and nothing changes

# %% [markdown] slide="notes"
# The weights were copied into the graph. torch.jit.trace of a function refuses to
# do so for tensors that require a gradient; of a module it makes them attributes.

# %% slide="more"
point = np.array([[1.0, 2.0]])
layers[1].weight.data += np.eye(4, 3)  # a step of an optimizer
print("the network:", network(Tensor(point)).data)
print("the graph:  ", graph_of_network.run(point))
layers[1].weight.data -= np.eye(4, 3)

# %% [markdown]
# Whatever is no argument is a constant. Hand the weights over as arguments if they
# are to change. The framework does so for modules, and refuses otherwise:

# %% slide="more" raises=true
weight = torch.ones(3, requires_grad=True)
torch.jit.trace(lambda x: x * weight, torch.ones(3))

# %% [markdown] slide="subslide"
# ### Operations that your tracer does not see
#
# `Function.apply` of chapter 06 takes the arrays out and computes with NumPy:

# %% [markdown] slide="notes"
# The whole graph is one constant. Ask who took x out: `.data` is the exit of the
# trace. Every framework has such exits: numpy(), item(), data_ptr().

# %% slide="more"
from mytorch.cross_entropy import CrossEntropy

labels = np.array([0, 2])
print(my_trace(lambda scores: CrossEntropy.apply(scores, labels),
               np.zeros((2, 3))))

# %% [markdown]
# The loss is a constant. A tracer sees what is asked of *its* tensors, and
# `.data` hands the array to somebody else. The framework's tracer does not have this gap: in a
# `torch.autograd.Function` the operations are still operations on tensors.

# %% [markdown] slide="subslide"
# ## Not in the language

# %% [markdown] slide="notes"
# An error at compile time, with the line. That is what script offers instead of
# silence: what it does not understand it does not compile.

# %% slide="more" raises=true
use("tracing.script")("""
def f(x):
    y = x.tanh()
    while y.sum() > 1:
        y = y * 0.5
    return y
""")

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** `x * 2 if x.sum() > 0 else x * 3` is traced with ones. What does the graph give
# for [-1, -1], and what would a script give?
#
# <details><summary>Answer</summary>
#
# The graph gives [-2, -2]. It has the branch that was taken, and no condition. A script has
# both branches and an `If` node, so it gives [-3, -3].
#
# </details>
#
# **2.** A function that prints is traced, without a check. Then its graph runs three times.
# How often does it print?
#
# <details><summary>Answer</summary>
#
# Once. Tracing calls the function, and `print` runs then. The graph holds operations on
# tensors, and calls of the graph do not call the function any more.
#
# </details>
#
# **3.** Which of these is safe to trace for other shapes: `x / x.shape[0]`,
# `x.mean(0)`, `x.reshape(3, -1)`, `torch.zeros(len(x))`?
#
# <details><summary>Answer</summary>
#
# `x.mean(0)` is: the operation finds the shape itself. `x.reshape(3, -1)` has fixed
# one size, which is right if it is meant. PyTorch's tracer records `x.shape[0]`
# as an operation, so it follows the shape. `len(x)` is a number for Python, and is frozen.
#
# </details>
#
# **4.** Why is each value of a graph made only once, although the program assigns x
# three times?
#
# <details><summary>Answer</summary>
#
# Then a value has one meaning everywhere. A pass can replace it, move a node or drop
# it without asking what was assigned in between. The program's names are only needed
# while it is compiled.
#
# </details>
#
# **5.** An `if` without `else` assigns y, which had a value before. What are the outputs of
# the `If` node for?
#
# <details><summary>Answer</summary>
#
# Behind the `if` the name y means one of two values, and nobody knows which before the
# graph runs. The node's output is the one that was chosen. The branch that does not
# assign y gives the old value.
#
# </details>
#
# **6.** What does this print, and what would it print without the last class's
# `__rmul__`?
#
# ```python
# class Plain:
#     def __mul__(self, other):
#         return "the plain product"
#
#     def __rmul__(self, other):
#         return "the plain product, reflected"
#
#
# class Traced(Plain):
#     def __rmul__(self, other):
#         return "a node"
#
#
# print(Plain() * Traced())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# a node
# ```
#
# The right operand is asked first if its class is a subclass of the left one's, with a
# reflected method of its own. Without it Python calls `Plain.__mul__`. That is how
# `weight * x` becomes a constant in a trace.
#
# </details>
#
# **7.** A name gets a value in a loop's body for the first time. What does Python do here,
# and what does your compiler do?
#
# ```python
# def last(n):
#     for i in range(n):
#         z = torch.ones(1) * i
#     return z
#
#
# print(last(3).item())
# last(0)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 2.0
# UnboundLocalError
# ```
#
# The loop may have zero turns, and then nobody has made the value. Python notices
# this while it runs. A compiler has to know before, so it refuses, or asks for a value
# before the loop.
#
# </details>
#
# **8.** Two traces of a function with the same argument differ. What do you look
# for?
#
# <details><summary>Answer</summary>
#
# For state: a counter, random numbers of NumPy, a clock, a list that grows, a global
# that is changed. The arguments were the same, so they are not the reason. Random
# operations of the framework are nodes and do not differ.
#
# </details>
#
# **9.** *Chapter 11.* `y = (x * 2 + 1).tanh()` on a million float32 elements, one
# operation after the other. How many MB do the three operations move at least?
#
# ```python
# x = torch.ones(1_000_000)
# one_way = x.numel() * x.element_size()
# print(3 * 2 * one_way // 10**6)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 24
# ```
#
# Each operation reads four megabytes and writes four. One loop that does all three would
# read x once and write y once, which is 8 MB. For that somebody has to know the three
# operations together, which is what a graph is for.
#
# </details>
#
# **10.** *Chapter 11.* You measure a function once and its graph once: 1.3 ms and
# 1.1 ms. What can you conclude?
#
# <details><summary>Answer</summary>
#
# Nothing yet. A single time contains whatever else the machine did, and the first
# call often does more than later ones. Measure both many times in turn, and compare
# medians with the spread.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Your `script` has no `while`. Which inputs and blocks would its node need? Where
#   is the condition computed?
# * `return` in a branch: rewrite such a function so that it has one `return` at its
#   end. Could a compiler do that?
# * `torch.compile` reads bytecode. At an operation that it cannot follow it *breaks*
#   the graph, runs Python, and goes on behind it. What does it have to know at that
#   place?
# * Let your tracer warn when somebody reads `.data` of a traced tensor. Which of your
#   own methods read it?
#
# **Next:** chapter 14 rewrites your graphs: what is computed twice is computed once,
# what nobody needs goes, and what is left becomes one loop.

# %% [markdown] slide="notes"
# The third question leads to the framework's own compile, which breaks graphs as
# PyTorch does.
