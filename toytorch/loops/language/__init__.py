"""Programs over named dimensions: what is computed, as text and as records."""
