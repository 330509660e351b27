"""Chapter 04, Autograd: undone broadcasts, order, an engine, a Tensor that records."""

# In the order in which the chapter has them.
from course.exercises.ch04.unbroadcast import unbroadcast
from course.exercises.ch04.order import order
from course.exercises.ch04.engine import engine_run
from course.exercises.ch04.tensor import tensor

# What belongs to the longest of them, in files of its own.
from course.exercises.ch04 import tensor_checks, tensor_mutants
