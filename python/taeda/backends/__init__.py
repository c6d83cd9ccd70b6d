"""What libraries stand behind the operators, and their switches.

The switches of absent libraries may be set, so that programs written for them run; they change
nothing.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any


def _library(name: str, available: bool, **flags: Any) -> types.ModuleType:
    module = types.ModuleType(f"{__name__}.{name}")
    module.__dict__.update(flags)
    module.__dict__.update(is_available=lambda: available, is_built=lambda: available)
    sys.modules[module.__name__] = module
    return module


@contextlib.contextmanager
def _cudnn_flags(**flags: Any) -> Iterator[None]:
    saved = {name: getattr(cudnn, name) for name in flags}
    cudnn.__dict__.update(flags)
    try:
        yield
    finally:
        cudnn.__dict__.update(saved)


cudnn = _library(
    "cudnn",
    False,
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    benchmark_limit=10,
    version=lambda: None,
    flags=_cudnn_flags,
)
cuda = _library(
    "cuda",
    False,
    matmul=types.SimpleNamespace(
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False,
    ),
    flash_sdp_enabled=lambda: False,
    mem_efficient_sdp_enabled=lambda: False,
    math_sdp_enabled=lambda: True,
    cudnn_sdp_enabled=lambda: False,
    enable_flash_sdp=lambda enabled: None,
    enable_mem_efficient_sdp=lambda enabled: None,
    enable_math_sdp=lambda enabled: None,
    enable_cudnn_sdp=lambda enabled: None,
)
mps = _library("mps", False)
mkl = _library("mkl", False)
mkldnn = _library("mkldnn", True, enabled=True)
openmp = _library("openmp", False)
quantized = _library("quantized", False, engine="none", supported_engines=["none"])


class _Cpu(types.ModuleType):
    @staticmethod
    def get_cpu_capability() -> str:
        from taeda.env import cpu_features

        return cpu_features()


cpu = _Cpu(f"{__name__}.cpu")
sys.modules[cpu.__name__] = cpu
