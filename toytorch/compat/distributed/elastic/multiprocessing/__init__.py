"""Errors of processes: `errors`."""
