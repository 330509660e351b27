"""Chapter 06, Extending autograd: a Function, a gradient check, a root, Hessians."""

# In the order in which the chapter has them.
from course.exercises.ch06.swish import swish
from course.exercises.ch06.gradcheck import gradcheck
from course.exercises.ch06.implicit import implicit
from course.exercises.ch06.hvp import hessian
from course.exercises.ch06.function import function
