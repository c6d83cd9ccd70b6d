"""Datasets, samplers and the DataLoader."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from taeda import _C, _missing

from .dataloader import DataLoader, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SharedList",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]

for _class in [v for v in globals().values() if isinstance(v, type)]:
    _C._hint_keywords(_class)
del _class

_PIPES = ("IterDataPipe", "MapDataPipe", "functional_datapipe")


if TYPE_CHECKING:
    from taeda.utils.data import datapipes as datapipes
    from taeda.utils.data import graph_settings as graph_settings
    from taeda.utils.data.datapipes.datapipe import IterDataPipe as IterDataPipe
    from taeda.utils.data.datapipes.datapipe import MapDataPipe as MapDataPipe
    from taeda.utils.data.datapipes.datapipe import functional_datapipe as functional_datapipe
    from taeda.utils.data.shared_list import SharedList as SharedList
else:

    def __getattr__(name: str) -> Any:
        if name in _PIPES:
            return getattr(importlib.import_module(f"{__name__}.datapipes.datapipe"), name)
        if name == "_DatasetKind":
            return importlib.import_module(f"{__name__}.dataloader")._DatasetKind
        if name == "SharedList":
            return importlib.import_module(f"{__name__}.shared_list").SharedList
        if name in ("datapipes", "graph_settings"):
            return importlib.import_module(f"{__name__}.{name}")
        return _missing.attribute(__name__, name)


def __dir__() -> list[str]:
    extra = {*_PIPES, "datapipes", "SharedList", *_missing.names(__name__)}
    return sorted({*globals(), *extra})
