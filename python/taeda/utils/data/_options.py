"""Which arguments of a DataLoader go together."""

from __future__ import annotations

from typing import Any

from .dataset import IterableDataset

__all__ = [
    "check_batch_sampler_options",
    "check_context",
    "check_iterable_options",
    "check_sampler_options",
    "check_worker_options",
    "with_shuffling",
]


def check_context(context: Any, num_workers: int) -> Any:
    """A multiprocessing context of a start method's name; "thread" as it is."""
    if context is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    if context == "thread":
        return context
    import multiprocessing
    import multiprocessing.context

    if isinstance(context, str):
        valid = [*multiprocessing.get_all_start_methods(), "thread"]
        if context not in valid:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{valid!r}, but got multiprocessing_context={context!r}"
            )
        context = multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


def check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def check_iterable_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> bool:
    for name, value in (
        ("shuffle", shuffle),
        ("sampler", sampler),
        ("batch_sampler", batch_sampler),
    ):
        if value is not None and not (name == "shuffle" and value is False):
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified "
                f"{name} option, but got {name}={value}"
            )
    return False


def check_sampler_options(batch_size: Any, shuffle: bool, sampler: Any, drop_last: bool) -> None:
    """ValueError for what does not go together without a batch sampler."""
    _check_shuffle(sampler, shuffle)
    if batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def check_batch_sampler_options(
    batch_size: Any, shuffle: bool, sampler: Any, drop_last: bool
) -> None:
    """ValueError for what does not go together with a batch sampler."""
    _check_shuffle(sampler, shuffle)
    if batch_size != 1 or shuffle or sampler is not None or drop_last:
        raise ValueError(
            "batch_sampler option is mutually exclusive "
            "with batch_size, shuffle, sampler, and drop_last"
        )


def _check_shuffle(sampler: Any, shuffle: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")


def with_shuffling(pipe: Any, shuffle: bool | None) -> tuple[Any, bool | None]:
    """(the pipe, which shuffles as asked if it iterates, what is left to ask of a sampler)"""
    if not isinstance(pipe, IterableDataset):
        return pipe, shuffle
    from .graph_settings import apply_shuffle_settings

    return apply_shuffle_settings(pipe, shuffle), None
