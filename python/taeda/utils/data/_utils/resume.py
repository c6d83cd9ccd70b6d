"""What a pass goes on from after an interruption, as trainer and workers see it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .seeds import RandomState

__all__ = ["Delivered", "ResumeIteration", "WorkerResume", "go_back", "has_state"]


class ResumeIteration(NamedTuple):
    """Sent to persistent workers when the next epoch begins."""

    seed: int | None = None
    epoch: int = 0
    random: Any = None  # after the last batch that was given out; None where there was none
    left: tuple | None = None  # (the dataset's state then,) of an epoch that was left early


class WorkerResume:
    """What a worker goes on from: samples read, random numbers then and when the epoch began."""

    def __init__(
        self,
        samples: int,
        random: RandomState | None,
        dataset: Any,
        start: RandomState | None = None,
        ended: bool = False,
    ) -> None:
        self.samples, self.random, self.dataset, self.start = samples, random, dataset, start
        self.ended = ended

    @classmethod
    def of(cls, state: dict[str, Any], batch_size: int) -> WorkerResume:
        """Of what :meth:`Delivered.state` gave."""
        random, start = _state_or_none(state["random"]), _state_or_none(state.get("start"))
        ended = state.get("ended", False)
        return cls(state["batches"] * batch_size, random, state["dataset"], start, ended)


def _state_or_none(values: Any) -> RandomState | None:
    return None if values is None else RandomState(*values)


class Delivered:
    """What the batches of one worker that the program has got left behind.

    Random states are None until the worker has given a batch: they follow from its seed then.
    """

    def __init__(self, start: RandomState | None = None, dataset: Any = None) -> None:
        self.batches = 0
        self.random = self.start = start
        self.dataset = dataset  # the state of an iterable dataset that has one
        self.ended = False  # whether an iterable dataset with a state has

    def state(self) -> dict[str, Any]:
        """Plain values."""
        random, start = (None if x is None else tuple(x) for x in (self.random, self.start))
        return {
            "batches": self.batches, "random": random, "start": start, "dataset": self.dataset,
            "ended": self.ended,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Becomes what :meth:`state` was taken of."""
        self.batches, self.dataset = state["batches"], state["dataset"]
        self.random = _state_or_none(state["random"])
        self.start = _state_or_none(state.get("start"))
        self.ended = state.get("ended", False)


def has_state(dataset: Any) -> bool:
    """Whether a dataset can say where it is, and go there."""
    return hasattr(dataset, "state_dict") and hasattr(dataset, "load_state_dict")


def go_back(task: Any, message: ResumeIteration, first: Any) -> None:
    """Puts a dataset that was read ahead where the program left it; ``first`` is its state before
    it was read at all."""
    if message.left is None or first is None:
        return
    (state,) = message.left
    task.dataset.load_state_dict(first[0] if state is None else state)
