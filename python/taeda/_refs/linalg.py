"""Reference implementations: those of torch.linalg."""

from __future__ import annotations

from taeda.linalg import *  # noqa: F403
