"""Simulated devices: real results, virtual time (see `machine` for the time, `launch` for results)."""
