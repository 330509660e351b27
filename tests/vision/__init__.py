"""Tests of toytorch.vision."""
