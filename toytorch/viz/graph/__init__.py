"""Pictures of backward graphs and of modules."""
