"""Where files that PyTorch has written look for nested tensors."""
