"""The device "meta": tensors that have a shape, a type and strides, and no memory."""
