"""What of `torch.distributed.elastic` a program that was not launched by it uses."""
