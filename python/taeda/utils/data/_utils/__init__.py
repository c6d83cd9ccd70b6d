"""The inside of the DataLoader, at the addresses where PyTorch has it."""

from . import collate, worker

__all__ = ["collate", "worker"]
