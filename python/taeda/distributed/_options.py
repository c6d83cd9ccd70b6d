"""Values that say how tensors and models would be sharded: programs make them before they ask.

They live under PyTorch's names, in torch.distributed.fsdp and torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import taeda
from taeda.nn.modules.batchnorm import _BatchNorm

# --- torch.distributed.fsdp ---


@dataclass
class CPUOffload:
    """Whether parameters lie in the CPU's memory while they are not used."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """The dtypes of parameters, of the reduction of gradients, and of buffers."""

    param_dtype: taeda.dtype | None = None
    reduce_dtype: taeda.dtype | None = None
    buffer_dtype: taeda.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class StateDictConfig:
    """Where the values of a state dict lie."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Of whole parameters, for the first process alone if so asked."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of each process's own part."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of shards that know which part of the whole they are."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Where the values of an optimizer's state dict lie."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Of whole parameters, for the first process alone if so asked."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of each process's own part."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of shards that know which part of the whole they are."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """A kind of state dicts and where the values of a model's and an optimizer's lie."""

    state_dict_type: Any
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, of the reduction of gradients, and of results: fully_shard's."""

    param_dtype: taeda.dtype | None = None
    reduce_dtype: taeda.dtype | None = None
    output_dtype: taeda.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where shards lie while they are not used: on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """In the CPU's memory, page-locked or not."""

    pin_memory: bool = True


# --- torch.distributed.tensor ---


class Placement:
    """How a tensor is spread over one dimension of a mesh of devices."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each device has a part of it, of dimension `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each device has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the whole is a reduction, `reduce_op` if that is given, of what devices have."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Parts of dimension `dim`."""

    dim: int

    def __post_init__(self) -> None:
        if not hasattr(self.dim, "__index__"):
            raise TypeError(f"Shard: dim must be an int, got {type(self.dim).__name__}")

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """The whole on each device."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """What must be reduced by `reduce_op` to be the whole."""

    reduce_op: str = "sum"
    LINEAR_REDUCE_OPS: ClassVar[frozenset[str]] = frozenset({"sum", "avg"})

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


_HOMES = {
    "torch.distributed.fsdp.api": (
        CPUOffload, MixedPrecision, StateDictConfig, FullStateDictConfig, LocalStateDictConfig,
        ShardedStateDictConfig, OptimStateDictConfig, FullOptimStateDictConfig,
        LocalOptimStateDictConfig, ShardedOptimStateDictConfig, StateDictSettings,
    ),
    "torch.distributed.fsdp": (MixedPrecisionPolicy, OffloadPolicy, CPUOffloadPolicy),
    "torch.distributed.tensor.placement_types": (Placement, Shard, Replicate, Partial),
}  # fmt: skip
for _home, _classes in _HOMES.items():
    for _class in _classes:
        _class.__module__ = _home.replace("torch", "taeda", 1)
