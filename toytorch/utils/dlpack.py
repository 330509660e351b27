"""Memory shared with other libraries, like `torch.utils.dlpack`."""

from toytorch.ops.creation.dlpack import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
