"""Pools of processes; tensors in arguments and results share their memory."""

from __future__ import annotations

import multiprocessing.pool
from typing import Any

__all__ = ["Pool"]


class Pool(multiprocessing.pool.Pool):
    """``multiprocessing.pool.Pool`` with queues for tensors.

    >>> import taeda as torch
    >>> with torch.multiprocessing.get_context("fork").Pool(2) as pool:
    ...     [x.item() for x in pool.map(torch.sum, [torch.ones(3), torch.ones(5)])]
    [3.0, 5.0]
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> None:
        from .context import get_context

        super().__init__(
            processes, initializer, initargs, maxtasksperchild, context or get_context()
        )
