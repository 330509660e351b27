"""Reading and writing chosen elements: subscripts, index tensors, gather and scatter."""
