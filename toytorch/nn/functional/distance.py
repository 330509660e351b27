"""How far apart vectors are."""

from toytorch.ops.distance import cosine_similarity, pairwise_distance, pdist

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]
