"""Whole models in training, as plain PyTorch programs; worker.py runs them under a framework."""
