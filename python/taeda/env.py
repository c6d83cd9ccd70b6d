"""``python -m taeda.env``: what a report of a fault has to say of the machine.

Versions, the CPU and its features in use, threads, memory, devices, packages, how the core was
built, libraries and the environment variables that matter.
"""

from __future__ import annotations

import os
import platform
import sys


def cpu_features() -> str:
    """The widest vector instructions that kernels use here: 'AVX512', 'AVX2' or 'DEFAULT'."""
    flags: set[str] = set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), flags)
    except OSError:
        pass
    limit = os.environ.get("TAEDA_CPU", "")
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags and limit in ("", "avx512"):
        return "AVX512"
    if {"avx2", "fma"} <= flags and limit != "baseline":
        return "AVX2"
    return "DEFAULT"


def cpu_flags() -> str:
    """All vector and matrix instructions of the CPU, as the kernel names them."""
    wanted = ("sse", "ssse", "avx", "amx", "fma", "f16c", "bmi", "popcnt")
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line.split(":", 1)[1] for line in file if line.startswith("flags")), "")
    except OSError:
        flags = ""
    return " ".join(flag for flag in flags.split() if flag.startswith(wanted)) or "unknown"


def commit() -> str:
    """The commit that a wheel was made of, or of the clone that the package lies in, and whether
    files differ from it."""
    import subprocess

    try:
        with open(os.path.join(os.path.dirname(__file__), "COMMIT"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        pass  # no wheel's package
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    if not os.path.exists(os.path.join(root, ".git")):  # a folder, or a work tree's file
        return "unknown (not in a clone)"
    try:
        asked = subprocess.run(
            ["git", "-C", root, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],
            capture_output=True, text=True, timeout=20,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown (git does not run)"
    return asked.stdout.strip() or "unknown"


def cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
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
        with open("/proc/self/maps", encoding="utf-8") as file:
            for line in file:
                path = line.split(maxsplit=5)[5].strip() if line.count("/") else ""
                if any(word in os.path.basename(path) for word in wanted):
                    found.add(path)
    except OSError:
        pass
    return sorted(found)


def library_version(path: str) -> str:
    """What oneDNN and OpenBLAS say that they are, " (oneDNN 3.7.1)"; "" of other libraries."""
    import ctypes

    class Version(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in ("major", "minor", "patch")]

    if not any(word in os.path.basename(path) for word in ("dnnl", "openblas")):
        return ""
    library = ctypes.CDLL(path)  # it is loaded already
    if hasattr(library, "dnnl_version"):
        library.dnnl_version.restype = ctypes.POINTER(Version)
        found = library.dnnl_version().contents
        return f" (oneDNN {found.major}.{found.minor}.{found.patch})"
    config = "openblas_get_config"
    for name in (f"scipy_{config}", f"scipy_{config}64_", config):
        if hasattr(library, name):
            ask = getattr(library, name)
            ask.restype = ctypes.c_char_p
            return f" ({ask().decode().strip()})"
    return ""


def memory_text() -> str:
    """What the machine has, what of it is free, and what a container allows, in GiB."""

    def gib(count: int) -> str:
        return f"{count / 2**30:.1f} GiB"

    found = {}
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            for line in file:
                name, _, rest = line.partition(":")
                found[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return "unknown"
    text = f"{gib(found.get('MemTotal', 0))}, {gib(found.get('MemAvailable', 0))} available"
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="utf-8") as file:
            limit = file.read().strip()
    except OSError:
        limit = "max"
    return text + (f", limited to {gib(int(limit))}" if limit.isdigit() else "")


def cpu_count_text() -> str:
    """The cores, those that this process may use, and what taeda takes."""
    import taeda

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{taeda.get_num_threads()} ({os.cpu_count()} CPUs, {usable} for this process)"


def device_lines() -> list[str]:
    """CUDA's devices, or why there is none."""
    import taeda

    packed = os.path.join(os.path.dirname(taeda.__file__), "lib", "taeda_kernels.bin")
    kernels = f"CUDA kernels:  {packed if os.path.exists(packed) else 'none in the package'}"
    if os.environ.get("TAEDA_CUDA", "") == "":
        return ["CUDA:          not asked for (TAEDA_CUDA is not set)", kernels]
    try:
        count = taeda.cuda.device_count()
        lines = [kernels, f"CUDA:          {count or 'no'} device{'' if count == 1 else 's'}"]
        for i in range(count):
            found = taeda.cuda.get_device_properties(i)
            gib = found.total_memory / 2**30
            lines.append(f"  {found.name}, {gib:.1f} GiB, capability {found.major}.{found.minor}")
        return lines
    except (RuntimeError, AssertionError) as error:
        return [f"CUDA:          {type(error).__name__}: {str(error).splitlines()[0]}"]


def package_lines() -> list[str]:
    """Versions of installed distributions that programs use beside taeda."""
    from importlib import metadata

    wanted = ("numpy", "torch", "torchvision", "scipy", "safetensors", "transformers", "lightning")
    found = []
    for name in wanted:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        shim = " (taeda's shim)" if name == "torch" and version.endswith("+taeda") else ""
        loaded = "" if name in sys.modules else ", not loaded"
        found.append(f"  {name} {version}{shim}{loaded}")
    return ["packages:", *found] if found else ["packages:      none of those that matter here"]


def build_lines() -> list[str]:
    """How the core was built."""
    from taeda import __config__

    return ["build:", *(f"  {line.strip(' -')}" for line in __config__.show().splitlines()[1:])]


def report() -> str:
    """The text that ``python -m taeda.env`` prints, for bug reports."""
    import taeda
    from taeda import version

    libc = " ".join(platform.libc_ver()) or "unknown"
    lines = [
        f"taeda:         {version.taeda} at {os.path.dirname(taeda.__file__)}",
        f"commit:        {commit()}",
        f"torch API:     {version.__version__}",
        f"Python:        {platform.python_version()} ({sys.executable})",
        f"system:        {platform.platform()}, C library {libc}",
        f"CPU:           {cpu_model()}",
        f"CPU features:  {cpu_features()} in use; of {cpu_flags()}",
        f"threads:       {cpu_count_text()}",
        f"memory:        {memory_text()}",
        *device_lines(),
        *package_lines(),
        *build_lines(),
        "libraries:",
        *(f"  {path}{library_version(path)}" for path in loaded_libraries()),
    ]
    names = ("TAEDA_", "OMP_", "CUDA_", "PYTORCH_", "TORCH_")
    chosen = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH")
    settings = [
        f"  {k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(names) or k in chosen
    ]
    if settings:
        lines += ["environment:", *settings]
    return "\n".join(lines)


def main() -> None:
    """Prints the report; a reader that has gone away, as in ``| head``, ends it quietly."""
    try:
        print(report(), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes


if __name__ == "__main__":
    main()
