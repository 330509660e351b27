"""How LLVM says each primitive, and functions that it lacks."""
