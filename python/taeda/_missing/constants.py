"""Constants of PyTorch's modules that nothing here uses, and programs read."""

from __future__ import annotations

import sys

_WHY = "a constant"
_LINUX, _MAC, _WINDOWS = (sys.platform.startswith(name) for name in ("linux", "darwin", "win32"))

MODULES = {
    "torch.serialization": (
        _WHY,
        "LONG_SIZE=4 INT_SIZE=4 SHORT_SIZE=2 MAGIC_NUMBER=119547037146038801333356 "
        f"PROTOCOL_VERSION=1001 STORAGE_KEY_SEPARATOR=',' IS_WINDOWS={_WINDOWS} MAP_PRIVATE=2 "
        "MAP_SHARED=1",
    ),
    "torch.utils.cpp_extension": (
        _WHY,
        f"IS_WINDOWS={_WINDOWS} IS_MACOS={_MAC} IS_LINUX={_LINUX} "
        f"LIB_EXT={'.pyd' if _WINDOWS else '.so'!r} EXEC_EXT={'.exe' if _WINDOWS else ''!r} "
        f"CLIB_PREFIX={'' if _WINDOWS else 'lib'!r} "
        f"CLIB_EXT={'.dll' if _WINDOWS else '.so'!r} "
        f"SHARED_FLAG={'/DLL' if _WINDOWS else '-shared'!r} SUBPROCESS_DECODE_ARGS=() "
        "CUDNN_HOME=None HIP_HOME=None IS_HIP_EXTENSION=False ROCM_HOME=None ROCM_VERSION=None "
        "SYCL_HOME=None WINDOWS_CUDA_HOME=None",
    ),
    "torch.onnx": (_WHY, "producer_name='pytorch' producer_version='2.13.0'"),
    "torch.autograd.profiler": (
        _WHY, "MEMORY_EVENT_NAME='[memory]' OUT_OF_MEMORY_EVENT_NAME='[OutOfMemory]'"
    ),
    "torch.cuda": (_WHY, "Device=torch.types.Device"),
    "torch.cuda.nccl": (_WHY, "SUM=0"),
    "torch.cuda.green_contexts": (_WHY, "SUPPORTED=False"),
    "torch.mtia": (_WHY, "Device=torch.types.Device default_generators=()"),
    "torch.mtia.memory": (_WHY, "Device=torch.types.Device"),
    "torch.xpu.memory": (_WHY, "Device=torch.types.Device"),
    "torch.export": (_WHY, "DEFAULT_PICKLE_PROTOCOL=2"),
    "torch.fx.graph_module": (_WHY, "FX_GRAPH_MODULE_FILE_PREFIX='fx_generated_'"),
}  # fmt: skip
