"""Runs that TensorBoard can show: `SummaryWriter`, like `torch.utils.tensorboard`."""

from toytorch.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
