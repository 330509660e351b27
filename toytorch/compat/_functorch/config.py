"""Settings of PyTorch's ahead-of-time autograd that programs change; there is nothing to set here."""

activation_memory_budget = 1.0
donated_buffer = False
functionalize_rng_ops = False
use_fake_tensor = True
debug_assert = False
