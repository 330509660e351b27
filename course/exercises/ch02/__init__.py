"""Chapter 02, Memory: cells, strides, contiguity, views, stretched dimensions, windows."""

# In the order in which the chapter has them.
from course.exercises.ch02.cell import cell
from course.exercises.ch02.strides import strides
from course.exercises.ch02.contiguous import contiguous
from course.exercises.ch02.view import view
from course.exercises.ch02.expand import expand
from course.exercises.ch02.windows import sliding
from course.exercises.ch02.layout import layout
