"""``python -m taeda.env``: versions, the CPU's features in use, threads, libraries."""

from __future__ import annotations

import os
import platform
import sys


def cpu_features() -> str:
    """The widest vector instructions that kernels use here: 'AVX512', 'AVX2' or 'DEFAULT'."""
    flags: set[str] = set()
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), flags)
    except OSError:
        pass
    limit = os.environ.get("TAEDA_CPU", "")
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags and limit in ("", "avx512"):
        return "AVX512"
    if {"avx2", "fma"} <= flags and limit != "baseline":
        return "AVX2"
    return "DEFAULT"


def cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def loaded_libraries() -> list[str]:
    """Shared libraries of this process that belong to taeda or that it stands on."""
    wanted = ("taeda", "dnnl", "openblas", "gomp", "hwy", "cuda", "cudnn", "nccl")
    found = set()
    try:
        with open("/proc/self/maps") as file:
            for line in file:
                path = line.split(maxsplit=5)[5].strip() if line.count("/") else ""
                if any(word in os.path.basename(path) for word in wanted):
                    found.add(path)
    except OSError:
        pass
    return sorted(found)


def report() -> str:
    """The text that ``python -m taeda.env`` prints."""
    import taeda
    from taeda import version

    lines = [
        f"taeda:         {version.taeda} at {os.path.dirname(taeda.__file__)}",
        f"torch API:     {version.__version__}",
        f"Python:        {platform.python_version()} ({sys.executable})",
        f"system:        {platform.platform()}",
        f"CPU:           {cpu_model()}",
        f"CPU features:  {cpu_features()}",
        f"threads:       {taeda.get_num_threads()}",
        f"CUDA:          {'available' if taeda.cuda.is_available() else 'no device found'}",
    ]
    numpy = sys.modules.get("numpy")
    lines.append(f"NumPy:         {numpy.__version__ if numpy else 'not loaded'}")
    lines += ["libraries:"] + [f"  {path}" for path in loaded_libraries()]
    settings = [
        f"  {k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("TAEDA_", "OMP_"))
    ]
    if settings:
        lines += ["environment:", *settings]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
