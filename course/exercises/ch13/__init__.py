"""Chapter 13, Tracing and scripting: symbols, a graph, a tracer, what it misses, a small compiler."""

# In the order in which the chapter has them.
from course.exercises.ch13.symbols import symbols
from course.exercises.ch13.graph import own_graph
from course.exercises.ch13.trace import own_trace
from course.exercises.ch13.missed import missing
from course.exercises.ch13.script import own_script

# What belongs to the longest of them, in files of their own.
from course.exercises.ch13 import graph_checks, graph_mutants
from course.exercises.ch13 import script_checks, script_mutants
