"""Networks: modules, their functions without state, and starting values."""

from toytorch.nn import functional, init, utils
from toytorch.nn.activation import GELU, Dropout, LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from toytorch.nn.container import Sequential
from toytorch.nn.linear import Flatten, Identity, Linear
from toytorch.nn.loss import CrossEntropyLoss, MSELoss, NLLLoss
from toytorch.nn.module import Module
from toytorch.nn.parameter import Buffer, Parameter

__all__ = ["GELU", "Buffer", "CrossEntropyLoss", "Dropout", "Flatten", "Identity", "Linear",
           "LogSoftmax", "MSELoss", "Module", "NLLLoss", "Parameter", "ReLU", "Sequential",
           "Sigmoid", "Softmax", "Tanh", "functional", "init", "utils"]
