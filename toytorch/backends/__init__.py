"""Devices: one module each, behind the protocol of `base`."""

from toytorch.backends import base, cupy, numpy, sparse

base.register("cpu", numpy.backend)
base.register("cuda", cupy.backend)
base.register("sparse", sparse.backend)  # a layout on the devices above, no device of its own
