"""Chapter 15, Kernels: the cost of a warp's access, a tiled product, an online softmax, a machine, attention."""

# In the order in which the chapter has them.
from course.exercises.ch15.warp import warp
from course.exercises.ch15.product import product
from course.exercises.ch15.softmax import softmax
from course.exercises.ch15.machine import machine
from course.exercises.ch15.attention import flash

# What belongs to the longest of them, in files of its own.
from course.exercises.ch15 import machine_checks, machine_mutants
