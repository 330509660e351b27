"""Chapter 01, Tensors: shape, dtype, promotion, factories, and thinking without loops."""

# In the order in which the chapter has them.
from course.exercises.ch01.shape import shape
from course.exercises.ch01.dtype import dtype
from course.exercises.ch01.scalar import scalar
from course.exercises.ch01.arange import arange
from course.exercises.ch01.means import means
from course.exercises.ch01.parse import parse
