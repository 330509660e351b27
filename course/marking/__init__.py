"""Marking other people's notebooks: what they wrote runs apart, and a program tells the mark.

submissions.py   which notebooks lie in a folder, and whose they are
extract.py       the definitions that an answer consists of, taken from the notebook's text
screen.py        what no answer needs, found without running anything
worker.py        the process in which one answer runs, behind a wall
warden.py        starts workers, watches time and memory, ends them
grade.py         verdicts, points, the CSV file and the feedback pages
"""
