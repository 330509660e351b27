"""What of `torch.distributed.algorithms._checkpoint` needs no second process."""
