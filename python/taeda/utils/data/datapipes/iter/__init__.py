"""Pipes that iterate."""

from ..datapipe import IterDataPipe
from .callable import CollatorIterDataPipe as Collator
from .callable import MapperIterDataPipe as Mapper
from .combinatorics import SamplerIterDataPipe as Sampler
from .combinatorics import ShufflerIterDataPipe as Shuffler
from .combining import ConcaterIterDataPipe as Concater
from .combining import MultiplexerIterDataPipe as Multiplexer
from .combining import ZipperIterDataPipe as Zipper
from .grouping import BatcherIterDataPipe as Batcher
from .grouping import FilterIterDataPipe as Filter
from .grouping import GrouperIterDataPipe as Grouper
from .grouping import IterableWrapperIterDataPipe as IterableWrapper
from .grouping import ShardingFilterIterDataPipe as ShardingFilter
from .grouping import UnBatcherIterDataPipe as UnBatcher

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Filter",
    "Grouper",
    "IterDataPipe",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "UnBatcher",
    "Zipper",
]
