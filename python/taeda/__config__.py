"""How taeda was built and what it computes with.

>>> print(torch.__config__.show().splitlines()[0])
taeda built with:
"""

from __future__ import annotations

import os

from taeda import _C
from taeda.version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The compiler, the libraries and the CPU's instructions in use, as text."""
    lines = [
        f"C++: {_cxx_flags()}, {_C._compiler}",
        f"CPU capability usage: {_capability()}",
        f"Build settings: TAEDA_VERSION={__version__}, USE_CUDA=0, USE_MKL=0, USE_MKLDNN=1, "
        "USE_OPENMP=0, LAPACK_INFO=open",
    ]
    return "taeda built with:\n" + "".join(f"  - {line}\n" for line in lines)


def _capability() -> str:
    from taeda import backends

    return backends.cpu.get_cpu_capability()


def _cxx_flags() -> str:
    """The standard that the core is written in."""
    return "-std=c++20"


def parallel_info() -> str:
    """The number of threads, and what sets it."""
    variables = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    set_to = (f"\t{name} : {os.environ.get(name, '[not set]')}" for name in variables)
    return "\n".join(
        [
            "ATen/Parallel:",
            f"\tat::get_num_threads() : {_C.get_num_threads()}",
            f"hardware threads : {os.cpu_count()}",
            "Environment variables:",
            *set_to,
            "ATen parallel backend: taeda's own pool\n",
        ]
    )
