"""torchvision, https://github.com/pytorch/vision."""
