"""Ops of each element by itself: arithmetic, comparisons, elementary functions, activations."""
