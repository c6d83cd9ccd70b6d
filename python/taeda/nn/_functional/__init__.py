"""The parts of taeda.nn.functional that are Python: PyTorch's signatures around table operators."""
