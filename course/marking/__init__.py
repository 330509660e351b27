"""Marking other people's notebooks: what they wrote runs apart, and a program tells the mark.

submissions.py   which notebooks lie in a folder, and whose they are
extract.py       the statements that an answer consists of, taken from the notebook's text
slice.py         which statements of a program take part in what a name means
execute.py       running them
screen.py        what no answer needs, found without running anything
worker.py        the process in which one answer runs, behind an audit hook and a sandbox
start.py         workers are forked from a process that has read the framework
supervisor.py   gives workers their jobs, watches time and memory
known.py        what earlier markings have found out
grade.py        verdicts and points

table.py        reading and writing CSV
roster.py       who is in the class
late.py         due dates, extensions, what coming late costs
by_hand.py      the lecturer's own points and comments
totals.py       points by student; tables for Moodle and Canvas
statistics.py   success, misconceptions and time by exercise
similar.py      answers that are too alike
pages.py        feedback for each student
dashboard.py    the class on a page
command.py      the command `grade`
notebook.py     the `check` that marks in nbgrader
"""
