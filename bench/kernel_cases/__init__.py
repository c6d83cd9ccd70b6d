"""Single kernels against what the machine can do: the suite `kernels`.

Each file of this folder holds the cases of a family and is found by being here.
"""

import importlib
import pkgutil

from kernel_cases.registry import BYTES, COPIES, FLOPS, KERNELS, PAIRS, yardstick

__all__ = ["BYTES", "COPIES", "FLOPS", "KERNELS", "PAIRS", "yardstick"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
