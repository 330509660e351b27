"""Pictures of the compiler: graphs, passes, kernels, traffic."""
