"""Settings of PyTorch's compiler that programs change; this one has nothing to set."""

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_dynamic_output_shape_ops = capture_scalar_outputs = False
assume_static_by_default = True
automatic_dynamic_shapes = True
dynamic_shapes = True
optimize_ddp = True
suppress_errors = False
verbose = False
