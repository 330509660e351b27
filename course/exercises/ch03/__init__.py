"""Chapter 03, Operations: signatures, broadcasting, promotion, a dispatcher."""

# In the order in which the chapter has them.
from course.exercises.ch03.signature import signature
from course.exercises.ch03.broadcast import broadcast
from course.exercises.ch03.promote import promote
from course.exercises.ch03.dispatch import dispatch
from course.exercises.ch03.registry import registry
