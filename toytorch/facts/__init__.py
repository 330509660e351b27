"""What needs no data: types, sizes, devices, schemas, nodes, and the state of a thread."""
