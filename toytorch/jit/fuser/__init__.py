"""Fusion: many ops in one pass over memory."""
