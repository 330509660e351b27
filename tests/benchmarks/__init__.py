"""Call overhead and small training steps beside PyTorch: `python -m tests.benchmarks`."""
