"""Backward passes, step by step."""
