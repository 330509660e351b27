"""Marking other people's notebooks: what they wrote runs apart, and a program tells the mark.

submissions.py   which notebooks lie in a folder, and whose they are
extract.py       the statements that an answer consists of, taken from the notebook's text
slice.py         which statements of a program take part in what a name means
execute.py       running them
screen.py        what no answer needs, found without running anything
driver.py        the part of the checks that goes where answers run
worker.py        the process in which one answer runs, behind an audit hook and a sandbox
sandbox.py       what Linux itself refuses to it
plain.py         what it says of each case: values as data
referee.py       the process that judges these data, and never runs an answer
start.py         both are forked from processes that have read the framework
supervisor.py    gives them their jobs, watches time and memory
known.py         what earlier markings have found out
grade.py         verdicts and points

table.py         reading and writing CSV
roster.py        who is in the class
late.py          due dates, extensions, what coming late costs
by_hand.py       the lecturer's own points and comments
totals.py        points by student; tables for Moodle and Canvas
statistics.py    success, misconceptions and time by exercise
similar.py       answers that are too alike
pages.py         feedback for each student
dashboard.py     the class on a page
command.py       the command `grade`
notebook.py      the step that marks in nbgrader
"""
