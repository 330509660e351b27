"""Ops that take elements together: sums, extremes, scans, sorting, counting."""
