"""Chapter 05, In-place writes: leaves, counts of writes, views, no_grad, NaNs."""

# In the order in which the chapter has them.
from course.exercises.ch05.leaves import leaves
from course.exercises.ch05.counter import counter
from course.exercises.ch05.slices import slices
from course.exercises.ch05.quiet import quiet_exercise
from course.exercises.ch05.culprit import culprit
from course.exercises.ch05.versions import versions

# What belongs to the longest of them, in files of its own.
from course.exercises.ch05 import versions_checks, versions_mutants
