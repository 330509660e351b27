"""Devices: one module each, behind the protocol of `base`."""

from toytorch.backends import base, cupy, numpy

base.register("cpu", numpy.backend)
base.register("cuda", cupy.backend)
