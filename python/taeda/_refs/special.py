"""Reference implementations: those of torch.special."""

from __future__ import annotations

from taeda.special import *  # noqa: F403
