"""Reference implementations of layers' functions."""
