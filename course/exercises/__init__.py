"""Exercises, a folder a chapter, a file an exercise."""
