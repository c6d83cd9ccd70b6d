"""What DataLoader.state_dict() gives, and which of it a loader accepts."""

from __future__ import annotations

from typing import Any

from ._state import generator_states, generators_of, set_generators

__all__ = ["check_state", "complete_state", "is_in_epoch", "restore_between_epochs"]

_VERSION = 1
_WHERE = "DataLoader.load_state_dict"
_Kinds = dict[str, tuple[type, ...]]
_SEQUENCE = (list, tuple)
_ALWAYS: _Kinds = {"num_workers": (int,), "batches": (int,), "finished": (bool,)}
_IN_EPOCH: _Kinds = {
    "random": _SEQUENCE, "generators": _SEQUENCE, "generators_now": _SEQUENCE,
    "sampler_epoch": (int, type(None)), "loader": (dict,),
}  # fmt: skip
_OF_WORKERS: _Kinds = {
    "base_seed": (int,), "shared_seed": (int, type(None)), "received": (int,), "sent": (int,),
    "pending": _SEQUENCE, "active": _SEQUENCE, "next_worker": (int,), "workers": _SEQUENCE,
}  # fmt: skip


def complete_state(loader: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a pass with what its loader has to say."""
    complete = {
        "version": _VERSION,
        "num_workers": loader.num_workers,
        "loader": _settings(loader),
        **state,
    }
    if not is_in_epoch(complete):  # where the next epoch's order is drawn from
        complete["generators_now"] = generator_states(generators_of(loader))
    return complete


def is_in_epoch(state: dict[str, Any]) -> bool:
    """Whether it was taken after an epoch's first batch and before its end."""
    return state["batches"] > 0 and not state["finished"]


def restore_between_epochs(loader: Any, state: dict[str, Any]) -> None:
    """Puts the generators that the loader was given where its next epoch's order comes from."""
    has_begun = not state["finished"] and "generators" in state
    states = state["generators"] if has_begun else state.get("generators_now", [])
    set_generators(loader, states)


def check_state(loader: Any, state: Any) -> None:
    """TypeError or ValueError where a loader cannot go on from a state."""
    if not isinstance(state, dict):
        raise TypeError(
            f"{_WHERE}: expected the dict that state_dict() gives, got {type(state).__name__}"
        )
    if state.get("version") != _VERSION:
        raise ValueError(
            f"{_WHERE}: expected what state_dict() gives (version {_VERSION}), got version "
            f"{state.get('version')!r}"
        )
    _check_keys(state, _ALWAYS)
    if not is_in_epoch(state):
        return
    workers = state["num_workers"]
    if workers != loader.num_workers:
        raise ValueError(
            f"{_WHERE}: the state is of a loader with num_workers={workers}, "
            f"this one has {loader.num_workers}"
        )
    _check_keys(state, _IN_EPOCH | (_OF_WORKERS if workers > 0 else {}))
    _check_settings(state["loader"], _settings(loader))


def _check_keys(state: dict[str, Any], kinds: _Kinds) -> None:
    missing = [name for name in kinds if name not in state]
    if missing:
        raise ValueError(
            f"{_WHERE}: expected what state_dict() gives, got a dict without "
            + ", ".join(map(repr, missing))
        )
    for name, types in kinds.items():
        if not isinstance(state[name], types):
            expected = " or ".join("None" if t is type(None) else t.__name__ for t in types)
            raise TypeError(
                f"{_WHERE}: expected state_dict()[{name!r}] to be {expected}, "
                f"got {type(state[name]).__name__}"
            )


def _settings(loader: Any) -> dict[str, Any]:
    """What the batches of an epoch follow from, besides random numbers."""
    return {
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
        "sampler": type(loader.sampler).__name__,
        "batch_sampler": type(loader.batch_sampler).__name__,
        "samples": _length(loader),
    }


def _length(loader: Any) -> int | None:
    from .dataset import IterableDataset

    if isinstance(loader.dataset, IterableDataset):
        return None
    try:
        return len(loader.dataset)
    except (TypeError, NotImplementedError):
        return None


def _check_settings(saved: dict[str, Any], own: dict[str, Any]) -> None:
    differing = [name for name in own if saved.get(name) != own[name]]
    if not differing:
        return
    of_state = ", ".join(f"{name}={saved.get(name)}" for name in differing)
    of_loader = ", ".join(f"{name}={own[name]}" for name in differing)
    raise ValueError(
        f"{_WHERE}: the state is of a loader with {of_state}, this one has {of_loader}"
    )
