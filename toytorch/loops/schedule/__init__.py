"""From a program and its arrays' layout to a nest of loops."""
