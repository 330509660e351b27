"""Tests of toytorch.trainer."""
