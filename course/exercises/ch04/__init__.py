"""Chapter 04, Autograd: derivatives of ops, undone broadcasts, sums at forks, order, an engine."""

# In the order in which the chapter has them.
from course.exercises.ch04.tanh import tanh
from course.exercises.ch04.product import product
from course.exercises.ch04.unbroadcast import unbroadcast
from course.exercises.ch04.accumulate import accumulate
from course.exercises.ch04.order import order
from course.exercises.ch04.engine import engine_run
