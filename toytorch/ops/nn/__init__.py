"""Ops of neural networks: convolution, pooling, normalisation, attention, losses."""
