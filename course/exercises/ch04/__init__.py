"""Chapter 04, Autograd: undone broadcasts, order, an engine, a Tensor that records."""

# In the order in which the chapter has them.
from course.exercises.ch04.unbroadcast import unbroadcast
from course.exercises.ch04.order import order
from course.exercises.ch04.engine import engine_run
from course.exercises.ch04.tensor import tensor
