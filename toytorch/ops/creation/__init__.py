"""Tensors from nothing, from numbers, from chance; conversion between types and devices."""
