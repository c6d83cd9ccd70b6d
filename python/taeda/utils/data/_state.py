"""What the order of an epoch follows from, so that a DataLoader can draw it again."""

from __future__ import annotations

from typing import Any

import taeda

from ._utils.seeds import RandomState, state_tensor, taeda_state

__all__ = [
    "EpochStart",
    "Resuming",
    "generator_states",
    "generators_of",
    "restore_epoch_start",
    "set_generators",
]


def generators_of(loader: Any) -> list:
    """The generators that a loader and its samplers were given, each once."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    owners = (loader, loader.sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
    known = [getattr(owner, "generator", None) for owner in owners]
    found = [generator for generator in known if isinstance(generator, taeda.Generator)]
    return list(dict.fromkeys(found))


def _draws_here_only(loader: Any) -> bool:
    """Whether its samplers are taeda's, which use no other library's random numbers."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    owners = (loader.sampler, batch_sampler, getattr(batch_sampler, "sampler", None))
    return all(owner is None or type(owner).__module__.startswith("taeda.") for owner in owners)


def generator_states(generators: list) -> list[bytes]:
    """Their states as plain values."""
    return [bytes(generator.get_state().untyped_storage()) for generator in generators]


class EpochStart:
    """Generators as they are when an epoch begins."""

    def __init__(self, loader: Any) -> None:
        self._generators = generators_of(loader)
        self._explicit = generator_states(self._generators)
        own = _draws_here_only(loader)
        self._random = RandomState(None, taeda_state(), None) if own else RandomState.now()
        self._sampler = getattr(loader, "sampler", None)

    def state(self) -> dict[str, Any]:
        """Plain values, that any checkpoint can hold."""
        return {
            "random": tuple(self._random),
            "generators": self._explicit,
            "generators_now": generator_states(self._generators),
            "sampler_epoch": getattr(self._sampler, "epoch", None),
        }


def set_generators(loader: Any, states: list[bytes]) -> None:
    """Sets the generators that a loader and its samplers were given."""
    for generator, state in zip(generators_of(loader), states):
        generator.set_state(state_tensor(state))


def restore_epoch_start(loader: Any, state: dict[str, Any]) -> None:
    """Puts all generators where they were."""
    RandomState(*state["random"]).restore()
    set_generators(loader, state["generators"])
    if state["sampler_epoch"] is not None and hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(state["sampler_epoch"])


class Resuming:
    """Draws an epoch's order with the generators as they were when it began.

    Afterwards those that the loader was given are where they were when the state was taken, and the
    program's own where they are now. Does nothing without a state.
    """

    def __init__(self, loader: Any, state: dict[str, Any] | None) -> None:
        self._loader, self._state = loader, state
        self._now = RandomState()

    def __enter__(self) -> None:
        if self._state is not None:
            self._now = RandomState.now()
            restore_epoch_start(self._loader, self._state)

    def __exit__(self, *exc: object) -> None:
        if self._state is not None:
            self._now.restore()
            set_generators(self._loader, self._state["generators_now"])
