"""What of `torch.distributed.algorithms` needs no second process."""
