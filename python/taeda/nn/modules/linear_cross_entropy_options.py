"""How nn.LinearCrossEntropyLoss goes through its rows."""

from taeda.nn._functional.chunked_loss import LinearCrossEntropyOptions

__all__ = ["LinearCrossEntropyOptions"]
