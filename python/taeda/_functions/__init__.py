"""Functions of torch's own that are compositions in Python, loaded when a program names one."""
