"""Schedules of learning rates, by kind."""
