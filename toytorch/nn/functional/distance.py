"""How far apart vectors are."""

from toytorch.ops.define import PUBLIC
from toytorch.ops.linalg.distance import pairwise_distance, pdist

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]
cosine_similarity = PUBLIC["cosine_similarity"]
