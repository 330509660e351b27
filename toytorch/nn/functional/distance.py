"""How far apart vectors are."""

from toytorch.ops.define import PUBLIC
from toytorch.ops.linalg import distance
from toytorch.ops.linalg.distance import pairwise_distance

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]
cosine_similarity = PUBLIC["cosine_similarity"]
pdist = distance.pdist.function
