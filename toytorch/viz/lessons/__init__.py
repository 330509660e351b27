"""Pictures of single lessons: batches, boundaries, loaders, walks, signals."""
