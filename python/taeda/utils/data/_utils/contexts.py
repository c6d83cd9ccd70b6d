"""The multiprocessing contexts of loaders."""

from __future__ import annotations

from typing import Any

__all__ = ["worker_context"]


def worker_context(loader: Any) -> Any:
    """The multiprocessing context of a loader, its server of forks told what to load."""
    import multiprocessing

    context = loader.multiprocessing_context
    if context is None:
        context = multiprocessing.get_context()
    if getattr(context, "get_start_method", lambda: "")() == "forkserver":
        preload_forkserver()
    return context


def preload_forkserver() -> None:
    """Has multiprocessing's fork server import what workers need, once for all of them."""
    from multiprocessing import forkserver

    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if server._forkserver_pid is None:
        known = server._preload_modules
        names = ["taeda.utils.data._utils.worker_loop", "taeda.utils.data.dataloader"]
        server.set_forkserver_preload([*known, *(name for name in names if name not in known)])
