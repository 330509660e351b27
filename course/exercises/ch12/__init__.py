"""Chapter 12, Accelerators: asynchrony, an event timer, races, a pipeline, a caching allocator."""

# In the order in which the chapter has them.
from course.exercises.ch12.clock import clock
from course.exercises.ch12.timer import timer
from course.exercises.ch12.races import ordered
from course.exercises.ch12.pipeline import overlap
from course.exercises.ch12.allocator import own_allocator

# What belongs to the longest of them, in files of its own.
from course.exercises.ch12 import allocator_checks, allocator_mutants
