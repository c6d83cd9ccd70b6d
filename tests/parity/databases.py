"""PyTorch's own databases of samples, which come with its wheel: operators, modules, optimizers.

They are written for PyTorch's test suite, which needs a package (`expecttest`) that the wheel does
not bring; of it only a base class of test cases is used while the databases are read.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
import unittest
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _stand_in_for_expecttest() -> None:
    if "expecttest" in sys.modules or importlib.util.find_spec("expecttest"):
        return
    module = types.ModuleType("expecttest")
    module.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    module.assert_expected_inline = None  # type: ignore[attr-defined]
    sys.modules["expecttest"] = module


@functools.cache
def operators() -> list[Any]:
    """PyTorch's OpInfos of dense tensors; those that compile for CUDA are left out."""
    _stand_in_for_expecttest()
    from torch.testing._internal.common_methods_invocations import op_db

    return [info for info in op_db if not info.name.startswith("jiterator")]


@functools.cache
def modules() -> list[Any]:
    _stand_in_for_expecttest()
    from torch.testing._internal.common_modules import module_db

    return list(module_db)


@functools.cache
def optimizers() -> list[Any]:
    _stand_in_for_expecttest()
    from torch.testing._internal.common_optimizers import optim_db

    return list(optim_db)


def title(info: Any) -> str:
    """An operator's name with that of its variant: `linalg.norm.subgradients_at_zero`."""
    variant = getattr(info, "variant_test_name", "")
    return f"{info.name}.{variant}" if variant else str(info.name)


def seed_of(*parts: Any) -> int:
    """The same in each process, unlike hash()."""
    return zlib.crc32(repr(parts).encode())


@contextmanager
def seeded(*parts: Any) -> Iterator[None]:
    """Draws the numbers of PyTorch, Python and NumPy from one seed."""
    import random

    import numpy as np
    import torch

    seed = seed_of(*parts)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a stack for each GPU
    random.seed(seed)
    np.random.seed(seed)
    yield


def samples(info: Any, dtype: Any, requires_grad: bool, more: bool, seed: int) -> Iterator[Any]:
    """An operator's samples: first sample_inputs, then, with `more`, reference_inputs."""
    with seeded(title(info), str(dtype), seed):
        yield from info.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    if more and info.reference_inputs_func is not None:
        with seeded(title(info), str(dtype), seed, "reference"):
            yield from info.reference_inputs("cpu", dtype, requires_grad=requires_grad)
