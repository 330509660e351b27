"""What happens in a call: types, memory, tensors, the op record, dispatch."""
