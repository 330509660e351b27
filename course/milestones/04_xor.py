"""A perceptron, and what it cannot do: XOR.

A perceptron puts a straight line between two classes. AND has such a line, and XOR has none: the
network needs a hidden layer, and a gradient through it.
"""

import sys

import numpy as np

from mytorch.tensor import Tensor

INPUTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
AND = np.array([[0], [0], [0], [1]], dtype=float)
XOR = np.array([[0], [1], [1], [0]], dtype=float)


def weights(draw, *shape):
    return Tensor(draw.normal(size=shape), requires_grad=True)


def sigmoid(x):
    return 1 / ((-x).exp() + 1)


def learn(network, parameters, wanted, steps, rate):
    """Gradient descent on the cross-entropy; returns how many of the four answers are right."""
    for _ in range(steps):
        p = sigmoid(network(Tensor(INPUTS)))
        loss = -((p + 1e-9).log() * wanted + (1 - p + 1e-9).log() * (1 - wanted)).mean()
        for parameter in parameters:
            parameter.grad = None
        loss.backward()
        for parameter in parameters:
            parameter.data = parameter.data - rate * parameter.grad
    guesses = sigmoid(network(Tensor(INPUTS))).data > 0.5
    return int((guesses == (wanted > 0.5)).sum()), float(loss.data)


def perceptron(draw):
    w, b = weights(draw, 2, 1), weights(draw, 1)
    return lambda x: x @ w + b, [w, b]


def hidden(draw, units=8):
    w1, b1 = weights(draw, 2, units), weights(draw, units)
    w2, b2 = weights(draw, units, 1), weights(draw, 1)
    return lambda x: (x @ w1 + b1).tanh() @ w2 + b2, [w1, b1, w2, b2]


results = {}
for name, make, wanted in (
    ("AND, perceptron", perceptron, AND),
    ("XOR, perceptron", perceptron, XOR),
    ("XOR, 8 hidden units", hidden, XOR),
):
    right, loss = learn(*make(np.random.default_rng(4)), wanted, steps=800, rate=0.5)
    results[name] = right
    print(f"{name:<22}{right} of 4 right, loss {loss:.3f}")

reached = results["AND, perceptron"] == results["XOR, 8 hidden units"] == 4
sys.exit(0 if reached and results["XOR, perceptron"] < 4 else "XOR was not learned")
