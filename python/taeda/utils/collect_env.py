"""What a report of a bug needs to know of the machine and the installation.

``python -m taeda.utils.collect_env`` prints it.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import taeda

__all__ = [
    "SystemEnv",
    "get_clang_version",
    "get_cmake_version",
    "get_cpu_info",
    "get_env_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_nvidia_driver_version",
    "get_pretty_env_info",
    "main",
    "pretty_str",
]

_PACKAGES = ("taeda", "torch", "numpy", "mypy", "optree", "triton", "onnx")


class SystemEnv(NamedTuple):
    """The report; None for what is not there."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str | None


def run(command: Any) -> tuple[int, str, str]:
    """(status, output, errors) of a command; status 127 where there is no such program."""
    shell = isinstance(command, str)
    try:
        done = subprocess.run(command, shell=shell, capture_output=True, check=False)
    except OSError:
        return 127, "", "command not found"
    encoding = locale.getpreferredencoding(False)
    texts = (x.decode(encoding, "replace").strip() for x in (done.stdout, done.stderr))
    return (done.returncode, *texts)  # type: ignore[return-value]


_Run = Callable[[Any], tuple[int, str, str]]


def _found(run_lambda: _Run, command: str, pattern: str) -> str | None:
    """The group of the pattern in what the command prints; None where either fails."""
    status, output, _ = run_lambda(command)
    match = re.search(pattern, output) if status == 0 else None
    return match.group(1) if match else None


def get_gcc_version(run_lambda: _Run) -> str | None:
    """The version of gcc, as it names it."""
    return _found(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: _Run) -> str | None:
    """The version of clang."""
    return _found(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: _Run) -> str | None:
    """The version of CMake."""
    return _found(run_lambda, "cmake --version", r"cmake (.*)")


def get_nvidia_driver_version(run_lambda: _Run) -> str | None:
    """The version of NVIDIA's driver."""
    return _found(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: _Run) -> str | None:
    """The devices' names, a line each, without their identifiers."""
    status, output, _ = run_lambda("nvidia-smi -L")
    return re.sub(r" \(UUID: .+?\)", "", output) if status == 0 else None


def get_cpu_info(run_lambda: _Run) -> str:
    """What lscpu says of the processor."""
    status, output, errors = run_lambda("lscpu")
    return output if status == 0 else errors


def _first_line(command: list[str]) -> str | None:
    status, output, _ = run(command)
    return output.splitlines()[0] if status == 0 and output else None


def _os_name() -> str:
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            for line in file:
                if line.startswith("PRETTY_NAME="):
                    return f"{line.partition('=')[2].strip().strip(chr(34))} ({platform.machine()})"
    except OSError:
        pass
    return f"{platform.system()} ({platform.machine()})"


def _packages() -> str:
    from importlib import metadata

    found = []
    for name in _PACKAGES:
        try:
            found.append(f"[pip3] {name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(found)


def _pip_version() -> str:
    return "pip3" if sys.version_info[0] == 3 else "pip"


def get_env_info() -> SystemEnv:
    """The report, parts of which other programs are asked for."""
    unavailable = "N/A"
    return SystemEnv(
        torch_version=str(taeda.__version__),
        is_debug_build=str(False),
        cuda_compiled_version=taeda.version.cuda or "None",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=_os_name(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace(
            "\n", " "
        ),
        python_platform=platform.platform(),
        is_cuda_available=str(taeda.cuda.is_available()),
        cuda_runtime_version=None,
        cuda_module_loading=os.environ.get("CUDA_MODULE_LOADING", unavailable),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=None,
        is_xpu_available=str(False),
        pip_version=_pip_version(),
        pip_packages=_packages(),
        conda_packages=None,
        hip_compiled_version=unavailable,
        hip_runtime_version=unavailable,
        miopen_runtime_version=unavailable,
        caching_allocator_config=os.environ.get("PYTORCH_ALLOC_CONF", unavailable),
        is_xnnpack_available=str(False),
        cpu_info=_first_line(["sh", "-c", "lscpu | grep 'Model name'"]),
    )


_FORMAT = """
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
"""


def pretty_str(envinfo: SystemEnv) -> str:
    """The report as text."""
    values = envinfo._asdict()
    return _FORMAT.strip().format(
        **{key: "Could not collect" if value is None else value for key, value in values.items()}
    )


def get_pretty_env_info() -> str:
    """The report of this machine as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints them."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
