"""Settings for all pipes that one leads back to."""

from __future__ import annotations

from typing import Any

import taeda

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(datapipe: Any) -> list:
    """A pipe and those that it reads, each once."""
    found: dict[int, Any] = {}

    def visit(value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for item in value:
                visit(item)
        elif isinstance(value, (IterDataPipe, MapDataPipe)) and id(value) not in found:
            found[id(value)] = value
            visit(list(vars(value).values()))

    visit(datapipe)
    return list(found.values())


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turns all shuffling on or off; True adds one at the end where there is none."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_graph_pipes(datapipe) if hasattr(type(p), "set_shuffle")]
    if shuffle and not shufflers:
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Gives each pipe that draws a seed from a generator."""
    for pipe in get_all_graph_pipes(datapipe):
        if hasattr(type(pipe), "set_seed"):
            seed = taeda.empty((), dtype=taeda.int64).random_(generator=rng)
            pipe.set_seed(int(seed.item()))
    return datapipe


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, *_: Any) -> Any:
    """Tells all ``sharding_filter`` how many readers there are and which this is."""
    for pipe in get_all_graph_pipes(datapipe):
        if hasattr(type(pipe), "apply_sharding"):
            pipe.apply_sharding(num_of_instances, instance_id)
    return datapipe
