"""Marking other people's notebooks: what they wrote runs apart, and a program tells the mark.

submissions.py   which notebooks lie in a folder, and whose they are
extract.py       the statements that an answer consists of, taken from the notebook's text
slice.py         which statements of a program take part in what a name means
execute.py       running them
screen.py        what no answer needs, found without running anything
worker.py        the process in which one answer runs, behind an audit hook and a sandbox
start.py         workers are forked from a process that has read the framework
supervisor.py        gives workers their jobs, watches time and memory
grade.py         verdicts, points, the CSV file and the feedback pages
"""
