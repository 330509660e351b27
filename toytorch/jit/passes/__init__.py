"""Passes: functions from a graph to a graph, one idea each."""
