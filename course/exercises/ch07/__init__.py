"""Chapter 07, Modules: attributes that register, names, a layer, states, statistics, hooks."""

# In the order in which the chapter has them.
from course.exercises.ch07.register import registering
from course.exercises.ch07.parameters import walk
from course.exercises.ch07.linear import linear
from course.exercises.ch07.load import load
from course.exercises.ch07.batchnorm import norm
from course.exercises.ch07.watch import watch
from course.exercises.ch07.module import module
from course.exercises.ch07.linear_own import own_linear
