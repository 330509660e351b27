"""One suite over every op record: samples, and what is checked of them against PyTorch."""
