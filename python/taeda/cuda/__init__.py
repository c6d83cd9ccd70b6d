"""CUDA devices, streams and memory, by PyTorch's names.

Importing this module touches no driver. With ``TAEDA_CUDA=driver`` in the environment, a question
(``is_available()``, ``device_count()``) opens it; what needs a device makes a context on it. Where
there is no device, questions are answered (False, 0, no memory is in use), seeds are accepted, and
what needs one raises what PyTorch's CPU build raises: functions AssertionError, classes
RuntimeError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _C, _missing
from taeda._C import AcceleratorError, OutOfMemoryError
from taeda.cuda._devices import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    preload,
    set_device,
    synchronize,
)
from taeda.cuda._devices import device_index as _get_device_index  # noqa: F401
from taeda.cuda._devices import init as _lazy_init  # noqa: F401
from taeda.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from taeda.cuda.memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from taeda.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from taeda.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "GreenContext",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "graph",
    "graph_pool_handle",
    "graphs",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "nvtx",
    "preload",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
    "use_mem_pool",
]

has_half = True
has_magma = False


class cudaStatus:
    """Results of the CUDA runtime's functions."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """A result of the CUDA runtime that is an error; taeda raises AcceleratorError instead."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """What a call raised that was put off until the driver had started; none is here."""


def _is_in_bad_fork() -> bool:
    return _C._cuda_is_forked_child()


def ipc_collect() -> None:
    """Nothing to collect: device memory is not shared between processes."""
    _C._cuda_initialize("torch.cuda.ipc_collect needs one")


def _absent(name: str, why: str) -> Any:
    """A function of PyTorch's that taeda does not have; without a device it says that first."""

    def function(*args: Any, **kwargs: Any) -> Any:
        _C._cuda_initialize(f"torch.cuda.{name} needs one")
        raise NotImplementedError(f"torch.cuda.{name}: {why}")

    return _missing.mark(function, f"torch.cuda.{name}", why)


def _absent_class(name: str, why: str) -> type:
    """A class of which no object can be made: without a device for want of one, else not at all."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        if not device_count():
            error = RuntimeError(f"no CUDA device was found: torch.cuda.{name} needs one")
            error.add_note(f"Fix: {_C._cuda_how_to_find_devices()}")
            raise error
        raise NotImplementedError(f"torch.cuda.{name}: {why}")

    found: Any = type(name, (), {"__new__": __new__})
    return _missing.mark(found, f"torch.cuda.{name}", why)


_LIBRARY = "taeda does not call NVIDIA's libraries; use the functions of torch"
_POOL = "taeda has one allocator of device memory; see TAEDA_CUDA_ALLOC_CONF for its options"
for _name, _why in {
    "cudart": _LIBRARY,
    "current_blas_handle": _LIBRARY,
    "current_solver_handle": _LIBRARY,
    "check_error": _LIBRARY,
    "get_sync_debug_mode": "taeda does not watch synchronization; use torch.profiler.profile",
    "set_sync_debug_mode": "taeda does not watch synchronization; use torch.profiler.profile",
    "change_current_allocator": _POOL,
    "caching_allocator_enable": _POOL,
    "caching_allocator_disabled": _POOL,
}.items():
    globals()[_name] = _absent(_name, _why)

CUDAPluggableAllocator = _absent_class("CUDAPluggableAllocator", _POOL)
GreenContext = _absent_class(
    "GreenContext", "taeda works in the device's primary context; use a torch.cuda.Stream"
)


_SUBMODULES = frozenset("amp graphs memory nvtx random streams".split())
_NVML = frozenset(
    "clock_rate device_memory_used memory_usage power_draw temperature utilization".split()
)


if TYPE_CHECKING:
    from taeda import BFloat16Tensor as BFloat16Tensor
    from taeda import BoolTensor as BoolTensor
    from taeda import ByteTensor as ByteTensor
    from taeda import CharTensor as CharTensor
    from taeda import DoubleTensor as DoubleTensor
    from taeda import FloatTensor as FloatTensor
    from taeda import HalfTensor as HalfTensor
    from taeda import IntTensor as IntTensor
    from taeda import LongTensor as LongTensor
    from taeda import ShortTensor as ShortTensor
    from taeda.cuda import amp as amp
    from taeda.cuda import graphs as graphs
    from taeda.cuda import memory as memory
    from taeda.cuda import nvtx as nvtx
    from taeda.cuda import random as random
    from taeda.cuda import streams as streams
    from taeda.cuda._nvml import clock_rate as clock_rate
    from taeda.cuda._nvml import device_memory_used as device_memory_used
    from taeda.cuda._nvml import memory_usage as memory_usage
    from taeda.cuda._nvml import power_draw as power_draw
    from taeda.cuda._nvml import temperature as temperature
    from taeda.cuda._nvml import utilization as utilization

    default_generators: tuple[Any, ...]
else:

    def __getattr__(name: str) -> Any:
        """``torch.cuda.amp`` without an import of its own, and ``torch.cuda.FloatTensor``."""
        found: Any
        if name in _SUBMODULES:
            import importlib

            found = importlib.import_module(f"taeda.cuda.{name}")
        elif name == "default_generators":
            from taeda.cuda.random import _generators as found

            return found()
        elif name in _NVML:
            from taeda.cuda import _nvml

            found = getattr(_nvml, name)
        elif name == "_initialized":
            return is_initialized()
        else:
            from taeda._dtypes import CUDA_TENSOR_TYPES

            if name not in CUDA_TENSOR_TYPES:
                return _missing.attribute(__name__, name)
            found = CUDA_TENSOR_TYPES[name]
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *_SUBMODULES, *_NVML, "default_generators", *_missing.names(__name__)}
    )
