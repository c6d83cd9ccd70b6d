"""Reference implementations: those of torch.fft."""

from __future__ import annotations

from taeda.fft import *  # noqa: F403
