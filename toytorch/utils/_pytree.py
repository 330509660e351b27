"""Nested containers, under the name that scripts import."""

from toytorch.facts.pytree import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]
