"""Exercises, one module per chapter: ``ch01.py`` … ``ch20.py``."""
