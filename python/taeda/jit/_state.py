"""Whether `torch.jit.script` and `trace` wrap what they are given: the variable PYTORCH_JIT."""

from __future__ import annotations

import os


class EnabledProxy:
    """The switch: true unless PYTORCH_JIT is 0 in the environment."""

    def __init__(self) -> None:
        self.enabled = self.parse_env(
            "PYTORCH_JIT", True, "> Using PyTorch JIT", "> PyTorch JIT DISABLED"
        )

    def parse_env(self, name: str, default: bool, true_message: str, false_message: str) -> bool:
        """A variable as a bool; ``1v`` and ``0v`` print the message too."""
        value = os.environ.get(name)
        if value is None:
            return default
        if value in ("1v", "0v"):
            print(true_message if value == "1v" else false_message)
        if value.lower() in ("1", "true", "yes", "1v"):
            return True
        if value.lower() in ("0", "false", "no", "0v"):
            return False
        raise ValueError(f"Unknown setting of {name}. Try using 0 or 1.")

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()


def disable() -> None:
    """From here on `script` and `trace` give back what they are given."""
    _enabled.enabled = False


def enable() -> None:
    """They wrap it again."""
    _enabled.enabled = True
