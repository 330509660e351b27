"""Chapter 11, Measure first: a comparison, the uniformity loss, traffic, a roofline, a profiler."""

# In the order in which the chapter has them.
from course.exercises.ch11.compare import comparison
from course.exercises.ch11.uniformity import loss
from course.exercises.ch11.traffic import moved
from course.exercises.ch11.roofline import roofline
from course.exercises.ch11.profiler import own_profiler

# What belongs to the longest of them, in files of its own.
from course.exercises.ch11 import profiler_checks, profiler_mutants
